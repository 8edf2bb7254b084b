//! Rollouts hold what the steps show, and their masks and final observations fit `returns`.

use cartwheel::returns::{Bootstrap, PerStep, gae};
use cartwheel::{AutoresetMode, OnDone, Seed, VectorEnv};

use super::oracle::{action, owned, shown};
use crate::walk::Walk;

const ROWS: usize = 6;
const STEPS: usize = 17;

fn begun(threads: usize, mode: AutoresetMode) -> VectorEnv<Walk> {
    let builder = VectorEnv::builder(ROWS).threads(threads).autoreset(mode);
    let mut envs = builder.on_done(OnDone::Freeze).max_episode_steps(4).build().unwrap();
    envs.reset(Seed(3)).unwrap();
    envs
}

fn actions(step: usize) -> Vec<(i64, [f32; 2])> {
    (0..ROWS).map(|row| action(row, step)).collect()
}

#[test]
fn rollouts_hold_what_the_steps_show() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let (mut recorded, mut stepped) = (begun(3, mode), begun(1, mode));
        let mut before = [false; ROWS];
        let mut first = shown(&stepped.reset(Seed(3)).unwrap());
        for part in 0..3 {
            let mut recording = recorded.record(STEPS).unwrap();
            let (mut seen, mut ends) = (Vec::new(), Vec::new());
            for step in 0..STEPS {
                let actions = actions(part * STEPS + step);
                let expected = shown(&stepped.step(&actions).unwrap());
                assert_eq!(shown(recording.step(&actions).unwrap()), expected);
                seen.push(expected);
            }
            assert!(recording.is_complete() && recording.step(&actions(0)).is_err());
            let rollout = recording.finish().unwrap();
            assert_eq!(rollout.shape(), [STEPS, ROWS]);
            let sights = rollout.observations(0);
            assert!((0..ROWS).all(|row| owned(sights.row(row)) == first[row].sight), "{mode:?}");
            for (step, expected) in seen.iter().enumerate() {
                let after = rollout.observations(step + 1);
                for (row, expected) in expected.iter().enumerate() {
                    assert_eq!(owned(after.row(row)), expected.sight);
                    assert_eq!(rollout.rewards().step(step)[row].to_bits(), expected.reward);
                    let flags = rollout.flags();
                    let flags =
                        [flags.terminated, flags.truncated].map(|flags| flags.step(step)[row] == 1);
                    assert_eq!(flags, expected.flags);
                    let stale = before[row] && mode != AutoresetMode::SameStep;
                    assert_eq!(
                        rollout.valid().step(step)[row] == 1,
                        !stale,
                        "{mode:?}, {part}, {step}"
                    );
                    before[row] = flags[0] || flags[1];
                    if let Some((last, _)) = &expected.last {
                        ends.push(([step, row], last.clone()));
                    }
                }
            }
            assert_eq!(rollout.ends(), ends.iter().map(|(end, _)| *end).collect::<Vec<_>>());
            let finals = rollout.final_observations();
            assert!(finals.iter().zip(&ends).all(|(sight, (_, last))| owned(sight) == *last));
            first.clone_from(seen.last().unwrap());
        }
    }
}

/// A value of an observation, any function of it.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn value(sight: &crate::walk::Sight) -> f64 {
    sight.position as f64 + f64::from(sight.trail[0])
}

#[test]
fn advantages_are_the_same_in_both_modes_and_as_a_plain_sum() {
    let mut by_mode = Vec::new();
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        let mut envs = begun(1, mode);
        let mut recording = envs.record(STEPS).unwrap();
        // The same actions by step of the episode, so that both modes have the same first episode.
        for step in 0..STEPS {
            recording.step(&actions(step)).unwrap();
        }
        let rollout = recording.finish().unwrap();
        let sights = (0..=STEPS).flat_map(|at| {
            let sights = rollout.observations(at);
            (0..ROWS).map(|row| value(&owned(sights.row(row)))).collect::<Vec<_>>()
        });
        let values: Vec<f64> = sights.collect();
        let finals: Vec<f64> =
            rollout.final_observations().iter().map(|sight| value(&owned(sight))).collect();
        let next = rollout.next_values(&values, &finals, Bootstrap::Truncated).unwrap();
        let (mut advantages, mut returns) = (vec![0.0; STEPS * ROWS], vec![0.0; STEPS * ROWS]);
        let time_major = |cells| cartwheel::returns::TimeMajor::new(cells, STEPS, ROWS).unwrap();
        gae(
            &rollout.transitions(0.9),
            time_major(&values[..STEPS * ROWS]),
            time_major(&next),
            PerStep::Same(1.0),
            &mut advantages,
            &mut returns,
        )
        .unwrap();
        // The return of the first episode of each row: a plain sum, and the last value if it was cut.
        let (rewards, flags) = (rollout.rewards(), rollout.flags());
        let mut firsts = Vec::new();
        for row in 0..ROWS {
            let ended = |step: &usize| {
                flags.terminated.step(*step)[row] | flags.truncated.step(*step)[row] == 1
            };
            let end = (0..STEPS).find(ended).unwrap();
            let cut = flags.terminated.step(end)[row] == 0;
            let mut sum = if cut { next[end * ROWS + row] } else { 0.0 };
            for step in (0..=end).rev() {
                sum = rewards.step(step)[row] + 0.9 * sum;
            }
            assert!((sum - returns[row]).abs() < 1e-12, "{mode:?}, row {row}: {sum}");
            firsts.push(returns[row]);
        }
        by_mode.push(firsts);
    }
    assert_eq!(by_mode[0], by_mode[1]);
}

#[test]
fn an_incomplete_recording_gives_no_rollout_and_its_end_frees_the_environments() {
    let mut envs = begun(1, AutoresetMode::NextStep);
    let mut recording = envs.record(3).unwrap();
    recording.step(&actions(0)).unwrap();
    let error = recording.finish().unwrap_err().to_string();
    assert_eq!(error, "1 of 3 steps are recorded");
    envs.send(&[2], &[action(2, 1)]).unwrap(); // refused while a recording goes on
    assert_eq!(envs.recv().unwrap().rows(), [2]);
    assert!(envs.record(0).is_err());
}
