//! Arrays of a simulation, in MuJoCo's own memory.
//!
//! # Invariants
//!
//! 1. **Arrays** are `len` numbers that stay where they are as long as their row lives
//!    ([`RowParts::new`](crate::RowParts::new)), and no other code accesses them during a call to the row.
#![expect(unsafe_code, reason = "arrays of a C library, see the invariants")]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, with_exposed_provenance_mut};

use cartwheel::{Error, Parameter, ParameterValue, wrong};

/// An array of a simulation.
#[derive(Debug)]
pub(crate) struct Field {
    start: NonNull<f64>,
    len: usize,
    is_set: bool,
}

// SAFETY: the owner of the row has its arrays (invariant 1).
unsafe impl Send for Field {}

impl Field {
    /// The array `name` of `len` elements, from addresses and lengths by name.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for an array that is missing, or that has another length.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    pub(crate) unsafe fn new(
        fields: &BTreeMap<String, (usize, usize)>,
        name: &str,
        len: usize,
    ) -> Result<Self, Error> {
        let &(address, got) = fields
            .get(name)
            .ok_or_else(|| Error::bad_options(format!("the simulation has no field `{name}`")))?;
        if got != len {
            return Err(Error::bad_options(format!(
                "the field `{name}` must have {len} numbers, got {got}"
            )));
        }
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len, is_set: false });
        }
        let start = NonNull::new(with_exposed_provenance_mut::<f64>(address));
        let start = start.filter(|start| start.is_aligned()).ok_or_else(|| {
            Error::bad_options(format!("the field `{name}` cannot be at {address:#x}"))
        })?;
        Ok(Self { start, len, is_set: false })
    }

    /// Sets it, as a parameter does. Setting what is there, to the last bit, is nothing.
    pub(crate) fn assign(&mut self, numbers: &[f64]) {
        let changes = |(old, new): (&f64, &f64)| old.to_bits() != new.to_bits();
        if self.iter().zip(numbers).any(changes) {
            self.copy_from_slice(numbers);
            self.is_set = true;
        }
    }

    /// Whether it was set as a parameter since the last time that this was asked.
    pub(crate) fn take_set(&mut self) -> bool {
        std::mem::take(&mut self.is_set)
    }
}

/// Integers of a simulation, and the field that is a copy of them.
#[derive(Debug)]
pub(crate) struct Integers {
    source: NonNull<c_int>,
    copy: Field,
}

// SAFETY: the owner of the row has its arrays (invariant 1).
unsafe impl Send for Integers {}

impl Integers {
    /// The integers at this address, as many as `copy` has numbers.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for an address that cannot be one.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    pub(crate) unsafe fn new(address: usize, copy: Field) -> Result<Self, Error> {
        let source = NonNull::new(with_exposed_provenance_mut::<c_int>(address));
        let source = source.filter(|source| source.is_aligned()).ok_or_else(|| {
            Error::bad_options(format!("the integers of a field cannot be at {address:#x}"))
        })?;
        Ok(Self { source, copy })
    }

    /// Copies them as they are now.
    pub(crate) fn copy(&mut self) {
        // SAFETY: an array of this length (invariant 1).
        let source = unsafe { std::slice::from_raw_parts(self.source.as_ptr(), self.copy.len()) };
        for (copy, &integer) in self.copy.iter_mut().zip(source) {
            *copy = f64::from(integer);
        }
    }
}

/// Sets as many numbers as there are.
///
/// # Errors
///
/// [`Error::BadParameter`] for another number of them, or for what is not a number.
pub(crate) fn set_numbers(numbers: &mut [f64], value: ParameterValue) -> Result<(), Error> {
    if value.parts().is_none_or(|parts| parts.len() != numbers.len()) {
        return Err(wrong(&format!("{} numbers", numbers.len()), &value));
    }
    let mut new: Vec<f64> = Vec::new();
    new.set(value)?;
    numbers.copy_from_slice(&new);
    Ok(())
}

impl Deref for Field {
    type Target = [f64];

    #[inline]
    fn deref(&self) -> &[f64] {
        // SAFETY: an array of this length (invariant 1).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Field {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: an array of this length, whose row is borrowed mutably (invariant 1).
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Parameter for Field {
    fn get(&self) -> ParameterValue {
        self.to_vec().get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut numbers = self.to_vec();
        set_numbers(&mut numbers, value)?;
        self.assign(&numbers);
        Ok(())
    }
}
