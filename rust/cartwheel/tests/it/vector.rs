//! `VectorEnv`, with one environment that has everything.

mod faults;
mod oracle;
mod rollouts;
mod rows;
mod rules;
mod transcripts;
