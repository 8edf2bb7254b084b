//! Tables of plugins, read and checked.
#![expect(unsafe_code, reason = "reads memory of plugins, see the invariants of the module")]

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZero;
use std::sync::Arc;

use cartwheel_abi::{Batch, Description, Env, MAJOR, MINOR, Plugin, Sink};
use serde_json::{Map, Value};

use super::text::text;
use crate::error::Error;

/// One environment of a plugin.
#[derive(Debug)]
pub struct EnvTable {
    /// The name of the plugin.
    plugin: Arc<str>,
    /// The table, with null for functions that the plugin's version does not have.
    pub(super) functions: Env,
    pub(super) required: Required,
    /// Address of the table; the same table may be registered again.
    pub(super) address: usize,
    /// The module or file that offers the plugin.
    pub(super) source: String,
    id: String,
    /// The source of states of rows: the id, and of a plugin its name and [`compatible_part`].
    origin: String,
    default_options: String,
    /// The same, parsed.
    pub(super) defaults: Map<String, Value>,
}

/// The functions that every table has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Required {
    pub(super) kind_new: unsafe extern "C" fn(*const u8, usize, *mut Sink) -> *mut c_void,
    pub(super) kind_free: unsafe extern "C" fn(*mut c_void),
    pub(super) kind_describe: unsafe extern "C" fn(*const c_void, *mut Description),
    pub(super) rows_new: unsafe extern "C" fn(*const c_void, usize, *mut Sink) -> *mut c_void,
    pub(super) rows_free: unsafe extern "C" fn(*mut c_void),
    pub(super) run: unsafe extern "C" fn(*mut c_void, *mut Batch) -> u32,
}

impl Required {
    /// The functions of a table.
    ///
    /// # Errors
    ///
    /// The name of a function that the table does not have.
    fn new(functions: &Env) -> Result<Self, &'static str> {
        if functions.reset_options_new.is_some() && functions.reset_options_free.is_none() {
            return Err("reset_options_free");
        }
        Ok(Self {
            kind_new: functions.kind_new.ok_or("kind_new")?,
            kind_free: functions.kind_free.ok_or("kind_free")?,
            kind_describe: functions.kind_describe.ok_or("kind_describe")?,
            rows_new: functions.rows_new.ok_or("rows_new")?,
            rows_free: functions.rows_free.ok_or("rows_free")?,
            run: functions.run.ok_or("run")?,
        })
    }
}

// SAFETY: the pointers in a table point at static text, and its functions may be called by any
// thread (invariants 1 and 3).
unsafe impl Send for EnvTable {}
// SAFETY: nothing writes to a table, and its functions may be called by any thread (invariants 1
// and 3).
unsafe impl Sync for EnvTable {}

impl EnvTable {
    /// The table of an environment that belongs to this program, under a name of the program's
    /// choice. It is not registered.
    ///
    /// # Safety
    ///
    /// The functions keep the contract of [`cartwheel_abi`]. Texts are static.
    ///
    /// # Panics
    ///
    /// When a function is missing that the contract does not call optional.
    pub unsafe fn of_program(functions: Env, name: &str) -> Arc<Self> {
        Arc::new(Self {
            plugin: name.into(),
            required: Required::new(&functions).expect("a function that is not optional"),
            functions,
            address: 0,
            source: name.to_owned(),
            id: name.to_owned(),
            origin: name.to_owned(),
            default_options: "{}".to_owned(),
            defaults: Map::new(),
        })
    }

    /// The id, as in Gymnasium's registry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The source of saved states, in words: a state of another origin is refused.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The name of the plugin.
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// The module or file that offers the plugin.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The options that the id passes where the caller passes none: a JSON object.
    pub fn default_options(&self) -> &str {
        &self.default_options
    }

    /// Steps after which an episode is truncated.
    pub fn max_episode_steps(&self) -> Option<NonZero<u32>> {
        NonZero::new(self.functions.max_episode_steps)
    }

    /// The return from which the task counts as solved.
    pub fn reward_threshold(&self) -> Option<f64> {
        Some(self.functions.reward_threshold).filter(|threshold| !threshold.is_nan())
    }

