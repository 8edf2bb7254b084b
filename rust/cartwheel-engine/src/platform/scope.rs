//! Processes that share memory, and so may wait on its words.

/// The processes that share a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This process alone.
    Private,
    /// This process and the processes that receive the descriptor.
    Shared,
}
