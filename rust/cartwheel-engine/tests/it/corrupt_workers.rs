//! Values that workers write into shared memory are checked. If no correct worker could have written a value,
//! the pool breaks with an error, and its process continues.
#![expect(unsafe_code, reason = "shares memory with worker processes")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use cartwheel_core::schedule::shards;
use cartwheel_engine::memory::{InfosAt, Plan};
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Received, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{Report, Shard, Task, serve};
use cartwheel_engine::{Call, Error};

use crate::support::Plain;

const ROWS: usize = 6;
const MAX_SLABS: usize = 16;
const LIMIT: Duration = Duration::from_secs(30);

/// Rows that report when they have arrived.
#[derive(Debug)]
struct Telling(Sender<()>);

impl Shard for Telling {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        Report { failed: true, ..Plain.run(task) }
    }

    fn flush(&mut self, _: Report) {
        self.0.send(()).unwrap();
    }
}

/// Two workers, with three rows each, and the files behind the memory that the pool shares with them.
struct Fixture {
    pool: Pool,
    slabs: File,
    arrived: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Fixture {
    fn new(batch_size: usize) -> Self {
        let plan = Plan { batch_size, max_slabs: MAX_SLABS, ..Plan::new(shards(ROWS, 2)) };
        let (memory, tokens) = Memory::new(plan, Scope::Shared).unwrap();
        // SAFETY: the test writes numbers and words, for which any bits are valid, as a corrupt
        // worker would.
        let [.., slabs] = unsafe { memory.descriptors() }.unwrap();
        let slabs = File::from(slabs.try_clone_to_owned().unwrap());
        let (tell, arrived) = channel();
        let threads = tokens.workers.into_iter().map(|token| {
            let mut shard = Telling(tell.clone());
            std::thread::spawn(move || serve(token, &mut shard, false))
        });
        let threads = threads.collect();
        let policy = Policy { on_death: OnDeath::Resume, ..Policy::default() };
        let pool = Pool::new(tokens.pool, Workers::Threads, policy).unwrap();
        Self { pool, slabs, arrived, threads }
    }

    /// Sends rows, and waits until all have arrived.
    fn send(&mut self, rows: &[usize]) {
        self.pool.sending(Call::Step, Some(rows)).unwrap().send(0).unwrap();
        for _ in rows {
            self.arrived.recv_timeout(LIMIT).unwrap();
        }
    }

    /// Writes a number for a place of every slab, as a worker could.
    fn write(&self, offset: usize, place: usize, number: u32) {
        for slab in 0..MAX_SLABS {
            let start = slab * self.pool.slabs().layout().bytes() + offset;
            let at = u64::try_from(start + place * size_of::<u32>()).unwrap();
            self.slabs.write_all_at(&number.to_ne_bytes(), at).unwrap();
        }
    }

    fn name_row(&self, place: usize, row: u32) {
        self.write(self.pool.slabs().layout().row_numbers_offset(), place, row);
    }

    fn announce_infos(&self, place: usize, bytes: u32) {
        self.write(self.pool.slabs().layout().info_lengths_offset(), place, bytes);
    }

    /// Receives a batch and the infos that it announces, as a binding does.
    fn receive(&mut self) -> Result<Received, Error> {
        let received = self.pool.receive(Some(LIMIT), &mut || false)?;
        for (row, told) in
            received.infos.iter().map(|&(place, told)| (received.rows.at(place), told))
        {
            if let InfosAt::Memory(bytes) = told {
                self.pool.load_infos(row, bytes, &mut Vec::new());
            }
        }
        Ok(received)
    }

    /// Receives until the pool is broken. Then every call returns the same error, and the pool can be closed.
    fn assert_breaks(mut self, suspects: &[usize], expected: &str) {
        let error = loop {
            match self.receive() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, Error::Corrupt { workers, .. } if workers == suspects),
            "{error:?}"
        );
        assert!(error.to_string().contains(expected), "{error}");
        let pool = &mut self.pool;
        assert!(!pool.can_resume(), "no worker died");
        let again = [
            pool.receive(None, &mut || false).map(drop),
            pool.sending(Call::Reset, Some(&[0])).map(drop),
            pool.begin(Call::Reset, 0),
            pool.finish(Call::Reset, None, &mut || false).map(drop),
        ];
        for outcome in again {
            assert_eq!(outcome.unwrap_err().to_string(), error.to_string());
        }
        assert_eq!(self.pool.close(LIMIT), [] as [usize; 0]);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_row_that_does_not_exist_breaks_the_pool() {
    for row in [6, u32::MAX] {
        let mut fixture = Fixture::new(ROWS);
        fixture.send(&[0, 1, 2, 3, 4, 5]);
        fixture.name_row(4, row);
        fixture.assert_breaks(&[1], &format!("worker 1 wrote row {row} to place 4 of a batch"));
    }
}

#[test]
fn a_row_that_is_named_twice_or_not_in_flight_breaks_the_pool() {
    for row in [2, 5] {
        let mut fixture = Fixture::new(ROWS);
        fixture.send(&[0, 1, 2, 3]);
        fixture.name_row(0, row);
        fixture.assert_breaks(&[0], &format!("row {row} to place"));
    }
}

#[test]
fn if_several_workers_could_have_written_a_value_all_of_them_are_named() {
    let mut fixture = Fixture::new(2);
    fixture.send(&[0, 1, 2, 3, 4, 5]);
    fixture.name_row(0, 77);
    fixture.assert_breaks(&[0, 1], "one of the workers 0, 1 wrote row 77 to place 0 of a batch");
}

#[test]
fn infos_that_overlap_those_of_other_rows_break_the_pool() {
    // A shard's part has a page for three rows.
    for bytes in [4096, 1 << 20, u32::MAX - 1] {
        let mut fixture = Fixture::new(ROWS);
        fixture.send(&[1, 3]);
        fixture.announce_infos(0, bytes);
        fixture.assert_breaks(&[0], &format!("worker 0 wrote {bytes} bytes of infos for row 1"));
    }
}

#[test]
fn infos_that_overlap_those_of_rows_in_flight_break_the_pool() {
    let mut fixture = Fixture::new(2);
    fixture.send(&[0, 1, 2]);
    fixture.announce_infos(0, 3 * (4096 / 3)); // they fit the parts of rows 0 to 2
    fixture.assert_breaks(&[0], "worker 0 wrote 4095 bytes of infos for row 0");
}

#[test]
fn infos_of_neighboring_rows_that_arrive_together_are_accepted() {
    let mut fixture = Fixture::new(ROWS);
    fixture.send(&[1, 2, 3]);
    fixture.announce_infos(0, 2 * (4096 / 3));
    assert_eq!(fixture.receive().unwrap().rows.sent().unwrap(), [1, 2, 3]);
    fixture.pool.close(LIMIT);
    fixture.threads.into_iter().for_each(|thread| thread.join().unwrap());
}
