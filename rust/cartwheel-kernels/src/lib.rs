//! Functions of arrays, for rollouts and batches of many environments.
//!
//! | module | what it has |
//! |---|---|
//! | [`returns`] | return estimators |
//! | [`wrappers`] | what wrappers compute for whole batches |
//! | [`masks`] | masks of actions of several agents |
//! | [`image`] | gray, maximum of two and area resize for frames of many environments |
//!
//! The modules are independent of each other. A function gets slices and writes slices; the large
//! ones divide their rows among threads, and the result has the same bits for any number of them.

pub mod image;
pub mod masks;
pub mod returns;
mod threads;
pub mod wrappers;
