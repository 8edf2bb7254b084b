//! Rows whose rewards and flags their owner computes have the episodes that they would have if their
//! environments said the same.

use std::cell::Cell;

use cartwheel::Rng;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::native::{ExternalRewards, RowReset, ShardSettings};
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::{Call, Error};

use super::{MODES, infos, key, recipe};
use crate::support::{Batch, Envs, bytes_of, limited, settings, store_actions};

const ROWS: usize = 5;

thread_local! {
    /// Observations that this thread has asked of countdowns.
    pub(super) static OBSERVED: Cell<usize> = const { Cell::new(0) };
}

fn with_external_rewards(settings: ShardSettings, workers: usize) -> Envs {
    Envs::new(&recipe(), ROWS, workers, ShardSettings { has_external_rewards: true, ..settings })
}

/// A countdown's own rewards: it costs half a point, and ends at zero.
fn own_rewards(observations: &[i64]) -> ExternalRewards {
    ExternalRewards {
        rewards: vec![-0.5; observations.len()],
        terminations: observations.iter().map(|&left| u8::from(left <= 0)).collect(),
        truncations: vec![0; observations.len()],
        infos: Vec::new(),
    }
}

/// The first half of a step.
fn half(envs: &mut Envs, actions: &[i64]) -> Batch {
    envs.step(actions).unwrap()
}

/// The second half, with rewards of all rows, or without one.
fn settle(envs: &mut Envs, external: Option<&ExternalRewards>) -> Batch {
    if let Some(external) = external {
        for (shard, mailbox) in envs.pool.shards().iter().zip(&envs.mailboxes) {
            let shard = shard.clone();
            mailbox.post_rewards(ExternalRewards {
                rewards: external.rewards[shard.clone()].to_vec(),
                terminations: external.terminations[shard.clone()].to_vec(),
                truncations: external.truncations[shard].to_vec(),
                infos: Vec::new(),
            });
        }
    }
    envs.call(Call::Settle, 0).unwrap()
}

type Shown = (Vec<i64>, Vec<f64>, Vec<bool>, Vec<bool>, Vec<(usize, String, i64)>);

fn shown(batch: &Batch) -> Shown {
    let (terminations, truncations) = (batch.terminations(), batch.truncations());
    (batch.integers(0), batch.rewards(), terminations, truncations, infos(&batch.infos))
}

#[test]
fn external_rewards_that_equal_the_own_ones_make_the_same_episodes() {
    for (mode, workers) in MODES.iter().flat_map(|&mode| [(mode, 0), (mode, 1), (mode, 3)]) {
        let mut oracle = Envs::new(&recipe(), ROWS, 0, limited(mode, 4));
        let mut envs = with_external_rewards(limited(mode, 4), workers);
        assert_eq!(shown(&envs.seed(7)), shown(&oracle.seed(7)));
        let mut rng = Rng::from_seed(1);
        let mut over = 0;
        for step in 0..40 {
            let actions: Vec<i64> = (0..ROWS).map(|_| rng.integers(0..9)).collect();
            let expected = oracle.step(&actions).unwrap();
            let first = half(&mut envs, &actions);
            assert!(first.faults.is_empty() && first.infos.is_empty());
            let settled = settle(&mut envs, Some(&own_rewards(&first.integers(0))));
            assert_eq!(
                shown(&settled),
                shown(&expected),
                "{mode:?}, {workers} workers, step {step}"
            );
            over += expected.terminations().iter().filter(|&&over| over).count();
            if mode == AutoresetMode::Disabled && step % 5 == 4 {
                assert_eq!(shown(&envs.seed(step)), shown(&oracle.seed(step)));
            }
        }
        assert!(over > 10, "{over} episodes of {mode:?} ended");
    }
}

