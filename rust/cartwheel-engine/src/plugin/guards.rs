//! Batches run in copies of the host's memory, with guard bytes around every array.
//!
//! A plugin that writes outside of its rows spoils a guard or a row that it had to leave alone, and
//! the call is an error that says which array; what it wrote elsewhere stays unseen. The host's
//! memory gets the rows of the batch only when everything is as it has to be.
#![expect(unsafe_code, reason = "copies arrays of batches, see the invariants of the module")]

use std::ffi::c_void;

use cartwheel_abi::{Batch, LEAVE, RandomStream};

use crate::space::BatchLayout;

/// Bytes around every array: enough for a row that is off by one, where rows are small.
const GUARD: usize = 256;
const PATTERN: u8 = 0xa5;

/// Memory for the copies; kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Guards {
    lines: Vec<Line>,
    arrays: Vec<Array>,
    observations: Vec<usize>,
}

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct Line([u8; 64]);

/// An array of the host, and where its copy is.
#[derive(Debug, Clone, Copy)]
struct Array {
    name: Name,
    /// The address of the host's array.
    host: usize,
    /// Offset of the copy.
    at: usize,
    /// Bytes of a row.
    row: usize,
}

#[derive(Debug, Clone, Copy)]
enum Name {
    Observations(usize),
    Other(&'static str),
}

impl Guards {
    /// Calls `run` with a batch of copies, checks them, and copies the rows back.
    ///
    /// # Errors
    ///
    /// The array that was written where it had to be left alone.
    ///
    /// # Safety
    ///
    /// Every array of the batch has an entry for each of its rows (invariant 5); `layout` is that of
    /// the observations.
    pub(super) unsafe fn run(
        &mut self,
        batch: &mut Batch,
        layout: BatchLayout<'_>,
        run: impl FnOnce(&mut Batch) -> u32,
    ) -> Result<u32, String> {
        let (first, rows) = (batch.next, batch.rows);
        // SAFETY: as the caller promises.
        unsafe { self.copy_in(batch, layout) };
        let memory = self.lines.as_mut_ptr().cast::<u8>();
        let copy = |array: &Array| memory.wrapping_add(array.at);
        let [commands, rewards, terminations, truncations, streams, observations @ ..] =
            self.arrays.as_slice()
        else {
            unreachable!("every batch has these arrays")
        };
        self.observations.clear();
        self.observations.extend(observations.iter().map(|array| copy(array).expose_provenance()));
        let kept = (batch.commands, batch.observations);
        let outcomes = (batch.rewards, batch.terminations, batch.truncations, batch.streams);
        batch.commands = copy(commands);
        batch.observations = self.observations.as_ptr().cast::<*mut c_void>();
        batch.rewards = copy(rewards).cast();
        (batch.terminations, batch.truncations) = (copy(terminations), copy(truncations));
        #[expect(clippy::cast_ptr_alignment, reason = "copies begin at multiples of 64 bytes")]
        let streams = copy(streams).cast::<RandomStream>();
        batch.streams = streams;
        let status = run(batch);
        (batch.commands, batch.observations) = kept;
        (batch.rewards, batch.terminations, batch.truncations, batch.streams) = outcomes;
        // SAFETY: as the caller promises.
        unsafe { self.copy_out(batch.commands, first, rows) }?;
        Ok(status)
    }

