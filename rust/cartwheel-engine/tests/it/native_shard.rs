//! Native environments in a pool keep every promise of the three modes, with any number of workers.

mod blocks;
mod destructors;
mod external_resets;
mod external_rewards;
mod finals;
mod gate;
mod hostile;
mod leaves;
mod parts;
mod plugins;
mod repeats;
mod sent;
mod spaces;
mod streams;

use std::sync::Arc;

use cartwheel::{Env, Failure, NoOptions, ParameterValue, Rng, Space, Spaces, Transition};
use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
use cartwheel_engine::info::{InfoReader, InfoWriter, Value};
use cartwheel_engine::native::{Answer, Request, RowReset, Seed, ShardSettings, Stream};
use cartwheel_engine::plugin::EnvKind;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::{Call, Error};

use crate::support::{self, Envs, kind, limited, settings};

const MODES: [AutoresetMode; 3] =
    [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];

/// Counts down from a random start; the action 10 makes it fail, 9 panic, 8 ends the episode.
#[derive(Debug, Clone)]
struct Countdown {
    left: i64,
    penalty: f64,
    resets: i64,
    was_reset: bool,
}

cartwheel::options! {
    struct Options {
        penalty: f64 = 0.5,
    }
}

cartwheel::options! {
    struct Start {
        at: Option<i64>,
    }
}

cartwheel::info! {
    /// The number of resets; only a reset has this info.
    struct Begun {
        resets: Option<i64>,
    }
}

impl Env for Countdown {
    type Options = Options;
    type ResetOptions = Start;
    type Action = i64;
    type Observation = i64;
    type Info = Begun;
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(1000), action: Space::discrete(11) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        let Options { penalty } = *options;
        if penalty < 0.0 {
            return Err(cartwheel::Error::bad_options(format!(
                "penalty must not be negative, got {penalty}"
            )));
        }
        Ok(Self { left: 77, penalty, resets: 0, was_reset: false })
    }

    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        self.left = start.at.unwrap_or_else(|| rng.integers(2..6));
        self.resets += 1;
        self.was_reset = true;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        if action == 10 {
            return Err(Failure::new("ten is too much"));
        }
        assert!(action != 9, "nine is refused");
        self.left = if action == 8 { 0 } else { self.left - 1 };
        self.was_reset = false;
        Ok(Transition { reward: -self.penalty, terminated: self.left <= 0, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.left;
        external_rewards::OBSERVED.set(external_rewards::OBSERVED.get() + 1);
    }

    fn info(&self) -> Begun {
        Begun { resets: self.was_reset.then_some(self.resets) }
    }

    cartwheel::state! { left, penalty, resets, was_reset }

    cartwheel::parameters! { penalty: penalty, left: left }
}

cartwheel::table! {
    /// The environments of these tests.
    static PLUGIN {
        "test/Countdown-v0" => Countdown {},
        "test/Brittle-v0" => repeats::Brittle {},
        "test/Mirror-v0" => leaves::Mirror {},
        "test/Named-v0" => spaces::Named {},
        "test/Mismatched-v0" => leaves::Mismatched {},
        "test/Fused-v0" => destructors::Fused {},
        "test/Gated-v1" => gate::Gated<1> {},
        "test/Gated-v4" => gate::Gated<4> {},
        "test/Sum-v1" => blocks::Sum<1> {},
        "test/Sum-v2" => blocks::Sum<2> {},
        "test/Sum-v4" => blocks::Sum<4> {},
        "test/Sum-v64" => blocks::Sum<64> {},
    }
}

fn recipe() -> Arc<EnvKind> {
    kind(&PLUGIN, "test/Countdown-v0", "").unwrap()
}

/// A parameter, in the format of infos.
fn value(value: ParameterValue) -> Vec<u8> {
    let mut writer = InfoWriter::new();
    value.write(&mut writer);
    writer.stream().to_vec()
}

/// The entries of every info record: row, key, integer inside (0 for anything else).
fn infos(stream: &[u8]) -> Vec<(usize, String, i64)> {
    let mut found = Vec::new();
    let mut reader = InfoReader::new(stream, 0);
    while let Some(record) = reader.record().unwrap() {
        while reader.at() < record.end {
            let entry = reader.entry().unwrap();
            let mut value = reader;
            let int = if let Value::Int(bytes) = value.value().unwrap() { bytes } else { 0 };
            found.push((record.row, entry.key.to_owned(), int));
            reader.skip().unwrap();
        }
    }
    found
}

