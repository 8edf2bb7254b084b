//! The speed of an environment on one core: a plain loop over its rows, and the same through its
//! table.
//!
//! ```text
//! cargo run --release -p cartwheel-envs --example plain_loop [id] [seconds a measurement]
//! ```
//!
//! The plain loop is the ceiling: it steps, resets what is over and stores observations, rewards and
//! flags, with no interface at all; row by row, and in blocks where the environment has them. The table
//! does the same as a host calls it, which plans commands and counts steps. All in turns, medians of
//! seven rounds.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

#[path = "../../cartwheel/tests/it/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use cartwheel::Rng;
use cartwheel_abi as abi;
use cartwheel_envs::{PLUGIN, PlainLoops, plain_loop};
use support::{HostKind, HostRows, find};

const ROUNDS: usize = 7;
const ACTION_BATCHES: usize = 64;

/// Rows that are stepped through their table, with random actions.
struct Stepped<'a> {
    rows: HostRows<'a>,
    elapsed: Vec<u32>,
    limit: u32,
    actions: Vec<Vec<u8>>,
}

impl<'a> Stepped<'a> {
    fn new(kind: &'a HostKind, num_rows: usize) -> Self {
        let mut rows = HostRows::new(kind, num_rows).expect("environments");
        rows.all(abi::RESET);
        let mut rng = Rng::from_seed(7);
        let sample = |_| kind.spaces.action.sample(0, num_rows, &mut rng);
        let actions = (0..ACTION_BATCHES).map(sample).collect();
        let limit = kind.table.max_episode_steps;
        Self { rows, elapsed: vec![0; num_rows], limit, actions }
    }

    /// Environment steps a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
    fn rate(&mut self, duration: Duration) -> f64 {
        let (start, mut steps) = (Instant::now(), 0);
        while start.elapsed() < duration {
            for actions in &self.actions {
                self.rows.actions.store(0, actions);
                self.rows.next_step(&mut self.elapsed, self.limit);
                self.rows.infos.clear();
                black_box(&self.rows.rewards);
            }
            steps += ACTION_BATCHES * self.elapsed.len();
        }
        steps as f64 / start.elapsed().as_secs_f64()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let id = arguments.next().unwrap_or_else(|| "CartPole-v1".to_owned());
    let seconds = arguments.next().map_or(0.5, |text| text.parse().expect("seconds"));
    let duration = Duration::from_secs_f64(seconds);
    let kind = HostKind::with_defaults(find(&PLUGIN, &id), "").expect("valid options");
    let max_episode_steps = NonZero::new(kind.table.max_episode_steps);
    let columns = ["rows", "plain, steps/s", "in blocks", "table", "of plain", "of blocks"];
    println!(
        "{:>6} {:>16} {:>16} {:>16} {:>9} {:>9}",
        columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
    );
    for rows in [1, 8, 64, 1024, 4096] {
        let plain = |blocks| {
            let loops = PlainLoops { rows, threads: 1, duration, max_episode_steps, blocks };
            plain_loop(&id, "", &loops).expect("memory")
        };
        let mut table = Stepped::new(&kind, rows);
        let mut rates = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            rates[0].push(plain(false));
            rates[1].push(plain(true));
            rates[2].push(table.rate(duration));
        }
        let [plain, blocks, table] = rates.map(median);
        print!("{rows:>6} {plain:>16.0} {blocks:>16.0} {table:>16.0} ");
        println!("{:>9.2} {:>9.2}", table / plain, table / blocks);
    }
}
