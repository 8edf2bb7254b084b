//! Memory that cannot be laid out.

use cartwheel_core::Leaf;

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
