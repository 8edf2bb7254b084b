//! The environments of one shard, as a plugin holds them.
#![expect(unsafe_code, reason = "calls plugins, see the invariants of the module")]

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null};
use std::sync::Arc;

use cartwheel_abi::{self as abi, Batch, RandomStream, Sink};
use cartwheel_core::rng::Rng;

use super::env_kind::EnvKind;
use super::guards::Guards;
use super::handle::Handle;
use super::records::{check_records, check_value};
use super::reset_options::ResetOptions;
use super::sink::{Bytes, with_message};
use crate::autoreset::Outcomes;
use crate::error::Error;
use crate::memory::{ActionColumns, LeafColumns};
use crate::platform::with_standard_floats;

/// Environments of one kind.
pub(crate) struct EnvRows {
    kind: Arc<EnvKind>,
    made: Handle,
    count: usize,
    /// Memory for guarded copies, where batches are checked.
    guards: Option<Guards>,
    error: Bytes,
}

// SAFETY: rows are called by the code that borrows them mutably, on any thread (invariant 3).
unsafe impl Send for EnvRows {}

impl fmt::Debug for EnvRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvRows")
            .field("kind", &self.kind)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The arrays of a batch: one entry for each of its rows.
pub(crate) struct BatchCall<'c, 'a, 'o> {
    /// The first row, counted from the first row of the shard.
    pub(crate) first: usize,
    /// The number of this row in infos.
    pub(crate) info_row: usize,
    pub(crate) commands: &'c [u8],
    pub(crate) actions: &'c ActionColumns<'c>,
    pub(crate) observations: &'c mut LeafColumns<'a>,
    pub(crate) outcomes: &'c mut Outcomes<'o>,
    pub(crate) streams: &'c mut [Rng],
    pub(crate) options: Option<&'c ResetOptions>,
}

impl<'c, 'a, 'o> BatchCall<'c, 'a, 'o> {
    /// A call of all rows of a shard, without actions and options.
    pub(crate) fn without_actions(
        commands: &'c [u8],
        observations: &'c mut LeafColumns<'a>,
        outcomes: &'c mut Outcomes<'o>,
        streams: &'c mut [Rng],
    ) -> Self {
        let actions = &ActionColumns::NONE;
        Self {
            first: 0,
            info_row: 0,
            commands,
            actions,
            observations,
            outcomes,
            streams,
            options: None,
        }
    }
}

/// The end of a call.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Every row was carried out.
    Done,
    /// This row failed, or panicked; rows before it were carried out, rows after it were not.
    Failed { row: usize, panicked: bool, message: String },
}

/// A drawing of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderFrame {
    /// Pixels, `[height, width, 3]`, row-major.
    Pixels {
        /// Rows of pixels.
        height: usize,
        /// Pixels in a row.
        width: usize,
        /// Red, green and blue of every pixel.
        bytes: Vec<u8>,
    },
    /// Text.
    Text(String),
}

/// The render mode whose frames are pixels.
const PIXELS: &str = "rgb_array";

impl EnvRows {
    /// Makes `count` environments, not yet reset.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::BadOptions`] with the plugin's text.
    pub(crate) fn new(kind: &Arc<EnvKind>, count: usize, is_checked: bool) -> Result<Self, Error> {
        let new = kind.table().required.rows_new;
        // SAFETY: a function of the table, with its own kind and a sink (invariant 2).
        let new = |sink| unsafe { new(kind.handle(), count, sink) };
        let (made, message) = with_standard_floats(|| with_message(new));
        let failed = || Error::bad_options(format!("{}: {}", kind.table().id(), message.text()));
        let made = Handle::new(NonNull::new(made).ok_or_else(failed)?);
        let guards = is_checked.then(Guards::default);
        Ok(Self { kind: Arc::clone(kind), made, count, guards, error: Bytes::new() })
    }

