//! The functions of a table, by their names in `cartwheel_abi::Env`: each turns the ABI's pointers into
//! Rust's types, calls the type's code guarded, and turns the result into a code and a text.
//!
//! # Invariants
//!
//! 1. **Calls.** The host calls a function as `cartwheel_abi` describes it: pointers are valid for
//!    the call, `kind`, `rows` and `options` were made by this table and not freed, a text of `len`
//!    bytes is initialized, and a sink is used by no other code.
//! 2. **Threads.** One `rows` is used by one thread at a time, so it may be borrowed mutably; a kind
//!    is only read.
//! 3. **Unwinding.** No panic leaves a function: everything that an author's code may do happens
//!    within `guarded`, or within the `catch_unwind` of [`run`].
#![expect(unsafe_code, reason = "the FFI with the host, see the invariants")]

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "engine")]
use std::ptr::NonNull;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cartwheel_abi as abi;
use cartwheel_core::Error;
use cartwheel_core::info::{Buffer, InfoReader, InfoWriter};

use super::batch_call::{BatchCall, copied, slice};
use super::guard::{Refusal, guarded, guarded_drop, printing, watch_panics};
use super::sink::SinkBuffer;
use super::typed_kind::{TypedKind, text};
use super::typed_rows::{Progress, TypedRows};
use crate::Failure;
use crate::env::{Env, Frame, ParameterValue};
use crate::options::{EnvOptions, names_of, parse};

/// Writes the reason of a refusal, and returns its code.
///
/// # Safety
///
/// Invariant 1.
unsafe fn refuse(refusal: &Refusal, error: *mut abi::Sink) -> u32 {
    // SAFETY: a sink of the host (invariant 1).
    unsafe { SinkBuffer::new(error) }.append(refusal.text.as_bytes());
    refusal.code
}

/// The code of a result; a refusal is written to `error`.
///
/// # Safety
///
/// Invariant 1.
unsafe fn answer(result: Result<(), Refusal>, error: *mut abi::Sink) -> u32 {
    match result {
        Ok(()) => abi::OK,
        // SAFETY: `error` is the host's sink (invariant 1).
        Err(refusal) => unsafe { refuse(&refusal, error) },
    }
}

/// The address of what was made; null, and a refusal is written to `error`.
///
/// # Safety
///
/// Invariant 1.
unsafe fn made<T>(made: Result<*mut T, Refusal>, error: *mut abi::Sink) -> *mut c_void {
    match made {
        Ok(made) => made.cast(),
        Err(refusal) => {
            // SAFETY: the host's sink (invariant 1).
            unsafe { refuse(&refusal, error) };
            null_mut()
        }
    }
}

/// Calls `call` with a row, guarded.
///
/// # Safety
///
/// Invariants 1 and 2.
unsafe fn with_row<E: Env>(
    rows: *mut c_void,
    row: usize,
    error: *mut abi::Sink,
    call: impl FnOnce(&mut E) -> Result<(), Refusal>,
) -> u32 {
    // SAFETY: made by `rows_new` (invariant 1), and used by this thread alone (invariant 2).
    let rows = unsafe { &mut *rows.cast::<TypedRows<E>>() };
    let _printing = printing(rows.kind.prints_panics);
    // SAFETY: the host's sink (invariant 1).
    unsafe { answer(guarded(|| call(&mut rows.envs[row])), error) }
}

pub(super) unsafe extern "C" fn option_names<E: Env>(names: *mut abi::Sink) {
    // SAFETY: the host's sink (invariant 1).
    unsafe { write_options::<E::Options>(names) }
}

pub(super) unsafe extern "C" fn reset_option_names<E: Env>(names: *mut abi::Sink) {
    // SAFETY: the host's sink (invariant 1).
    unsafe { write_options::<E::ResetOptions>(names) }
}

