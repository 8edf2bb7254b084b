//! The words that authors of environments and the engine share.
//!
//! | item | what it is |
//! |---|---|
//! | [`DType`], [`Leaf`] | an element type; one array of a flattened space |
//! | [`AutoresetMode`], [`OnDone`] | when rows restart |
//! | [`schedule`] | the division of rows among threads and processes |
//! | [`Transition`] | the result of a step |
//! | [`Error`] | what can be wrong with an environment |
//! | [`panic_message`], [`drop_payload`] | the text of a caught panic; its end |
//! | [`info`] | infos as a stream of bytes |
//! | [`rng`] | NumPy's random numbers, bit for bit |
//! | [`simd`] | loops that are compiled for wide vectors, too |
//! | [`space`] | Gymnasium's spaces, with bounds |
//!
//! Authors use these items through the crate `cartwheel`, which names them again.

mod autoreset;
mod dtype;
mod error;
pub mod info;
mod leaf;
pub mod rng;
pub mod schedule;
pub mod simd;
pub mod space;
mod transition;

pub use autoreset::{AutoresetMode, OnDone};
pub use dtype::DType;
pub use error::{Error, drop_payload, panic_message};
pub use leaf::Leaf;
pub use transition::Transition;
