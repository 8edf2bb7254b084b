//! Actions on their way to the environments: copied once, leaf by leaf, and checked.

use std::ops::Range;

use cartwheel_core::space::Space;
use cartwheel_engine::pool::Sending;
use cartwheel_engine::space::ActionTag;

use super::error::VectorError;
use crate::Error;
use crate::env::{Cell, Store, bytes_of};

/// Stores the actions of rows that are about to be sent.
pub(super) struct SentActions<'p, 's> {
    pub(super) sending: &'s mut Sending<'p>,
    pub(super) space: &'s Space,
    /// The next leaf.
    pub(super) leaf: usize,
}

impl Store for SentActions<'_, '_> {
    type Error = VectorError;

    fn leaf<'v, C: Cell>(
        &mut self,
        mut values: impl Iterator<Item = &'v [C]>,
    ) -> Result<(), VectorError> {
        let (leaf, space) = (self.leaf, self.space);
        self.leaf += 1;
        let fill = |sent: Range<usize>, room: &mut [u8]| {
            Ok(store(&mut values, sent.len(), space, leaf, room)?)
        };
        Ok(self.sending.fill_actions(leaf, ActionTag::Array(C::DTYPE), fill)?)
    }
}

/// Copies the next `rows` values to `room`, the memory of leaf `leaf` of as many rows, and checks
/// them.
fn store<'v, C: Cell>(
    values: &mut impl Iterator<Item = &'v [C]>,
    rows: usize,
    space: &Space,
    leaf: usize,
    room: &mut [u8],
) -> Result<(), Error> {
    let row_bytes = room.len() / rows.max(1);
    let mut places = room.chunks_exact_mut(row_bytes.max(1));
    for row in 0..rows {
        let value = bytes_of(values.next().expect("an action for each row"));
        let place = places.next().unwrap_or_default();
        if value.len() != place.len() {
            let value = format!("of {} elements", value.len() / C::DTYPE.size());
            return Err(Error::ActionOutOfRange {
                row,
                value,
                space: space.array(leaf).to_string(),
            });
        }
        place.copy_from_slice(value);
    }
    space.check_actions_of(leaf, C::DTYPE, room)
}
