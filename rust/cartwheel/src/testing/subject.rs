//! The environment under test, and what it is compared with.

use std::ops::Range;
use std::sync::Arc;

use cartwheel_core::Leaf;
use cartwheel_core::space::{Space, Spaces};

use super::STEPS;
use super::error::{Finding, fail};
use crate::Rng;
use crate::env::{Arrays, Env, Shared, View, check};

/// The environment under test.
pub(super) struct Subject<E: Env> {
    pub(super) options: E::Options,
    pub(super) shared: Arc<E::Shared>,
    pub(super) spaces: Spaces,
    /// Steps after which episodes are truncated: 0 where they end by nature.
    pub(super) limit: u32,
    /// The leaves of the observation: their names, and their bytes.
    pub(super) names: Vec<(String, Range<usize>)>,
}

impl<E: Env> Subject<E> {
    pub(super) fn new(options: E::Options) -> Result<Self, Finding> {
        let remedy = "The options must be valid; `spaces` must be spaces of Gymnasium that the types \
             `Observation` and `Action` fit, see `View`.";
        let refused = |error: crate::Error| Finding { seen: error.to_string(), remedy };
        let shared = Arc::new(E::Shared::prepare(&options).map_err(refused)?);
        drop(E::new(&options, &shared).map_err(refused)?);
        let spaces = E::spaces(&options, &shared);
        spaces.check().map_err(refused)?;
        check::<E::Observation>("observation", &spaces.observation).map_err(refused)?;
        check::<E::Action>("action", &spaces.action).map_err(refused)?;
        let mut paths = Vec::new();
        name(&spaces.observation, "observation", &mut paths);
        let mut end = 0;
        let place = |leaf: &Leaf| {
            end += leaf.row_bytes();
            end - leaf.row_bytes()..end
        };
        let places: Vec<_> = spaces.observation.leaves().iter().map(place).collect();
        let names = paths.into_iter().zip(places).collect();
        Ok(Self { options, shared, spaces, limit: 0, names })
    }

    /// A new environment.
    pub(super) fn make(&self) -> Result<E, Finding> {
        E::new(&self.options, &self.shared).or_else(|error| {
            fail(
                format!("`new` refused options that it took before: {error}"),
                "`new` must depend on the options alone.",
            )
        })
    }

    /// The actions of the row with this seed, one for each step.
    pub(super) fn actions(&self, seed: u64) -> Arrays {
        self.sample(STEPS, &mut Rng::from_seed(seed ^ 0x5eed))
    }

    /// Random actions.
    pub(super) fn sample(&self, count: usize, rng: &mut Rng) -> Arrays {
        let leaves = self.spaces.action.leaves();
        let mut actions = Arrays::new(leaves.clone(), count);
        for leaf in 0..leaves.len() {
            actions.store(leaf, &self.spaces.action.sample(leaf, count, rng));
        }
        actions
    }

    /// Those of [`Subject::actions`], as owned values.
    pub(super) fn owned_actions(&self, seed: u64) -> Vec<<E::Action as View>::Owned> {
        let actions = self.actions(seed);
        let rows = actions.rows(E::Action::rows);
        (0..STEPS).map(|at| E::Action::owned(E::Action::row(&rows, at))).collect()
    }
}

/// The names of the leaves of a space: `observation.camera`, `observation[1]`.
fn name(space: &Space, path: &str, names: &mut Vec<String>) {
    match space {
        Space::Tuple(parts) => {
            for (at, part) in parts.iter().enumerate() {
                name(part, &format!("{path}[{at}]"), names);
            }
        }
        Space::Dict(parts) => {
            for (key, part) in parts {
                name(part, &format!("{path}.{key}"), names);
            }
        }
        _ => names.push(path.to_owned()),
    }
}
