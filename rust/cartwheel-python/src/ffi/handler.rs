//! The functions that XLA calls.
//!
//! # Invariants
//!
//! 1. **Frames.** XLA calls a handler with a frame that is valid until it returns, see `xla/frame.rs`. Only
//!    XLA knows the addresses, from [`xla_handlers`].
//! 2. **Unwinding.** No panic leaves a handler: one in a call is caught where the pool is used, and one
//!    around it here.
#![expect(unsafe_code, reason = "called by XLA, see the invariants")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cartwheel_engine::Call;
use pyo3::prelude::*;

use super::registry;
use crate::interpreter::drop_attached;
use crate::pool::{Refused, State, other_pool};
use crate::xla::{CallFrame, ErrorCode, Frame, NO_ERROR, XlaError};

/// A function that XLA calls.
type Handler = extern "C" fn(*mut CallFrame) -> *mut XlaError;
/// A call of a pool's state.
type Run = fn(&mut State, &mut Frame<'_>) -> Result<(), Refused>;

/// Where compiled functions run on a device, which environments do not.
const ON_DEVICE: &str = "the environments run on the CPU, and this function on another device: compile \
    it for the CPU (`with jax.default_device(jax.devices(\"cpu\")[0])`), or step outside of compiled \
    functions and send each batch by `jax.device_put`";

#[pyfunction]
pub(crate) fn xla_handlers() -> BTreeMap<&'static str, usize> {
    let handlers: [(_, Handler); 6] = [
        ("init", init),
        ("step", step),
        ("reset", reset),
        ("send", send),
        ("recv", recv),
        ("device", device),
    ];
    handlers.into_iter().map(|(name, handler)| (name, handler as usize)).collect()
}

extern "C" fn init(frame: *mut CallFrame) -> *mut XlaError {
    handle(frame, Call::Reset, "init", State::init_compiled)
}

extern "C" fn step(frame: *mut CallFrame) -> *mut XlaError {
    handle(frame, Call::Step, "step", State::step_compiled)
}

extern "C" fn reset(frame: *mut CallFrame) -> *mut XlaError {
    handle(frame, Call::Reset, "reset", State::reset_compiled)
}

extern "C" fn send(frame: *mut CallFrame) -> *mut XlaError {
    handle(frame, Call::Step, "send", State::sends_compiled)
}

extern "C" fn recv(frame: *mut CallFrame) -> *mut XlaError {
    handle(frame, Call::Step, "recv", State::receives_compiled)
}

extern "C" fn device(frame: *mut CallFrame) -> *mut XlaError {
    answer(frame, |_| Err(Refused::new(ErrorCode::Unimplemented, ON_DEVICE)))
}

/// Calls `run` with the state of the pool that the frame names.
fn handle(frame: *mut CallFrame, call: Call, calling: &str, run: Run) -> *mut XlaError {
    answer(frame, |frame| {
        let number = frame.pool().ok_or_else(|| {
            Refused::new(ErrorCode::InvalidArgument, "the call has no attribute `pool`")
        })?;
        let pool = registry::pool(number).ok_or_else(|| {
            let text = "the environments of this function were closed and collected, or it was \
                        compiled by another process";
            Refused::new(ErrorCode::FailedPrecondition, text)
        })?;
        let read = frame.read_arrays().map_err(|error| other_pool(&error));
        let outcome =
            read.and_then(|()| pool.with_pool_detached(call, calling, |state| run(state, frame)));
        if let Some(last) = Arc::into_inner(pool) {
            drop_attached(last); // the program has let it go meanwhile
        }
        outcome
    })
}

/// XLA's answer to a call that `run` handles.
fn answer(
    frame: *mut CallFrame,
    run: impl FnOnce(&mut Frame<'_>) -> Result<(), Refused>,
) -> *mut XlaError {
    // SAFETY: the argument of a handler that has not returned (invariant 1); one `Frame` is made of it.
    let Some(mut frame) = (unsafe { Frame::new(frame) }) else { return NO_ERROR };
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut frame)));
    let outcome = outcome.unwrap_or_else(|_| {
        Err(Refused::new(ErrorCode::Internal, "a panic of cartwheel, which it has printed"))
    });
    match outcome {
        Ok(()) => NO_ERROR,
        Err(Refused { code, text }) => frame.error(code, &text),
    }
}
