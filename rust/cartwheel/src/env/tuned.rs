//! Constants that rows share until they differ.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::state::State;
use crate::Failure;

/// Constants of an environment that have a standard value: rows share it until they differ.
///
/// It has the size of a pointer in each row, so that a step reads the row's state and little else.
/// Fields are read through it directly. The first mutable borrow of a field gives the row its own
/// constants; [`Tuned::settle`] drops these again if they equal the standard ones.
///
/// ```
/// use cartwheel::{Standard, Tuned};
///
/// #[derive(Debug, Clone, PartialEq)]
/// struct Physics {
///     gravity: f64,
/// }
///
/// impl Standard for Physics {
///     const STANDARD: &'static Self = &Self { gravity: 9.8 };
/// }
///
/// let mut physics = Tuned::<Physics>::default();
/// for (gravity, is_standard) in [(1.6, false), (9.8, true)] {
///     physics.gravity = gravity;
///     physics.settle(); // in `Env::parameters_changed`
///     assert_eq!(physics.is_standard(), is_standard);
/// }
/// ```
#[derive(Debug)]
pub struct Tuned<T: Standard>(Option<Box<T>>);

/// The standard value of [`Tuned`] constants.
pub trait Standard: Clone + PartialEq + fmt::Debug + 'static {
    /// The value.
    const STANDARD: &'static Self;
}

impl<T: Standard> Tuned<T> {
    /// Whether the constants are the standard ones, shared: never borrowed mutably, or settled
    /// since.
    #[inline]
    pub fn is_standard(&self) -> bool {
        self.0.is_none()
    }

    /// Shares the standard constants again if the row's own ones are the same: a value was refused,
    /// or the standard value was set.
    pub fn settle(&mut self) {
        // Compared as text, because a negative zero differs from zero, and such a constant may
        // decide a bit of a result.
        let is_standard =
            |own: &T| own == T::STANDARD && format!("{own:?}") == format!("{:?}", T::STANDARD);
        self.0.take_if(|own| is_standard(own));
    }
}

impl<T: Standard> Default for Tuned<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Standard> Clone for Tuned<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Whether the row has constants of its own, and these.
impl<T: Standard + State> State for Tuned<T> {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        State::load(state).map(Self)
    }
}

impl<T: Standard> Deref for Tuned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::STANDARD)
    }
}

impl<T: Standard> DerefMut for Tuned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::STANDARD.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Wind(f64);

    impl Standard for Wind {
        const STANDARD: &'static Self = &Self(0.0);
    }

    #[test]
    fn constants_that_differ_in_a_bit_are_not_shared() {
        let mut wind = Tuned::<Wind>::default();
        (*wind).0 = -0.0;
        wind.settle();
        assert!(!wind.is_standard() && (*wind).0.is_sign_negative());
        (*wind).0 = 0.0;
        wind.settle();
        assert!(wind.is_standard());
    }
}
