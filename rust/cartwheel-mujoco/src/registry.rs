//! Models by number: how the options of an environment, which are text, name one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cartwheel::{Error, Shared};

use crate::model::{Guarded, Model};
use crate::options::RobotOptions;

#[derive(Debug)]
pub(crate) struct Registry {
    next: u64,
    models: BTreeMap<u64, Arc<Guarded>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { next: 1, models: BTreeMap::new() });

/// Locks it; at forks, see [`forks`](crate::forks).
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether no thread holds the lock.
#[cfg(test)]
pub(crate) fn is_free() -> bool {
    REGISTRY.try_lock().is_ok()
}

/// A registered model: environments can be made of it until this is dropped. Those that were made
/// keep it.
#[derive(Debug)]
pub struct Registered(u64);

impl Registered {
    /// Registers a model.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for numbers that do not fit each other, and while environments of
    /// another copy of MuJoCo live.
    pub fn new(model: Model) -> Result<Self, Error> {
        let model = Arc::new(Guarded::new(model)?);
        let mut registry = registry();
        let number = registry.next;
        registry.next += 1;
        registry.models.insert(number, model);
        Ok(Self(number))
    }

    /// The number to give as the option `_simulation`.
    pub fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let model = registry().models.remove(&self.0);
        drop(model); // outside the lock: what it owns may be anything
    }
}

/// The model that all rows share.
#[derive(Debug)]
pub struct SharedModel(pub(crate) Arc<Guarded>);

impl<O: RobotOptions> Shared<O> for SharedModel {
    fn prepare(options: &O) -> Result<Self, Error> {
        let number = options.simulation();
        let model = registry().models.get(&number).cloned();
        model.map(Self).ok_or_else(|| {
            Error::bad_options(format!(
                "there is no MuJoCo model {number}: such environments are made by \
                 `cartwheel.make_vec`, which loads the model first"
            ))
        })
    }
}
