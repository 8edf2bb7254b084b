//! Loops that are compiled twice: for every processor, and for vectors of 32 bytes.
//!
//! The operations are the same, in the same order, and none are contracted, so that both compute
//! the same bits.
//!
//! # Invariants
//!
//! 1. Code that is compiled for `avx2` runs only where the processor was found to have it.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "see the invariants"))]

/// Loops over the numbers of a batch. A closure would not do, because nothing can make sure that it is
/// inlined.
pub trait Loops {
    /// Runs them. Has to be `#[inline(always)]`, as all that it calls in loops, to be compiled for its caller.
    fn run(self);
}

/// Runs loops with the widest vectors that the processor has.
#[inline]
pub fn run(loops: impl Loops) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide(loops: impl Loops) {
            loops.run();
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it (invariant 1).
            return unsafe { wide(loops) };
        }
    }
    loops.run();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products and sums, which an instruction that rounds once would change.
    struct Sums<'a>(&'a [f32], &'a mut [f32]);

    impl Loops for Sums<'_> {
        #[expect(clippy::inline_always, reason = "as the trait asks")]
        #[inline(always)]
        fn run(self) {
            for (sum, &x) in self.1.iter_mut().zip(self.0) {
                *sum = x * x + (x - *sum);
            }
        }
    }

    #[test]
    fn wide_vectors_compute_the_same_bits() {
        let numbers: Vec<f32> = (0..100_u8).map(|x| 1.0 / (1.0 + f32::from(x))).collect();
        for len in 0..numbers.len() {
            let [mut plain, mut wide] = [(); 2].map(|()| vec![0.5; len]);
            Sums(&numbers[..len], &mut plain).run();
            run(Sums(&numbers[..len], &mut wide));
            assert_eq!(plain, wide);
        }
    }
}
