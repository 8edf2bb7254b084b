//! Ignored terminations, repeated actions and staggered resets, against a plain loop.

use std::num::NonZero;
use std::sync::Arc;

use cartwheel::{AutoresetMode, Env, Reset, Rng, Seed, VectorEnv};

use super::oracle::action;
use crate::walk::{Options, Start, Walk};

const ROWS: usize = 5;
const LIMIT: u32 = 20;

#[test]
fn repeated_steps_go_past_terminations_until_the_limit() {
    for threads in [1, 3] {
        let mut envs = VectorEnv::<Walk>::builder(ROWS)
            .threads(threads)
            .max_episode_steps(LIMIT)
            .ignore_terminations(true)
            .action_repeat(NonZero::new(3).unwrap())
            .build()
            .unwrap();
        envs.reset(Seed(3)).unwrap();
        let mut alone: Vec<_> = (0..ROWS as u128)
            .map(|row| {
                let mut env = Walk::new(&Options::default(), &Arc::new(())).unwrap();
                let mut rng = Rng::from_wide_seed(3 + row);
                env.reset(&mut rng, &Start::default()).unwrap();
                (env, rng, 0, false)
            })
            .collect();
        let mut ignored = 0;
        for step in 0..7 {
            let actions: Vec<_> = (0..ROWS).map(|row| action(row, step)).collect();
            let batch = envs.step(&actions).unwrap();
            for (row, (env, rng, made, over)) in alone.iter_mut().enumerate() {
                if *over {
                    continue; // the next episode
                }
                let mut sum = 0.0;
                for _ in 0..3 {
                    let last = env.step((actions[row].0, &actions[row].1), rng).unwrap();
                    *made += 1;
                    sum += last.reward;
                    ignored += u32::from(last.terminated);
                    *over = last.truncated || *made == LIMIT;
                    if *over {
                        break;
                    }
                }
                assert_eq!(batch.rewards()[row].to_bits(), f64::to_bits(sum));
                assert_eq!((batch.terminations()[row], batch.truncations()[row]), (false, *over));
            }
        }
        assert!(alone.iter().all(|(.., over)| *over) && ignored > 0);
    }
}

#[test]
fn a_reset_that_names_no_rows_staggers_them() {
    let build = |staggers: bool| {
        VectorEnv::<Walk>::builder(30)
            .autoreset(AutoresetMode::SameStep)
            .max_episode_steps(LIMIT)
            .ignore_terminations(true)
            .staggered_reset(staggers)
            .build()
            .unwrap()
    };
    let lengths = |envs: &mut VectorEnv<Walk>| {
        let mut lengths = vec![0; envs.len()];
        for step in 1..=LIMIT as usize {
            let actions: Vec<_> = (0..envs.len()).map(|row| action(row, step)).collect();
            let batch = envs.step(&actions).unwrap();
            for (length, &truncated) in lengths.iter_mut().zip(batch.truncations()) {
                *length = if truncated && *length == 0 { step } else { *length };
            }
        }
        lengths
    };
    let (mut envs, mut plain) = (build(true), build(false));
    plain.reset(Seed(5)).unwrap();
    let whole = lengths(&mut plain); // the environment cuts some of them itself
    envs.reset(Seed(5)).unwrap();
    let staggered = lengths(&mut envs);
    let shorter = staggered.iter().zip(&whole).filter(|(staggered, whole)| staggered < whole);
    assert!(shorter.count() > 10 && staggered.iter().zip(&whole).all(|(some, all)| some <= all));
    envs.reset(Reset::new().seed(5).rows((0..30).collect::<Vec<_>>())).unwrap();
    assert_eq!(lengths(&mut envs), whole, "rows that are named begin at the first step");
    envs.send_reset(Seed(5)).unwrap();
    envs.recv().unwrap();
    assert_eq!(lengths(&mut envs), staggered);
}

#[test]
fn rules_that_need_a_limit_are_refused_without_one() {
    let ignoring = VectorEnv::<Walk>::builder(1).ignore_terminations(true).build();
    let staggered = VectorEnv::<Walk>::builder(1).staggered_reset(true).build();
    for refused in [ignoring, staggered] {
        assert!(refused.err().unwrap().to_string().contains("max_episode_steps"));
    }
}