fn key(row: usize, key: &str, value: i64) -> (usize, String, i64) {
    (row, key.to_owned(), value)
}

#[test]
fn next_step_resets_in_the_step_after_the_last_one_and_ignores_the_action() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    let first = envs.seed(3);
    assert_eq!(infos(&first.infos), [key(0, "resets", 1), key(1, "resets", 1)]);
    let start = first.integers(0);
    let last = envs.step(&[8, 0]).unwrap();
    assert_eq!(last.integers(0), [0, start[1] - 1]);
    assert_eq!((last.rewards(), last.terminations()), (vec![-0.5; 2], vec![true, false]));
    let reset = envs.step(&[9, 0]).unwrap(); // the action of row 0 would panic
    assert_eq!((reset.rewards(), reset.terminations()), (vec![0.0, -0.5], vec![false; 2]));
    assert_eq!(infos(&reset.infos), [key(0, "resets", 2)]);
    assert!(reset.integers(0)[0] >= 2);
}

#[test]
fn same_step_keeps_the_terminal_observation_and_info_and_resets_at_once() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::SameStep));
    envs.seed(3);
    envs.step(&[0, 0]).unwrap();
    let last = envs.step(&[0, 8]).unwrap();
    assert_eq!((last.rewards(), last.terminations()), (vec![-0.5; 2], vec![false, true]));
    assert!(last.integers(0)[1] >= 2, "row 1 shows the next episode");
    let expected = [key(1, "final_obs", 0), key(1, "final_info", 0), key(1, "resets", 2)];
    assert_eq!(infos(&last.infos), expected);
}

#[test]
fn disabled_freezes_rows_that_are_over_until_they_are_reset() {
    let mut envs = Envs::new(&recipe(), 3, 0, settings(AutoresetMode::Disabled));
    let start = envs.seed(5).integers(0);
    envs.step(&[0, 8, 0]).unwrap();
    let frozen = envs.step(&[0, 9, 0]).unwrap();
    assert_eq!(frozen.integers(0), [start[0] - 2, 0, start[2] - 2]);
    assert_eq!(frozen.rewards(), [-0.5, 0.0, -0.5]);
    assert!(frozen.terminations()[1]);
    let options = recipe().reset_options(r#"{"at": 7}"#).unwrap();
    let how = vec![RowReset::Leave, RowReset::Continue, RowReset::Leave];
    let reset = envs.reset(how, Some(options));
    assert_eq!(reset.integers(0), [start[0] - 2, 7, start[2] - 2]);
    assert_eq!(infos(&reset.infos), [key(1, "resets", 2)]);
}

#[test]
fn the_time_limit_truncates_and_a_reset_restarts_it() {
    let mut envs = Envs::new(&recipe(), 1, 0, limited(AutoresetMode::NextStep, 3));
    let options = recipe().reset_options(r#"{"at": 500}"#).unwrap();
    let mut flags = Vec::new();
    envs.reset(vec![RowReset::Continue], Some(options.clone()));
    envs.step(&[0]).unwrap();
    envs.reset(vec![RowReset::Continue], Some(options));
    for _ in 0..3 {
        let batch = envs.step(&[0]).unwrap();
        flags.push((batch.terminations()[0], batch.truncations()[0]));
    }
    assert_eq!(flags, [(false, false), (false, false), (false, true)]);
}

#[test]
fn a_row_that_ends_at_the_limit_is_terminated_and_truncated() {
    let mut envs = Envs::new(&recipe(), 1, 0, limited(AutoresetMode::NextStep, 1));
    envs.seed(0);
    let batch = envs.step(&[8]).unwrap();
    assert_eq!((batch.terminations(), batch.truncations()), (vec![true], vec![true]));
}

#[test]
fn a_row_that_was_never_reset_shows_zeros_and_is_not_stepped() {
    for workers in [0, 2] {
        let mut envs = Envs::new(&recipe(), 3, workers, settings(AutoresetMode::NextStep));
        let refused = envs.step(&[0; 3]).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), "Cannot call env.step() before calling env.reset()");
        assert!(matches!(refused, Error::NeverReset { rows } if rows == [0, 1, 2]));
        for _ in 0..2 {
            let first = envs.reset(vec![RowReset::Leave, RowReset::Seed(3), RowReset::Leave], None);
            assert_eq!(first.integers(0), [0, Rng::from_seed(3).integers(2..6), 0]);
            let refused = envs.step(&[0; 3]).map(|_| ()).unwrap_err();
            assert!(matches!(refused, Error::NeverReset { rows } if rows == [0, 2]));
        }
        envs.reset(vec![RowReset::Continue, RowReset::Leave, RowReset::Continue], None);
        assert!(envs.step(&[0; 3]).unwrap().faults.is_empty());
    }
}

