//! A small library instead of MuJoCo: one joint, with errors and warnings on demand.
#![expect(unsafe_code, reason = "functions of a C library")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

use cartwheel_mujoco::{Library, Model, RowParts, Sizes};

/// A control above this is an error, below its negative a warning.
pub(crate) const LIMIT: f64 = 100.0;

pub(crate) type Handler = unsafe extern "C-unwind" fn(*const c_char);

/// MuJoCo's two variables: of the library, and of another copy of it.
pub(crate) static ERROR: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
pub(crate) static WARNING: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
pub(crate) static CLOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static OTHER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

thread_local! {
    /// A callback of the next step of this thread.
    pub(crate) static CALLBACK: Cell<Option<fn()>> = const { Cell::new(None) };
}

pub(crate) type Clock = unsafe extern "C-unwind" fn() -> f64;

/// The time of the clock, as MuJoCo asks for it; 0 without one.
pub(crate) fn time() -> f64 {
    // SAFETY: the variable holds a clock, or null.
    let clock = unsafe { transmute::<*mut c_void, Option<Clock>>(CLOCK.load(SeqCst)) };
    // SAFETY: a clock.
    clock.map_or(0.0, |clock| unsafe { clock() })
}

/// `mjData`: the arrays, and whether an error has left it half done.
#[repr(C)]
pub(crate) struct Data {
    qpos: f64,
    qvel: f64,
    ctrl: f64,
    is_broken: f64,
    zeros: [f64; 10],
}

/// Calls the handler in one of the variables, as MuJoCo does.
pub(crate) fn raise(variable: &AtomicPtr<c_void>, message: &CStr) {
    // SAFETY: the variables hold handlers, or null.
    let handler = unsafe { transmute::<*mut c_void, Option<Handler>>(variable.load(SeqCst)) };
    let handler = handler.expect("MuJoCo would end the process");
    // SAFETY: a C string.
    unsafe { handler(message.as_ptr()) };
}

unsafe extern "C-unwind" fn step(_: *const c_void, data: *mut Data) {
    // SAFETY: the row's data.
    let data = unsafe { &mut *data };
    assert!(data.is_broken == 0.0, "the data was not reset after an error");
    if data.ctrl < -LIMIT {
        raise(&WARNING, c"it is unstable");
    }
    if let Some(callback) = CALLBACK.take() {
        callback();
    }
    if data.ctrl > LIMIT {
        data.is_broken = 1.0;
        raise(&ERROR, c"the stack is full");
    }
    data.qvel += data.ctrl + time();
    data.qpos += 0.01 * data.qvel;
}

unsafe extern "C-unwind" fn nothing(_: *const c_void, _: *mut Data) {}

unsafe extern "C-unwind" fn reset(_: *const c_void, data: *mut Data) {
    // SAFETY: the row's data.
    unsafe { *data = EMPTY };
}

const EMPTY: Data = Data { qpos: 0.0, qvel: 0.0, ctrl: 0.0, is_broken: 0.0, zeros: [0.0; 10] };

unsafe extern "C-unwind" fn state_size(_: *const c_void, _: c_int) -> c_int {
    2
}

unsafe extern "C-unwind" fn get_state(
    _: *const c_void,
    data: *const Data,
    state: *mut [f64; 2],
    _: c_int,
) {
    // SAFETY: the row's data.
    let data = unsafe { &*data };
    // SAFETY: room for a state.
    unsafe { *state = [data.qpos, data.qvel] };
}

unsafe extern "C-unwind" fn set_state(
    _: *const c_void,
    data: *mut Data,
    state: *const [f64; 2],
    _: c_int,
) {
    // SAFETY: a state.
    let [qpos, qvel] = unsafe { *state };
    // SAFETY: the row's data.
    let data = unsafe { &mut *data };
    (data.qpos, data.qvel) = (qpos, qvel);
}

unsafe extern "C-unwind" fn unused() {
    unreachable!("tests install handlers")
}

/// The addresses of this library; of another copy of it, whose variables are others.
pub(crate) fn addresses(other: bool) -> BTreeMap<String, usize> {
    let variable =
        |variable: &'static AtomicPtr<c_void>| (&raw const *variable).expose_provenance();
    let [error, warning] = if other { [&OTHER, &OTHER] } else { [&ERROR, &WARNING] };
    let addresses = [
        ("mj_step", step as *const () as usize),
        ("mj_forward", nothing as *const () as usize),
        ("mj_resetData", reset as *const () as usize),
        ("mj_rnePostConstraint", nothing as *const () as usize),
        ("mj_setConst", nothing as *const () as usize),
        ("mj_stateSize", state_size as *const () as usize),
        ("mj_getState", get_state as *const () as usize),
        ("mj_setState", set_state as *const () as usize),
        ("mju_error", unused as *const () as usize),
        ("mju_writeLog", unused as *const () as usize),
        ("mju_user_error", variable(error)),
        ("mju_user_warning", variable(warning)),
        ("mjcb_time", variable(&CLOCK)),
    ];
    addresses.map(|(name, address)| (name.to_owned(), address)).into()
}

/// A row whose length of `qpos` may be wrong.
fn row(qpos: usize) -> RowParts {
    let mut data = Box::new(EMPTY);
    let start = (&raw mut *data).expose_provenance();
    let of = |at: usize, len: usize| (start + 8 * at, len);
    let zeros = ["cinert", "cvel", "cfrc_ext"].map(|name| (name, of(4, 10).0));
    let mut fields = BTreeMap::from([
        ("qpos", of(0, qpos)),
        ("qvel", of(1, 1)),
        ("ctrl", of(2, 1)),
        ("xpos", of(4, 3)),
        ("xipos", of(4, 3)),
        ("qfrc_actuator", of(4, 1)),
        ("qfrc_constraint", of(4, 1)),
        ("site_xpos", (0, 0)),
        ("ten_length", (0, 0)),
        ("ten_velocity", (0, 0)),
        ("body_mass", of(4, 1)),
    ]);
    for ((name, address), len) in zeros.into_iter().zip([10, 6, 6]) {
        fields.insert(name, (address, len));
    }
    let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let integers = BTreeMap::new();
    // SAFETY: the row owns its data, which does not move.
    unsafe {
        RowParts::new(
            7,
            (start, start),
            fields,
            integers,
            &[(start, size_of::<Data>())],
            Box::new(data),
        )
    }
}

/// A model whose rows have `qpos` positions where there should be one.
pub(crate) fn model(library: Library, qpos: usize) -> Model {
    Model {
        library,
        sizes: Sizes { nq: 1, nv: 1, nu: 1, nbody: 1, nsite: 0, ntendon: 0 },
        frame_skip: 2,
        timestep: 0.01,
        init_qpos: vec![0.0],
        init_qvel: vec![0.0],
        action_bounds: (vec![-1.0], vec![1.0]),
        bodies: BTreeMap::new(),
        state_spec: 1,
        fused_norms: false,
        scene: vec!["xpos".to_owned()],
        make_row: Box::new(move || Ok(row(qpos))),
    }
}

/// The library, or another copy of it.
pub(crate) fn library(other: bool) -> Library {
    // SAFETY: the addresses are those of this library.
    unsafe { Library::new(&addresses(other)) }.expect("all addresses are there")
}

/// The error for addresses without `name`.
pub(crate) fn refusal_without(name: &str) -> String {
    let mut addresses = addresses(false);
    addresses.remove(name);
    // SAFETY: the addresses are those of this library; one is missing, which is refused.
    unsafe { Library::new(&addresses) }.expect_err("an address is missing").to_string()
}
