//! Reasons why a step or a reset did not happen.

use std::error::Error;
use std::fmt;

/// The reason why a step, a reset or another call to an environment failed: text, in one pointer.
///
/// Every error converts into it, with the errors that caused it, so `?` works in
/// [`Env::step`](crate::Env::step):
///
/// ```
/// use cartwheel::Failure;
///
/// fn parse(text: &str) -> Result<u8, Failure> {
///     let number: u8 = text.parse()?;
///     if number == 0 {
///         return Err(Failure::new("the number is 0"));
///     }
///     Ok(number)
/// }
///
/// assert_eq!(parse("300").unwrap_err().to_string(), "number too large to fit in target type");
/// assert_eq!(parse("0").unwrap_err().to_string(), "the number is 0");
/// ```
///
/// It is not an [`Error`] itself, which is why every error can convert into it.
#[expect(clippy::box_collection, reason = "one pointer keeps the result of a step small")]
pub struct Failure(Box<String>);

impl Failure {
    /// A failure that says `what` went wrong.
    #[cold]
    pub fn new(what: impl fmt::Display) -> Self {
        Self(Box::new(what.to_string()))
    }
}

impl<E: Error> From<E> for Failure {
    #[cold]
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(Box::new(text))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    /// The text: a test that returns a failure, or unwraps it, shows it as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
