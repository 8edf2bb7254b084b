//! The places of a batch: which environment each shows, and its kind, one byte.

use super::bits::each_set;

/// The environment was stepped.
pub const TRANSITION: u8 = 0;
/// The row shows the first observation of an episode: an explicit reset, or the autoreset step of
/// `NEXT_STEP`.
pub const RESET: u8 = 1;
/// The row was left alone and shows its last observation again.
pub const SHOWN: u8 = 2;
/// The environment failed and was replaced; the episode was truncated by that.
pub const FAILED: u8 = 3;
/// A transition of an episode of which an earlier step was lost, because a call raised.
pub const INCOMPLETE: u8 = 4;

/// A row number is not that of an environment. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("row {row} at position {place} is not from 0 to {}", .num_envs.saturating_sub(1))]
pub struct NoSuchRow {
    /// The number.
    pub row: i64,
    /// Its place in the list.
    pub place: usize,
    /// The number of environments.
    pub num_envs: usize,
}

/// Checks that environments exist.
pub(super) fn check_rows(rows: &[i64], num_envs: usize) -> Result<(), NoSuchRow> {
    let exists = |&row: &i64| usize::try_from(row).is_ok_and(|row| row < num_envs);
    if rows.iter().all(exists) {
        return Ok(());
    }
    let place = rows.iter().position(|row| !exists(row)).expect("one does not exist");
    Err(NoSuchRow { row: rows[place], place, num_envs })
}

/// Row numbers as indices.
///
/// # Errors
///
/// An environment does not exist.
pub fn existing_rows(rows: Vec<i64>, num_envs: usize) -> Result<Vec<usize>, NoSuchRow> {
    check_rows(&rows, num_envs)?;
    Ok(rows.into_iter().map(index).collect())
}

/// The index of an environment that exists.
pub(super) fn index(row: i64) -> usize {
    usize::try_from(row).expect("checked before")
}

/// A place of a batch and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The place.
    pub place: usize,
    /// The environment.
    pub row: usize,
}

/// The places of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The environment of each place; `None` if the batch has all environments in their order.
    rows: Option<&'a [usize]>,
    /// The kind of each place: [`TRANSITION`], [`RESET`] and so on.
    kinds: &'a [u8],
}

impl<'a> Places<'a> {
    /// Places of a batch of `num_envs` environments.
    ///
    /// # Panics
    ///
    /// When there is not one kind for each place, or a row does not exist.
    pub fn new(rows: Option<&'a [usize]>, kinds: &'a [u8], num_envs: usize) -> Self {
        assert_eq!(kinds.len(), rows.map_or(num_envs, <[usize]>::len), "kinds");
        for &row in rows.unwrap_or_default() {
            assert!(row < num_envs, "row {row} of {num_envs}");
        }
        Self { rows, kinds }
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of each place.
    pub fn kinds(&self) -> &'a [u8] {
        self.kinds
    }

    /// Whether all kinds fulfill a condition; tests several at a time, in vectors.
    pub(crate) fn all_are(&self, fulfils: impl Fn(u8) -> bool) -> bool {
        let fails = |failed: u8, &kind: &u8| failed | u8::from(!fulfils(kind)); // a byte, as kinds are
        let (groups, rest) = self.kinds.as_chunks::<64>();
        let mut groups = groups.iter().map(|group| group.iter().fold(0, &fails));
        groups.all(|failed| failed == 0) && rest.iter().fold(0, &fails) == 0
    }

    /// Whether the batch has all environments in their order.
    pub(super) fn are_all(&self) -> bool {
        self.rows.is_none()
    }

    /// The environment of each place; `None` if the batch has all environments in their order.
    pub fn rows(&self) -> Option<&'a [usize]> {
        self.rows
    }

    /// The environment of a place.
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows.map_or(place, |rows| rows[place])
    }

    /// A place with its environment.
    pub(super) fn at(&self, place: usize) -> At {
        At { place, row: self.row(place) }
    }
}

/// The results of a step, place by place. Flags are bytes, of which every one but zero is true.
#[derive(Debug, Clone, Copy)]
pub struct StepResults<'a> {
    /// The places.
    pub places: Places<'a>,
    /// Rewards.
    pub rewards: &'a [f64],
    /// Flags that were set.
    pub terminations: &'a [u8],
    /// Flags that were set.
    pub truncations: &'a [u8],
}

impl StepResults<'_> {
    /// Checks that each place has a result; everything that reads them counts on that.
    ///
    /// # Panics
    ///
    /// When the slices differ in length.
    pub(super) fn check(&self) {
        let count = self.places.len();
        assert_eq!(self.rewards.len(), count, "rewards");
        assert_eq!(self.terminations.len(), count, "terminations");
        assert_eq!(self.truncations.len(), count, "truncations");
    }
}

/// Places that ended an episode in `SAME_STEP`: they show the first observation of the next one.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndedPlaces<'a> {
    /// The places, ascending.
    places: &'a [i64],
    /// The places among them whose final observation is known, ascending.
    finals: &'a [i64],
}

impl<'a> EndedPlaces<'a> {
    /// Takes the places, and those whose final observation is known.
    ///
    /// # Errors
    ///
    /// A place is not one of `count`.
    ///
    /// # Panics
    ///
    /// When the places do not ascend, or a final observation belongs to none of them.
    pub fn new(places: &'a [i64], finals: &'a [i64], count: usize) -> Result<Self, NoSuchRow> {
        check_rows(places, count)?;
        assert!(places.is_sorted_by(|a, b| a < b), "the places of ends ascend");
        if finals != places {
            assert!(finals.is_sorted_by(|a, b| a < b), "the places of final observations ascend");
            let known = finals.iter().all(|place| places.binary_search(place).is_ok());
            assert!(known, "final observations of rows that go on");
        }
        Ok(Self { places, finals })
    }

    /// Whether no episode ended.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the final observations of all are known.
    pub(super) fn have_finals(&self) -> bool {
        self.places.len() == self.finals.len()
    }

    /// The number of final observations.
    pub fn num_finals(&self) -> usize {
        self.finals.len()
    }

    pub(super) fn places(&self) -> impl Iterator<Item = usize> + 'a {
        self.places.iter().map(|&place| index(place))
    }

    /// The places of the final observations.
    pub(super) fn finals(&self) -> impl Iterator<Item = usize> + 'a {
        self.finals.iter().map(|&place| index(place))
    }

    /// Begins a walk over all places, in their order.
    pub(super) fn walk(&self) -> Walk<'a> {
        Walk(self.places)
    }
}

/// Replaces `into` with the places at which one of the two flags is set, ascending.
///
/// # Panics
///
/// When there is not one of each for each place.
pub fn set_places(first: &[u8], second: &[u8], into: &mut Vec<i64>) {
    into.clear();
    each_set(first, second, |place| into.push(place.cast_signed() as i64));
}

/// Says of one place after the other whether it ended an episode.
#[derive(Debug)]
pub(super) struct Walk<'a>(&'a [i64]);

impl Walk<'_> {
    /// Whether this place ended an episode.
    pub(super) fn at(&mut self, place: usize) -> bool {
        let is_next = self.0.first().is_some_and(|&next| index(next) == place);
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }
}

/// Whether the environment was stepped, so that a place of this kind has a new observation.
#[inline(always)]
pub fn is_stepped(kind: u8) -> bool {
    matches!(kind, TRANSITION | INCOMPLETE)
}
