//! Kinds: environments of a table with their options.
#![expect(unsafe_code, reason = "calls plugins, see the invariants of the module")]

use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr::{NonNull, null};
use std::sync::Arc;

use cartwheel_abi::Description;
use cartwheel_core::space::{Space, Spaces};
use cartwheel_core::{DType, Leaf};
use serde_json::{Map, Value};

use super::handle::Handle;
use super::sink::{broken, with_message};
use super::spaces::space;
use super::table::EnvTable;
use super::text::text;
use crate::error::Error;
use crate::platform::with_standard_floats;

/// Frames per second where the plugin does not say.
const DEFAULT_FPS: usize = 30;

/// A kind of environment: a table with options. It is made once for a pool.
pub struct EnvKind {
    table: Arc<EnvTable>,
    made: Handle,
    /// See [`EnvKind::options`].
    options: String,
    spaces: Spaces,
    parameters: Vec<String>,
    render_modes: Vec<String>,
    render_fps: usize,
    /// One for each leaf of the action space, or empty where all are false.
    action_floats: Vec<bool>,
    agents: Vec<String>,
}

// SAFETY: a kind may be called by several threads at once (invariant 3).
unsafe impl Send for EnvKind {}
// SAFETY: a kind may be called by several threads at once (invariant 3).
unsafe impl Sync for EnvKind {}

impl fmt::Debug for EnvKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, options) = (self.table.id(), &self.options);
        f.debug_struct("EnvKind").field("id", &id).field("options", options).finish_non_exhaustive()
    }
}

impl EnvKind {
    /// The kind with these options, a JSON object or empty text, over the default options of the id.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::BadOptions`] when an option does not exist or has an invalid value,
    /// or when the spaces are not as Gymnasium has them; [`Error::Plugin`] when the description breaks the contract.
    pub fn new(table: &Arc<EnvTable>, options: &str) -> Result<Arc<Self>, Error> {
        with_standard_floats(|| Self::parse(table, options)) // some options are floats
    }

    fn parse(table: &Arc<EnvTable>, options: &str) -> Result<Arc<Self>, Error> {
        let named =
            |error: &dyn fmt::Display| Error::bad_options(format!("{}: {error}", table.id()));
        let mut all = table.defaults.clone();
        if !options.trim().is_empty() {
            let given: Map<String, Value> =
                serde_json::from_str(options).map_err(|error| named(&error))?;
            all.extend(given);
        }
        let text = Value::Object(all.clone()).to_string();
        let new = table.required.kind_new;
        // SAFETY: a function of the table, with valid text and a sink (invariants 1 and 5).
        let call = |sink| unsafe { new(text.as_ptr(), text.len(), sink) };
        let (made, message) = with_message(call);
        let made = NonNull::new(made).ok_or_else(|| named(&message.text()))?;
        all.retain(|name, _| !name.starts_with('_'));
        let options = Value::Object(all).to_string();
        // SAFETY: the table has just made it.
        unsafe { Self::from_made(table, options, made) }
    }

    /// The kind that this table made from options which are not JSON; `options` names them.
    ///
    /// # Errors
    ///
    /// As [`EnvKind::new`].
    ///
    /// # Safety
    ///
    /// `made` is a kind of this table, made in this process. It is freed here, and not used elsewhere.
    pub unsafe fn from_made(
        table: &Arc<EnvTable>,
        options: String,
        made: NonNull<c_void>,
    ) -> Result<Arc<Self>, Error> {
        let mut kind = Self {
            table: Arc::clone(table),
            made: Handle::new(made),
            options,
            spaces: Spaces {
                observation: Space::Tuple(Vec::new()),
                action: Space::Tuple(Vec::new()),
            },
            parameters: Vec::new(),
            render_modes: Vec::new(),
            render_fps: DEFAULT_FPS,
            action_floats: Vec::new(),
            agents: Vec::new(),
        };
        kind.describe()?;
        let checked = kind.spaces.check();
        checked.map_err(|error| Error::bad_options(format!("{}: {error}", table.id())))?;
        Ok(Arc::new(kind))
    }

