//! `VectorEnv`, with one environment that has everything.

mod faults;
mod named_rows;
mod oracle;
mod own_infos;
mod rollouts;
mod rows;
mod rules;
mod transcripts;
