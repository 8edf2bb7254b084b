//! The last observations and infos of episodes that ended in a step that also began the next ones.

use std::fmt;
use std::marker::PhantomData;

use cartwheel_core::Leaf;
use cartwheel_core::info::{InfoReader, Value};

use super::infos::{FINAL_INFO, FINAL_OBS, InfoRow, Infos};
use super::observations::Observations;
use crate::Error;
use crate::env::{Arrays, Env, View};

/// The last observations and infos of the rows of a batch whose episodes ended in it.
pub struct Finals<'a, E> {
    places: Vec<usize>,
    observations: Arrays,
    infos: Vec<InfoRow<'a>>,
    env: PhantomData<fn() -> E>,
}

impl<E> fmt::Debug for Finals<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finals")
            .field("env", &std::any::type_name::<E>())
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

impl<'a, E: Env> Finals<'a, E> {
    /// Reads them from the infos of a batch whose observations have these leaves.
    pub(super) fn new(infos: Infos<'a>, leaves: Vec<Leaf>) -> Result<Self, Error> {
        let (mut places, mut own) = (Vec::new(), Vec::new());
        let mut bytes = vec![Vec::new(); leaves.len()];
        for place in infos.places_with(FINAL_OBS) {
            let row = infos.row(place);
            let Some(at) = row.value_at(FINAL_OBS) else { continue };
            places.push(place);
            let malformed = || Error::MalformedInfo { at };
            let mut left = bytes.iter_mut().zip(&leaves);
            read(&mut InfoReader::new(row.stream(), at), &mut |elements| {
                let next = left.next().filter(|(_, leaf)| elements.len() <= leaf.row_bytes());
                let (bytes, leaf) = next.ok_or_else(malformed)?;
                bytes.extend_from_slice(elements);
                bytes.resize(places.len() * leaf.row_bytes(), 0); // behind a text
                Ok(())
            })?;
            if left.next().is_some() {
                return Err(malformed());
            }
            own.push(row.dict(FINAL_INFO)?.unwrap_or_else(InfoRow::empty));
        }
        let mut observations = Arrays::new(leaves, places.len());
        for (leaf, bytes) in bytes.iter().enumerate() {
            observations.store(leaf, bytes);
        }
        Ok(Self { places, observations, infos: own, env: PhantomData })
    }

    /// The places of the rows in the batch, ascending.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Whether no episode ended.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The last observations, one for each of [`Finals::places`].
    pub fn observations(&self) -> Observations<'_, E::Observation> {
        Observations::new(self.observations.rows(E::Observation::rows), self.places.len())
    }

    /// The last observation of the row in place `at` of the batch; `None` if its episode did not
    /// end.
    pub fn observation(&self, at: usize) -> Option<<E::Observation as View>::Ref<'_>> {
        Some(self.observations().row(self.places.binary_search(&at).ok()?))
    }

    /// The last info of the row in place `at` of the batch; `None` if its episode did not end.
    pub fn info(&self, at: usize) -> Option<&InfoRow<'a>> {
        Some(&self.infos[self.places.binary_search(&at).ok()?])
    }

    /// The bytes of the observation of the row in place `at`, leaf after leaf.
    pub(crate) fn observation_bytes(&self, at: usize) -> Option<Vec<u8>> {
        let (number, count) = (self.places.binary_search(&at).ok()?, self.places.len());
        let mut all = Vec::new();
        for leaf in 0..self.observations.leaves() {
            let (bytes, row) = (self.observations.bytes(leaf), number);
            let length = bytes.len() / count;
            all.extend_from_slice(&bytes[row * length..][..length]);
        }
        Some(all)
    }

    /// The bytes of a leaf of all of them.
    pub(super) fn leaf_bytes(&self, leaf: usize) -> &[u8] {
        self.observations.bytes(leaf)
    }
}

/// Gives the bytes of each leaf of an observation that was written as a value.
fn read(
    reader: &mut InfoReader<'_>,
    leaf: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let malformed = Error::MalformedInfo { at: reader.at() };
    match reader.value()? {
        Value::Int(int) => leaf(&int.to_ne_bytes()),
        Value::Array(_, _, elements) => leaf(elements),
        Value::Text(text) => {
            let length = u32::try_from(text.len()).map_err(|_| malformed)?;
            leaf(&[&length.to_ne_bytes(), text.as_bytes()].concat())
        }
        Value::Tuple(parts) => (0..parts).try_for_each(|_| read(reader, leaf)),
        Value::Dict(parts) => (0..parts).try_for_each(|_| {
            reader.entry()?;
            read(reader, leaf)
        }),
        _ => Err(malformed),
    }
}
