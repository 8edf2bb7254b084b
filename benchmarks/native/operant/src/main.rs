//! CartPole, MountainCar and Pendulum against those of operant-envs, on one core.
//!
//! operant-envs computes in `float32`, with sines of a few terms, so its results are others than
//! Gymnasium's. Both sides step 4,096 environments with the same random actions, reset those that are
//! over, and write observations, rewards and flags where a caller reads them.
//!
//! Two contenders are ours: a [`VectorEnv`] with one thread, as a user has it, and a plain loop, which
//! has no interface, as those of operant-envs have none. A reset counts as a step in the loop, where it
//! takes the place of one; in `SAME_STEP` and operant-envs it does not count.
//!
//! Prints one line for each: environment, contender, steps per second of every round.

use std::fmt::Debug;
use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use cartwheel::{AutoresetMode, Env, Rng, Seed, VectorEnv, View};
use cartwheel_envs::{CartPole, MountainCar, Pendulum, PlainLoops, plain_loop};
use operant_core::VecEnvironment;

const ROWS: usize = 4096;
const ACTION_BATCHES: usize = 64;

/// Actions of some batches, for both sides.
struct Actions<A> {
    ours: Vec<Vec<A>>,
    theirs: Vec<Vec<f32>>,
}

impl<A> Actions<A> {
    fn new(draw: impl Fn(&mut Rng) -> f32, ours: impl Fn(f32) -> A) -> Self {
        let mut rng = Rng::from_seed(7);
        let mut batch = |_| -> Vec<f32> { (0..ROWS).map(|_| draw(&mut rng)).collect() };
        let theirs: Vec<Vec<f32>> = (0..ACTION_BATCHES).map(&mut batch).collect();
        let ours = theirs.iter().map(|batch| batch.iter().map(|&action| ours(action)).collect());
        Self { ours: ours.collect(), theirs }
    }
}

/// Steps per second of `batch`, which steps every row once.
fn rate(duration: Duration, mut batch: impl FnMut(usize)) -> f64 {
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < duration {
        (0..ACTION_BATCHES).for_each(&mut batch);
        steps += ACTION_BATCHES * ROWS;
    }
    steps as f64 / start.elapsed().as_secs_f64()
}

/// Their environments, and the arrays that a caller has.
fn operant(mut envs: impl VecEnvironment, actions: &[Vec<f32>]) -> impl FnMut(Duration) -> f64 {
    envs.reset(0);
    let mut observations = vec![0.0; ROWS * envs.observation_size()];
    let (mut rewards, mut terminals, mut truncations) =
        (vec![0.0; ROWS], vec![0; ROWS], vec![0; ROWS]);
    move |duration| {
        rate(duration, |batch| {
            envs.step(&actions[batch]);
            envs.write_observations(&mut observations);
            envs.write_rewards(&mut rewards);
            envs.write_terminals(&mut terminals);
            envs.write_truncations(&mut truncations);
            black_box((&observations, &rewards, &terminals, &truncations));
        })
    }
}

/// Our environments, with one thread.
fn vector<E: Env<Action: View<Owned = A>>, A: Clone + Debug>(
    limit: u32,
    mode: AutoresetMode,
    actions: &[Vec<A>],
) -> impl FnMut(Duration) -> f64 {
    let builder = VectorEnv::<E>::builder(ROWS).threads(1).max_episode_steps(limit);
    let mut envs = builder.autoreset(mode).build().expect("no options can be wrong");
    envs.reset(Seed(0)).expect("environments that do not fail");
    move |duration| {
        rate(duration, |batch| {
            black_box(envs.step(&actions[batch]).expect("actions of the space").rewards());
        })
    }
}

/// Measures all contenders in turns.
fn race<E: Env<Action: View<Owned = A>>, A: Clone + Debug>(
    id: &str,
    limit: u32,
    actions: &Actions<A>,
    theirs: impl VecEnvironment,
    (rounds, duration): (usize, Duration),
) {
    let loops = PlainLoops {
        rows: ROWS,
        threads: 1,
        duration,
        max_episode_steps: NonZero::new(limit),
        blocks: true,
    };
    let mut next_step = vector::<E, A>(limit, AutoresetMode::NextStep, &actions.ours);
    let mut same_step = vector::<E, A>(limit, AutoresetMode::SameStep, &actions.ours);
    let mut operant = operant(theirs, &actions.theirs);
    let names = ["plain loop", "NextStep", "SameStep", "operant-envs"];
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        let plain = plain_loop(id, "", &loops).expect("an environment of ours");
        let measured = [plain, next_step(duration), same_step(duration), operant(duration)];
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }
    for (name, rates) in names.iter().zip(rates) {
        let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        println!("{id},{name},{}", rates.join(" "));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(7, |text| text.parse().expect("a number of rounds"));
    let seconds = arguments.next().map_or(0.5, |text| text.parse().expect("seconds a round"));
    let timing = (rounds, Duration::from_secs_f64(seconds));

    let push = Actions::new(|rng| rng.integers(0..2_u8).into(), |push| i64::from(push > 0.5));
    let theirs = operant_envs::CartPole::new(ROWS, 500, 0.05, 1);
    race::<CartPole, i64>("CartPole-v1", 500, &push, theirs, timing);

    let push = Actions::new(|rng| rng.integers(0..3_u8).into(), |push| push as i64);
    let theirs = operant_envs::MountainCar::with_defaults(ROWS);
    race::<MountainCar, i64>("MountainCar-v0", 200, &push, theirs, timing);

    let torque = Actions::new(|rng| rng.uniform(-2.0, 2.0) as f32, |torque| [torque]);
    let theirs = operant_envs::Pendulum::with_defaults(ROWS);
    race::<Pendulum, [f32; 1]>("Pendulum-v1", 200, &torque, theirs, timing);
}
