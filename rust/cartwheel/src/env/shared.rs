//! Data that all rows of a kind share.

use cartwheel_core::Error;

/// Data that all environments of one kind share, made once from their options `O`: tables, levels,
/// models. `()` is nothing.
///
/// ```
/// use cartwheel::{Error, Shared};
///
/// #[derive(Debug, Default, serde::Deserialize)]
/// #[serde(deny_unknown_fields, default)]
/// struct Options {
///     level: String,
/// }
///
/// struct Level(Vec<u8>);
///
/// impl Shared<Options> for Level {
///     fn prepare(options: &Options) -> Result<Self, Error> {
///         std::fs::read(&options.level).map(Self).map_err(Error::bad_options)
///     }
/// }
/// ```
pub trait Shared<O>: Sized + Send + Sync + 'static {
    /// Makes it, once for a kind of environment, however many rows there are.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], made by [`Error::bad_options`], when it cannot be made.
    fn prepare(options: &O) -> Result<Self, Error>;
}

impl<O> Shared<O> for () {
    fn prepare(_: &O) -> Result<Self, Error> {
        Ok(())
    }
}
