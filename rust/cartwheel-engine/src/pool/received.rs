//! A received batch of rows.

use crate::memory::{InfosAt, Lease};

/// A received batch of rows.
#[derive(Debug)]
pub struct Received {
    /// The batch; its first `rows.len()` places are filled.
    pub lease: Lease,
    /// The rows, in the order of their places.
    pub rows: Vec<usize>,
    /// Places that announce infos: each covers the rows from that place to the next one listed.
    pub infos: Vec<(usize, InfosAt)>,
    /// Places of rows that failed.
    pub failed: Vec<usize>,
}

/// What a received row announces besides its place in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This row failed.
    Failed(usize),
    /// Infos begin with this row.
    Infos(usize, InfosAt),
}

impl Received {
    /// What the rows announce, in the order in which each worker sends it: by place, a failure
    /// first.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let (mut failed, mut infos) = (self.failed.iter().peekable(), self.infos.iter().peekable());
        std::iter::from_fn(move || {
            let place = |&(place, _): &(usize, InfosAt)| place;
            match (failed.peek(), infos.peek()) {
                (Some(&&failing), next) if next.is_none_or(|next| failing <= place(next)) => {
                    failed.next().map(|&place| Event::Failed(self.rows[place]))
                }
                _ => {
                    infos.next().map(|&(place, infos_at)| Event::Infos(self.rows[place], infos_at))
                }
            }
        })
    }
}
