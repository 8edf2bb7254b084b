//! Normal variates: `Generator.standard_normal` and `Generator.normal`, by NumPy's ziggurat.

use super::generator::Rng;
use super::ziggurat::{HEIGHTS, LIMITS, WIDTHS};

/// The start of the tail, and its inverse as NumPy stores it.
const TAIL: f64 = 3.654_152_885_361_009;
const TAIL_INVERSE: f64 = 0.273_661_237_329_758_3;

impl Rng {
    /// A number from the normal distribution of mean 0 and deviation 1:
    /// `Generator.standard_normal()`.
    #[expect(clippy::cast_precision_loss, reason = "52 bits fit a double")]
    pub fn standard_normal(&mut self) -> f64 {
        loop {
            let bits = self.next_u64();
            let layer = usize::from(bits.to_le_bytes()[0]);
            let magnitude = (bits >> 9) & ((1 << 52) - 1);
            let width = magnitude as f64 * WIDTHS[layer];
            let x = if bits & 0x100 == 0 { width } else { -width };
            if magnitude < LIMITS[layer] {
                return x; // 99.3 % of all draws
            }
            if layer == 0 {
                return self.tail(magnitude & 0x100 != 0);
            }
            let (above, below) = (HEIGHTS[layer - 1], HEIGHTS[layer]);
            if (above - below) * self.random() + below < (-0.5 * x * x).exp() {
                return x;
            }
        }
    }

    fn tail(&mut self, negative: bool) -> f64 {
        loop {
            let x = -TAIL_INVERSE * (-self.random()).ln_1p();
            let y = -(-self.random()).ln_1p();
            if y + y > x * x {
                return if negative { -(TAIL + x) } else { TAIL + x };
            }
        }
    }

    /// A number from a normal distribution: `Generator.normal(mean, deviation)`.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        mean + deviation * self.standard_normal()
    }
}
