//! Announcements of the places of a batch of sent rows: which row is in each place, and where its
//! infos are.

use crate::memory::{InfosAt, Lease};
use crate::transition::PhaseTag;

/// The row ids of successive batches; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct RowIds {
    numbers: Vec<u8>,
    lengths: Vec<u8>,
    phases: Vec<u8>,
}

impl RowIds {
    /// Reads `count` places of a batch, from the first one of the lease on.
    pub(crate) fn load(&mut self, lease: &Lease, count: usize) {
        let layout = lease.layout();
        for (part, offset, bytes) in [
            (&mut self.numbers, layout.row_numbers_offset(), size_of::<u32>()),
            (&mut self.lengths, layout.info_lengths_offset(), size_of::<u32>()),
            (&mut self.phases, layout.phases_offset(), 1),
        ] {
            part.resize(count * bytes, 0);
            lease.read(offset + lease.first() * bytes, part);
        }
    }

    /// The row in each place.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        let (numbers, _) = self.numbers.as_chunks();
        numbers.iter().map(|number| u32::from_ne_bytes(*number) as usize)
    }

    /// The phase of the row in each place, a [`PhaseTag`].
    pub(crate) fn phases(&self) -> &[u8] {
        &self.phases
    }

    /// The places that announce infos, and where these are.
    pub(crate) fn infos(&self) -> Vec<(usize, InfosAt)> {
        // Usually there are none: all places are checked without a branch, here and below.
        if self.lengths.iter().fold(0, |any, byte| any | byte) == 0 {
            return Vec::new();
        }
        let (lengths, _) = self.lengths.as_chunks();
        let infos_at = lengths.iter().map(|length| InfosAt::from_word(u32::from_ne_bytes(*length)));
        infos_at.enumerate().filter(|(_, infos_at)| *infos_at != InfosAt::Memory(0)).collect()
    }

    /// The places of rows that failed.
    pub(crate) fn failed(&self) -> Vec<usize> {
        let failed = PhaseTag::Failed as u8;
        if self.phases.iter().fold(0, |highest, phase| *phase.max(&highest)) < failed {
            return Vec::new();
        }
        let places = self.phases.iter().enumerate().filter(|(_, phase)| **phase == failed);
        places.map(|(place, _)| place).collect()
    }
}
