//! New environments that replace those that panicked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::env::Env;

/// Replaces environments of a shard, each row's a limited number of times.
pub(super) struct Replacements<E: Env> {
    options: Arc<E::Options>,
    most: u32,
    /// How often each row's environment was replaced; empty before the first time.
    made: Vec<u32>,
}

impl<E: Env> Replacements<E> {
    /// Nothing has been replaced yet; each row's environment may be replaced `most` times.
    pub(super) fn new(options: Arc<E::Options>, most: u32) -> Self {
        Self { options, most, made: Vec::new() }
    }

    /// A new environment for row `row` of `rows`, not yet reset; `None` when the limit is reached
    /// or the environment cannot be made.
    pub(super) fn make(&mut self, row: usize, rows: usize) -> Option<E> {
        self.made.resize(rows, 0);
        if self.made[row] >= self.most {
            return None;
        }
        self.made[row] += 1;
        catch_unwind(AssertUnwindSafe(|| E::new(&self.options))).ok()?.ok()
    }
}