#[test]
fn environments_are_observed_once_in_a_step() {
    for mode in MODES {
        let mut envs = with_external_rewards(settings(mode), 0);
        envs.seed(7);
        OBSERVED.set(0);
        let first = half(&mut envs, &[1; ROWS]).integers(0);
        let settled = settle(&mut envs, Some(&own_rewards(&[1; ROWS])));
        assert_eq!((settled.integers(0), OBSERVED.get()), (first, ROWS), "{mode:?}");
    }
}

#[test]
fn the_owner_decides_and_the_time_limit_is_added() {
    let mut envs = with_external_rewards(limited(AutoresetMode::SameStep, 2), 2);
    let start = envs.seed(3).integers(0);
    let first = half(&mut envs, &[0; ROWS]);
    let external = ExternalRewards {
        rewards: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        terminations: vec![0, 1, 0, 0, 0],
        truncations: vec![0, 0, 0, 1, 0],
        infos: Vec::new(),
    };
    let batch = settle(&mut envs, Some(&external));
    assert_eq!(batch.rewards(), external.rewards);
    assert_eq!(batch.terminations(), [false, true, false, false, false]);
    assert_eq!(batch.truncations(), [false, false, false, true, false]);
    assert_eq!(first.integers(0), start.iter().map(|left| left - 1).collect::<Vec<_>>());
    let ended = [key(1, "resets", 2), key(3, "resets", 2)];
    let resets: Vec<_> =
        infos(&batch.infos).into_iter().filter(|(_, key, _)| key == "resets").collect();
    assert_eq!(resets, ended);
    let none =
        ExternalRewards { terminations: vec![0; ROWS], truncations: vec![0; ROWS], ..external };
    half(&mut envs, &[0; ROWS]);
    let limited = settle(&mut envs, Some(&none)).truncations();
    assert_eq!(limited, [true, false, true, false, true]);
}

#[test]
fn a_row_that_fails_in_the_first_half_is_reported_with_the_second() {
    for (mode, workers) in MODES.iter().flat_map(|&mode| [(mode, 0), (mode, 2)]) {
        let mut envs = with_external_rewards(settings(mode), workers);
        envs.seed(3);
        let first = half(&mut envs, &[0, 10, 0, 9, 0]);
        assert!(first.faults.is_empty());
        let batch = settle(&mut envs, Some(&own_rewards(&[9; ROWS])));
        let mut rows: Vec<usize> = batch.faults.iter().map(|fault| fault.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [1, 3]);
        assert_eq!(batch.rewards(), [-0.5, 0.0, -0.5, 0.0, -0.5]);
        let refused = envs.step(&[0; ROWS]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1, 3]));
    }
}

#[test]
fn a_row_whose_environment_was_replaced_is_truncated_whatever_the_external_flags() {
    for mode in MODES {
        let replaced = ShardSettings { replacements: 1, ..settings(mode) };
        let mut envs = with_external_rewards(replaced, 0);
        let mut oracle = Envs::new(&recipe(), ROWS, 0, replaced);
        envs.seed(3);
        oracle.seed(3);
        let expected = oracle.step(&[0, 10, 0, 0, 0]).unwrap();
        half(&mut envs, &[0, 10, 0, 0, 0]);
        let batch = settle(&mut envs, Some(&own_rewards(&[9; ROWS])));
        assert!(batch.faults.is_empty());
        assert_eq!(shown(&batch), shown(&expected), "{mode:?}");
    }
}

#[test]
fn without_rewards_the_rows_that_were_stepped_fail_and_a_reset_helps() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::Disabled] {
        let mut envs = with_external_rewards(settings(mode), 2);
        envs.seed(3);
        half(&mut envs, &[8, 0, 0, 0, 0]);
        let over = ExternalRewards { terminations: vec![1, 0, 0, 0, 0], ..own_rewards(&[9; ROWS]) };
        settle(&mut envs, Some(&over));
        half(&mut envs, &[0; ROWS]);
        let lost = settle(&mut envs, None);
        assert!(lost.faults.is_empty(), "the owner knows why");
        assert_eq!(lost.rewards(), [0.0; ROWS]);
        let refused = envs.step(&[0; ROWS]).map(|_| ()).unwrap_err();
        assert!(
            matches!(refused, Error::NeedsReset { rows } if rows == [1, 2, 3, 4]),
            "row 0 was reset or over"
        );
        envs.seed(4);
        let first = half(&mut envs, &[0; ROWS]);
        settle(&mut envs, Some(&own_rewards(&first.integers(0))));
    }
}

