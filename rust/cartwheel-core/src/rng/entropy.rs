//! Random bits of the operating system.

use crate::error::Error;

/// 128 bits of the operating system's entropy: the meaning of a seed of `None`.
///
/// # Errors
///
/// [`Error::NoEntropy`] when the system has none.
pub fn entropy() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::NoEntropy(error.to_string()))?;
    Ok(u128::from_le_bytes(bytes))
}
