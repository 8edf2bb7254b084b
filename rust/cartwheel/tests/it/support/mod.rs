//! A small host: calls a table as the ABI describes it, with arrays of its own.
//!
//! It is written from `cartwheel_abi` alone, not from the crate that it tests. Above 400 lines with its
//! header: one host, function by function of the table.
#![expect(unsafe_code, reason = "calls a table")]
#![allow(dead_code, unused_imports, reason = "every test uses a part of it")]
#![allow(unreachable_pub, reason = "other crates' tests include this file")]

mod arrays;
mod shown;
mod sink;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null;

use cartwheel_abi as abi;
use cartwheel_core::DType;
use cartwheel_core::info::InfoReader;
use cartwheel_core::rng::Rng;
use cartwheel_core::space::{Bounds, Space, Spaces};

pub use arrays::Arrays;
pub use shown::{shown, shown_info};
pub use sink::Sink;

pub fn text(text: *const c_char) -> String {
    // SAFETY: static text of a table, ended by a zero byte.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned()
}

/// Reads `len` elements.
fn elements<T: Copy>(first: *const T, len: usize) -> Vec<T> {
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: arrays of a description.
    unsafe { std::slice::from_raw_parts(first, len) }.to_vec()
}

/// Takes one space off the front of nodes.
fn space(nodes: &mut &[abi::Space]) -> Space {
    let (node, rest) = nodes.split_first().expect("as many nodes as children");
    *nodes = rest;
    let shape = elements(node.shape, node.dimensions);
    let dtype = DType::from_tag(u8::try_from(node.dtype).expect("a dtype")).expect("a dtype");
    let bounds = |first: *const c_void| {
        Bounds::from_elements(
            dtype,
            &elements(first.cast(), node.bounds * dtype.size()),
            node.bounds == 1,
        )
        .expect("bounds of the dtype")
    };
    let integers = |first: *const c_void| elements(first.cast::<i64>(), node.bounds);
    match node.kind {
        abi::BOX => Space::Box { dtype, low: bounds(node.low), high: bounds(node.high), shape },
        abi::DISCRETE => {
            let (start, last) = (integers(node.low)[0], integers(node.high)[0]);
            Space::Discrete { n: last - start + 1, start }
        }
        abi::MULTI_DISCRETE => {
            let starts = integers(node.low);
            let last = integers(node.high);
            let counts = starts.iter().zip(last).map(|(start, last)| last - start + 1).collect();
            Space::MultiDiscrete { shape, counts, starts }
        }
        abi::MULTI_BINARY => Space::MultiBinary(shape),
        abi::TUPLE => Space::Tuple((0..node.children).map(|_| space(nodes)).collect()),
        abi::DICT => {
            let parts = (0..node.children).map(|_| (text(nodes[0].key), space(nodes)));
            Space::Dict(parts.collect())
        }
        other => panic!("there is no kind {other}"),
    }
}

/// A kind of a table.
pub struct HostKind {
    pub table: &'static abi::Env,
    pointer: *mut c_void,
    pub spaces: Spaces,
    pub parameters: Vec<String>,
    pub render_modes: Vec<String>,
    /// One byte for each leaf of the action space, or none.
    pub action_floats: Vec<u8>,
    pub agents: Vec<String>,
}