#[test]
fn a_row_that_is_restored_to_before_its_first_reset_shows_zeros_again() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    let saved = envs.save();
    let start = envs.seed(4).integers(0);
    let shown = envs.restore(&recipe(), &[Some(saved[0].clone()), None]);
    assert_eq!(shown.integers(0), [0, start[1]]);
    let refused = envs.step(&[0; 2]).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NeverReset { rows } if rows == [0]));
}

/// A request that sets a parameter of the first rows.
fn set_all<const N: usize>(name: &str, values: [Vec<u8>; N]) -> Request {
    Request::Set(name.into(), values.into_iter().enumerate().collect())
}

/// Sets `left` of every row.
fn set_left(envs: &mut Envs, values: [i64; 3]) {
    let values = values.map(|left| value(ParameterValue::Int(left)));
    assert!(matches!(envs.ask(set_all("left", values)), Ok(Answer::Done)));
}

#[test]
fn a_row_that_is_left_alone_shows_its_last_observation_whatever_was_set() {
    let mut envs = Envs::new(&recipe(), 3, 0, settings(AutoresetMode::NextStep));
    let mut start = envs.seed(5).integers(0);
    for lefts in [[500, 600, 700], [510, 610, 710]] {
        set_left(&mut envs, lefts);
        let how = vec![RowReset::Leave, RowReset::Seed(5), RowReset::Leave];
        let fresh = Rng::from_seed(5).integers(2..6);
        assert_eq!(envs.reset(how, None).integers(0), [start[0], fresh, start[2]]);
        let how = vec![RowReset::Seed(0), RowReset::Leave, RowReset::Leave];
        start[0] = Rng::from_seed(0).integers(2..6);
        assert_eq!(envs.reset(how, None).integers(0), [start[0], fresh, start[2]]);
        set_left(&mut envs, lefts);
    }
    assert_eq!(envs.step(&[0; 3]).unwrap().integers(0), [509, 609, 709]);
    let how = vec![RowReset::Leave, RowReset::Leave, RowReset::Continue];
    let shown = envs.reset(how, None).integers(0);
    assert_eq!(shown[..2], [509, 609], "not the observations before the step");
}

#[test]
fn a_frozen_row_shows_its_last_frame_whatever_was_set() {
    let mut envs = Envs::new(&recipe(), 3, 0, settings(AutoresetMode::Disabled));
    envs.seed(5);
    envs.step(&[0, 8, 0]).unwrap();
    set_left(&mut envs, [50, 60, 70]);
    for step in 1..4 {
        let frozen = envs.step(&[0; 3]).unwrap();
        assert_eq!(frozen.integers(0), [50 - step, 0, 70 - step]);
        set_left(&mut envs, [50 - step, 80, 70 - step]);
    }
    let how = vec![RowReset::Leave, RowReset::Seed(5), RowReset::Leave];
    let fresh = Rng::from_seed(5).integers(2..6);
    assert_eq!(envs.reset(how, None).integers(0), [47, fresh, 67]);
    assert_eq!(envs.step(&[0; 3]).unwrap().integers(0), [46, fresh - 1, 66]);
}

#[test]
fn a_panic_fails_its_row_and_the_others_go_on() {
    let mut envs = Envs::new(&recipe(), 4, 0, settings(AutoresetMode::NextStep));
    let start = envs.seed(1).integers(0);
    let batch = envs.step(&[0, 9, 0, 9]).unwrap();
    let rows: Vec<usize> = batch.faults.iter().map(|fault| fault.row).collect();
    assert_eq!(rows, [1, 3]);
    let message = batch.faults[0].error.to_string();
    let expected = concat!("the environment of row 1 panicked: nine is refused (", file!(), ":");
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(batch.integers(0)[2], start[2] - 1);
    let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1, 3]));
    let how = vec![RowReset::Leave, RowReset::Continue, RowReset::Leave, RowReset::Seed(4)];
    assert!(envs.reset(how, None).faults.is_empty());
    assert!(envs.step(&[0; 4]).unwrap().faults.is_empty());
}

