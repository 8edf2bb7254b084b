//! Random bits of the operating system.

use crate::error::Error;

/// 128 bits of the operating system's entropy: the meaning of a seed of `None`.
///
/// # Errors
///
/// [`Error::Os`] when the system has no entropy.
pub fn entropy() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        let got =
            rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes[filled..], flags));
        filled += got.map_err(Error::os("reading random bytes"))?;
    }
    Ok(u128::from_le_bytes(bytes))
}