#[test]
fn a_second_half_that_never_comes_fails_the_rows_at_the_next_call() {
    let mut envs = with_external_rewards(settings(AutoresetMode::NextStep), 0);
    envs.seed(3);
    half(&mut envs, &[0; ROWS]);
    let mut how = vec![RowReset::Continue; ROWS];
    how[2] = RowReset::Leave;
    envs.reset(how, None);
    let refused = envs.step(&[0; ROWS]).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NeedsReset { rows } if rows == [2]));
    envs.seed(3);
    half(&mut envs, &[0; ROWS]);
    let again = half(&mut envs, &[0; ROWS]);
    assert!(again.faults.is_empty(), "they come with the second half");
    let batch = settle(&mut envs, Some(&own_rewards(&[9; ROWS])));
    assert_eq!(batch.faults.len(), ROWS);
}

#[test]
fn there_is_no_second_half_without_a_first_one_and_no_half_of_rows_that_are_sent() {
    let mut envs = with_external_rewards(settings(AutoresetMode::NextStep), 0);
    let none = envs.pool.begin(Call::Settle, 0).unwrap_err();
    assert!(matches!(none, Error::NotPending { expected: Call::Settle }));
    envs.seed(3);
    assert!(envs.pool.begin(Call::Settle, 0).is_err());
    let refused = envs.pool.sending(Call::Step, Some(&[0, 1])).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("external rewards are stepped all together"), "{refused}");
    assert!(envs.pool.sending(Call::Reset, Some(&[0])).is_ok());
    let mut plain = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    plain.seed(3);
    store_actions(&mut plain.pool, 0, ActionTag::Array(DType::I64), &bytes_of(&[0; 2])).unwrap();
    plain.step(&[0; 2]).unwrap();
    assert!(plain.pool.begin(Call::Settle, 0).is_err());
}

#[test]
fn infos_of_the_owner_are_those_of_the_rows_that_were_stepped() {
    use cartwheel_engine::native::ExternalInfo;

    for (mode, ended) in
        [(AutoresetMode::NextStep, "terms"), (AutoresetMode::SameStep, "final_info")]
    {
        let mut envs = with_external_rewards(limited(mode, 9), 0);
        envs.seed(3);
        let first = half(&mut envs, &[0, 8, 0, 0, 0]);
        let terms = ExternalInfo {
            name: "terms".to_owned(),
            dtype: DType::I64,
            shape: vec![2],
            elements: bytes_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        };
        let external = ExternalRewards { infos: vec![terms], ..own_rewards(&first.integers(0)) };
        envs.mailboxes[0].post_rewards(external.clone());
        let last = infos(&envs.call(Call::Settle, 0).unwrap().infos);
        let keys: Vec<_> = last.iter().map(|(row, name, _)| (*row, name.as_str())).collect();
        assert!(keys.contains(&(1, ended)) && keys.contains(&(0, "terms")), "{keys:?}");
        assert!(mode == AutoresetMode::NextStep || !keys.contains(&(1, "terms")), "{keys:?}");
        half(&mut envs, &[0; ROWS]);
        envs.mailboxes[0].post_rewards(ExternalRewards { terminations: vec![0; ROWS], ..external });
        let next = infos(&envs.call(Call::Settle, 0).unwrap().infos);
        let has = |row| next.contains(&key(row, "terms", 0));
        assert_eq!((has(0), has(1)), (true, mode == AutoresetMode::SameStep), "{next:?}");
    }
}
