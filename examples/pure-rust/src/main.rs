//! An environment, its training by Q-learning, and its speed, all in Rust.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cartwheel::{AutoresetMode, Env, Error, Failure, NoOptions, Rng, Seed};
use cartwheel::{Space, Spaces, Transition, VectorEnv, VectorError};

/// Cells of the corridor. The exit is behind the last one.
const CELLS: i64 = 12;
const ROWS: usize = 1024;

/// Walk to the exit. One move in ten goes the other way.
struct Corridor(i64);

impl Env for Corridor {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Shared = ();
    type Action = i64;
    type Observation = i64;
    type Info = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(CELLS + 1), action: Space::discrete(2) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self(0))
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = rng.integers(0..CELLS / 2);
        Ok(())
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        let right = (action == 1) != (rng.random() < 0.1);
        self.0 = (self.0 + if right { 1 } else { -1 }).max(0);
        Ok(Transition { reward: -1.0, terminated: self.0 == CELLS, truncated: false })
    }

    fn observe(&self, cell: &mut i64) {
        *cell = self.0;
    }

    fn info(&self) {}
}

/// Q-learning with a table: the value of each action in each cell.
fn train() -> Result<(), VectorError> {
    let builder = VectorEnv::<Corridor>::builder(ROWS);
    let mut envs = builder.autoreset(AutoresetMode::SameStep).build()?;
    let (mut values, mut rng) = ([[0.0_f64; 2]; CELLS as usize + 1], Rng::from_seed(0));
    let greedy = |values: &[f64; 2]| i64::from(values[1] > values[0]);
    let mut batch = envs.reset(Seed(7))?;
    for step in 1..=300 {
        let cells = batch.observations().columns().to_vec();
        let act = |cell: &i64| {
            if rng.random() < 0.2 { rng.integers(0..2) } else { greedy(&values[*cell as usize]) }
        };
        let actions: Vec<i64> = cells.iter().map(act).collect();
        batch = envs.step(&actions)?;
        let next = batch.observations();
        for row in 0..ROWS {
            let best = values[next.row(row) as usize].into_iter().fold(f64::MIN, f64::max);
            let later = if batch.is_over(row) { 0.0 } else { best };
            let value = &mut values[cells[row] as usize][actions[row] as usize];
            *value += 0.05 * (batch.rewards()[row] + later - *value);
        }
        if step % 60 == 0 {
            println!("step {step}: {:.1} moves to the exit from cell 0", -values[0][1]);
        }
    }
    let right = values[..CELLS as usize].iter().all(|values| greedy(values) == 1);
    println!("the policy goes {}", if right { "right in every cell" } else { "astray" });
    Ok(())
}

/// Prints how many steps environments take in a second, with the same actions again and again.
fn speed<E: Env<Action = i64>>(name: &str, limit: u32) -> Result<(), VectorError> {
    let mut envs = VectorEnv::<E>::builder(ROWS).max_episode_steps(limit).build()?;
    envs.reset(Seed(0))?;
    let actions: Vec<i64> = (0..ROWS as i64).map(|row| row % 2).collect();
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(2) {
        (0..100).try_for_each(|_| envs.step(&actions).map(drop))?;
        steps += 100 * ROWS;
    }
    println!("{name}: {:.1} million steps/s", steps as f64 / start.elapsed().as_secs_f64() / 1e6);
    Ok(())
}

fn main() -> Result<(), VectorError> {
    train()?;
    speed::<Corridor>("Corridor", 100)?;
    speed::<cartwheel_envs::Taxi>("Taxi-v4", 200)?;
    speed::<cartwheel_envs::CartPole>("CartPole-v1", 500)
}
