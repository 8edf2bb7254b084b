//! The generator behind the draws: PCG XSL-RR 128/64, with NumPy's buffer for 32-bit draws.

use super::SeedSequence;

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// All there is to a stream: what `PCG64.state` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pcg64State {
    /// `state["state"]["state"]`.
    pub state: u128,
    /// `state["state"]["inc"]`, which is odd.
    pub increment: u128,
    /// The high half of a 64-bit draw whose low half was drawn: `uinteger` where `has_uint32`.
    pub half: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
    half: Option<u32>,
}

impl Pcg64 {
    pub(super) fn from_sequence(sequence: &SeedSequence) -> Self {
        let [a, b, c, d] = sequence.generate::<4>().map(u128::from);
        let (start, stream) = (a << 64 | b, c << 64 | d);
        let mut generator = Self { state: 0, increment: stream << 1 | 1, half: None };
        generator.advance();
        generator.state = generator.state.wrapping_add(start);
        generator.advance();
        generator
    }

    pub(super) fn state(&self) -> Pcg64State {
        Pcg64State { state: self.state, increment: self.increment, half: self.half }
    }

    pub(super) fn from_state(state: Pcg64State) -> Self {
        Self { state: state.state, increment: state.increment | 1, half: state.half }
    }

    #[inline]
    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the output folds the two halves")]
    pub(super) fn next_u64(&mut self) -> u64 {
        self.advance();
        let (high, low) = ((self.state >> 64) as u64, self.state as u64);
        (high ^ low).rotate_right((high >> 58) as u32)
    }

    /// A 64-bit draw neither uses nor clears the kept half.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half, then the high half")]
    pub(super) fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let both = self.next_u64();
        self.half = Some((both >> 32) as u32);
        both as u32
    }
}
