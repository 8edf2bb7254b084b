//! The tests of the built-in environments, in one program.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod allocations;
mod keywords;
mod parity;
mod plain_loop;
mod simd;
mod states;
#[path = "../../../cartwheel/tests/it/support/mod.rs"]
mod support;
mod trajectory;
