//! Resets of rows.

use cartwheel_engine::native::RowReset;
use cartwheel_engine::{Error as EngineError, FULL_RESET};

use super::error::VectorError;

/// Row `i` gets the seed `self.0 + i`, as in Gymnasium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u128);

/// A reset: the rows, their seeds, and the options `O` of the environment.
///
/// ```
/// use cartwheel::{NoOptions, Reset, Seed};
///
/// let all: Reset<NoOptions> = Seed(7).into(); // row i gets the seed 7 + i
/// let three: Reset<NoOptions> = Reset::new().rows([0, 4, 5]).seeds([1, 2, 3]);
/// let without_seeds: Reset<NoOptions> = Reset::new(); // rows go on with their random streams
/// ```
#[derive(Debug, Clone)]
pub struct Reset<O> {
    seeds: Seeds,
    rows: Option<Vec<usize>>,
    /// The length of the mask that chose the rows, if one did.
    mask_len: Option<usize>,
    pub(super) options: Option<O>,
}

#[derive(Debug, Clone)]
enum Seeds {
    None,
    From(u128),
    Each(Vec<u128>),
}

impl<O> Default for Reset<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> From<Seed> for Reset<O> {
    fn from(seed: Seed) -> Self {
        Self::new().seed(seed.0)
    }
}

impl<O> Reset<O> {
    /// Resets all rows, without seeds, with the default options. A row that was never seeded has an
    /// unpredictable stream.
    pub fn new() -> Self {
        Self { seeds: Seeds::None, rows: None, mask_len: None, options: None }
    }

    /// Row `i` gets the seed `seed + i`, whichever rows are reset.
    #[must_use]
    pub fn seed(mut self, seed: u128) -> Self {
        self.seeds = Seeds::From(seed);
        self
    }

    /// One seed for each row that is reset, in their order.
    #[must_use]
    pub fn seeds(mut self, seeds: impl Into<Vec<u128>>) -> Self {
        self.seeds = Seeds::Each(seeds.into());
        self
    }

    /// Resets these rows only; the others show their observation again, and go on afterwards.
    #[must_use]
    pub fn rows(mut self, rows: impl Into<Vec<usize>>) -> Self {
        (self.rows, self.mask_len) = (Some(rows.into()), None);
        self
    }

    /// Resets the rows of which `mask` is true only; it has an entry for each row.
    #[must_use]
    pub fn mask(self, mask: &[bool]) -> Self {
        let rows = mask.iter().enumerate().filter(|(_, reset)| **reset).map(|(row, _)| row);
        Self { mask_len: Some(mask.len()), ..self.rows(rows.collect::<Vec<_>>()) }
    }

    /// Options of the reset.
    #[must_use]
    pub fn options(mut self, options: O) -> Self {
        self.options = Some(options);
        self
    }

    /// The rows that are reset, of `count`.
    pub(super) fn named(&self, count: usize) -> Vec<usize> {
        self.rows.clone().unwrap_or_else(|| (0..count).collect())
    }

    /// The flags of the reset's task.
    pub(super) fn flags(&self) -> u32 {
        if self.rows.is_none() { FULL_RESET } else { 0 }
    }

    /// The resets of `count` rows.
    ///
    /// # Errors
    ///
    /// A row does not exist or is named twice, or there is not one seed, or one entry of a mask, for
    /// each row.
    pub(super) fn plan(&self, count: usize) -> Result<Vec<(usize, RowReset)>, VectorError> {
        if let Some(len) = self.mask_len.filter(|&len| len != count) {
            return Err(VectorError::refused(format!("a mask of {len} entries for {count} rows")));
        }
        let rows = self.named(count);
        check_rows(&rows, count)?;
        if let Seeds::Each(seeds) = &self.seeds
            && seeds.len() != rows.len()
        {
            let (seeds, rows) = (seeds.len(), rows.len());
            return Err(VectorError::refused(format!("{seeds} seeds for {rows} rows")));
        }
        let how = |(at, row): (usize, usize)| {
            let reset = match &self.seeds {
                Seeds::None => RowReset::Continue,
                Seeds::From(seed) => RowReset::Seed(seed.wrapping_add(row as u128)),
                Seeds::Each(seeds) => RowReset::Seed(seeds[at]),
            };
            (row, reset)
        };
        Ok(rows.into_iter().enumerate().map(how).collect())
    }
}

/// Checks that rows exist and are named once.
pub(super) fn check_rows(rows: &[usize], count: usize) -> Result<(), VectorError> {
    let mut named = vec![false; count];
    for &row in rows {
        let Some(named) = named.get_mut(row) else {
            return Err(EngineError::NoSuchRow { row, rows: count }.into());
        };
        if std::mem::replace(named, true) {
            return Err(EngineError::NamedTwice(row).into());
        }
    }
    Ok(())
}
