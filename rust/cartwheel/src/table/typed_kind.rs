//! Kinds: an environment with its options.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use cartwheel_abi as abi;
use cartwheel_core::{Error, Leaf};

use super::guard::guarded_drop;
use super::nodes::Nodes;
use crate::env::{Env, Shared, View, check};
use crate::options::parse;

/// An environment with its options: makes rows.
pub(super) struct TypedKind<E: Env> {
    options: E::Options,
    shared: Arc<E::Shared>,
    observation: Nodes,
    action: Nodes,
    pub(super) observation_leaves: Vec<Leaf>,
    pub(super) action_leaves: Vec<Leaf>,
    /// One byte for each leaf of the action space: whether it is [`Floats`](crate::Floats).
    action_floats: Vec<u8>,
    /// The texts of `parameters` and `agents`.
    _names: Vec<Vec<u8>>,
    parameters: Vec<*const c_char>,
    render_modes: Vec<*const c_char>,
    agents: Vec<*const c_char>,
    /// Whether panics of the environments are printed.
    pub(super) prints_panics: bool,
}

impl<E: Env> TypedKind<E> {
    /// The kind with the options in a JSON object.
    pub(super) fn new(json: &[u8]) -> Result<Self, Error> {
        Self::from_options(parse(text(json)?)?, true)
    }

    /// The kind with these options, checked by making one environment.
    pub(super) fn from_options(options: E::Options, prints_panics: bool) -> Result<Self, Error> {
        let shared = Arc::new(E::Shared::prepare(&options)?);
        guarded_drop(E::new(&options, &shared)?); // before `spaces`, which trusts the options
        let spaces = E::spaces(&options, &shared);
        spaces.check()?;
        check::<E::Observation>("observation", &spaces.observation)?;
        check::<E::Action>("action", &spaces.action)?;
        if E::Action::wanted().is_choice() {
            return Err(Error::bad_options(
                "an action cannot be an `Either`: only observations can",
            ));
        }
        let mut names = texts(E::parameters())?;
        let parameters = pointers(&names);
        let agents = texts(&E::agents(&options, &shared))?;
        let agent_names = pointers(&agents);
        names.extend(agents);
        let mut action_floats = Vec::new();
        E::Action::wanted().floats(&mut action_floats);
        Ok(Self {
            action_floats,
            observation: Nodes::new(&spaces.observation)?,
            action: Nodes::new(&spaces.action)?,
            observation_leaves: spaces.observation.leaves(),
            action_leaves: spaces.action.leaves(),
            parameters,
            agents: agent_names,
            _names: names,
            render_modes: E::RENDER.iter().map(|mode| mode.name().as_ptr()).collect(),
            options,
            shared,
            prints_panics,
        })
    }

    /// A new environment, not yet reset.
    pub(super) fn make(&self) -> Result<E, Error> {
        E::new(&self.options, &self.shared)
    }

    /// Describes the kind, by pointers into it.
    pub(super) fn describe(&self, description: &mut abi::Description) {
        let (observation, action) = (self.observation.as_slice(), self.action.as_slice());
        (description.observation, description.observation_nodes) =
            (observation.as_ptr(), observation.len());
        (description.action, description.action_nodes) = (action.as_ptr(), action.len());
        (description.parameters, description.num_parameters) =
            (self.parameters.as_ptr(), self.parameters.len());
        (description.render_modes, description.num_render_modes) =
            (self.render_modes.as_ptr(), self.render_modes.len());
        (description.agents, description.num_agents) = (self.agents.as_ptr(), self.agents.len());
        description.render_fps = E::RENDER_FPS as usize;
        if self.action_floats.contains(&1) {
            description.action_floats = self.action_floats.as_ptr();
        }
    }
}

/// Names, each ended by a zero byte.
fn texts(names: &[impl AsRef<str>]) -> Result<Vec<Vec<u8>>, Error> {
    let text = |name: &_| {
        let name = AsRef::<str>::as_ref(name);
        let has_zero = |_| Error::bad_options(format!("the name {name:?} has a zero byte"));
        CString::new(name).map(CString::into_bytes_with_nul).map_err(has_zero)
    };
    names.iter().map(text).collect()
}

/// Pointers to the names, which stay where they are when the list moves.
fn pointers(names: &[Vec<u8>]) -> Vec<*const c_char> {
    names.iter().map(|name| name.as_ptr().cast()).collect()
}

pub(super) fn text(json: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(json).map_err(Error::bad_options)
}