/// The table with this id.
pub fn find(plugin: &'static abi::Plugin, id: &str) -> &'static abi::Env {
    // SAFETY: a static table.
    let envs = unsafe { std::slice::from_raw_parts(plugin.envs, plugin.num_envs) };
    envs.iter().find(|env| text(env.id) == id).expect("an environment of the plugin")
}

/// The ids of a plugin, with limits and thresholds.
pub fn ids(plugin: &'static abi::Plugin) -> Vec<(String, u32, f64)> {
    // SAFETY: a static table.
    let envs = unsafe { std::slice::from_raw_parts(plugin.envs, plugin.num_envs) };
    envs.iter().map(|env| (text(env.id), env.max_episode_steps, env.reward_threshold)).collect()
}

pub fn option_names(table: &abi::Env) -> Vec<String> {
    let mut names = Sink::new();
    // SAFETY: a function of the table.
    unsafe { table.option_names.expect("names")(names.pointer()) };
    let lines = names.take_text();
    lines.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
}

impl HostKind {
    /// The kind with these options, or the reason why there is none.
    pub fn new(table: &'static abi::Env, options: &str) -> Result<Self, String> {
        let mut error = Sink::new();
        // SAFETY: a function of the table.
        let pointer = unsafe {
            table.kind_new.expect("required")(options.as_ptr(), options.len(), error.pointer())
        };
        if pointer.is_null() {
            return Err(error.take_text());
        }
        // SAFETY: zeros are a description of nothing.
        let mut description: abi::Description = unsafe { std::mem::zeroed() };
        description.struct_size = size_of::<abi::Description>();
        // SAFETY: a function of the table.
        unsafe { table.kind_describe.expect("required")(pointer, &raw mut description) };
        let names = |first, len| elements(first, len).into_iter().map(text).collect();
        let space_of = |first: *const abi::Space, len| {
            // SAFETY: nodes of the description.
            let mut nodes = unsafe { std::slice::from_raw_parts(first, len) };
            let space = space(&mut nodes);
            assert!(nodes.is_empty(), "one space");
            space
        };
        let abi::Description { observation, action, .. } = description;
        Ok(Self {
            table,
            pointer,
            spaces: Spaces {
                observation: space_of(observation, description.observation_nodes),
                action: space_of(action, description.action_nodes),
            },
            parameters: names(description.parameters, description.num_parameters),
            render_modes: names(description.render_modes, description.num_render_modes),
            agents: names(description.agents, description.num_agents),
            action_floats: if description.action_floats.is_null() {
                Vec::new()
            } else {
                elements(
                    description.action_floats,
                    space_of(action, description.action_nodes).leaves().len(),
                )
            },
        })
    }

    /// Lets a kind describe itself to a host whose description has `size` bytes; returns the eight
    /// bytes behind them, which were 0xAB.
    pub fn sized(table: &'static abi::Env, size: usize) -> [u8; 8] {
        let kind = Self::new(table, "{}").expect("a kind");
        let mut words = vec![0; size.div_ceil(8)];
        words[0] = size;
        words.push(usize::from_ne_bytes([0xAB; 8]));
        // SAFETY: a function of the table, and as much memory as the size says.
        unsafe { table.kind_describe.expect("required")(kind.pointer, words.as_mut_ptr().cast()) };
        words[words.len() - 1].to_ne_bytes()
    }

    /// The kind with these options over those of the id, as a host makes it.
    pub fn with_defaults(table: &'static abi::Env, options: &str) -> Result<Self, String> {
        let object = |json: &str| serde_json::from_str::<serde_json::Map<_, _>>(json);
        let mut all: serde_json::Map<String, serde_json::Value> =
            object(&text(table.default_options)).expect("defaults are an object");
        match object(if options.is_empty() { "{}" } else { options }) {
            Ok(given) => all.extend(given),
            Err(_) => return Self::new(table, options), // the table says what is wrong
        }
        Self::new(table, &serde_json::Value::Object(all).to_string())
    }

    /// Options of a reset, or the reason why they are refused.
    pub fn reset_options(&self, options: &str) -> Result<ResetOptions<'_>, String> {
        let mut error = Sink::new();
        let new = self.table.reset_options_new.expect("Rust has them");
        // SAFETY: a function of the table.
        let pointer =
            unsafe { new(self.pointer, options.as_ptr(), options.len(), error.pointer()) };
        if pointer.is_null() { Err(error.take_text()) } else { Ok(ResetOptions(pointer, self)) }
    }
}

impl Drop for HostKind {
    fn drop(&mut self) {
        // SAFETY: a function of the table, for its kind, whose rows are freed.
        unsafe { self.table.kind_free.expect("required")(self.pointer) };
    }
}

pub struct ResetOptions<'a>(*mut c_void, &'a HostKind);

impl Drop for ResetOptions<'_> {
    fn drop(&mut self) {
        // SAFETY: a function of the table, for its options.
        unsafe { self.1.table.reset_options_free.expect("Rust has it")(self.0) };
    }
}

/// Rows of a kind, and the arrays of a batch of all of them.
pub struct HostRows<'a> {
    kind: &'a HostKind,
    pointer: *mut c_void,
    pub commands: Vec<u8>,
    pub actions: Arrays,
    pub observations: Arrays,
    pub rewards: Vec<f64>,
    pub terminations: Vec<u8>,
    pub truncations: Vec<u8>,
    pub rngs: Vec<Rng>,
    pub infos: Box<Sink>,
    error: Box<Sink>,
    /// The dtype of each leaf of the actions; empty for those of the spaces.
    pub action_dtypes: Vec<u32>,
    /// Size of the batches: less for a host of an older version.
    pub batch_size: usize,
}