/// Writes the fields of an options type, each with its documentation if it has any.
///
/// # Safety
///
/// Invariant 1.
unsafe fn write_options<T: EnvOptions>(names: *mut abi::Sink) {
    let found = guarded(|| Ok::<_, Failure>((names_of::<T>(), T::describe())));
    let (all, docs) = found.unwrap_or((&[""], Vec::new()));
    // SAFETY: the host's sink (invariant 1).
    let mut sink = unsafe { SinkBuffer::new(names) };
    for name in all {
        sink.append(name.as_bytes());
        if let Some(doc) = docs.iter().find(|doc| doc.name == *name) {
            let (default, text) = (doc.default.as_deref().unwrap_or_default(), &doc.text);
            sink.append(format!("\t{default}\t{text}").as_bytes());
        }
        sink.append(b"\n");
    }
}

pub(super) unsafe extern "C" fn kind_new<E: Env>(
    options: *const u8,
    len: usize,
    error: *mut abi::Sink,
) -> *mut c_void {
    // SAFETY: text of the host (invariant 1).
    let options = unsafe { slice(options, len) };
    watch_panics();
    let kind = guarded(|| TypedKind::<E>::new(options));
    // SAFETY: the host's sink (invariant 1).
    unsafe { made(kind.map(|kind| Arc::into_raw(Arc::new(kind)).cast_mut()), error) }
}

/// A kind with options of Rust, as [`kind_new`] makes it from JSON.
///
/// # Errors
///
/// The environment's reason to refuse the options.
#[cfg(feature = "engine")]
pub(crate) fn kind_of<E: Env>(
    options: E::Options,
    prints_panics: bool,
) -> Result<NonNull<c_void>, Error> {
    watch_panics();
    let _printing = printing(prints_panics);
    match guarded(|| TypedKind::<E>::from_options(options, prints_panics)) {
        Ok(kind) => {
            let kind = Arc::into_raw(Arc::new(kind)).cast_mut().cast();
            Ok(NonNull::new(kind).expect("an `Arc` is not null"))
        }
        Err(refusal) => Err(Error::bad_options(refusal.text)),
    }
}

pub(super) unsafe extern "C" fn kind_free<E: Env>(kind: *mut c_void) {
    // SAFETY: made by `kind_new`, and not freed (invariant 1).
    let kind = unsafe { Arc::from_raw(kind.cast_const().cast::<TypedKind<E>>()) };
    let _printing = printing(kind.prints_panics);
    guarded_drop(kind);
}

const NOTHING: abi::Description = abi::Description {
    struct_size: 0,
    observation: null(),
    observation_nodes: 0,
    action: null(),
    action_nodes: 0,
    parameters: null(),
    num_parameters: 0,
    render_modes: null(),
    num_render_modes: 0,
    action_floats: null(),
    agents: null(),
    num_agents: 0,
    render_fps: 0,
};

pub(super) unsafe extern "C" fn kind_describe<E: Env>(
    kind: *const c_void,
    description: *mut abi::Description,
) {
    // SAFETY: made by `kind_new` (invariant 1).
    let kind = unsafe { &*kind.cast::<TypedKind<E>>() };
    // SAFETY: every table begins with its size (invariant 1).
    let size = unsafe { (*description).struct_size };
    let mut filled = abi::Description { struct_size: size, ..NOTHING };
    kind.describe(&mut filled);
    let bytes = size.min(size_of::<abi::Description>());
    // SAFETY: an older host's description is shorter; both have as many bytes (invariant 1).
    unsafe { (&raw const filled).cast::<u8>().copy_to_nonoverlapping(description.cast(), bytes) };
}

pub(super) unsafe extern "C" fn rows_new<E: Env>(
    kind: *const c_void,
    count: usize,
    error: *mut abi::Sink,
) -> *mut c_void {
    let kind = kind.cast::<TypedKind<E>>();
    // SAFETY: made by `kind_new`, by `Arc::into_raw` (invariant 1).
    unsafe { Arc::increment_strong_count(kind) };
    // SAFETY: this is the count that was just added.
    let kind = unsafe { Arc::from_raw(kind) };
    let _printing = printing(kind.prints_panics);
    let rows = guarded(|| TypedRows::<E>::new(kind, count));
    // SAFETY: the host's sink (invariant 1).
    unsafe { made(rows.map(|rows| Box::into_raw(Box::new(rows))), error) }
}

