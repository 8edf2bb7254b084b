//! Plain loops do the work that they count: they step every row in every batch, reset rows that are over,
//! and take actions from the space.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cartwheel::{BlockOf, Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_envs::{PlainLoops, run};

/// The calls that environments got, by the name of their diary.
static DIARIES: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Records the calls that it gets; its episode ends after `length` steps. It is stepped in blocks of two,
/// where `step_block` leaves the second row to `step`.
struct Diarist {
    diary: String,
    name: i64,
    steps: i64,
    length: i64,
}

cartwheel::options! {
    struct Options {
        diary: String,
        length: i64,
    }
}

impl Diarist {
    fn write(&self, what: &str) {
        let mut diaries = DIARIES.lock().unwrap();
        diaries.entry(self.diary.clone()).or_default().push(format!("{what} {}", self.name));
    }
}

impl Env for Diarist {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    const BLOCK: usize = 2;

    fn spaces(_: &Options, (): &()) -> Spaces {
        let action = Space::Discrete { n: 3, start: 5 };
        Spaces { observation: Space::discrete(100), action }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { diary, length } = options;
        Ok(Self { diary: diary.clone(), name: -1, steps: 0, length: *length })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        if self.name == -1 {
            self.name = rng.integers(0..1 << 40); // identifies the seed
        }
        self.steps = 0;
        self.write("reset");
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        assert!((5..8).contains(&action), "{action} is an action");
        self.steps += 1;
        self.write("step");
        Ok(Transition { reward: 1.0, terminated: self.steps == self.length, truncated: false })
    }

    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        if block.running[0] {
            let action = block.action(0);
            block.envs[0].write("block");
            block.transitions[0] = block.envs[0].step(action, &mut block.rngs[0]).ok();
        }
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.steps;
        self.write("observe");
    }

    fn info(&self) {}
}

const LOOPS: PlainLoops = PlainLoops {
    rows: 3,
    threads: 1,
    duration: Duration::ZERO,
    max_episode_steps: None,
    blocks: false,
};

/// The diary of every row, after one batch that is not timed and one that is.
fn diary(name: &str, length: i64, loops: PlainLoops) -> Vec<Vec<String>> {
    let options = format!(r#"{{"diary": "{name}", "length": {length}}}"#);
    assert!(run::<Diarist>(&options, &loops).unwrap() > 0.0);
    let all = DIARIES.lock().unwrap().remove(name).unwrap();
    let of_row = |row: usize| {
        let name = Rng::from_seed(row as u64).integers(0..1_i64 << 40).to_string();
        let mine = all.iter().filter_map(|entry| entry.split_once(' '));
        mine.filter(|(_, who)| *who == name).map(|(what, _)| what.to_owned()).collect()
    };
    let found: Vec<Vec<String>> = (0..loops.rows).map(of_row).collect();
    assert_eq!(found.iter().flatten().count(), all.len(), "no other seeds");
    found
}

#[test]
fn every_row_is_stepped_and_observed_in_every_batch_with_any_number_of_threads() {
    let expected = ["reset", "step", "observe", "step", "observe"];
    for (name, threads) in [("one", 1), ("two", 2), ("many", 9)] {
        let loops = PlainLoops { rows: 5, threads, ..LOOPS };
        for (row, diary) in diary(name, 0, loops).iter().enumerate() {
            assert_eq!(diary, &expected, "row {row}, {threads} threads");
        }
    }
}

#[test]
fn a_row_that_is_over_is_reset_instead_of_stepped() {
    let expected = ["reset", "step", "observe", "reset", "observe"];
    for (name, blocks) in [("rows", false), ("blocks", true)] {
        let terminated = diary(name, 1, PlainLoops { blocks, ..LOOPS });
        assert_eq!(terminated[1], expected, "blocks: {blocks}");
        let max_episode_steps = NonZero::new(1);
        let truncated = diary(name, 0, PlainLoops { blocks, max_episode_steps, ..LOOPS });
        assert_eq!(truncated[1], expected, "blocks: {blocks}");
    }
}

#[test]
fn blocks_are_stepped_together_and_rows_that_they_leave_out_one_by_one() {
    let found = diary("both", 0, PlainLoops { blocks: true, ..LOOPS });
    let first = ["reset", "block", "step", "observe", "block", "step", "observe"];
    let second = ["reset", "step", "observe", "step", "observe"];
    assert_eq!(found, [&first[..], &second[..], &first[..]]);
}

#[test]
fn no_rows_and_no_threads_are_errors() {
    let error = |loops: PlainLoops| run::<Diarist>("", &loops).unwrap_err().to_string();
    let loops = PlainLoops { rows: 0, threads: 3, ..LOOPS };
    assert_eq!(error(loops), "plain loops need rows and threads, got 0 and 3");
    let loops = PlainLoops { rows: 2, threads: 0, ..LOOPS };
    assert_eq!(error(loops), "plain loops need rows and threads, got 2 and 0");
}