    pub(crate) fn kind(&self) -> &Arc<EnvKind> {
        &self.kind
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Carries out the commands of `rows` of the batch, in one call, and appends their infos to
    /// `infos`.
    ///
    /// # Errors
    ///
    /// [`Error::Plugin`] when the plugin broke the contract.
    #[expect(clippy::inline_always, reason = "the call is in registers then, and not in memory")]
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        call: &mut BatchCall<'_, '_, '_>,
        rows: Range<usize>,
        infos: &mut Bytes,
    ) -> Result<Ended, Error> {
        let run = self.kind.table().required.run;
        let count = call.commands.len();
        assert!(call.first + count <= self.count, "rows of the shard");
        assert!(rows.end <= count && call.observations.rows() >= count, "rows of the batch");
        assert!(call.streams.len() >= count, "a stream for each row");
        assert!(call.actions.rows().is_none_or(|rows| rows >= count), "an action for each row");
        let Outcomes { rewards, terminations, truncations, .. } = &mut *call.outcomes;
        let shortest = rewards.len().min(terminations.len()).min(truncations.len());
        assert!(shortest >= count, "outcomes for each row");
        let (from, made) = (infos.bytes().len(), self.made.get());
        self.error.clear();
        let error = &mut self.error;
        let guards = self.guards.as_mut();
        let mut batch = Batch {
            struct_size: size_of::<Batch>(),
            first: call.first,
            rows: rows.end,
            next: rows.start,
            commands: call.commands.as_ptr(),
            actions: call.actions.addresses(),
            observations: call.observations.addresses().as_ptr(),
            rewards: rewards.as_mut_ptr(),
            terminations: terminations.as_mut_ptr(),
            truncations: truncations.as_mut_ptr(),
            // An `Rng` has the layout of a stream.
            streams: call.streams.as_mut_ptr().cast::<RandomStream>(),
            reset_options: call.options.map_or(null(), ResetOptions::handle),
            info_row: u32::try_from(call.info_row).expect("a pool has fewer than 2^32 rows"),
            infos: std::ptr::null_mut(),
            error: std::ptr::null_mut(),
            action_dtypes: call.actions.dtypes(),
        };
        let (batch_ref, layout) = (&mut batch, call.observations.layout());
        // Kept here and not returned: a result in a result is moved each time.
        let mut ran = Ok(abi::OK);
        let lent = infos.lend(|infos| {
            error.lend(|error| {
                (batch_ref.infos, batch_ref.error) = (infos, error);
                // SAFETY: a function of the table with its own rows, which are borrowed mutably;
                // every array has an entry for each row and is borrowed until the call returns
                // (invariants 2, 3 and 5).
                let run = |batch: &mut Batch| unsafe { run(made, batch) };
                ran = match guards {
                    None => Ok(run(batch_ref)),
                    // SAFETY: the arrays are as long as the batch says.
                    Some(guards) => unsafe { guards.run(batch_ref, layout, run) },
                };
            })
        });
        if let (Ok(Ok(())), &Ok(status)) = (&lent, &ran) {
            return self.ended(status, batch.next, rows, call.info_row, infos, from);
        }
        let what = lent.and_then(|lent| lent).and(ran.map(drop));
        Err(self.kind.broken(what.expect_err("one of them was refused")))
    }

    /// Checks what a call returned.
    fn ended(
        &self,
        status: u32,
        next: usize,
        rows: Range<usize>,
        info_row: usize,
        infos: &mut Bytes,
        from: usize,
    ) -> Result<Ended, Error> {
        let (ended, done) = match status {
            abi::OK if next == rows.end => (Ended::Done, next),
            abi::FAILED | abi::PANICKED if rows.contains(&next) => {
                let (panicked, message) = (status == abi::PANICKED, self.error.text());
                (Ended::Failed { row: next, panicked, message }, next)
            }
            _ => {
                let what = format!(
                    "`run` of rows {rows:?} returned the status {status} and the row {next}"
                );
                return Err(self.kind.broken(what));
            }
        };
        if infos.bytes().len() > from {
            let expected = info_row + rows.start..info_row + done;
            check_records(infos.bytes(), from, expected).map_err(|what| self.kind.broken(what))?;
        }
        Ok(ended)
    }

    /// Replaces the environment of a row by a new one, not yet reset. Returns whether that worked.
    pub(crate) fn replace(&mut self, row: usize) -> bool {
        let Some(replace) = self.kind.table().functions.row_replace else { return false };
        // SAFETY: a function of the table with its own rows and a sink (invariants 2 and 3).
        self.call(row, |rows, error| unsafe { replace(rows, row, error) }).is_ok()
    }

    /// A parameter of a row, as a value of the info format.
    ///
    /// # Errors
    ///
    /// The plugin's text, or what is wrong with the value.
    pub(crate) fn parameter(&mut self, row: usize, number: usize) -> Result<Vec<u8>, String> {
        let get = self.kind.table().functions.parameter_get;
        let get = get.ok_or("the environment tells no parameter")?;
        let names = self.kind.parameters();
        if number >= names.len() {
            return Err(format!("there is no parameter {number} of {names:?}"));
        }
        let mut value = Bytes::new();
        let lent = value.lend(|value| {
            // SAFETY: a function of the table with its own rows and sinks (invariants 2 and 3).
            self.call(row, |rows, error| unsafe { get(rows, row, number, value, error) })
        });
        lent.and_then(|got| got)?;
        check_value(value.bytes()).map_err(|what| {
            format!("the value of the parameter {:?} {what}", self.kind.parameters()[number])
        })?;
        Ok(value.into())
    }