pub(super) unsafe extern "C" fn rows_free<E: Env>(rows: *mut c_void) {
    // SAFETY: made by `rows_new`, and not freed (invariant 1).
    let rows = unsafe { Box::from_raw(rows.cast::<TypedRows<E>>()) };
    let _printing = printing(rows.kind.prints_panics);
    guarded_drop(rows);
}

pub(super) unsafe extern "C" fn run<E: Env>(rows: *mut c_void, batch: *mut abi::Batch) -> u32 {
    // SAFETY: made by `rows_new` (invariant 1), and used by this thread alone (invariant 2).
    let rows = unsafe { &mut *rows.cast::<TypedRows<E>>() };
    // SAFETY: the host's batch (invariant 1).
    let host = unsafe { copied(batch) };
    // SAFETY: the host's sink (invariant 1).
    let written = unsafe { (*host.infos).len };
    let _printing = printing(rows.kind.prints_panics);
    let progress = Progress { next: Cell::new(host.next), infos: Cell::new(written) };
    // Around the loop and not inside it: a guard for each row would cost a call for each row.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `rows` keeps its kind, and `TypedRows::run` does not change which. Threads that count
        // references to a shared kind at every call would hold each other up.
        let kind = unsafe { &*Arc::as_ptr(&rows.kind) };
        // SAFETY: the host keeps its promises for this call (invariant 1).
        let mut call = unsafe { BatchCall::new(&host, kind) };
        rows.run(&mut call, &progress)
    }));
    // SAFETY: the host's batch (invariant 1).
    unsafe { (*batch).next = progress.next.get() };
    // The call that continues this one begins behind a row that failed.
    let failed = usize::from(!matches!(ended, Ok(Ok(()))));
    rows.passed(host.first + progress.next.get() + failed);
    let refusal = match ended {
        Ok(Ok(())) => return abi::OK,
        Ok(Err(failure)) => Refusal::from(failure),
        Err(payload) => Refusal::panicked(payload),
    };
    // SAFETY: the host's sink (invariant 1); the call has ended.
    unsafe { SinkBuffer::new(host.infos) }.truncate(progress.infos.get());
    // SAFETY: the host's sink (invariant 1).
    unsafe { refuse(&refusal, host.error) }
}

pub(super) unsafe extern "C" fn reset_options_new<E: Env>(
    _: *const c_void,
    options: *const u8,
    len: usize,
    error: *mut abi::Sink,
) -> *mut c_void {
    // SAFETY: text of the host (invariant 1).
    let options = unsafe { slice(options, len) };
    let options = guarded(|| parse::<E::ResetOptions>(text(options)?));
    // SAFETY: the host's sink (invariant 1).
    unsafe { made(options.map(|options| Box::into_raw(Box::new(options))), error) }
}

/// Options of a reset, as [`reset_options_new`] makes them from JSON.
#[cfg(feature = "engine")]
pub(crate) fn reset_options_of<E: Env>(options: E::ResetOptions) -> NonNull<c_void> {
    NonNull::from(Box::leak(Box::new(options))).cast()
}

pub(super) unsafe extern "C" fn reset_options_free<E: Env>(options: *mut c_void) {
    // SAFETY: made by `reset_options_new`, and not freed (invariant 1).
    guarded_drop(unsafe { Box::from_raw(options.cast::<E::ResetOptions>()) });
}

pub(super) unsafe extern "C" fn row_replace<E: Env>(
    rows: *mut c_void,
    row: usize,
    error: *mut abi::Sink,
) -> u32 {
    // SAFETY: made by `rows_new` (invariant 1), and used by this thread alone (invariant 2).
    let rows = unsafe { &mut *rows.cast::<TypedRows<E>>() };
    let _printing = printing(rows.kind.prints_panics);
    // SAFETY: the host's sink (invariant 1).
    unsafe { answer(rows.replace(row), error) }
}

fn name_of<E: Env>(parameter: usize) -> Result<&'static str, Error> {
    let name = E::parameters().get(parameter).copied();
    name.ok_or_else(|| Error::BadParameter(format!("there is no parameter number {parameter}")))
}

