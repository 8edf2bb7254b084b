//! Integers within bounds: `Generator.integers`.

use std::ops::{Range, RangeInclusive};

use super::generator::Rng;

/// An integer type that NumPy draws: 8 to 64 bits, signed or not, and `bool`.
///
/// Sealed: the draws of each type follow NumPy, and there are no others.
pub trait Integer: Copy + PartialOrd + sealed::Draw {}

/// The range of a draw: `low..high` or, with NumPy's `endpoint=True`, `low..=high`.
pub trait IntegerRange<T> {
    /// The lowest and highest integer, both included; `None` when the range is empty.
    fn bounds(self) -> Option<(T, T)>;
}

impl<T: Integer> IntegerRange<T> for RangeInclusive<T> {
    fn bounds(self) -> Option<(T, T)> {
        let (low, high) = self.into_inner();
        (low <= high).then_some((low, high))
    }
}

impl<T: Integer> IntegerRange<T> for Range<T> {
    fn bounds(self) -> Option<(T, T)> {
        (self.start < self.end).then(|| (self.start, self.end.before()))
    }
}

impl Rng {
    /// An integer in `range`: `Generator.integers(low, high, dtype=T)`.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    #[inline]
    pub fn integers<T: Integer>(&mut self, range: impl IntegerRange<T>) -> T {
        let (low, high) = range.bounds().expect("a range holds at least one integer");
        T::draw(self, &mut Pieces::default(), low, high)
    }

    /// Fills `into` with integers in `range`: `Generator.integers(low, high, size=…, dtype=T)`.
    ///
    /// For types of 8 and 16 bits this differs from one call for each integer: NumPy cuts each
    /// 32-bit draw into pieces, and drops the pieces that are left when the call ends.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    pub fn fill_integers<T: Integer>(&mut self, range: impl IntegerRange<T>, into: &mut [T]) {
        let (low, high) = range.bounds().expect("a range holds at least one integer");
        let mut pieces = Pieces::default();
        for place in into {
            *place = T::draw(self, &mut pieces, low, high);
        }
    }

    /// A number in `0..=highest` by Lemire's method, as `integers` and `choice` draw it.
    #[inline]
    pub(super) fn bounded(&mut self, highest: u64) -> u64 {
        if let Ok(highest) = u32::try_from(highest) {
            return u64::from(self.bounded_u32(highest));
        }
        let Some(count) = highest.checked_add(1) else {
            return self.next_u64();
        };
        let mut product = u128::from(self.next_u64()) * u128::from(count);
        if low_u64(product) < count {
            let threshold = (u64::MAX - highest) % count;
            while low_u64(product) < threshold {
                product = u128::from(self.next_u64()) * u128::from(count);
            }
        }
        low_u64(product >> 64)
    }

    /// The same, for ranges that fit into 32 bits. Nothing is drawn when there is only one possible
    /// number.
    #[inline]
    fn bounded_u32(&mut self, highest: u32) -> u32 {
        if highest == 0 {
            return 0;
        }
        let Some(count) = highest.checked_add(1) else {
            return self.next_u32();
        };
        let mut product = u64::from(self.next_u32()) * u64::from(count);
        if low_u32(product) < count {
            let threshold = (u32::MAX - highest) % count;
            while low_u32(product) < threshold {
                product = u64::from(self.next_u32()) * u64::from(count);
            }
        }
        low_u32(product >> 32)
    }

    /// The same, from pieces of `bits` bits, 8 or 16.
    fn bounded_piece(&mut self, pieces: &mut Pieces, bits: u32, highest: u32) -> u32 {
        let full = (1 << bits) - 1;
        if highest == 0 {
            return 0;
        }
        if highest == full {
            return pieces.next(self, bits);
        }
        let count = highest + 1;
        let mut product = pieces.next(self, bits) * count;
        if product & full < count {
            let threshold = (full - highest) % count;
            while product & full < threshold {
                product = pieces.next(self, bits) * count;
            }
        }
        product >> bits
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only the low half is needed")]
fn low_u64(product: u128) -> u64 {
    product as u64
}

#[expect(clippy::cast_possible_truncation, reason = "only the low half is needed")]
fn low_u32(product: u64) -> u32 {
    product as u32
}

/// The rest of a 32-bit draw that is used in pieces, low bits first.
#[derive(Debug, Default)]
pub struct Pieces {
    left: u32,
    bits: u32,
}

impl Pieces {
    fn next(&mut self, rng: &mut Rng, bits: u32) -> u32 {
        if self.left == 0 {
            self.bits = rng.next_u32();
            self.left = 32 / bits;
        } else {
            self.bits >>= bits;
        }
        self.left -= 1;
        self.bits & ((1 << bits) - 1)
    }
}

mod sealed {
    use super::{Pieces, Rng};

    pub trait Draw: Sized {
        fn draw(rng: &mut Rng, pieces: &mut Pieces, low: Self, high: Self) -> Self;
        /// The integer before this one, which must not be the lowest.
        fn before(self) -> Self;
    }
}

macro_rules! integers {
    ($($signed:ident $unsigned:ident $draw:expr;)*) => {$(
        impl Integer for $unsigned {}

        impl sealed::Draw for $unsigned {
            #[inline]
            fn draw(rng: &mut Rng, pieces: &mut Pieces, low: Self, high: Self) -> Self {
                let draw: fn(&mut Rng, &mut Pieces, Self) -> Self = $draw;
                low.wrapping_add(draw(rng, pieces, high - low))
            }

            #[inline]
            fn before(self) -> Self {
                self - 1
            }
        }

        impl Integer for $signed {}

        impl sealed::Draw for $signed {
            #[inline]
            fn draw(rng: &mut Rng, pieces: &mut Pieces, low: Self, high: Self) -> Self {
                let highest = high.wrapping_sub(low).cast_unsigned();
                let drawn = <$unsigned as sealed::Draw>::draw(rng, pieces, 0, highest);
                low.wrapping_add(drawn.cast_signed())
            }

            #[inline]
            fn before(self) -> Self {
                self - 1
            }
        }
    )*};
}

/// Converts a draw to its type, whose largest integer it does not exceed.
fn narrow<T: TryFrom<u32, Error: std::fmt::Debug>>(draw: u32) -> T {
    T::try_from(draw).expect("a draw is within its bounds")
}

integers! {
    i8 u8 |rng, pieces, highest| narrow(rng.bounded_piece(pieces, 8, u32::from(highest)));
    i16 u16 |rng, pieces, highest| narrow(rng.bounded_piece(pieces, 16, u32::from(highest)));
    i32 u32 |rng, _, highest| rng.bounded_u32(highest);
    i64 u64 |rng, _, highest| rng.bounded(highest);
}

impl Integer for bool {}

impl sealed::Draw for bool {
    fn draw(rng: &mut Rng, pieces: &mut Pieces, low: Self, high: Self) -> Self {
        if low == high { low } else { pieces.next(rng, 1) != 0 }
    }

    fn before(self) -> Self {
        false
    }
}
