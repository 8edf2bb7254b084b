//! A `VectorEnv` shows what a plain loop over its environments shows.

use std::collections::HashMap;

use cartwheel::{AutoresetMode, Reset, Rng, Seed, VectorEnv};

use super::oracle::{Row, Shown, action, shown};
use crate::walk::{Start, Walk};

const MODES: [AutoresetMode; 3] =
    [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];
const STEPS: usize = 40;

fn envs(rows: usize, threads: usize, mode: AutoresetMode, limit: u32) -> VectorEnv<Walk> {
    let builder = VectorEnv::<Walk>::builder(rows).threads(threads).autoreset(mode);
    builder.max_episode_steps(limit).build().unwrap()
}

/// Rows of the plain loop after a reset with seeds from 7 on.
fn begun(rows: usize, mode: AutoresetMode, limit: u32) -> (Vec<Row>, Vec<Shown>) {
    let mut all: Vec<Row> = (0..rows).map(|_| Row::new(mode, limit)).collect();
    let first = all.iter_mut().enumerate();
    let first = first.map(|(at, row)| row.reset(Some(7 + at as u128), &Start::default()));
    let first = first.collect();
    (all, first)
}

#[test]
fn steps_and_masked_resets_equal_a_plain_loop() {
    for mode in MODES {
        // Rows, threads, limit: one row; fewer rows than threads; episodes of one step, all over at once.
        for (rows, threads, limit) in
            [(1, 1, 9), (1, 7, 9), (5, 7, 1), (13, 3, 1), (13, 1, 6), (64, 3, 0), (64, 7, 4)]
        {
            let mut envs = envs(rows, threads, mode, limit);
            let (mut plain, first) = begun(rows, mode, limit);
            let case = format!("{mode:?}, {rows} rows, {threads} threads, limit {limit}");
            assert_eq!(shown(&envs.reset(Seed(7)).unwrap()), first, "{case}");
            for step in 0..STEPS {
                if mode == AutoresetMode::Disabled || step % 7 == 6 {
                    let named: Vec<usize> = (0..rows)
                        .filter(|&row| {
                            plain[row].is_over() && mode == AutoresetMode::Disabled
                                || row % 3 == step % 3
                        })
                        .collect();
                    reset_some(&mut envs, &mut plain, &named, step, &case);
                }
                let actions: Vec<_> = (0..rows).map(|row| action(row, step)).collect();
                let expected: Vec<Shown> =
                    plain.iter_mut().zip(&actions).map(|(row, action)| row.step(*action)).collect();
                let batch = envs.step(&actions).unwrap();
                assert_eq!(shown(&batch), expected, "{case}, step {step}");
            }
        }
    }
}

#[test]
fn one_thread_steps_more_rows_than_one_shard_has() {
    const ROWS: usize = 2500;
    let mode = AutoresetMode::NextStep;
    let mut envs = envs(ROWS, 1, mode, 2);
    let (mut plain, first) = begun(ROWS, mode, 2);
    assert_eq!(shown(&envs.reset(Seed(7)).unwrap()), first);
    for step in 0..4 {
        let actions: Vec<_> = (0..ROWS).map(|row| action(row, step)).collect();
        let rows = plain.iter_mut().zip(&actions);
        let expected: Vec<Shown> = rows.map(|(row, action)| row.step(*action)).collect();
        assert_eq!(shown(&envs.step(&actions).unwrap()), expected, "step {step}");
    }
}

/// Resets rows in both, with and without seeds, options, rows by number and by mask.
fn reset_some(
    envs: &mut VectorEnv<Walk>,
    plain: &mut [Row],
    named: &[usize],
    step: usize,
    case: &str,
) {
    let options = Start { position: i64::try_from(step % 3).unwrap() };
    let mut reset = Reset::new().options(options.clone());
    reset = if step.is_multiple_of(2) {
        reset.rows(named)
    } else {
        reset.mask(&(0..plain.len()).map(|row| named.contains(&row)).collect::<Vec<_>>())
    };
    let seeds: Vec<Option<u128>> = match step % 3 {
        0 => vec![None; named.len()],
        1 => named.iter().map(|row| Some(100 + *row as u128)).collect(),
        _ => named.iter().map(|row| Some(1 << 70 | *row as u128)).collect(),
    };
    reset = match step % 3 {
        0 => reset,
        1 => reset.seed(100),
        _ => reset.seeds(seeds.iter().flatten().copied().collect::<Vec<_>>()),
    };
    let batch = envs.reset(reset).unwrap();
    let seen = shown(&batch);
    for (row, plain) in plain.iter_mut().enumerate() {
        if let Some(at) = named.iter().position(|named| *named == row) {
            assert_eq!(seen[row], plain.reset(seeds[at], &options), "{case}, row {row}");
        } else {
            assert_eq!(seen[row].sight, plain.left(), "{case}, row {row} was left alone");
        }
    }
}

#[test]
fn rows_that_are_sent_and_received_equal_a_plain_loop() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        for (rows, threads, batch_size) in
            [(1, 1, 1), (13, 1, 13), (13, 3, 4), (13, 7, 1), (40, 2, 40)]
        {
            let case = format!("{mode:?}, {rows} rows, {threads} threads, batches of {batch_size}");
            let builder = VectorEnv::<Walk>::builder(rows).threads(threads).autoreset(mode);
            let builder = builder.max_episode_steps(5).batch_size(batch_size);
            let mut envs = builder.build().unwrap();
            let (mut plain, first) = begun(rows, mode, 5);
            let mut expected: HashMap<usize, Shown> = first.into_iter().enumerate().collect();
            let (mut steps, mut idle) = (vec![0; rows], Vec::new());
            let mut rng = Rng::from_seed(rows as u64);
            envs.send_reset(Seed(7)).unwrap();
            while !envs.in_flight().is_empty() || !idle.is_empty() {
                if !envs.in_flight().is_empty() {
                    let batch = envs.recv().unwrap();
                    assert!(batch.len() <= batch_size, "{case}");
                    for (row, seen) in batch.rows().iter().zip(shown(&batch)) {
                        assert_eq!(Some(seen), expected.remove(row), "{case}, row {row}");
                        idle.push(*row);
                    }
                }
                idle.retain(|&row| steps[row] < STEPS);
                rng.shuffle(&mut idle);
                let count = rng.integers(0..=i64::try_from(idle.len()).unwrap());
                let rows = idle.split_off(idle.len() - usize::try_from(count).unwrap());
                let actions: Vec<_> = rows.iter().map(|&row| action(row, steps[row])).collect();
                envs.send(&rows, &actions).unwrap();
                for (&row, action) in rows.iter().zip(&actions) {
                    expected.insert(row, plain[row].step(*action));
                    steps[row] += 1;
                }
            }
            assert!(steps.iter().all(|&done| done == STEPS) && expected.is_empty());
        }
    }
}
