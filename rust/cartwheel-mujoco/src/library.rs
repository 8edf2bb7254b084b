//! The functions of MuJoCo's library, by their addresses.
//!
//! Nothing here depends on the layout of MuJoCo's structures, which changes between its releases.
//!
//! # Invariants
//!
//! 1. **Addresses.** The caller of [`Library::new`] promises that its addresses are those of the
//!    functions and variables of these names in one loaded MuJoCo, 3.2 or newer, which stays loaded.
//! 2. **Physics.** A [`Physics`] is a model and a data that was made from it. Both live as
//!    long as it does, and no other code uses the data, or changes the model, during a call.
//! 3. **Guards.** Within a guard (`guard.rs`), an error of MuJoCo unwinds out of the call; elsewhere it ends the
//!    process. So every call that computes is made in a guard. Reading and writing a state have no errors but for
//!    a set of parts that MuJoCo does not know, and `Model::state_spec` is MuJoCo's own.
#![expect(unsafe_code, reason = "calls a C library, see the invariants")]

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::mem::transmute;
use std::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::AtomicPtr;

use cartwheel::Error;

use crate::memory::Memory;

/// `mjModel`.
#[derive(Debug)]
enum RawModel {}

/// `mjData`.
#[derive(Debug)]
enum RawData {}

type Advance = unsafe extern "C-unwind" fn(*const RawModel, *mut RawData);
type SetConst = unsafe extern "C-unwind" fn(*mut RawModel, *mut RawData);
type StateSize = unsafe extern "C-unwind" fn(*const RawModel, c_int) -> c_int;
type GetState = unsafe extern "C-unwind" fn(*const RawModel, *const RawData, *mut f64, c_int);
type SetState = unsafe extern "C-unwind" fn(*const RawModel, *mut RawData, *const f64, c_int);
type RaiseError = unsafe extern "C-unwind" fn(*const c_char, ...);
type WriteLog = unsafe extern "C-unwind" fn(*const c_char, *const c_char);

/// The functions.
#[derive(Clone, Copy)]
pub struct Library {
    step: Advance,
    forward: Advance,
    reset_data: Advance,
    rne_post_constraint: Advance,
    set_const: SetConst,
    state_size: StateSize,
    get_state: GetState,
    set_state: SetState,
    raise_error: RaiseError,
    write_log: WriteLog,
    /// The variables that hold the handlers of errors and warnings.
    user_error: &'static AtomicPtr<c_void>,
    user_warning: &'static AtomicPtr<c_void>,
    /// The variable that holds the profiling clock.
    clock: &'static AtomicPtr<c_void>,
}

