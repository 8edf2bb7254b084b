//! An observation that is written from front to back.

use std::mem::take;

use cartwheel_envs::numeric::clip;

/// The part of an observation that is not written yet.
#[derive(Debug)]
pub struct Observation<'a>(pub(crate) &'a mut [f64]);

impl<'a> Observation<'a> {
    #[inline]
    pub(crate) fn push(&mut self, numbers: &[f64]) {
        self.next(numbers.len()).copy_from_slice(numbers);
    }

    #[inline]
    pub(crate) fn push_each(&mut self, numbers: &[f64], change: impl Fn(f64) -> f64) {
        for (place, &number) in self.next(numbers.len()).iter_mut().zip(numbers) {
            *place = change(number);
        }
    }

    #[inline]
    pub(crate) fn push_clipped(&mut self, numbers: &[f64], (low, high): (f64, f64)) {
        self.push_each(numbers, |number| clip(number, low, high));
    }

    fn next(&mut self, len: usize) -> &'a mut [f64] {
        let (next, rest) = take(&mut self.0).split_at_mut(len);
        self.0 = rest;
        next
    }
}
