//! The tests of the estimators, in one program.

mod returns;
mod returns_rows;
