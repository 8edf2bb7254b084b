//! The tables of this process.
#![expect(unsafe_code, reason = "whoever registers promises, see the invariants of the module")]

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cartwheel_abi::Plugin;

use super::table::{EnvTable, read};
use crate::error::Error;

static TABLES: RwLock<BTreeMap<String, Arc<EnvTable>>> = RwLock::new(BTreeMap::new());

/// Registers the environments of a plugin; returns their ids, in the plugin's order. A plugin that
/// is registered already changes nothing.
///
/// # Errors
///
/// [`Error::BadPlugin`] when its version or a table does not fit; [`Error::SameId`] when another
/// table has the same id. Then nothing is registered.
///
/// # Safety
///
/// `plugin` points at a table of a plugin, which begins with its size. Tables, texts and functions
/// are static, and the functions keep the contract of [`cartwheel_abi`].
pub unsafe fn register(plugin: *const Plugin) -> Result<Vec<String>, Error> {
    // SAFETY: as the caller promises.
    let tables = unsafe { read(plugin) }?;
    let mut known = TABLES.write().unwrap_or_else(PoisonError::into_inner);
    let mut added: BTreeMap<String, Arc<EnvTable>> = BTreeMap::new();
    let mut ids = Vec::new();
    for table in tables {
        let id = table.id().to_owned();
        ids.push(id.clone());
        match known.get(&id).or_else(|| added.get(&id)) {
            Some(other) if other.address == table.address => {}
            Some(other) => {
                let (first, second) = (other.plugin().to_owned(), table.plugin().to_owned());
                return Err(Error::SameId { id, first, second });
            }
            None => drop(added.insert(id, Arc::new(table))),
        }
    }
    known.append(&mut added);
    Ok(ids)
}

/// The table of an id.
///
/// # Errors
///
/// [`Error::UnknownEnv`].
pub fn find(id: &str) -> Result<Arc<EnvTable>, Error> {
    let known = TABLES.read().unwrap_or_else(PoisonError::into_inner);
    known.get(id).cloned().ok_or_else(|| Error::UnknownEnv(id.to_owned()))
}

/// The ids of all tables, sorted.
pub fn ids() -> Vec<String> {
    TABLES.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
