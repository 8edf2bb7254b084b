//! Results of a call: a batch, its rows, and their announcements.

use crate::memory::{InfosAt, Lease};

/// The result of a call. A task announces for whole shards, at the place of their first row; rows
/// that were sent announce for themselves. The default is that of no rows.
#[derive(Debug, Default)]
pub struct Received {
    /// The batch, whose first `rows.len()` places are filled; `None` after a control call.
    pub lease: Option<Lease>,
    /// The rows, in the order of their places.
    pub rows: ReceivedRows,
    /// Places that announce infos: each covers the rows from that place to the next one listed. After
    /// a control call, they announce answers.
    pub infos: Vec<(usize, InfosAt)>,
    /// Places of rows that failed.
    pub failed: Vec<usize>,
    /// Places of rows that were sent for a reset.
    pub resets: Vec<usize>,
}

/// Results that a wait has found and that were not handed out.
#[derive(Debug)]
pub(super) enum Found {
    /// Those of the pending call, whose task has this number.
    Call(u32),
    /// Those of `count` rows that were sent, from place `first` of a batch on.
    Rows { batch: u64, first: usize, count: usize },
}

/// The rows of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceivedRows {
    /// All of them, this many, each in the place of its own number: the call was a task.
    All(usize),
    /// These, which were sent.
    Sent(Vec<usize>),
}

impl Default for ReceivedRows {
    fn default() -> Self {
        Self::All(0)
    }
}

impl ReceivedRows {
    /// The rows, in the order of their places.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + Clone + '_ {
        let (all, sent) = match self {
            Self::All(rows) => (*rows, &[][..]),
            Self::Sent(rows) => (rows.len(), &rows[..]),
        };
        (0..all).map(|place| sent.get(place).copied().unwrap_or(place))
    }

    /// The row in a place.
    ///
    /// # Panics
    ///
    /// When rows were sent and the place is not filled.
    pub fn at(&self, place: usize) -> usize {
        self.sent().map_or(place, |rows| rows[place])
    }

    /// The rows, if they were sent.
    pub fn sent(&self) -> Option<&[usize]> {
        match self {
            Self::All(_) => None,
            Self::Sent(rows) => Some(rows),
        }
    }
}

/// An announcement of a received row, apart from its place in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This row failed; after a task, rows of the shard that begins with it.
    Failed(usize),
    /// Infos begin with this row.
    Infos(usize, InfosAt),
}

impl Received {
    /// Whether each place ended an episode; `None` without a batch.
    pub(super) fn over(&self) -> Option<Vec<u8>> {
        let lease = self.lease.as_ref()?;
        let (layout, first) = (lease.layout(), lease.first());
        let flags = |offset: usize| {
            let mut flags = vec![0; self.rows.iter().len()];
            lease.read(offset + first, &mut flags);
            flags
        };
        let terminations = flags(layout.terminations_offset());
        let truncations = flags(layout.truncations_offset());
        Some(terminations.iter().zip(truncations).map(|(term, trunc)| term | trunc).collect())
    }

    /// The announcements of the rows, in the order in which each worker sends them: by place, a
    /// failure first.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let (mut failed, mut infos) = (self.failed.iter().peekable(), self.infos.iter().peekable());
        std::iter::from_fn(move || {
            let place = |&(place, _): &(usize, InfosAt)| place;
            match (failed.peek(), infos.peek()) {
                (Some(&&failing), next) if next.is_none_or(|next| failing <= place(next)) => {
                    failed.next().map(|&place| Event::Failed(self.rows.at(place)))
                }
                _ => infos
                    .next()
                    .map(|&(place, infos_at)| Event::Infos(self.rows.at(place), infos_at)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_place_and_a_failure_before_the_infos_of_its_place() {
        let infos = |place| (place, InfosAt::Memory(8));
        let rows = ReceivedRows::Sent(vec![7, 3, 5, 4]);
        let received = Received {
            rows,
            infos: vec![infos(0), infos(1), infos(3)],
            failed: vec![1, 2],
            ..Received::default()
        };
        let infos = |row| Event::Infos(row, InfosAt::Memory(8));
        let events: Vec<_> = received.events().collect();
        assert_eq!(events, [infos(7), Event::Failed(3), infos(3), Event::Failed(5), infos(4)]);
    }
}