/// The error of a parameter that is named and not there.
fn missing(name: &str) -> Error {
    Error::BadParameter(format!("`Env::parameters` names {name:?}, which is not there"))
}

pub(super) unsafe extern "C" fn parameter_get<E: Env>(
    rows: *mut c_void,
    row: usize,
    parameter: usize,
    value: *mut abi::Sink,
    error: *mut abi::Sink,
) -> u32 {
    // SAFETY: the host's sink (invariant 1).
    let value = unsafe { SinkBuffer::new(value) };
    let call = |env: &mut E| {
        let name = name_of::<E>(parameter)?;
        let found = env.parameter(name).ok_or_else(|| missing(name))?;
        found.get().write(&mut InfoWriter::over(value));
        Ok(())
    };
    // SAFETY: invariants 1 and 2.
    unsafe { with_row(rows, row, error, call) }
}

pub(super) unsafe extern "C" fn parameter_set<E: Env>(
    rows: *mut c_void,
    row: usize,
    parameter: usize,
    value: *const u8,
    len: usize,
    error: *mut abi::Sink,
) -> u32 {
    // SAFETY: bytes of the host (invariant 1).
    let value = unsafe { slice(value, len) };
    let call = |env: &mut E| {
        let name = name_of::<E>(parameter)?;
        let value = ParameterValue::read(&mut InfoReader::new(value, 0))?;
        let parameter = env.parameter_mut(name).ok_or_else(|| missing(name))?;
        let before = parameter.get();
        let mut set = parameter.set(value).map_err(Refusal::from);
        if set.is_ok() {
            // A check that panics has not passed.
            set = guarded(|| env.check_parameter(name));
            if set.is_err() {
                env.parameter_mut(name).ok_or_else(|| missing(name))?.set(before)?;
            }
        }
        env.parameters_changed();
        set
    };
    // SAFETY: invariants 1 and 2.
    unsafe { with_row(rows, row, error, call) }
}

pub(super) unsafe extern "C" fn row_save<E: Env>(
    rows: *mut c_void,
    row: usize,
    state: *mut abi::Sink,
    error: *mut abi::Sink,
) -> u32 {
    let call = |env: &mut E| {
        let mut bytes = Vec::new();
        env.save(&mut bytes);
        // SAFETY: the host's sink (invariant 1).
        unsafe { SinkBuffer::new(state) }.append(&bytes);
        Ok(())
    };
    // SAFETY: invariants 1 and 2.
    unsafe { with_row(rows, row, error, call) }
}

pub(super) unsafe extern "C" fn row_load<E: Env>(
    rows: *mut c_void,
    row: usize,
    state: *const u8,
    len: usize,
    error: *mut abi::Sink,
) -> u32 {
    // SAFETY: bytes of the host (invariant 1).
    let state = unsafe { slice(state, len) };
    let call = |env: &mut E| {
        let mut old = Vec::new();
        env.save(&mut old);
        guarded(|| env.load(state)).inspect_err(|_| _ = guarded(|| env.load(&old)))
    };
    // SAFETY: invariants 1 and 2.
    unsafe { with_row(rows, row, error, call) }
}

pub(super) unsafe extern "C" fn row_render<E: Env>(
    rows: *mut c_void,
    row: usize,
    mode: usize,
    frame: *mut abi::Frame,
    error: *mut abi::Sink,
) -> u32 {
    let call = |env: &mut E| {
        let missing = || Failure::new(format!("there is no render mode number {mode}"));
        let mut drawn = Frame::new(*E::RENDER.get(mode).ok_or_else(missing)?);
        env.render(&mut drawn)?;
        let (height, width, bytes) = drawn.finish()?;
        // SAFETY: the host's frame (invariant 1).
        let frame = unsafe { &mut *frame };
        (frame.height, frame.width) = (height, width);
        // SAFETY: the host's sink (invariant 1).
        unsafe { SinkBuffer::new(frame.bytes) }.append(bytes);
        Ok(())
    };
    // SAFETY: invariants 1 and 2.
    unsafe { with_row(rows, row, error, call) }
}
