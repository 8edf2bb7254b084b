//! Errors, warnings and handlers, with a small library instead of MuJoCo.
#![expect(unsafe_code, reason = "handlers that C calls")]

mod library;

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};

use cartwheel::{Env, FloatsRef, NoOptions, Rng, Shared};
use cartwheel_mujoco::half_cheetah::Options;
use cartwheel_mujoco::{HalfCheetah, MujocoEnv, Registered, SharedModel};
use library::{CALLBACK, CLOCK, Clock, ERROR, Handler, WARNING, model, raise, time};

type Row = MujocoEnv<HalfCheetah>;

/// Handlers are global, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn registered() -> Registered {
    Registered::new(model(library::library(false), 1)).expect("a sound model")
}

fn options(registered: &Registered) -> Options {
    Options { simulation: registered.number(), ..Options::default() }
}

fn row(registered: &Registered) -> Row {
    let options = options(registered);
    let shared = Arc::new(SharedModel::prepare(&options).expect("it is registered"));
    let mut row = Row::new(&options, &shared).expect("sound options");
    row.reset(&mut Rng::from_seed(1), &NoOptions {}).expect("no error");
    row
}

fn step(row: &mut Row, action: f64) -> Result<f64, String> {
    let stepped = row.step(FloatsRef::F64(&[action]), &mut Rng::from_seed(2));
    stepped.map(|transition| transition.reward).map_err(|failure| failure.to_string())
}

thread_local! {
    static HEARD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A handler of another program.
unsafe extern "C-unwind" fn hear(message: *const c_char) {
    // SAFETY: a C string.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    HEARD.with_borrow_mut(|heard| heard.push(message));
}

fn foreign_handler() -> *mut c_void {
    hear as Handler as *mut c_void
}

/// Puts both handlers in.
fn put(handler: *mut c_void) {
    ERROR.store(handler, SeqCst);
    WARNING.store(handler, SeqCst);
}

fn there() -> [*mut c_void; 2] {
    [ERROR.load(SeqCst), WARNING.load(SeqCst)]
}

#[test]
fn an_error_fails_the_row_until_it_is_reset_and_no_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registered();
    let (mut bad, mut good) = (row(&registered), row(&registered));
    for _ in 0..1000 {
        for _ in 0..2 {
            assert_eq!(step(&mut bad, 101.0), Err("MuJoCo: the stack is full".to_owned()));
        }
        assert!(step(&mut good, 0.5).is_ok());
        bad.reset(&mut Rng::from_seed(1), &NoOptions {}).unwrap();
        assert!(step(&mut bad, 0.5).is_ok());
    }
}

#[test]
fn a_warning_is_an_info_of_its_step() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut row = row(&registered());
    for (action, warning) in
        [(0.1, None), (-101.0, Some("it is unstable; it is unstable")), (0.1, None)]
    {
        step(&mut row, action).unwrap();
        assert_eq!(row.info().mujoco_warning.as_deref(), warning);
    }
}

thread_local! {
    /// The row that a callback steps.
    static INNER: RefCell<Option<Row>> = const { RefCell::new(None) };
}

fn step_inner() {
    INNER.with_borrow_mut(|inner| {
        let inner = inner.as_mut().expect("there is one");
        step(inner, 0.1).expect("no error");
        assert_eq!(inner.info().mujoco_warning, None);
    });
}

#[test]
fn a_row_that_a_callback_steps_takes_nothing_from_the_row_around_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registered();
    let mut outer = row(&registered);
    INNER.set(Some(row(&registered)));
    CALLBACK.set(Some(step_inner));
    step(&mut outer, -101.0).unwrap();
    let warning = "it is unstable; it is unstable";
    assert_eq!(outer.info().mujoco_warning.as_deref(), Some(warning));
    CALLBACK.set(Some(step_inner));
    assert_eq!(step(&mut outer, 101.0), Err("MuJoCo: the stack is full".to_owned()));
    INNER.set(None);
}

