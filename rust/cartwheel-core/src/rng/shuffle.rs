//! Random orders: `Generator.shuffle` and `Generator.permutation`.

use super::generator::{Rng, index};

impl Rng {
    /// Puts `items` in a random order: `Generator.shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, index(self.masked(at as u64)));
        }
    }

    /// The numbers `0..count` in a random order: `Generator.permutation(count)`.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        self.shuffle(&mut numbers);
        numbers
    }

    /// A number in `0..=highest` by masking and rejection, the method of only these two calls.
    fn masked(&mut self, highest: u64) -> u64 {
        let mask = u64::MAX >> highest.leading_zeros();
        loop {
            let draw = match u32::try_from(highest) {
                Ok(_) => u64::from(self.next_u32()) & mask,
                Err(_) => self.next_u64() & mask,
            };
            if draw <= highest {
                return draw;
            }
        }
    }
}