impl Library {
    /// The library whose functions and variables are at these addresses.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for a name that is missing, or whose address is zero.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    pub unsafe fn new(addresses: &BTreeMap<String, usize>) -> Result<Self, Error> {
        let of = |name: &str| match addresses.get(name) {
            None | Some(0) => {
                Err(Error::bad_options(format!("the address of MuJoCo's `{name}` is missing")))
            }
            Some(&address) => Ok(address),
        };
        macro_rules! function {
            ($name:literal as $type:ty) => {{
                let function = with_exposed_provenance::<()>(of($name)?);
                // SAFETY: the address of the function of this name (invariant 1), whose type has not
                // changed since MuJoCo 3.2.
                unsafe { transmute::<*const (), $type>(function) }
            }};
        }
        let variable = |name: &str| {
            let address = of(name)?;
            if !address.is_multiple_of(align_of::<AtomicPtr<c_void>>()) {
                return Err(Error::bad_options(format!("`{name}` cannot be at {address:#x}")));
            }
            // SAFETY: the address of a pointer in a library that stays loaded (invariant 1). Code of
            // MuJoCo only reads it; a pointer that is aligned is read in one piece.
            Ok(unsafe { AtomicPtr::from_ptr(with_exposed_provenance_mut(address)) })
        };
        Ok(Self {
            step: function!("mj_step" as Advance),
            forward: function!("mj_forward" as Advance),
            reset_data: function!("mj_resetData" as Advance),
            rne_post_constraint: function!("mj_rnePostConstraint" as Advance),
            set_const: function!("mj_setConst" as SetConst),
            state_size: function!("mj_stateSize" as StateSize),
            get_state: function!("mj_getState" as GetState),
            set_state: function!("mj_setState" as SetState),
            raise_error: function!("mju_error" as RaiseError),
            write_log: function!("mju_writeLog" as WriteLog),
            user_error: variable("mju_user_error")?,
            user_warning: variable("mju_user_warning")?,
            clock: variable("mjcb_time")?,
        })
    }

    /// The variable that holds the handler of errors.
    pub(crate) fn user_error(&self) -> &'static AtomicPtr<c_void> {
        self.user_error
    }

    /// The variable that holds the handler of warnings.
    pub(crate) fn user_warning(&self) -> &'static AtomicPtr<c_void> {
        self.user_warning
    }

    /// The variable that holds the profiling clock.
    pub(crate) fn clock(&self) -> &'static AtomicPtr<c_void> {
        self.clock
    }

    /// `mju_error("%s", message)`: ends the process unless there is a handler.
    ///
    /// # Safety
    ///
    /// `message` is a C string.
    pub(crate) unsafe fn raise_error(&self, message: *const c_char) {
        // SAFETY: a format, and the text that it wants.
        unsafe { (self.raise_error)(c"%s".as_ptr(), message) }
    }

    /// Appends a line to MuJoCo's log.
    ///
    /// # Safety
    ///
    /// `message` is a C string.
    pub(crate) unsafe fn write_log(&self, message: *const c_char) {
        // SAFETY: two C strings.
        unsafe { (self.write_log)(c"WARNING".as_ptr(), message) }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

/// A model and a data: what MuJoCo's functions take.
#[derive(Debug)]
pub(crate) struct Physics {
    library: Library,
    model: NonNull<RawModel>,
    data: NonNull<RawData>,
}

// SAFETY: MuJoCo's functions may be called on any thread, and invariant 2 forbids two at once.
unsafe impl Send for Physics {}

impl Physics {
    /// The simulation whose `mjModel` and `mjData` are at these addresses.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for an address that is zero.
    ///
    /// # Safety
    ///
    /// Invariant 2.
    pub(crate) unsafe fn new(library: Library, model: usize, data: usize) -> Result<Self, Error> {
        let missing = || Error::bad_options("the address of a row's model or data is zero");
        let model = NonNull::new(with_exposed_provenance_mut(model)).ok_or_else(missing)?;
        let data = NonNull::new(with_exposed_provenance_mut(data)).ok_or_else(missing)?;
        Ok(Self { library, model, data })
    }

    /// `mj_step`, several times, then `mj_rnePostConstraint`, as Gymnasium's
    /// `_step_mujoco_simulation`. Meanwhile, the processor loads the memory of the `next` row.
    #[inline]
    pub(crate) fn step(&mut self, frame_skip: u32, next: &Memory) {
        for part in 0..frame_skip {
            next.prefetch(part, frame_skip);
            self.advance(self.library.step);
        }
        self.advance(self.library.rne_post_constraint);
    }

    /// `mj_forward`.
    pub(crate) fn forward(&mut self) {
        self.advance(self.library.forward);
    }

    /// `mj_resetData`.
    pub(crate) fn reset(&mut self) {
        self.advance(self.library.reset_data);
    }

    /// `mj_setConst`: computes the constants of the model from its other fields, and leaves the part `spec`
    /// of the data's state as it is.
    ///
    /// # Safety
    ///
    /// The model belongs to this data alone.
    pub(crate) unsafe fn set_constants(&mut self, spec: c_int) {
        let state = self.state(spec);
        // SAFETY: a model, which the caller says nothing else uses, and its data (invariants 1 and 2).
        unsafe { (self.library.set_const)(self.model.as_ptr(), self.data.as_ptr()) }
        self.set_state(spec, &state);
    }

    #[inline]
    fn advance(&mut self, function: Advance) {
        // SAFETY: a model and its data, which no other code uses (invariants 1 and 2).
        unsafe { function(self.model.as_ptr(), self.data.as_ptr()) }
    }

    /// `mj_stateSize`: how many numbers a state has; `None` where MuJoCo answers a negative size.
    pub(crate) fn state_size(&self, spec: c_int) -> Option<usize> {
        // SAFETY: a model (invariants 1 and 2).
        let size = unsafe { (self.library.state_size)(self.model.as_ptr(), spec) };
        usize::try_from(size).ok()
    }

    /// `mj_getState`.
    pub(crate) fn state(&self, spec: c_int) -> Vec<f64> {
        let mut state = vec![0.0; self.state_size(spec).unwrap_or(0)];
        let (model, data) = (self.model.as_ptr(), self.data.as_ptr());
        // SAFETY: a model, its data, and room for a state of this size (invariants 1 and 2).
        unsafe { (self.library.get_state)(model, data, state.as_mut_ptr(), spec) };
        state
    }

    /// `mj_setState`. Returns whether `state` has the right size; otherwise nothing is changed.
    pub(crate) fn set_state(&mut self, spec: c_int, state: &[f64]) -> bool {
        let fits = self.state_size(spec) == Some(state.len());
        if fits {
            let (model, data) = (self.model.as_ptr(), self.data.as_ptr());
            // SAFETY: a model, its data, and a state of their size (invariants 1 and 2).
            unsafe { (self.library.set_state)(model, data, state.as_ptr(), spec) };
        }
        fits
    }
}
