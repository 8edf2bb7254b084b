//! Rows whose resets their owner completes are reported in every mode, and show what it has written.

use cartwheel::{ParameterValue, Rng};
use cartwheel_engine::Error;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::native::{Answer, Beginning, Request, RowReset, ShardSettings};

use super::{recipe, value};
use crate::support::{Envs, bytes_of, settings};

fn with_external_resets(settings: ShardSettings) -> Envs {
    let known_as = recipe().parameters().iter().position(|name| name == "penalty");
    Envs::new(&recipe(), 3, 0, ShardSettings { external_resets: known_as, ..settings })
}

/// The rows that began, and their streams.
fn begun(envs: &Envs) -> (Vec<usize>, Vec<Rng>) {
    let begun = envs.mailboxes[0].take_begun();
    assert!(begun.iter().all(|begun| begun.known_as == value(ParameterValue::Float(0.5))));
    begun.into_iter().map(|begun| (begun.row, begun.stream)).unzip()
}

fn begin(envs: &mut Envs, rows: Vec<usize>, parameter: &str) -> Result<Answer, Error> {
    let streams = rows.iter().map(|&row| Rng::from_seed(90 + row as u64)).collect();
    let parameter = (parameter.to_owned(), value(ParameterValue::Int(50)));
    envs.ask(Request::Begin(Beginning { rows, streams, parameter }))
}

#[test]
fn rows_that_begin_an_episode_are_reported_in_every_mode() {
    use AutoresetMode::{Disabled, NextStep, SameStep};
    for (mode, at_end, after) in
        [(NextStep, vec![], vec![1]), (SameStep, vec![1], vec![]), (Disabled, vec![], vec![])]
    {
        let mut envs = with_external_resets(settings(mode));
        envs.seed(7);
        let (rows, streams) = begun(&envs);
        assert_eq!(rows, [0, 1, 2]);
        for (seed, mut stream) in (7..).zip(streams) {
            let mut own = Rng::from_seed(seed);
            own.integers::<i64>(2..6); // of the environment's reset
            assert_eq!(stream.random().to_bits(), own.random().to_bits());
        }
        envs.step(&[0, 8, 0]).unwrap();
        assert_eq!(begun(&envs).0, at_end, "{mode:?}");
        envs.step(&[0, 0, 0]).unwrap();
        assert_eq!(begun(&envs).0, after, "{mode:?}");
        envs.reset(vec![RowReset::Leave, RowReset::Leave, RowReset::Continue], None);
        assert_eq!(begun(&envs).0, [2]);
    }
}

#[test]
fn a_row_whose_environment_is_replaced_is_reported() {
    let replaced = ShardSettings { replacements: 1, ..settings(AutoresetMode::NextStep) };
    let mut envs = with_external_resets(replaced);
    envs.seed(7);
    begun(&envs);
    envs.step(&[0, 10, 0]).unwrap();
    assert_eq!(begun(&envs).0, [1]);
}

#[test]
fn rows_show_what_the_owner_has_written_and_continue_with_its_streams() {
    let mut envs = with_external_resets(settings(AutoresetMode::NextStep));
    let start = envs.seed(7).integers(0);
    let Ok(Answer::Begun(shown)) = begin(&mut envs, vec![0, 2], "left") else { panic!("shown") };
    assert_eq!(shown, [bytes_of(&[50, 50])]);
    assert_eq!(envs.step(&[0; 3]).unwrap().integers(0), [49, start[1] - 1, 49]);
    envs.step(&[8; 3]).unwrap();
    let next = envs.step(&[0; 3]).unwrap().integers(0);
    let drawn = |seed| Rng::from_seed(seed).integers::<i64>(2..6);
    assert_eq!([next[0], next[2]], [drawn(90), drawn(92)]);
    assert!(begin(&mut envs, vec![0], "right").is_err(), "there is no such parameter");
}

#[test]
fn rows_that_their_owner_fails_need_a_reset() {
    let mut envs = with_external_resets(settings(AutoresetMode::NextStep));
    envs.seed(7);
    let failed = envs.ask(Request::Fail(vec![1]));
    assert!(matches!(failed, Ok(Answer::Done)));
    envs.pool.fail_rows(&[1]);
    let refused = envs.step(&[0; 3]).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1]));
    envs.reset(vec![RowReset::Continue, RowReset::Leave, RowReset::Leave], None);
    let refused = envs.step(&[0; 3]).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1]));
    envs.reset(vec![RowReset::Leave, RowReset::Continue, RowReset::Leave], None);
    envs.step(&[0; 3]).unwrap();
}
