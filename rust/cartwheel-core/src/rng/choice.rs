//! Random choices and orders: `Generator.choice`, `shuffle` and `permutation`.

use super::generator::{Rng, index};

/// From this population on, a small sample is drawn by rejection, without a list of the population.
const LARGE_POPULATION: usize = 10_000;

impl Rng {
    /// A random number in `0..count`: `Generator.choice(count)`.
    ///
    /// # Panics
    ///
    /// When `count` is 0.
    #[inline]
    pub fn choice_index(&mut self, count: usize) -> usize {
        assert!(count > 0, "there is nothing to choose from");
        index(self.bounded(count as u64 - 1))
    }

    /// A random element of `population`: `Generator.choice(population)`.
    ///
    /// # Panics
    ///
    /// When `population` is empty.
    #[inline]
    pub fn choice<'a, T>(&mut self, population: &'a [T]) -> &'a T {
        &population[self.choice_index(population.len())]
    }

    /// A random number in `0..probabilities.len()`, each with its probability: `Generator.choice(n,
    /// p=…)`.
    ///
    /// # Panics
    ///
    /// When there are no probabilities, one is negative or NaN, or they do not sum to 1.
    pub fn choice_weighted(&mut self, probabilities: &[f64]) -> usize {
        let total: f64 = probabilities.iter().sum();
        let proper = probabilities.iter().all(|p| *p >= 0.0) && (total - 1.0).abs() < 1.5e-8;
        assert!(proper, "probabilities {probabilities:?} are not negative and sum to 1");
        let last = cumulative(probabilities).last().expect("they sum to 1, so there is one");
        let draw = self.random();
        let beyond = cumulative(probabilities).take_while(|sum| sum / last <= draw).count();
        beyond.min(probabilities.len() - 1)
    }

    /// `count` different numbers in `0..population`: `Generator.choice(population, count,
    /// replace=False)`.
    ///
    /// # Panics
    ///
    /// When `count` exceeds `population`.
    pub fn choice_without_replacement(&mut self, population: usize, count: usize) -> Vec<usize> {
        assert!(count <= population, "{count} different numbers of {population}");
        if population > LARGE_POPULATION && count > population / 50 {
            let mut all: Vec<usize> = (0..population).collect();
            for at in ((population - count).max(1)..population).rev() {
                all.swap(at, index(self.bounded(at as u64)));
            }
            return all.split_off(population - count);
        }
        let mut taken = std::collections::HashSet::with_capacity(count);
        let mut picked = Vec::with_capacity(count);
        for last in population - count..population {
            let draw = index(self.bounded(last as u64));
            let pick = if taken.insert(draw) { draw } else { last };
            taken.insert(pick);
            picked.push(pick);
        }
        for at in (1..count).rev() {
            picked.swap(at, index(self.bounded(at as u64)));
        }
        picked
    }

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

fn cumulative(probabilities: &[f64]) -> impl Iterator<Item = f64> + '_ {
    probabilities.iter().scan(0.0, |sum, p| {
        *sum += p;
        Some(*sum)
    })
}
