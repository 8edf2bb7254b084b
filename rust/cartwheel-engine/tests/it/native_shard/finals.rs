//! Dense final observations are what rows showed at their ends; terminal states are kept on request.

use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::info::{InfoReader, RecordKind, TERMINAL, Value};
use cartwheel_engine::native::{Request, ShardSettings, TerminalState};

use super::{infos, key, recipe};
use crate::support::{Envs, limited};

const MODE: AutoresetMode = AutoresetMode::SameStep;

fn dense(steps: u32) -> ShardSettings {
    ShardSettings { dense_finals: true, ..limited(MODE, steps) }
}

#[test]
fn every_step_has_the_true_next_observations_of_all_rows() {
    for (rows, workers, steps) in [(1, 0, 1), (1, 1, 3), (9, 0, 2), (9, 4, 1), (9, 7, 3)] {
        let mut envs = Envs::new(&recipe(), rows, workers, dense(steps));
        let mut oracle = Envs::new(&recipe(), rows, workers, limited(MODE, steps));
        assert_eq!(envs.seed(5).everything(), oracle.seed(5).everything());
        let mut count = 0;
        for step in 0..12 {
            let actions: Vec<i64> = (0..rows).map(|row| [0, 8][(row + step) % 5 / 4]).collect();
            let (batch, other) = (envs.step(&actions).unwrap(), oracle.step(&actions).unwrap());
            let (finals, ended) = batch.finals(0);
            let over: Vec<bool> =
                batch.terminations().iter().zip(batch.truncations()).map(|(a, b)| a | b).collect();
            assert_eq!(ended, over);
            assert_eq!(batch.integers(0), other.integers(0));
            let mut expected = other.integers(0);
            for (row, name, value) in infos(&other.infos) {
                if name == "final_obs" {
                    expected[row] = value;
                    count += 1;
                }
            }
            assert_eq!(finals, expected);
        }
        assert!(count > 3, "a run without ends proves nothing");
    }
}

#[test]
fn infos_of_the_last_step_need_no_record_where_there_are_none() {
    let mut envs = Envs::new(&recipe(), 2, 0, dense(9));
    envs.seed(3);
    let last = envs.step(&[0, 8]).unwrap();
    assert_eq!(last.finals(0).1, [false, true]);
    assert_eq!(infos(&last.infos), [key(1, "resets", 2)]);
}

#[test]
fn parameters_of_terminal_states_are_kept_before_the_reset_for_chosen_rows() {
    for settings in [limited(MODE, 9), dense(9)] {
        let mut envs = Envs::new(&recipe(), 3, 0, settings);
        envs.seed(3);
        envs.ask(Request::Keep(vec![2], TerminalState::Parameters)).unwrap();
        let kept = |stream: &[u8]| {
            let (mut found, mut reader) = (Vec::new(), InfoReader::new(stream, 0));
            while let Some(record) = reader.record().unwrap() {
                if record.kind == RecordKind::Opaque {
                    assert_eq!(record.leaf, TERMINAL);
                    let Value::Dict(entries) = reader.value().unwrap() else { panic!("a dict") };
                    for _ in 0..entries {
                        let name = reader.entry().unwrap().key.to_owned();
                        let value = format!("{:?}", reader.value().unwrap());
                        found.push((record.row, name, value));
                    }
                }
                reader = InfoReader::new(stream, record.end);
            }
            found
        };
        let of = |name: &str, value: &str| (2, name.to_owned(), value.to_owned());
        assert_eq!(kept(&envs.step(&[8, 0, 0]).unwrap().infos), []);
        let last = envs.step(&[8, 8, 8]).unwrap();
        assert_eq!(kept(&last.infos), [of("penalty", "Float(0.5)"), of("left", "Int(0)")]);
        envs.ask(Request::Keep(Vec::new(), TerminalState::Parameters)).unwrap();
        assert_eq!(kept(&envs.step(&[8, 8, 8]).unwrap().infos), []);
    }
}

#[test]
fn a_reset_shows_its_observations_as_final_ones_too() {
    let mut envs = Envs::new(&recipe(), 4, 2, dense(9));
    let first = envs.seed(3);
    assert_eq!(first.finals(0), (first.integers(0), vec![false; 4]));
}