#[test]
fn row_i_has_the_stream_of_seed_plus_i_and_autoresets_continue_it() {
    let mut envs = Envs::new(&recipe(), 3, 0, settings(AutoresetMode::SameStep));
    let mut observed = vec![envs.seed(40).integers(0)];
    observed.extend((0..5).map(|_| envs.step(&[8; 3]).unwrap().integers(0)));
    for row in 0..3 {
        let mut rng = Rng::from_seed(40 + row as u64);
        for batch in &observed {
            assert_eq!(batch[row], rng.integers(2..6));
        }
    }
}

#[test]
fn results_do_not_depend_on_the_workers() {
    for mode in MODES {
        let [inline, threads] = [0, 3].map(|workers| {
            let mut envs = Envs::new(&recipe(), 7, workers, limited(mode, 4));
            let mut all = vec![envs.seed(9).everything()];
            for step in 0..200_i64 {
                let actions: Vec<i64> = (0..7).map(|row| (step * 3 + row) % 9).collect();
                all.push(envs.step(&actions).unwrap().everything());
            }
            all
        });
        assert!(inline == threads, "{mode:?}");
    }
}

#[test]
fn parameters_are_read_and_set_by_name() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    envs.seed(0);
    assert_eq!(recipe().parameters(), ["penalty", "left"]);
    let values = [ParameterValue::Float(2.0), ParameterValue::Int(3)].map(value);
    assert!(matches!(envs.ask(set_all("penalty", values)), Ok(Answer::Done)));
    assert_eq!(envs.step(&[0, 0]).unwrap().rewards(), [-2.0, -3.0]);
    let got = envs.ask(Request::Get("penalty".into(), vec![0, 1]));
    let Ok(Answer::Values(values)) = got else { panic!("values, got {got:?}") };
    assert_eq!(values, [ParameterValue::Float(2.0), ParameterValue::Float(3.0)].map(value));
    let one = Request::Set("penalty".into(), vec![(1, value(ParameterValue::Float(7.0)))]);
    assert!(matches!(envs.ask(one), Ok(Answer::Done)));
    let got = envs.ask(Request::Get("penalty".into(), vec![1, 0]));
    let Ok(Answer::Values(values)) = got else { panic!("values, got {got:?}") };
    assert_eq!(values, [ParameterValue::Float(7.0), ParameterValue::Float(2.0)].map(value));
    let unknown = envs.ask(Request::Get("penalti".into(), vec![0])).unwrap_err().to_string();
    assert_eq!(unknown, "there is no parameter \"penalti\"; there are: penalty, left");
    let values = [ParameterValue::Float(1.0), ParameterValue::Text("no".into())].map(value);
    let error = envs.ask(set_all("penalty", values)).unwrap_err().to_string();
    assert_eq!(error, "parameter \"penalty\" must be a number, got 'no', in rows [1]");
    let many = ParameterValue::List((0..1000).map(ParameterValue::Int).collect());
    let many = [value(many.clone()), value(many)];
    let error = envs.ask(set_all("penalty", many)).unwrap_err().to_string();
    let expected = "must be a number, got [0, 1, 2, 3, 4, 5, …] (1000 values), in rows [0, 1]";
    assert_eq!(error, format!("parameter \"penalty\" {expected}"));
}

