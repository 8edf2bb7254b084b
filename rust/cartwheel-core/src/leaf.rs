//! Leaves: the arrays that a space flattens into.

use std::fmt;

use crate::dtype::DType;

/// One array of a flattened space: the shape and dtype of a single row's part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Element type.
    pub dtype: DType,
    /// Shape of one row; empty for a scalar.
    pub shape: Vec<usize>,
}

impl Leaf {
    /// Elements of one row.
    pub fn row_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_len() * self.dtype.size()
    }

    /// Elements of one row; `None` when their number exceeds `usize`.
    pub fn checked_row_len(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length))
    }
}

impl fmt::Display for Leaf {
    /// In NumPy's style: `float32[84, 84]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype.name(), self.shape)
    }
}
