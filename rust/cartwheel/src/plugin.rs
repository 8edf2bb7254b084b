//! The macros that make a library of environments.
//!
//! # Invariants
//!
//! 1. **Attached.** `PyInit_…` and the function that fills the module, which a macro makes, are called by
//!    Python alone, while it imports the library.

/// Makes the static table of a library, without exporting it; [`plugin!`](crate::plugin!) exports
/// it. A Rust program that steps environments by their ids uses it.
///
/// ```
/// # use cartwheel::*;
/// # struct Maze;
/// # impl Env for Maze {
/// #     type Options = NoOptions;
/// #     type ResetOptions = NoOptions;
/// #     type Action = i64;
/// #     type Observation = i64;
/// #     type Info = ();
/// #     type Shared = ();
/// #     fn spaces(_: &NoOptions, (): &()) -> Spaces { unimplemented!() }
/// #     fn new(_: &NoOptions, _: &std::sync::Arc<()>) -> Result<Self, Error> { Ok(Self) }
/// #     fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> { Ok(()) }
/// #     fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> { unimplemented!() }
/// #     fn observe(&self, observation: &mut i64) {}
/// #     fn info(&self) {}
/// # }
/// cartwheel::table! {
///     /// The environments of this program.
///     pub static ENVIRONMENTS {
///         "my_game/Maze-v0" => Maze { max_episode_steps: 200 },
///     }
/// }
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis static $name:ident {
            $($id:expr => $env:ty $({ $($setting:ident: $value:expr),* $(,)? })?),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis static $name: $crate::__private::abi::Plugin = {
            static ENVS: &[$crate::EnvTable] = &[$(
                $crate::EnvTable::new::<$env>(
                    $crate::__private::c_text(::core::concat!($id, "\0")),
                )$($(.$setting($crate::__setting!($setting $value)))*)?
            ),+];
            $crate::__private::library(
                $crate::__private::c_text(::core::concat!(::core::env!("CARGO_PKG_NAME"), "\0")),
                $crate::__private::c_text(
                    ::core::concat!(::core::env!("CARGO_PKG_VERSION"), "\0"),
                ),
                ENVS,
            )
        };
    };
}

/// A setting of a table: text becomes C text.
#[doc(hidden)]
#[macro_export]
macro_rules! __setting {
    (default_options $json:expr) => {
        $crate::__private::c_text(::core::concat!($json, "\0"))
    };
    ($setting:ident $value:expr) => {
        $value
    };
}

/// Makes this library a plugin: a `cdylib` that cartwheel loads.
///
/// ```ignore
/// cartwheel::plugin! { _my_game {
///     "my_game/Maze-v0" => Maze { max_episode_steps: 200 },
///     "my_game/BigMaze-v0" => Maze { default_options: r#"{"size": 64}"#, reward_threshold: 0.9 },
/// } }
/// ```
///
/// It exports the table as the symbol `cartwheel_plugin` and, with the feature `python`, the module
/// `_my_game` for Python, built by maturin as one abi3 wheel. The settings are those of
/// [`EnvTable`](crate::EnvTable); name and version of the plugin are those of the package. A
/// library has one plugin.
///
/// A library that ends its process when it panics is refused: `panic = "abort"` would end the host.
#[macro_export]
macro_rules! plugin {
    ($module:ident { $($environments:tt)+ }) => {
        #[cfg(panic = "abort")]
        ::core::compile_error!(
            "a plugin must unwind: remove `panic = \"abort\"` from the profile in Cargo.toml, or a \
             panic in one environment ends the whole program"
        );

        const _: () = {
            $crate::table! {
                #[unsafe(export_name = "cartwheel_plugin")]
                static PLUGIN { $($environments)+ }
            }

            $crate::__python_module! { $module PLUGIN }
        };
    };
}

/// The function that Python calls to import the library.
#[cfg(feature = "python")]
#[doc(hidden)]
#[macro_export]
macro_rules! __python_module {
    ($module:ident $plugin:ident) => {
        #[unsafe(export_name = ::core::concat!("PyInit_", ::core::stringify!($module)))]
        extern "C" fn init() -> *mut $crate::__private::PyObject {
            extern "C" fn fill(module: *mut $crate::__private::PyObject) -> ::core::ffi::c_int {
                // SAFETY: Python calls this function while it imports the library (invariant 1).
                unsafe { $crate::__private::fill(module, &$plugin) }
            }

            let name =
                $crate::__private::c_text(::core::concat!(::core::stringify!($module), "\0"));
            // SAFETY: Python calls this function while it imports the library (invariant 1).
            unsafe { $crate::__private::module(name, fill) }
        }
    };
}

/// Nothing: the feature `python` is off.
#[cfg(not(feature = "python"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __python_module {
    ($module:ident $plugin:ident) => {};
}
