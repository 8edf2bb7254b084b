//! Automatic resets with seeds and options of the owner of the pool.

use std::collections::BTreeMap;
use std::ops::Range;

use cartwheel_abi::RESET;

use super::{NativeRows, Place};
use crate::native::mailbox::RowReset;
use crate::native::stream::Seed;
use crate::plugin::ResetOptions;

impl NativeRows {
    /// Gives seeds to the rows of `span` that the next round resets, and takes their options, by row
    /// of the shard; `None` if the owner of the pool has left nothing for any row.
    pub(super) fn take_next_resets(
        &mut self,
        place: &Place<'_>,
        span: Range<usize>,
    ) -> Option<BTreeMap<usize, ResetOptions>> {
        if !self.mailbox.has_next_resets() {
            return None;
        }
        let mut options = BTreeMap::new();
        for at in span.filter(|&at| self.commands[at] == RESET).collect::<Vec<_>>() {
            let row = place.rows.start + at;
            let Some((how, own)) = self.mailbox.take_next_reset(place.first + row) else {
                continue;
            };
            match how {
                RowReset::Seed(seed) => self.seed(row, Seed::Number(seed)),
                RowReset::WideSeed(words) => self.seed(row, Seed::Words(words)),
                RowReset::Leave | RowReset::Continue | RowReset::Restore(_) => {}
            }
            options.extend(own.map(|own| (row, own)));
        }
        Some(options)
    }

    /// Gives a row the random stream of a seed.
    pub(super) fn seed(&mut self, row: usize, seed: Seed) {
        if let Some(stream) = seed.stream() {
            self.streams[row] = stream;
        }
        self.seed_draw(row, &seed);
        self.seeds[row] = seed;
    }
}
