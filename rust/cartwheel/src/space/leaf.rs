//! Leaves: the arrays that a space flattens into.

use std::fmt;

use super::dtype::DType;

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

    /// Elements of one row of a leaf that is in no plan yet; `None` when they exceed `usize`.
    pub(crate) fn checked_row_len(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length))
    }
}

impl fmt::Display for Leaf {
    /// In NumPy's style: `float32[84, 84]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype.name(), self.shape)
    }
}

/// Memory that would not fit into the address space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TooLarge(String);

impl TooLarge {
    /// The error for `what`, with `rows` rows of these leaves.
    pub(crate) fn new(what: &str, rows: usize, leaves: &[Leaf]) -> Self {
        let leaves: Vec<String> = leaves.iter().map(Leaf::to_string).collect();
        let plural = if rows == 1 { "" } else { "s" };
        let of = if leaves.is_empty() { "" } else { " of " };
        let leaves = leaves.join(", ");
        Self(format!(
            "the memory for {what} exceeds the address space: {rows} row{plural}{of}{leaves}"
        ))
    }
}
