//! The underlying generator: PCG XSL-RR 128/64, with NumPy's buffer for 32-bit draws.

use cartwheel_abi::RandomStream;

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

/// The generator, in the form in which host and plugins share it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Pcg64(RandomStream);

impl Pcg64 {
    pub(super) fn from_sequence(sequence: &SeedSequence) -> Self {
        let [a, b, c, d] = sequence.generate::<4>().map(u128::from);
        let (start, stream) = (a << 64 | b, c << 64 | d);
        let increment = stream << 1 | 1;
        // The state advances twice: from 0 to the increment, and from there with the start added.
        let state = advanced(increment.wrapping_add(start), increment);
        Self::from_state(Pcg64State { state, increment, has_half: false, half: 0 })
    }

    pub(super) fn from_stream(stream: RandomStream) -> Self {
        Self(stream)
    }

    pub(super) fn stream(&self) -> RandomStream {
        self.0
    }

    pub(super) fn state(&self) -> Pcg64State {
        let RandomStream { state, increment, half, has_half } = self.0;
        let (state, increment) = (joined(state), joined(increment));
        Pcg64State { state, increment, has_half: has_half != 0, half }
    }

    pub(super) fn from_state(state: Pcg64State) -> Self {
        let Pcg64State { state, increment, has_half, half } = state;
        let (state, increment) = (halves(state), halves(increment | 1));
        Self(RandomStream { state, increment, half, has_half: has_half.into() })
    }

    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        let state = advanced(joined(self.0.state), joined(self.0.increment));
        let [low, high] = halves(state);
        self.0.state = [low, high];
        (high ^ low).rotate_right((high >> 58) as u32)
    }

    /// A 64-bit draw neither uses nor clears the kept half.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half, then the high half")]
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.0.has_half != 0 {
            self.0.has_half = 0;
            return self.0.half;
        }
        let both = self.next_u64();
        (self.0.has_half, self.0.half) = (1, (both >> 32) as u32);
        both as u32
    }
}

#[inline]
fn advanced(state: u128, increment: u128) -> u128 {
    state.wrapping_mul(MULTIPLIER).wrapping_add(increment)
}

#[inline]
fn joined([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each half is 64 of the bits")]
fn halves(whole: u128) -> [u64; 2] {
    [whole as u64, (whole >> 64) as u64]
}