// SAFETY: one thread at a time uses rows.
unsafe impl Send for HostRows<'_> {}

impl<'a> HostRows<'a> {
    pub fn new(kind: &'a HostKind, count: usize) -> Result<Self, String> {
        let mut error = Sink::new();
        // SAFETY: a function of the table.
        let pointer =
            unsafe { kind.table.rows_new.expect("required")(kind.pointer, count, error.pointer()) };
        if pointer.is_null() {
            return Err(error.take_text());
        }
        Ok(Self {
            kind,
            pointer,
            commands: vec![abi::LEAVE; count],
            actions: Arrays::new(&kind.spaces.action, count),
            observations: Arrays::new(&kind.spaces.observation, count),
            rewards: vec![f64::NAN; count],
            terminations: vec![7; count],
            truncations: vec![7; count],
            rngs: (0..count as u64).map(Rng::from_seed).collect(),
            infos: Sink::new(),
            error,
            action_dtypes: Vec::new(),
            batch_size: size_of::<abi::Batch>(),
        })
    }

    /// The batch of all rows.
    pub fn batch(&mut self) -> Batch {
        Batch::new(self, (0, self.commands.len()))
    }

    /// Runs a batch from its first row on, and returns the code.
    pub fn run_batch(&mut self, batch: &mut Batch) -> u32 {
        batch.batch.next = 0;
        // SAFETY: a function of the table, for arrays as the ABI describes them.
        unsafe { self.kind.table.run.expect("required")(self.pointer, &raw mut batch.batch) }
    }

    /// Runs the commands of rows `first..first + rows` from row `next` of them on. Returns the code,
    /// the next row, and the text of the error.
    pub fn run_some(
        &mut self,
        rows: (usize, usize),
        next: usize,
        options: Option<&ResetOptions<'_>>,
    ) -> (u32, usize, String) {
        let mut batch = Batch::new(self, rows).batch_at(next);
        batch.batch.reset_options = options.map_or(null(), |options| options.0.cast_const());
        // SAFETY: a function of the table, for its rows and a batch of them.
        let code =
            unsafe { self.kind.table.run.expect("required")(self.pointer, &raw mut batch.batch) };
        (code, batch.batch.next, self.error.take_text())
    }

    /// Runs the commands of every row, which all succeed.
    pub fn run(&mut self) {
        let rows = self.commands.len();
        assert_eq!(self.run_some((0, rows), 0, None), (abi::OK, rows, String::new()));
    }

    /// Runs one command for every row.
    pub fn all(&mut self, command: u8) {
        self.commands.fill(command);
        self.run();
    }

    /// Plans a batch of `NextStep`: rows that are over are reset, the others are stepped. The host
    /// truncates after `limit` steps, of which `elapsed` counts those since the last reset.
    pub fn plan(&mut self, elapsed: &mut [u32], limit: u32) {
        for (row, elapsed) in elapsed.iter_mut().enumerate() {
            let over = self.terminations[row] | self.truncations[row] != 0;
            let late = limit != 0 && *elapsed >= limit;
            self.commands[row] = if over || late { abi::RESET } else { abi::STEP };
            *elapsed = if over || late { 0 } else { *elapsed + 1 };
        }
    }

    /// A batch of `NextStep`, with the limit's truncations.
    pub fn next_step(&mut self, elapsed: &mut [u32], limit: u32) {
        self.plan(elapsed, limit);
        self.run();
        for (row, elapsed) in elapsed.iter().enumerate() {
            self.truncations[row] |= u8::from(limit != 0 && *elapsed >= limit);
        }
    }

    /// The bodies of the records of infos, one for each row that has one, which it forgets.
    pub fn take_infos(&mut self) -> Vec<(usize, Vec<u8>)> {
        let stream = self.infos.take();
        let (mut reader, mut infos) = (InfoReader::new(&stream, 0), Vec::new());
        while let Some(record) = reader.record().expect("a well-formed stream") {
            infos.push((record.row, stream[reader.at()..record.end].to_vec()));
            reader = InfoReader::new(&stream, record.end);
        }
        infos
    }