#[test]
fn handlers_that_were_there_get_what_is_not_a_rows_and_are_put_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    put(foreign_handler());
    let registered = registered();
    let mut row = row(&registered);
    assert!(there().iter().all(|&handler| handler != foreign_handler()));
    raise(&ERROR, c"an error elsewhere");
    raise(&WARNING, c"a warning elsewhere");
    let heard = HEARD.take();
    assert_eq!(heard, ["an error elsewhere", "a warning elsewhere"]);
    assert!(step(&mut row, 101.0).is_err());
    assert_eq!(HEARD.take(), [""; 0]);
    drop(registered);
    assert!(there().iter().all(|&handler| handler != foreign_handler()), "a row still needs ours");
    drop(row);
    assert_eq!(there(), [foreign_handler(); 2]);
    put(null_mut());
}

#[test]
fn handlers_that_are_replaced_are_put_in_again_by_the_next_call() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut row = row(&registered());
    for theirs in [null_mut(), foreign_handler()] {
        put(theirs);
        assert!(step(&mut row, 101.0).is_err());
        row.reset(&mut Rng::from_seed(1), &NoOptions {}).unwrap();
    }
    raise(&WARNING, c"elsewhere");
    assert_eq!(HEARD.take(), ["elsewhere"]);
    drop(row);
    assert_eq!(there(), [foreign_handler(); 2]);
    put(null_mut());
}

#[test]
fn handlers_that_came_later_stay() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registered();
    put(foreign_handler());
    drop(registered);
    assert_eq!(there(), [foreign_handler(); 2]);
    put(null_mut());
}

unsafe extern "C-unwind" fn noon() -> f64 {
    12.0
}

#[test]
fn the_clock_stands_still_in_calls_of_rows_only() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = noon as Clock as *mut c_void;
    let mut without = row(&registered());
    CLOCK.store(clock, SeqCst);
    let mut row = row(&registered());
    assert_eq!(step(&mut row, 0.5), step(&mut without, 0.5));
    assert_eq!(time().to_bits(), 12.0_f64.to_bits());
    drop((row, without));
    assert_eq!(CLOCK.swap(null_mut(), SeqCst), clock);
}

#[test]
fn a_second_copy_of_the_library_is_refused_while_the_first_is_used() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let first = registered();
    let other = || Registered::new(model(library::library(true), 1));
    let refused = other().unwrap_err().to_string();
    assert!(refused.contains("another copy of MuJoCo"), "{refused}");
    drop(first);
    drop(other().unwrap());
    drop(registered());
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(library::refusal_without("mj_step").contains("`mj_step` is missing"));
    let unknown = SharedModel::prepare(&Options::default()).unwrap_err().to_string();
    assert!(unknown.contains("there is no MuJoCo model 0"), "{unknown}");
    let gone = options(&registered());
    assert!(SharedModel::prepare(&gone).is_err(), "the model was dropped");

    let wrong = Registered::new(model(library::library(false), 2)).unwrap();
    let shared = Arc::new(SharedModel::prepare(&options(&wrong)).unwrap());
    let refused = Row::new(&options(&wrong), &shared).unwrap_err().to_string();
    assert_eq!(refused, "the field `qpos` must have 1 numbers, got 2");

    let mut short = model(library::library(false), 1);
    short.init_qvel.push(0.0);
    let refused = Registered::new(short).unwrap_err().to_string();
    assert_eq!(refused, "`init_qvel` must have 1 numbers, got 2");
}

#[test]
fn a_saved_state_goes_on_to_the_last_bit() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registered();
    let (mut row_, mut other) = (row(&registered), row(&registered));
    step(&mut row_, -101.0).unwrap();
    let mut state = Vec::new();
    row_.save(&mut state);
    assert!(step(&mut other, 101.0).is_err());
    other.load(&state).unwrap();
    assert_eq!(other.info().mujoco_warning, row_.info().mujoco_warning);
    for action in [0.3, -0.7, 0.1] {
        let rewards = [&mut row_, &mut other].map(|row| step(row, action).unwrap().to_bits());
        assert_eq!(rewards[0], rewards[1]);
    }
    assert!(other.load(&state[..state.len() - 1]).is_err());
    state.push(0);
    assert!(other.load(&state).is_err());
}