    /// Asks the plugin what the kind is.
    fn describe(&mut self) -> Result<(), Error> {
        let mut description = Description {
            struct_size: size_of::<Description>(),
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
        let describe = self.table.required.kind_describe;
        // SAFETY: a function of the table, with its own kind (invariant 2).
        unsafe { describe(self.handle(), &raw mut description) };
        let space = |what: &str, nodes, count| {
            // SAFETY: nodes and their texts are valid until the kind is freed (abi 2).
            let space = unsafe { space(nodes, count) };
            space.map_err(|why| self.broken(format!("the {what} space {why}")))
        };
        let spaces = Spaces {
            observation: space(
                "observation",
                description.observation,
                description.observation_nodes,
            )?,
            action: space("action", description.action, description.action_nodes)?,
        };
        let names = |list, count| {
            // SAFETY: texts, valid until the kind is freed (abi 2).
            unsafe { texts(list, count) }.map_err(|what| self.broken(what))
        };
        let parameters = names(description.parameters, description.num_parameters)?;
        let render_modes = names(description.render_modes, description.num_render_modes)?;
        let agents = names(description.agents, description.num_agents)?;
        (self.spaces, self.parameters) = (spaces, parameters);
        (self.render_modes, self.agents) = (render_modes, agents);
        if description.render_fps > 0 {
            self.render_fps = description.render_fps;
        }
        let actions = self.spaces.action.leaves();
        if actions.is_empty() {
            return Err(self.broken("the action space has no arrays".to_owned()));
        }
        if !description.action_floats.is_null() {
            for (leaf, Leaf { dtype, .. }) in actions.into_iter().enumerate() {
                // SAFETY: one byte for each leaf (abi 2).
                let is_float = unsafe { description.action_floats.wrapping_add(leaf).read() } != 0;
                if is_float && !matches!(dtype, DType::F32 | DType::F64) {
                    return Err(self.broken(format!(
                        "the action space has {} in leaf {leaf}, which takes floats of two dtypes",
                        dtype.name()
                    )));
                }
                self.action_floats.push(is_float);
            }
        }
        Ok(())
    }

    /// The table.
    pub fn table(&self) -> &Arc<EnvTable> {
        &self.table
    }

    /// The options, as JSON with sorted keys: all that tell kinds apart. An option whose name begins
    /// with an underscore names something of this process, and is left out.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// The spaces of one row.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The render modes, as Gymnasium names them.
    pub fn render_modes(&self) -> &[String] {
        &self.render_modes
    }

    /// Frames per second of videos and windows.
    pub fn render_fps(&self) -> usize {
        self.render_fps
    }

    /// The names of the agents, in the order of their dimension; none for an environment of one.
    pub fn agents(&self) -> &[String] {
        &self.agents
    }

    /// Of which leaves of the action space `float32` and `float64` elements are taken alike; leaves
    /// behind its end are none of them.
    pub fn action_floats(&self) -> &[bool] {
        &self.action_floats
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.made.get()
    }

    /// The error that the plugin broke the contract.
    pub(crate) fn broken(&self, what: String) -> Error {
        broken(self.table.plugin(), self.table.id(), what)
    }
}

impl Drop for EnvKind {
    fn drop(&mut self) {
        if self.made.is_usable() {
            // SAFETY: made by the same table; rows and options of resets, which keep the kind
            // alive, are gone (invariants 2 and 4).
            unsafe { (self.table.required.kind_free)(self.made.get()) }
        }
    }
}

/// A list of texts.
///
/// # Safety
///
/// `list` points at `count` texts, or is null where there are none.
unsafe fn texts(list: *const *const c_char, count: usize) -> Result<Vec<String>, String> {
    if count > 0 && list.is_null() {
        return Err(format!("has {count} names and no list of them"));
    }
    let one = |at: usize| {
        // SAFETY: as the caller promises.
        let name = unsafe { list.wrapping_add(at).read() };
        // SAFETY: as the caller promises.
        unsafe { text(name, "a name") }.map(str::to_owned)
    };
    (0..count).map(one).collect()
}