    /// # Safety
    ///
    /// As [`Guards::run`].
    unsafe fn copy_in(&mut self, batch: &Batch, layout: BatchLayout<'_>) {
        let (rows, other) = (batch.rows, Name::Other);
        self.arrays.clear();
        let mut at = 0;
        let mut add = |name, host: usize, row: usize| {
            self.arrays.push(Array { name, host, at: at + GUARD, row });
            at = (at + GUARD + rows * row).next_multiple_of(size_of::<Line>());
        };
        add(other("commands"), batch.commands.expose_provenance(), 1);
        add(other("rewards"), batch.rewards.expose_provenance(), size_of::<f64>());
        add(other("terminations"), batch.terminations.expose_provenance(), 1);
        add(other("truncations"), batch.truncations.expose_provenance(), 1);
        add(other("streams"), batch.streams.expose_provenance(), size_of::<RandomStream>());
        for leaf in 0..layout.num_leaves() {
            // SAFETY: one address for each leaf (invariant 5).
            let address = unsafe { batch.observations.wrapping_add(leaf).read() };
            let row = layout.row_bytes(leaf);
            add(Name::Observations(leaf), address.expose_provenance(), row);
        }
        self.lines.clear();
        self.lines.resize((at + GUARD).div_ceil(size_of::<Line>()), Line([PATTERN; 64]));
        let memory = self.lines.as_mut_ptr().cast::<u8>();
        for array in &self.arrays {
            let host = std::ptr::with_exposed_provenance::<u8>(array.host);
            let copy = memory.wrapping_add(array.at);
            // SAFETY: the array has as many rows, and the copy as much room.
            unsafe { host.copy_to_nonoverlapping(copy, rows * array.row) }
        }
    }

    /// # Safety
    ///
    /// As [`Guards::run`]; `commands` are the host's, and the copies are those of the last
    /// [`Guards::copy_in`].
    unsafe fn copy_out(
        &self,
        commands: *const u8,
        first: usize,
        rows: usize,
    ) -> Result<(), String> {
        // SAFETY: lines are bytes.
        let memory = unsafe {
            std::slice::from_raw_parts(
                self.lines.as_ptr().cast::<u8>(),
                self.lines.len() * size_of::<Line>(),
            )
        };
        let mut end = 0;
        for array in &self.arrays {
            let changed = memory[end..array.at].iter().position(|&byte| byte != PATTERN);
            if let Some(offset) = changed {
                return Err(self.outside(end + offset));
            }
            end = array.at + rows * array.row;
        }
        if let Some(offset) = memory[end..].iter().position(|&byte| byte != PATTERN) {
            return Err(self.outside(end + offset));
        }
        // SAFETY: one command for each row.
        let commands = unsafe { std::slice::from_raw_parts(commands, rows) };
        let left = |row: usize| row < first || commands[row] == LEAVE;
        for array in &self.arrays {
            let host = std::ptr::with_exposed_provenance_mut::<u8>(array.host);
            let copy = &memory[array.at..array.at + rows * array.row];
            // SAFETY: the array has as many rows.
            let before = unsafe { std::slice::from_raw_parts(host, copy.len()) };
            let read_only = matches!(array.name, Name::Other("commands"));
            for row in (0..rows).filter(|&row| read_only || left(row)) {
                let bytes = row * array.row..(row + 1) * array.row;
                if before[bytes.clone()] != copy[bytes] {
                    return Err(format!(
                        "`run` wrote to {} of row {row} of the batch, which it had to leave alone",
                        array.name.text()
                    ));
                }
            }
        }
        for array in
            self.arrays.iter().filter(|array| !matches!(array.name, Name::Other("commands")))
        {
            let host = std::ptr::with_exposed_provenance_mut::<u8>(array.host);
            let copy = &memory[array.at..array.at + rows * array.row];
            // SAFETY: the array has as many rows, and is not the copy.
            unsafe { host.copy_from_nonoverlapping(copy.as_ptr(), copy.len()) }
        }
        Ok(())
    }

    /// The error for a byte outside of every array.
    fn outside(&self, offset: usize) -> String {
        let before = self.arrays.iter().rev().find(|array| array.at <= offset);
        let next = self.arrays.iter().find(|array| array.at > offset);
        let near = |array: Option<&Array>, where_| {
            array.map(|array| format!("{where_} {}", array.name.text()))
        };
        let near = [near(before, "behind"), near(next, "in front of")];
        let near: Vec<String> = near.into_iter().flatten().collect();
        format!("`run` wrote outside of its arrays: {}", near.join(" or "))
    }
}

impl Name {
    fn text(self) -> String {
        match self {
            Self::Observations(leaf) => format!("leaf {leaf} of the observations"),
            Self::Other(name) => format!("the {name}"),
        }
    }
}
