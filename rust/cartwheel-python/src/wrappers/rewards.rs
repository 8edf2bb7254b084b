//! The rewards of a batch on their way through the operations of a fused step.

use pyo3::prelude::*;

use super::column::RowValues;
use crate::array::{Blocks, NewNumbers, Number, Numbers};

/// Numbers, one for each place, or what came instead of them and is not read.
pub(super) enum Rewards<'py> {
    /// An array that other code may have, and its numbers, if they were read.
    Given(Bound<'py, PyAny>, Option<Numbers<'py, f64>>),
    /// Those that an operation wrote.
    New(NewNumbers<'py, f64>),
}

impl<'py> Rewards<'py> {
    /// Reads `count` numbers, unless they were read.
    pub(super) fn read(&mut self, count: usize) -> PyResult<()> {
        if let Self::Given(array, numbers @ None) = self {
            let values = RowValues::new("rewards", array, f64::DTYPE, count, &[])?;
            *numbers = Some(values.into_numbers()?);
        }
        Ok(())
    }

    pub(super) fn numbers(&self) -> &[f64] {
        match self {
            Self::Given(_, numbers) => numbers.as_ref().expect("read before").cells(),
            Self::New(numbers) => numbers.cells(),
        }
    }

    /// The `count` numbers, to be changed: those of a copy, unless an operation wrote them.
    pub(super) fn numbers_mut(
        &mut self,
        count: usize,
        blocks: &mut Blocks,
    ) -> PyResult<&mut [f64]> {
        self.read(count)?;
        if let Self::Given(_, Some(numbers)) = self {
            *self = Self::New(numbers.copied(blocks)?);
        }
        match self {
            Self::New(numbers) => Ok(numbers.cells_mut()),
            Self::Given(..) => unreachable!("just copied"),
        }
    }

    /// The array, which other code may have from now on.
    pub(super) fn array(&mut self, py: Python<'py>) -> &Bound<'py, PyAny> {
        let none = || Self::Given(py.None().into_bound(py), None);
        *self = match std::mem::replace(self, none()) {
            Self::New(numbers) => {
                let (array, numbers) = numbers.into_shown();
                Self::Given(array, Some(numbers))
            }
            given @ Self::Given(..) => given,
        };
        match self {
            Self::Given(array, _) => array,
            Self::New(_) => unreachable!("just shown"),
        }
    }
}
