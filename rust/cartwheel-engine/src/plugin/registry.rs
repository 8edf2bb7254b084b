//! The tables of this process.
#![expect(
    unsafe_code,
    reason = "the code that registers promises, see the invariants of the module"
)]

use std::sync::{Arc, PoisonError, RwLock};

use cartwheel_abi::Plugin;

use super::table::{EnvTable, read};
use crate::error::Error;

/// The source of the environments that come with cartwheel. Their ids have no namespace, and
/// Gymnasium's registry has them under this one.
pub const BUILT_IN: &str = "cartwheel";

static TABLES: RwLock<Vec<Arc<EnvTable>>> = RwLock::new(Vec::new());

/// Registers the environments of a plugin; returns their ids, in the plugin's order. `source` is the
/// module or file that offers it, for messages, or [`BUILT_IN`]. A plugin that is registered already
/// changes nothing.
///
/// # Errors
///
/// [`Error::BadPlugin`] when its version or a table does not fit; [`Error::BadId`] when an id is that of another
/// table, or is not of the form `namespace/Name-v0`. Then nothing is registered.
///
/// # Safety
///
/// `plugin` points at a table of a plugin, which begins with its size. Tables, texts and functions
/// are static, and the functions keep the contract of [`cartwheel_abi`].
pub unsafe fn register(plugin: *const Plugin, source: &str) -> Result<Vec<String>, Error> {
    // SAFETY: as the caller promises (invariant 1).
    let tables = unsafe { read(plugin, source) }?;
    let mut known = TABLES.write().unwrap_or_else(PoisonError::into_inner);
    let mut added: Vec<Arc<EnvTable>> = Vec::new();
    let mut ids = Vec::new();
    for table in tables {
        check(table.id(), source)?;
        ids.push(table.id().to_owned());
        match known.iter().chain(&added).find(|other| other.id() == table.id()) {
            Some(other) if other.address == table.address => {}
            Some(other) => {
                let (id, first) = (table.id(), other.source());
                return Err(Error::BadId(format!(
                    "{source} offers the environment {id}, which {first} offers already"
                )));
            }
            None => added.push(Arc::new(table)),
        }
    }
    known.append(&mut added);
    Ok(ids)
}

/// Checks the form of an id: `namespace/Name-v0`, without a namespace if it is built in.
fn check(id: &str, source: &str) -> Result<(), Error> {
    let word = |text: &str| {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        !text.is_empty() && text.chars().all(allowed)
    };
    let bad =
        |what: &str| Err(Error::BadId(format!("{source} offers the environment {id:?}: {what}")));
    let name = match id.split_once('/') {
        None if source == BUILT_IN => id,
        None => return bad("an id has a namespace, as in my_game/Maze-v0"),
        Some((BUILT_IN, _)) => return bad("the namespace cartwheel/ is that of cartwheel itself"),
        Some((namespace, name)) if word(namespace) => name,
        Some(_) => return bad("a namespace consists of letters, digits, and the signs _ - ."),
    };
    let version = name.rsplit_once("-v").filter(|(name, _)| word(name));
    let is_number = |version: &str| version.parse::<u32>().is_ok();
    match version {
        Some((_, version)) if is_number(version) => Ok(()),
        _ => bad("a name ends with its version, as in Maze-v0"),
    }
}

/// The table of an id, with or without the namespace of environments that are built in.
///
/// # Errors
///
/// [`Error::UnknownEnv`].
pub fn find(id: &str) -> Result<Arc<EnvTable>, Error> {
    let known = TABLES.read().unwrap_or_else(PoisonError::into_inner);
    let name = id.strip_prefix("cartwheel/").unwrap_or(id);
    let table = known.iter().find(|table| table.id() == name);
    table.cloned().ok_or_else(|| Error::UnknownEnv(id.to_owned()))
}

/// All tables, in the order in which they were registered.
pub fn all() -> Vec<Arc<EnvTable>> {
    TABLES.read().unwrap_or_else(PoisonError::into_inner).clone()
}