    /// Number of rows that are stepped together; 1 where each is stepped by itself.
    pub fn block(&self) -> usize {
        self.functions.block.max(1) as usize
    }

    /// The options; `None` where the plugin does not list them.
    pub fn options(&self) -> Option<Vec<ListedOption>> {
        listed(self.functions.option_names)
    }

    /// The options of a reset; `None` where the plugin does not list them.
    pub fn reset_options(&self) -> Option<Vec<ListedOption>> {
        if self.functions.reset_options_new.is_none() {
            return Some(Vec::new());
        }
        listed(self.functions.reset_option_names)
    }
}

/// An option that a plugin lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedOption {
    /// Its name.
    pub name: String,
    /// Its default as JSON; `None` where the plugin does not say.
    pub default: Option<String>,
    /// Its effect in one line; empty where the plugin does not say.
    pub text: String,
}

impl ListedOption {
    /// The option in a line that a plugin wrote.
    fn parse(line: &str) -> Self {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Self {
            name: parts.next().unwrap_or_default(),
            default: parts.next().filter(|json| serde_json::from_str::<Value>(json).is_ok()),
            text: parts.next().unwrap_or_default(),
        }
    }
}

/// The options that a function of a table writes; `None` where there are others.
fn listed(write: Option<unsafe extern "C" fn(names: *mut Sink)>) -> Option<Vec<ListedOption>> {
    let write = write?;
    // SAFETY: a function of the table, called as the contract says (invariant 1).
    let ((), written) = super::sink::with_message(|sink| unsafe { write(sink) });
    let options: Vec<_> = written.text().lines().map(ListedOption::parse).collect();
    (!options.iter().any(|option| option.name.is_empty())).then_some(options)
}

/// Copies a table of which `size` bytes exist; the rest of the copy is zeros.
///
/// # Safety
///
/// `table` points at `size` bytes of a `T`, for which zeros are valid. No function is cut in two.
unsafe fn copied<T>(table: *const T, size: usize) -> T {
    let mut copy = MaybeUninit::<T>::zeroed();
    let bytes = size.min(size_of::<T>());
    // SAFETY: both have as many bytes, and the copy is new.
    unsafe { table.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), bytes) };
    // SAFETY: zeros are valid for the fields that were not copied, and the others are as the
    // plugin made them.
    unsafe { copy.assume_init() }
}

/// The environments of a plugin.
///
/// # Errors
///
/// [`Error::BadPlugin`], which names the plugin, both versions and the remedy.
///
/// # Safety
///
/// As [`register`](super::register).
pub(super) unsafe fn read(plugin: *const Plugin, source: &str) -> Result<Vec<EnvTable>, Error> {
    let bad = |what: String| Error::BadPlugin(what);
    // SAFETY: every table begins with its size (abi 1).
    let size = unsafe { plugin.cast::<usize>().read() };
    if size < offset_of!(Plugin, needs_minor) {
        return Err(bad(format!("this is not a table of a plugin: its size is {size} bytes")));
    }
    // SAFETY: the table has `size` bytes, and consists of numbers and pointers.
    let head = unsafe { copied(plugin, size) };
    // SAFETY: the texts of the header are static (abi 1 and 7).
    let name =
        unsafe { text(head.name, "name") }.map_err(|what| bad(format!("a plugin {what}")))?;
    let of_plugin = |what: String| bad(format!("plugin {name} {what}"));
    // SAFETY: texts of tables are static (abi 2 and 6).
    let version = unsafe { text(head.version, "version") }.map_err(of_plugin)?;
    let of_plugin = |what: String| bad(format!("plugin {name} {version} {what}"));
    let built = (head.major, head.minor);
    if head.major != MAJOR {
        let remedy = if head.major < MAJOR {
            "build the plugin against this cartwheel"
        } else {
            "install a newer cartwheel"
        };
        return Err(of_plugin(format!(
            "was built for version {}.{} of the interface, and this cartwheel has {MAJOR}.{MINOR}: \
             {remedy}",
            built.0, built.1
        )));
    }
    if size < offset_of!(Plugin, num_envs) + size_of::<usize>() {
        return Err(of_plugin(format!(
            "has a table of {size} bytes, which lacks its environments"
        )));
    }
    if head.needs_minor > MINOR {
        return Err(of_plugin(format!(
            "needs version {MAJOR}.{} of the interface, and this cartwheel has {MAJOR}.{MINOR}: \
             install a newer cartwheel",
            head.needs_minor
        )));
    }
    let stride = head.env_size as usize;
    if head.num_envs > 0 && (head.envs.is_null() || stride < size_of::<usize>()) {
        return Err(of_plugin(format!("has {} environments and no table of them", head.num_envs)));
    }
    let plugin = name.into();
    let env = |number: usize| {
        let address = head.envs.wrapping_byte_add(number * stride);
        // SAFETY: the plugin has as many tables at this distance (abi 1).
        unsafe { read_env(address, stride, &plugin, version, source) }.map_err(of_plugin)
    };
    (0..head.num_envs).map(env).collect()
}

