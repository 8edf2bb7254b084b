//! `VectorEnv`, with one environment that has everything.
#![cfg(feature = "engine")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "vector/oracle.rs"]
mod oracle;
#[path = "vector/transcripts.rs"]
mod transcripts;
#[path = "vector/walk.rs"]
mod walk;
