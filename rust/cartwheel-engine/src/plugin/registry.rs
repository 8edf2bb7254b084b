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
    let bad =
        |what: String| Err(Error::BadId(format!("{source} offers the environment {id:?}: {what}")));
    let name = match id.split_once('/') {
        None if source == BUILT_IN => id,
        None => {
            let suggestion = with_namespace(id, source);
            return bad(format!("an id has a namespace, as in {suggestion}"));
        }
        Some((BUILT_IN, _)) => {
            return bad("the namespace cartwheel/ is that of cartwheel itself".to_owned());
        }
        // Gymnasium's registry refuses a dot there.
        Some((namespace, name)) if is_word(namespace) && !namespace.contains('.') => name,
        Some(_) => {
            let what = "a namespace consists of letters, digits, and the signs _ -";
            return bad(what.to_owned());
        }
    };
    if has_version(name) {
        return Ok(());
    }
    bad(format!("a name ends with its version, as in {}", with_version(id)))
}

/// Whether a part of an id has only letters, digits and a few signs.
fn is_word(text: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !text.is_empty() && text.chars().all(allowed)
}

/// Whether a name ends with a version as Gymnasium's registry writes it: of `v01` it makes `v1`.
fn has_version(name: &str) -> bool {
    let version = name.rsplit_once("-v").filter(|(name, _)| is_word(name));
    version
        .is_some_and(|(_, text)| text.parse().is_ok_and(|number: u32| number.to_string() == text))
}

/// The id with its version, or with `v0`.
fn with_version(id: &str) -> String {
    if has_version(id) {
        return id.to_owned();
    }
    let wrong = id.rsplit_once("-v").filter(|(_, text)| !text.contains(char::is_alphabetic));
    format!("{}-v0", wrong.map_or(id, |(name, _)| name))
}

/// The id with the package of `source` as its namespace, if that is a module, and with a version.
fn with_namespace(id: &str, source: &str) -> String {
    let is_module = !source.is_empty() && source.split('.').all(is_identifier);
    let package = source.split('.').next().filter(|_| is_module).unwrap_or("my_game");
    format!("{package}/{}", with_version(id))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
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
