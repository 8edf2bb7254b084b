//! The extension module `cartwheel._cartwheel`: converts arrays and errors, and calls Python
//! environments. It makes no decisions. `_cartwheel.pyi` documents its classes and functions, so they
//! have no documentation here.

mod array;
mod channel;
mod convert;
mod descriptor;
mod error;
mod ffi;
mod first_uses;
mod image;
mod interpreter;
mod known;
mod masks;
mod memory;
mod native;
mod pool;
mod returns;
mod space;
mod store;
mod value;
mod worker;
mod wrappers;
mod xla;

#[pyo3::pymodule(gil_used = false)]
mod _cartwheel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::{PyRolloutSlab, PyTensorExchange, SlabLease};
    #[pymodule_export]
    use crate::channel::PyChannel;
    #[pymodule_export]
    use crate::convert::{fine_shards, memory_left, shards, usable_cpus};
    #[pymodule_export]
    use crate::descriptor::PyDescriptor;
    #[pymodule_export]
    use crate::ffi::{register_pool, xla_handlers};
    #[pymodule_export]
    use crate::first_uses::make_first_uses;
    #[pymodule_export]
    use crate::image::PyImagePlan;
    #[pymodule_export]
    use crate::masks::keep_masks;
    #[pymodule_export]
    use crate::memory::{
        PyMemory, fork_begins, fork_ended, fork_ended_in_child, require_memory, watch_parent,
    };
    #[pymodule_export]
    use crate::native::PyNativeEnvs;
    #[pymodule_export]
    use crate::native::begun::PyRowStreams;
    #[pymodule_export]
    use crate::native::descriptions::{
        block_rows, described_options, env_keywords, native_envs, reset_option_names,
    };
    #[pymodule_export]
    use crate::native::mujoco::{PyMujocoModel, copy_fields};
    #[pymodule_export]
    use crate::native::plain_loop::plain_loop;
    #[pymodule_export]
    use crate::native::plugin::{load_plugin, register_plugin};
    #[pymodule_export]
    use crate::native::stream::{cache_draws, draw_cached};
    #[pymodule_export]
    use crate::pool::PyPool;
    #[pymodule_export]
    use crate::returns::{
        discounted, gae, is_first, lambda_returns, masked_mean, masked_normalize, n_step,
        next_values, retrace, valid_mask, vtrace,
    };
    #[pymodule_export]
    use crate::store::store;
    #[pymodule_export]
    use crate::worker::serve::{PyShardParts, serve};
    #[pymodule_export]
    use crate::wrappers::{
        PyEpisodeMetrics, PyFlag, PyFrameStack, PyFusedStep, PyObservationNormalizer,
        PyRewardNormalizer, PyRowKinds, PyTimedEpisodes,
    };

    #[pymodule_export]
    const COPIED_BYTES: usize = crate::pool::COPIED_BYTES;
    #[pymodule_export]
    const FAILED_PHASE: u8 = cartwheel_engine::PhaseTag::Failed as u8;
    #[pymodule_export]
    const LARGEST_MESSAGE: usize = cartwheel_engine::worker::LARGEST_MESSAGE;
    #[pymodule_export]
    const PLATFORM: &str = cartwheel_engine::platform::NAME;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        let _ = cartwheel_core::schedule::read_most_cpus(); // refused where environments are made
        crate::native::plugin::register_built_in()
    }
}
