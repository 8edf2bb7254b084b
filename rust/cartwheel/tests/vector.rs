//! `VectorEnv`, with one environment that has everything.
#![cfg(feature = "engine")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "vector/faults.rs"]
mod faults;
#[path = "vector/oracle.rs"]
mod oracle;
#[path = "vector/rollouts.rs"]
mod rollouts;
#[path = "vector/rows.rs"]
mod rows;
#[path = "vector/rules.rs"]
mod rules;
#[path = "vector/transcripts.rs"]
mod transcripts;
#[path = "vector/walk.rs"]
mod walk;
