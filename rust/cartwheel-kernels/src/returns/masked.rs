//! Statistics over the valid rows.

use super::error::Error;
use super::float::{Float, only_if};
use super::time_major::check_count;

/// Number of sums that are computed in parallel, so that additions do not wait for each other.
const LANES: usize = 8;

/// Number of cells that are summed before the sum is added to the total. Sums of sums are more
/// exact.
const BLOCK: usize = 4096;

/// The mean over the valid rows, summed in `f64`.
///
/// # Errors
///
/// [`Error::WrongCount`], and [`Error::NoValidRow`] if no row is valid.
pub fn masked_mean<F: Float>(numbers: &[F], valid: &[u8]) -> Result<f64, Error> {
    check_count("valid", valid, numbers.len())?;
    Ok(sum(numbers, valid, F::to_f64) / count(valid)?)
}

/// Writes `(x - mean) / (deviation + epsilon)` where rows are valid, and 0 elsewhere.
///
/// Mean and standard deviation are computed over the valid rows, in `f64` and in two passes; the
/// deviation is the population's, `sqrt(sum((x - mean)^2) / count)`.
///
/// # Errors
///
/// [`Error::WrongCount`]; [`Error::NotPositive`] for `epsilon`, which prevents a division by 0 when
/// all numbers are equal; [`Error::NoValidRow`].
pub fn masked_normalize<F: Float>(
    numbers: &[F],
    valid: &[u8],
    epsilon: f64,
    normalized: &mut [F],
) -> Result<(), Error> {
    let mean = masked_mean(numbers, valid)?;
    check_count("normalized", normalized, numbers.len())?;
    if epsilon.is_nan() || epsilon <= 0.0 {
        return Err(Error::NotPositive { what: "epsilon", value: epsilon });
    }
    let squares = sum(numbers, valid, |number| {
        let distance = number.to_f64() - mean;
        distance * distance
    });
    let scale = ((squares / count(valid)?).sqrt() + epsilon).recip();
    for ((normalized, &number), &valid) in normalized.iter_mut().zip(numbers).zip(valid) {
        *normalized = only_if(valid != 0, F::from_f64((number.to_f64() - mean) * scale));
    }
    Ok(())
}

/// Number of valid rows, at least one.
#[expect(clippy::cast_precision_loss, reason = "no rollout has 2^53 rows")]
fn count(valid: &[u8]) -> Result<f64, Error> {
    match valid.iter().filter(|&&valid| valid != 0).count() {
        0 => Err(Error::NoValidRow { count: valid.len() }),
        count => Ok(count as f64),
    }
}

/// The sum of `of(number)` over the valid rows.
fn sum<F: Float>(numbers: &[F], valid: &[u8], of: impl Fn(F) -> f64) -> f64 {
    let block = |(numbers, valid): (&[F], &[u8])| {
        let mut lanes = [0.0; LANES];
        let (wide, rest) = numbers.as_chunks::<LANES>();
        let (wide_valid, rest_valid) = valid.as_chunks::<LANES>();
        for (numbers, valid) in wide.iter().zip(wide_valid) {
            for lane in 0..LANES {
                lanes[lane] += only_if(valid[lane] != 0, of(numbers[lane]));
            }
        }
        for ((number, valid), lane) in rest.iter().zip(rest_valid).zip(&mut lanes) {
            *lane += only_if(*valid != 0, of(*number));
        }
        lanes.iter().sum::<f64>()
    };
    numbers.chunks(BLOCK).zip(valid.chunks(BLOCK)).map(block).sum()
}
