//! The macros that make a library of environments.

/// Makes the static table of a library: `table! { pub static NAME { ids } }`, as in
/// [`plugin!`](crate::plugin), without exporting it.
///
/// A Rust program that steps environments by their ids uses it.
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis static $name:ident {
            $($id:literal => $env:ty $({ $($setting:ident: $value:expr),* $(,)? })?),+ $(,)?
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
