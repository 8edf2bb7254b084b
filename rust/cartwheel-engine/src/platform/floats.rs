//! The floating-point mode of a thread: to which side it rounds, and whether numbers close to zero become
//! zero.
//!
//! A thread gets this mode from the one that started it, and anything that runs in it may change it: a
//! library that was compiled for fast mathematics changes it as it is loaded. The compiler takes the
//! standard mode for granted. So what the engine computes, it computes in that mode, and results are the
//! same bits in every thread. Python code keeps the mode of its thread.
//!
//! To look takes a few nanoseconds, once for a task, not for a row.
//!
//! # Invariants
//!
//! 1. The register that holds the mode has no other part than those that are named here, or keeps it as
//!    it was: code that was compiled for the standard mode runs in it, and other code gets back its
//!    own.
#![cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)),
    expect(unsafe_code, reason = "reads and writes a register, see the invariants")
)]

use std::hint::black_box;

/// Computes in the standard mode.
///
/// The compiler may move operations of floats to where their results are used, but not out of a function
/// that is not inlined: so this takes a function, and is not a value that ends the mode as it is
/// dropped.
#[inline]
pub fn with_standard_floats<T>(compute: impl FnOnce() -> T) -> T {
    let mode = Mode::read();
    if mode.is_standard() { compute() } else { in_another_mode(mode, compute) }
}

#[cold]
fn in_another_mode<T>(before: Mode, compute: impl FnOnce() -> T) -> T {
    struct Back(Mode);

    impl Drop for Back {
        fn drop(&mut self) {
            self.0.write();
        }
    }

    #[inline(never)]
    fn alone<T>(compute: impl FnOnce() -> T) -> T {
        compute()
    }

    let _back = Back(before); // also when it panics
    before.standard().write();
    alone(black_box(compute))
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    use std::arch::asm;

    /// MXCSR.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Mode(u32);

    /// Events since these bits were cleared; not a part of the mode.
    const EVENTS: u32 = 0x3f;
    /// Every exception masked, to the nearest, numbers close to zero kept.
    const STANDARD: u32 = 0x1f80;

    impl Mode {
        #[inline]
        pub(super) fn read() -> Self {
            let mut word = 0_u32;
            // SAFETY: stores the register to the word, and changes nothing else.
            unsafe {
                asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags));
            }
            Self(word)
        }

        #[inline]
        pub(super) fn is_standard(self) -> bool {
            self.0 & !EVENTS == STANDARD
        }

        pub(super) fn standard(self) -> Self {
            Self(STANDARD | self.0 & EVENTS)
        }

        /// The standard mode, but for these bits.
        #[cfg(test)]
        pub(super) fn with(bits: u32) -> Self {
            Self(STANDARD | bits)
        }

        pub(super) fn write(self) {
            let word = self.0;
            // SAFETY: loads the register with bits that it had, or the standard ones (invariant 1).
            unsafe {
                asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    use std::arch::asm;

    /// FPCR.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Mode(u64);

    /// Rounding, zeros for numbers close to zero, one NaN for all, another form of half floats, and
    /// exceptions that trap.
    const MODE: u64 = 0x07f8_9f07;

    impl Mode {
        #[inline]
        pub(super) fn read() -> Self {
            let word: u64;
            // SAFETY: reads the register, and changes nothing.
            unsafe {
                asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags));
            }
            Self(word)
        }

        #[inline]
        pub(super) fn is_standard(self) -> bool {
            self.0 & MODE == 0
        }

        pub(super) fn standard(self) -> Self {
            Self(self.0 & !MODE)
        }

        pub(super) fn write(self) {
            // SAFETY: writes bits that the register had, or the standard ones (invariant 1).
            unsafe {
                asm!("msr fpcr, {}", in(reg) self.0, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
mod register {
    /// Nothing is known of it.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Mode;

    impl Mode {
        pub(super) fn read() -> Self {
            Self
        }

        pub(super) fn is_standard(self) -> bool {
            true
        }

        pub(super) fn standard(self) -> Self {
            Self
        }

        pub(super) fn write(self) {}
    }
}

use register::Mode;

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};

    use super::*;

    /// A number that is close to zero, and quotients that are rounded up and down.
    #[inline(never)]
    fn computed() -> [u64; 4] {
        let (min, one) = (f64::from_bits(1), black_box(1.0_f64));
        let (three, five) = (black_box(3.0), black_box(5.0));
        [black_box(min) * one, one / three, -one / three, one / five].map(f64::to_bits)
    }

    #[test]
    fn the_mode_is_the_standard_one_in_between_and_that_of_before_afterwards() {
        let (before, standard) = (Mode::read(), computed());
        // Rounding down, up and to zero; flushing results and arguments close to zero.
        for bits in [0x2000, 0x4000, 0x6000, 0x8040, 0xe040] {
            Mode::with(bits).write();
            let odd = computed();
            let inner = with_standard_floats(|| with_standard_floats(computed));
            let after = computed();
            let panicked = catch_unwind(|| with_standard_floats(|| resume_unwind(Box::new(()))));
            let after_a_panic = computed();
            before.write();
            assert!(panicked.is_err() && odd != standard, "{bits:#x}");
            assert_eq!((inner, after, after_a_panic), (standard, odd, odd), "{bits:#x}");
        }
    }
}
