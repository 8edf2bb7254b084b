//! Who shares memory, and so who waits on its words.

/// Who shares a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This process alone.
    Private,
    /// This process and those that are handed the descriptor.
    Shared,
}