    /// Sets a parameter of a row to a value of the info format.
    ///
    /// # Errors
    ///
    /// The plugin's text.
    pub(crate) fn set_parameter(
        &mut self,
        row: usize,
        number: usize,
        value: &[u8],
    ) -> Result<(), String> {
        let set = self.kind.table().functions.parameter_set;
        let set = set.ok_or("the environment lets no parameter be set")?;
        let (bytes, len) = (value.as_ptr(), value.len());
        // The reason follows the name of the parameter.
        self.call_or(row, "made the environment panic", |rows, error| {
            // SAFETY: a function of the table with its own rows and sinks (invariants 2 and 3).
            unsafe { set(rows, row, number, bytes, len, error) }
        })
    }

    /// The state of a row, in the plugin's form.
    ///
    /// # Errors
    ///
    /// The plugin's text.
    pub(crate) fn save(&mut self, row: usize) -> Result<Vec<u8>, String> {
        let save = self.kind.table().functions.row_save;
        let save = save.ok_or("the environment cannot be saved")?;
        let mut state = Bytes::new();
        let lent = state.lend(|state| {
            // SAFETY: a function of the table with its own rows and sinks (invariants 2 and 3).
            self.call(row, |rows, error| unsafe { save(rows, row, state, error) })
        });
        lent.and_then(|saved| saved)?;
        Ok(state.into())
    }

    /// Continues a row from a state.
    ///
    /// # Errors
    ///
    /// The plugin's text.
    pub(crate) fn load(&mut self, row: usize, state: &[u8]) -> Result<(), String> {
        let load = self.kind.table().functions.row_load;
        let load = load.ok_or("the environment cannot be restored")?;
        let (bytes, len) = (state.as_ptr(), state.len());
        // SAFETY: a function of the table with its own rows and sinks (invariants 2 and 3).
        self.call(row, |rows, error| unsafe { load(rows, row, bytes, len, error) })
    }

    /// Draws a row.
    ///
    /// # Errors
    ///
    /// The plugin's text, or what is wrong with the frame.
    pub(crate) fn render(&mut self, row: usize, mode: usize) -> Result<RenderFrame, String> {
        let render = self.kind.table().functions.row_render;
        let render = render.ok_or("the environment draws nothing")?;
        let modes = self.kind.render_modes();
        let is_pixels = modes.get(mode).map(|mode| mode == PIXELS);
        let is_pixels =
            is_pixels.ok_or_else(|| format!("there is no render mode {mode} of {modes:?}"))?;
        let mut bytes = Bytes::new();
        let mut frame = abi::Frame {
            struct_size: size_of::<abi::Frame>(),
            height: 0,
            width: 0,
            bytes: std::ptr::null_mut(),
        };
        let lent = bytes.lend(|sink| {
            frame.bytes = sink;
            let frame = &raw mut frame;
            // SAFETY: a function of the table with its own rows and sinks (invariants 2 and 3).
            self.call(row, |rows, error| unsafe { render(rows, row, mode, frame, error) })
        });
        lent.and_then(|drawn| drawn)?;
        let abi::Frame { height, width, .. } = frame;
        if !is_pixels {
            return Ok(RenderFrame::Text(bytes.text()));
        }
        let bytes = Vec::from(bytes);
        let expected = height.checked_mul(width).and_then(|pixels| pixels.checked_mul(3));
        if expected != Some(bytes.len()) || bytes.is_empty() {
            let got = bytes.len();
            return Err(format!("a frame of {height} x {width} pixels has {got} bytes"));
        }
        Ok(RenderFrame::Pixels { height, width, bytes })
    }

    fn call(
        &mut self,
        row: usize,
        call: impl FnOnce(*mut c_void, *mut Sink) -> u32,
    ) -> Result<(), String> {
        self.call_or(row, "the environment panicked", call)
    }

    /// `panicked` begins the reason of a call that did.
    fn call_or(
        &mut self,
        row: usize,
        panicked: &str,
        call: impl FnOnce(*mut c_void, *mut Sink) -> u32,
    ) -> Result<(), String> {
        assert!(row < self.count, "row {row} is a row of the shard");
        let rows = self.made.get();
        self.error.clear();
        match self.error.lend(|error| call(rows, error))? {
            abi::OK => Ok(()),
            abi::FAILED => Err(self.error.text()),
            abi::PANICKED => Err(format!("{panicked}: {}", self.error.text())),
            status => Err(format!("the plugin returned the status {status}")),
        }
    }
}

impl Drop for EnvRows {
    fn drop(&mut self) {
        if self.made.is_usable() {
            // SAFETY: made by the same table, and not used any more (invariants 2 and 4).
            unsafe { (self.kind.table().required.rows_free)(self.made.get()) }
        }
    }
}