/// One environment.
///
/// # Safety
///
/// As [`read`]; `table` points at `stride` bytes.
unsafe fn read_env(
    table: *const Env,
    stride: usize,
    plugin: &Arc<str>,
    version: &str,
    source: &str,
) -> Result<EnvTable, String> {
    // SAFETY: every table begins with its size (abi 1).
    let size = unsafe { table.cast::<usize>().read_unaligned() };
    let min = offset_of!(Env, run) + size_of::<usize>();
    // A size that a struct cannot have would end in the middle of the address of a function.
    if size < min || size > stride || !size.is_multiple_of(align_of::<Env>()) {
        return Err(format!(
            "has a table of {size} bytes for an environment, at a distance of {stride} bytes; it \
             needs at least {min}: build it against this cartwheel"
        ));
    }
    // SAFETY: the table has `size` bytes, which end with a whole field; zeros are null pointers and
    // absent functions.
    let functions = unsafe { copied(table, size) };
    // SAFETY: texts of tables are static (abi 2 and 6).
    let id = unsafe { text(functions.id, "id for one of its environments") }?.to_owned();
    // SAFETY: texts of tables are static (abi 2 and 6).
    let defaults = unsafe { text(functions.default_options, &format!("default options of {id}")) }?;
    let default_options = defaults.to_owned();
    let defaults = serde_json::from_str(defaults).map_err(|error| {
        format!("has default options of {id} that are not a JSON object: {error}")
    })?;
    let required = Required::new(&functions);
    let required = required.map_err(|missing| format!("has no function {missing} for {id}"))?;
    // States of environments that are built in, whose ids have no namespace, have the version of
    // cartwheel's format alone.
    let origin = if id.contains('/') {
        format!("{id} of {plugin} {}", compatible_part(version))
    } else {
        id.clone()
    };
    Ok(EnvTable {
        plugin: Arc::clone(plugin),
        functions,
        required,
        address: table.addr(),
        source: source.to_owned(),
        id,
        origin,
        default_options,
        defaults,
    })
}

/// The part of a version that all versions share which Semantic Versioning calls compatible with it:
/// `0.3` of `0.3.1`, `2` of `2.0.5`. A version of another form is compatible with itself alone.
fn compatible_part(version: &str) -> &str {
    let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    let first = numbers.and_then(|numbers| numbers.iter().position(|&number| number > 0));
    let end = first.and_then(|first| version.match_indices('.').nth(first));
    end.map_or(version, |(end, _)| &version[..end])
}

#[cfg(test)]
mod tests {
    use super::compatible_part;

    #[test]
    fn versions_that_are_compatible_have_one_part_in_common() {
        for (versions, expected) in [
            (["0.3.0", "0.3.1", "0.3"], "0.3"),
            (["2.0.5", "2.1", "2"], "2"),
            (["0.0.4", "0.0.4", "0.0.4"], "0.0.4"),
        ] {
            assert_eq!(versions.map(compatible_part), [expected; 3]);
        }
        for version in ["0", "1.2.3-rc.1", "1.2.3+45", "spring", ""] {
            assert_eq!(compatible_part(version), version);
        }
    }
}