#[test]
fn invalid_options_are_named_before_anything_is_created() {
    let error = |json: &str| {
        let refused = kind(&PLUGIN, "test/Countdown-v0", json).unwrap_err().to_string();
        refused.strip_prefix("test/Countdown-v0: ").unwrap().to_owned()
    };
    let unknown = error(r#"{"penalti": 1}"#);
    assert!(unknown.starts_with("unknown field `penalti`, expected `penalty`"), "{unknown}");
    assert_eq!(error(r#"{"penalty": "much"}"#), "`penalty` must be a number, got 'much'");
    assert_eq!(error(r#"{"penalty": -1}"#), "penalty must not be negative, got -1");
    let reset = recipe().reset_options(r#"{"att": 1}"#).map(|_| ()).unwrap_err().to_string();
    assert!(reset.starts_with("unknown field `att`, expected `at`"), "{reset}");
}

#[test]
fn a_shard_refuses_to_step_a_row_that_is_over_if_the_pool_does_not() {
    let raise = ShardSettings { on_done: OnDone::Raise, ..settings(AutoresetMode::Disabled) };
    for workers in [0, 2] {
        let mut envs = Envs::new(&recipe(), 4, workers, raise);
        let mut batch = envs.seed(2);
        while batch.faults.is_empty() {
            batch = envs.step(&[0; 4]).unwrap();
        }
        for fault in &batch.faults {
            let Error::EpisodeOver { rows } = &fault.error else { panic!("{:?}", fault.error) };
            assert_eq!(*rows, [fault.row]);
        }
    }
}

#[test]
fn actions_that_are_refused_while_they_are_stored_are_not_stepped() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    let start = envs.seed(2).integers(0);
    let tag = ActionTag::Array(DType::I64);
    let mut sending = envs.pool.sending(Call::Step, None).unwrap();
    let refused = sending.fill_actions(0, tag, |_, room| {
        room.fill(77);
        Err(Error::BadPlan("seventy-seven".to_owned()))
    });
    assert_eq!(refused.unwrap_err().to_string(), "seventy-seven");
    assert_eq!(envs.pool.pending(), None);
    assert_eq!(envs.step(&[0, 0]).unwrap().integers(0), [start[0] - 1, start[1] - 1]);
}

#[test]
fn actions_of_another_dtype_are_refused_and_nothing_is_stepped() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::NextStep));
    let start = envs.seed(2).integers(0);
    let tag = ActionTag::Array(DType::F32);
    support::store_actions(&mut envs.pool, 0, tag, &[0; 8]).unwrap();
    envs.pool.begin(Call::Step, 0).unwrap();
    let finished = envs.pool.finish(Call::Step, None, &mut || false).unwrap();
    assert_eq!(finished.failed, [0]);
    drop(finished);
    let fault = envs.mailboxes[0].take_faults().remove(0).error.to_string();
    assert_eq!(fault, "actions of leaf 0 must be int64, got float32");
    assert_eq!(envs.step(&[0, 0]).unwrap().integers(0), [start[0] - 1, start[1] - 1]);
}

#[test]
fn infos_that_do_not_fit_travel_through_the_mailbox() {
    let mut envs = Envs::new(&recipe(), 600, 0, settings(AutoresetMode::SameStep));
    assert_eq!(infos(&envs.seed(0).infos).len(), 600);
    assert_eq!(infos(&envs.step(&[8; 600]).unwrap().infos).len(), 1800);
}

#[test]
fn a_failure_fails_its_row_with_the_authors_text_and_the_others_go_on() {
    for workers in [0, 2] {
        let mut envs = Envs::new(&recipe(), 4, workers, settings(AutoresetMode::SameStep));
        let start = envs.seed(1).integers(0);
        let batch = envs.step(&[0, 10, 0, 8]).unwrap();
        let [fault] = batch.faults.as_slice() else { panic!("one fault") };
        assert_eq!(fault.error.to_string(), "the environment of row 1 failed: ten is too much");
        assert!(matches!(fault.error, Error::Failed { row: 1, .. }));
        assert_eq!(batch.integers(0)[..3], [start[0] - 1, start[1], start[2] - 1]);
        let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1]));
    }
}

#[test]
fn a_failed_environment_is_replaced_as_often_as_is_allowed() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        let replaced = ShardSettings { replacements: 1, ..settings(mode) };
        let mut envs = Envs::new(&recipe(), 3, 0, replaced);
        envs.seed(1);
        let batch = envs.step(&[0, 10, 0]).unwrap();
        assert!(batch.faults.is_empty());
        assert_eq!(
            (batch.rewards(), batch.truncations()),
            (vec![-0.5, 0.0, -0.5], vec![false, true, false])
        );
        let found = infos(&batch.infos);
        let keys: Vec<_> = found.iter().map(|(row, key, _)| (*row, key.as_str())).collect();
        let expected: &[_] = match mode {
            AutoresetMode::SameStep => {
                &[(1, "env_error"), (1, "final_obs"), (1, "final_info"), (1, "resets")]
            }
            _ => &[(1, "env_error"), (1, "resets")],
        };
        assert_eq!(keys, expected, "{mode:?}");
        envs.step(&[0; 3]).unwrap();
        assert_eq!(envs.step(&[0, 10, 0]).unwrap().faults.len(), 1, "the second time it fails");
    }
}
