//! `VectorEnv`, with one environment that has everything.

mod faults;
mod oracle;
mod own_infos;
mod rollouts;
mod rows;
mod rules;
mod transcripts;
