//! The tests of the crate, in one program.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod random_numbers;
mod spaces;
