//! Rewards within limits.

use cartwheel_core::simd::{self, Loops};

/// Clips as NumPy does: NaN stays, and of equal numbers the limit is taken.
pub fn clip(numbers: &mut [f64], low: f64, high: f64) {
    simd::run(Clipped { numbers, low, high });
}

struct Clipped<'a> {
    numbers: &'a mut [f64],
    low: f64,
    high: f64,
}

impl Loops for Clipped<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { numbers, low, high } = self;
        for number in numbers {
            let above = if *number > low || number.is_nan() { *number } else { low };
            *number = if above < high || above.is_nan() { above } else { high };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_stays_and_of_equal_numbers_the_limit_is_taken() {
        let mut numbers = [f64::NAN, -2.0, -0.0, 0.5, 1.0, f64::INFINITY, f64::NEG_INFINITY];
        clip(&mut numbers, 0.0, 1.0);
        assert!(numbers[0].is_nan());
        let bits: Vec<u64> = numbers[1..].iter().map(|number| number.to_bits()).collect();
        assert_eq!(bits, [0.0_f64, 0.0, 0.5, 1.0, 1.0, 0.0].map(f64::to_bits));
    }
}
