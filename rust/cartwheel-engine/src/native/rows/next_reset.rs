//! Automatic resets: rounds whose resets may have seeds and options of the owner of the pool.

use std::collections::BTreeMap;
use std::ops::Range;

use cartwheel_abi::RESET;
use cartwheel_core::rng::Rng;

use super::{NativeRows, Place};
use crate::error::Error;
use crate::memory::ActionColumns;
use crate::native::mailbox::RowReset;
use crate::native::stream::Seed;
use crate::plugin::ResetOptions;

impl NativeRows {
    /// A round of a step, whose resets are automatic ones; with `repeats`, [`NativeRows::repeat`] of
    /// all rows.
    pub(super) fn automatic_round(
        &mut self,
        place: &mut Place<'_>,
        span: Range<usize>,
        actions: &ActionColumns<'_>,
        repeats: bool,
    ) -> Result<(), Error> {
        if !self.mailbox.has_next_resets() {
            return self.once_or_repeated(place, span, actions, None, repeats);
        }
        let mut options = BTreeMap::new();
        for at in span.clone().filter(|&at| self.commands[at] == RESET).collect::<Vec<_>>() {
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
        self.once_or_repeated(place, span, actions, Some(&|row| options.get(&row)), repeats)
    }

    fn once_or_repeated<'o>(
        &mut self,
        place: &mut Place<'_>,
        span: Range<usize>,
        actions: &ActionColumns<'_>,
        options: Option<&dyn Fn(usize) -> Option<&'o ResetOptions>>,
        repeats: bool,
    ) -> Result<(), Error> {
        if repeats {
            self.repeat(place, actions, options)
        } else {
            self.round(place, span, actions, options)
        }
    }

    /// Gives a row the random stream of a seed.
    pub(super) fn seed(&mut self, row: usize, seed: Seed) {
        match &seed {
            Seed::Number(number) => self.streams[row] = Rng::from_wide_seed(*number),
            Seed::Words(words) => self.streams[row] = Rng::from_seed_words(words),
            Seed::Unknown => {}
        }
        self.seeds[row] = seed;
    }
}
