//! A received batch of rows.

use crate::memory::{Lease, Told};

/// A received batch of rows.
#[derive(Debug)]
pub struct Received {
    /// The batch; its first `rows.len()` places are filled.
    pub lease: Lease,
    /// The rows, in the order of their places.
    pub rows: Vec<usize>,
    /// Places that announce infos: each covers the rows from that place to the next one listed.
    pub infos: Vec<(usize, Told)>,
    /// Places of rows that failed.
    pub failed: Vec<usize>,
}

/// What a received row announces besides its place in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This row failed.
    Failed(usize),
    /// Infos begin with this row.
    Infos(usize, Told),
}

impl Received {
    /// What the rows announce, in the order in which each worker sends it: by place, a failure
    /// first.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let (mut failed, mut infos) = (self.failed.iter().peekable(), self.infos.iter().peekable());
        std::iter::from_fn(move || {
            let place = |&(place, _): &(usize, Told)| place;
            match (failed.peek(), infos.peek()) {
                (Some(&&failing), next) if next.is_none_or(|next| failing <= place(next)) => {
                    failed.next().map(|&place| Event::Failed(self.rows[place]))
                }
                _ => infos.next().map(|&(place, told)| Event::Infos(self.rows[place], told)),
            }
        })
    }
}