    /// Calls a function of one row, and returns what it wrote.
    fn call(
        &mut self,
        call: impl FnOnce(*mut c_void, *mut abi::Sink, *mut abi::Sink) -> u32,
    ) -> Result<Vec<u8>, (u32, String)> {
        let mut value = Sink::new();
        let code = call(self.pointer, value.pointer(), self.error.pointer());
        let text = self.error.take_text();
        if code == abi::OK { Ok(value.take()) } else { Err((code, text)) }
    }

    pub fn replace(&mut self, row: usize) -> Result<(), (u32, String)> {
        let replace = self.kind.table.row_replace.expect("Rust has it");
        // SAFETY: a function of the table.
        self.call(|rows, _, error| unsafe { replace(rows, row, error) }).map(|_| ())
    }

    fn parameter(&self, name: &str) -> usize {
        self.kind.parameters.iter().position(|known| known == name).expect("a parameter")
    }

    /// A parameter, in the info format.
    pub fn get(&mut self, row: usize, name: &str) -> Result<Vec<u8>, (u32, String)> {
        let (get, at) = (self.kind.table.parameter_get.expect("Rust has it"), self.parameter(name));
        // SAFETY: a function of the table.
        self.call(|rows, value, error| unsafe { get(rows, row, at, value, error) })
    }

    /// Sets a parameter to a value in the info format.
    pub fn set(&mut self, row: usize, name: &str, value: &[u8]) -> Result<(), (u32, String)> {
        let (set, at) = (self.kind.table.parameter_set.expect("Rust has it"), self.parameter(name));
        // SAFETY: a function of the table.
        let call =
            |rows, _, error| unsafe { set(rows, row, at, value.as_ptr(), value.len(), error) };
        self.call(call).map(|_| ())
    }

    pub fn save(&mut self, row: usize) -> Result<Vec<u8>, (u32, String)> {
        let save = self.kind.table.row_save.expect("it saves");
        // SAFETY: a function of the table.
        self.call(|rows, state, error| unsafe { save(rows, row, state, error) })
    }

    pub fn load(&mut self, row: usize, state: &[u8]) -> Result<(), (u32, String)> {
        let load = self.kind.table.row_load.expect("it saves");
        // SAFETY: a function of the table.
        let call = |rows, _, error| unsafe { load(rows, row, state.as_ptr(), state.len(), error) };
        self.call(call).map(|_| ())
    }

    /// Height, width and bytes of a frame.
    pub fn render(&mut self, row: usize, mode: usize) -> Result<(usize, usize, Vec<u8>), String> {
        let render = self.kind.table.row_render.expect("it renders");
        let (mut height, mut width) = (0, 0);
        let drawn = self.call(|rows, bytes, error| {
            let struct_size = size_of::<abi::Frame>();
            let mut frame = abi::Frame { struct_size, height: 0, width: 0, bytes };
            // SAFETY: a function of the table.
            let code = unsafe { render(rows, row, mode, &raw mut frame, error) };
            (height, width) = (frame.height, frame.width);
            code
        });
        drawn.map(|bytes| (height, width, bytes)).map_err(|(_, text)| text)
    }
}

/// A batch and the pointers that it points at.
pub struct Batch {
    batch: abi::Batch,
    _leaves: [Vec<*mut c_void>; 2],
}

impl Batch {
    fn new(of: &mut HostRows<'_>, (first, rows): (usize, usize)) -> Self {
        let leaves = [of.actions.pointers(first), of.observations.pointers(first)];
        let batch = abi::Batch {
            struct_size: of.batch_size,
            first,
            rows,
            next: 0,
            commands: of.commands[first..].as_ptr(),
            actions: leaves[0].as_ptr().cast(),
            observations: leaves[1].as_ptr(),
            rewards: of.rewards[first..].as_mut_ptr(),
            terminations: of.terminations[first..].as_mut_ptr(),
            truncations: of.truncations[first..].as_mut_ptr(),
            streams: of.rngs[first..].as_mut_ptr().cast(),
            reset_options: null(),
            info_row: u32::try_from(first).expect("few rows"),
            infos: of.infos.pointer(),
            error: of.error.pointer(),
            action_dtypes: if of.action_dtypes.is_empty() {
                null()
            } else {
                of.action_dtypes.as_ptr()
            },
        };
        Self { batch, _leaves: leaves }
    }

    fn batch_at(mut self, next: usize) -> Self {
        self.batch.next = next;
        self
    }
}

impl Drop for HostRows<'_> {
    fn drop(&mut self) {
        // SAFETY: a function of the table, for its rows.
        unsafe { self.kind.table.rows_free.expect("required")(self.pointer) };
    }
}
