//! The underlying generator: PCG XSL-RR 128/64, with NumPy's buffer for 32-bit draws.

use super::seed_sequence::SeedSequence;

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// The complete state of a stream: the content of `PCG64.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pcg64State {
    /// `state["state"]["state"]`.
    pub state: u128,
    /// `state["state"]["inc"]`, which is odd.
    pub increment: u128,
    /// The next 32-bit draw is [`Self::half`]: `has_uint32`.
    pub has_half: bool,
    /// The high half of a 64-bit draw whose low half was drawn: `uinteger`. As in NumPy, the value
    /// stays here after it was drawn.
    pub half: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pcg64(Pcg64State);

impl Pcg64 {
    pub(super) fn from_sequence(sequence: &SeedSequence) -> Self {
        let [a, b, c, d] = sequence.generate::<4>().map(u128::from);
        let (start, stream) = (a << 64 | b, c << 64 | d);
        let (state, increment) = (0, stream << 1 | 1);
        let mut generator = Self(Pcg64State { state, increment, has_half: false, half: 0 });
        generator.advance();
        generator.0.state = generator.0.state.wrapping_add(start);
        generator.advance();
        generator
    }

    pub(super) fn state(&self) -> Pcg64State {
        self.0
    }

    pub(super) fn from_state(state: Pcg64State) -> Self {
        Self(Pcg64State { increment: state.increment | 1, ..state })
    }

    #[inline]
    fn advance(&mut self) {
        let Pcg64State { state, increment, .. } = self.0;
        self.0.state = state.wrapping_mul(MULTIPLIER).wrapping_add(increment);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the output folds the two halves")]
    pub(super) fn next_u64(&mut self) -> u64 {
        self.advance();
        let (high, low) = ((self.0.state >> 64) as u64, self.0.state as u64);
        (high ^ low).rotate_right((high >> 58) as u32)
    }

    /// A 64-bit draw neither uses nor clears the kept half.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half, then the high half")]
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.0.has_half {
            self.0.has_half = false;
            return self.0.half;
        }
        let both = self.next_u64();
        (self.0.has_half, self.0.half) = (true, (both >> 32) as u32);
        both as u32
    }
}
