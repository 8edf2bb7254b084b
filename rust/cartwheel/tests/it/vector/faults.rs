//! Faults are errors that name the row; the other rows go on.

use std::io;
use std::time::Duration;

use cartwheel::vector::{EngineError, Fault};
use cartwheel::{AutoresetMode, Failure, OnDone, Reset, Seed, VectorEnv, VectorError};

use super::oracle::{Row, action, shown};
use crate::walk::{FAIL, Options, PANIC, Start, Walk};

fn built(rows: usize, threads: usize) -> VectorEnv<Walk> {
    VectorEnv::builder(rows).threads(threads).build().unwrap()
}

fn faults(error: VectorError) -> Vec<Fault> {
    match error {
        VectorError::Faults(faults) => faults,
        other => panic!("expected faults, got {other}"),
    }
}

/// The text of a fault without the place in the code that a panic adds.
fn message(fault: &Fault) -> &str {
    let text = fault.text.as_str();
    if fault.panicked { text.split_once(" (").expect("a place").0 } else { text }
}

/// The text of an error that changed nothing.
fn text<T>(result: Result<T, VectorError>) -> String {
    let Err(error) = result else { panic!("expected an error") };
    error.to_string()
}

#[test]
fn an_error_of_the_engine_can_be_told_from_others_by_its_cause() {
    let (doing, cause) = ("reserving memory".to_owned(), io::ErrorKind::OutOfMemory.into());
    let error = VectorError::from(EngineError::Os { doing, cause });
    let VectorError::Engine(error) = error else { panic!("an error of the engine") };
    assert!(
        matches!(&*error, EngineError::Os { cause, .. } if cause.kind() == io::ErrorKind::OutOfMemory)
    );
    let refused = built(2, 1).recv().unwrap_err();
    assert!(
        matches!(refused, VectorError::Engine(cause) if matches!(*cause, EngineError::NothingInFlight))
    );
}

#[test]
fn a_failure_and_a_panic_name_their_rows_and_the_others_go_on() {
    for threads in [1, 3] {
        let mut envs = built(7, threads);
        envs.reset(Seed(7)).unwrap();
        let mut plain: Vec<Row> = (0..7).map(|_| Row::new(AutoresetMode::NextStep, 0)).collect();
        for (at, row) in plain.iter_mut().enumerate() {
            row.reset(Some(7 + at as u128), &Start::default());
        }
        let mut actions: Vec<_> = (0..7).map(|row| action(row, 0)).collect();
        (actions[5].0, actions[2].0) = (FAIL, PANIC);
        let faults = faults(envs.step(&actions).unwrap_err());
        let seen: Vec<_> =
            faults.iter().map(|fault| (fault.row, message(fault), fault.panicked)).collect();
        assert_eq!(seen, [(2, "it fell", true), (5, "it stumbled", false)]);
        assert_eq!(faults[1].to_string(), "the environment of row 5 failed: it stumbled");
        let rest = envs.take_rest().unwrap();
        for (row, shown) in
            shown(&rest).into_iter().enumerate().filter(|(row, _)| ![2, 5].contains(row))
        {
            assert_eq!(shown, plain[row].step(actions[row]), "row {row}");
        }
        assert!(envs.take_rest().is_none());
        let fine: Vec<_> = (0..7).map(|row| action(row, 1)).collect();
        assert!(text(envs.step(&fine)).contains("rows [2, 5] failed in an earlier call"));
        envs.reset(Reset::new().rows([2, 5]).seed(7)).unwrap();
        for row in [2, 5] {
            plain[row].reset(Some(7 + row as u128), &Start::default());
        }
        let batch = envs.step(&fine).unwrap();
        for (row, shown) in shown(&batch).into_iter().enumerate() {
            assert_eq!(shown, plain[row].step(fine[row]), "row {row} after the reset");
        }
    }
}

#[test]
fn a_sent_row_that_fails_is_received_as_a_fault() {
    let mut envs = built(3, 2);
    envs.reset(Seed(0)).unwrap();
    envs.send(&[1], &[(PANIC, [0.0; 2])]).unwrap();
    let faults = faults(envs.recv().unwrap_err());
    assert_eq!((faults[0].row, message(&faults[0])), (1, "it fell"));
    assert_eq!(envs.take_rest().unwrap().rows(), [1]);
}

#[test]
fn an_environment_is_replaced_as_often_as_asked_for() {
    let mut envs = VectorEnv::<Walk>::builder(2).replacements(1).build().unwrap();
    envs.reset(Seed(1)).unwrap();
    let batch = envs.step(&[(PANIC, [0.0; 2]), (1, [0.0; 2])]).unwrap();
    assert_eq!((batch.truncations()[0], batch.rewards()[0]), (true, 0.0));
    let error: String = batch.infos().unwrap().row(0).get("env_error").unwrap().unwrap();
    assert!(error.contains("it fell"), "{error}");
    assert!(!batch.is_over(1));
    envs.step(&[(1, [0.0; 2]); 2]).unwrap();
    let again = envs.step(&[(PANIC, [0.0; 2]), (1, [0.0; 2])]);
    assert_eq!(faults(again.unwrap_err())[0].row, 0);
}

#[test]
fn refused_calls_say_what_to_fix_and_change_nothing() {
    let mut envs = built(3, 1);
    let fine = [(1, [0.0; 2]); 3];
    assert_eq!(text(envs.step(&fine)), "Cannot call env.step() before calling env.reset()");
    envs.reset(Seed(7)).unwrap();
    assert_eq!(text(envs.step(&fine[..2])), "2 actions for 3 rows");
    let mut outside = fine;
    outside[2].0 = 5;
    assert_eq!(text(envs.step(&outside)), "action 5 of row 2 is not in Discrete(5)");
    outside[2] = (1, [0.0, f32::NAN]);
    assert_eq!(text(envs.step(&outside)), "action nan of row 2 is not in Box([2], float32)");
    let sent = envs.send(&[2, 0], &[(1, [0.0; 2]), (-1, [0.0; 2])]);
    assert_eq!(text(sent), "action -1 of row 0 is not in Discrete(5)");
    assert_eq!(text(envs.send(&[0], &fine)), "3 actions for 1 rows");
    assert_eq!(text(envs.send(&[1, 1], &fine[..2])), "row 1 is named twice");
    assert_eq!(text(envs.recv()), "no row is in flight: there is nothing to receive");
    assert_eq!(
        text(envs.reset(Reset::new().rows([3]))),
        "row 3 does not exist; there are rows 0 to 2"
    );
    assert_eq!(text(envs.reset(Reset::new().rows([1, 1]))), "row 1 is named twice");
    assert_eq!(text(envs.reset(Reset::new().seeds([1, 2]))), "2 seeds for 3 rows");
    for mask in [[true].as_slice(), &[true, false, false, false]] {
        let refused = format!("a mask of {} entries for 3 rows", mask.len());
        assert_eq!(text(envs.reset(Reset::new().mask(mask))), refused);
    }
    assert!(text(envs.parameter::<f64>("mass")).contains("there are: gravity, goal"));
    assert_eq!(
        text(envs.parameter::<String>("gravity")),
        "parameter \"gravity\" must be text, got 9.81"
    );
    assert_eq!(
        text(envs.set_parameter("gravity", &[1.0, 2.0])),
        "2 values of \"gravity\" for 3 rows"
    );
    let strong = ["strong".to_owned()];
    for (rows, threads, named) in [(3, 1, "[0, 1, 2]"), (3, 2, "[0, 1, 2]"), (1, 1, "[0]")] {
        let refused = built(rows, threads).set_parameter("gravity", &strong);
        let expected =
            format!("parameter \"gravity\" must be a number, got 'strong', in rows {named}");
        assert_eq!(text(refused), expected);
    }
    assert!(text(envs.set_state(&[0], &[b"no state"])).contains("this is not a state"));
    // Nothing was stepped.
    let mut fresh = built(3, 1);
    fresh.reset(Seed(7)).unwrap();
    assert_eq!(shown(&envs.step(&fine).unwrap()), shown(&fresh.step(&fine).unwrap()));
    let failing = Reset::new().rows([1]).options(Start { position: -1 });
    let failed = faults(envs.reset(failing).unwrap_err());
    assert_eq!((failed[0].row, failed[0].text.as_str()), (1, "walks start at 0 or above"));
}

#[test]
fn environments_that_cannot_be_built_say_why() {
    let wrong = VectorEnv::<Walk>::builder(2).options(Options { goal: 0, trail: 1 }).build();
    assert!(text(wrong).ends_with("Walk: `goal` is 0, must be positive"));
    for (rows, threads) in [(0, 1), ((1 << 30) + 1, 1), (usize::MAX, 1), (2, 0)] {
        let refused = format!(
            "a vector environment has 1 to 1073741824 rows and at least one thread, got {rows} rows \
             and {threads} threads"
        );
        assert_eq!(text(VectorEnv::<Walk>::builder(rows).threads(threads).build()), refused);
    }
    assert!(text(VectorEnv::<Walk>::builder(2).batch_size(3).build()).contains("batch_size is 3"));
    let mut parts = VectorEnv::<Walk>::builder(2).batch_size(1).build().unwrap();
    assert!(text(parts.reset(Seed(0))).contains("use `send` and `recv` instead of `reset`"));
}

#[test]
fn an_error_and_its_causes_say_everything_once() {
    let wrong = VectorEnv::<Walk>::builder(2).options(Options { goal: 0, trail: 1 }).build();
    for error in [wrong.unwrap_err(), built(2, 1).recv().unwrap_err()] {
        let said = error.to_string();
        assert_eq!(Failure::from(error).to_string(), said);
    }
}

#[test]
fn over_rows_without_autoreset_are_an_error_or_freeze() {
    let disabled = |on_done| {
        let builder = VectorEnv::<Walk>::builder(2).autoreset(AutoresetMode::Disabled);
        let mut envs = builder.on_done(on_done).max_episode_steps(1).build().unwrap();
        envs.reset(Seed(0)).unwrap();
        let first = envs.step(&[(1, [0.0; 2]); 2]).unwrap();
        (first, envs.step(&[(1, [0.0; 2]); 2]))
    };
    let (_, refused) = disabled(OnDone::Raise);
    assert_eq!(text(refused), "rows [0, 1] are over and autoreset is disabled");
    let (first, frozen) = disabled(OnDone::Freeze);
    let (first, frozen) = (shown(&first), shown(&frozen.unwrap()));
    assert_eq!((&frozen[0].sight, frozen[0].flags), (&first[0].sight, first[0].flags));
    assert_eq!(frozen[0].reward, 0.0_f64.to_bits());
}

#[test]
fn a_call_that_timed_out_is_not_lost() {
    let rows = 200;
    let builder = VectorEnv::<Walk>::builder(rows).threads(2).timeout(Duration::ZERO);
    let mut envs = builder.build().unwrap();
    let mut all = built(rows, 1);
    let mut timeouts = 0;
    let mut waited = |envs: &mut VectorEnv<Walk>, mut result: Result<_, _>| loop {
        match result {
            Err(VectorError::Timeout { .. }) => {
                timeouts += 1; // rows that have answered since are not named
                assert!(
                    text(envs.reset(Seed(0))).ends_with("is pending: wait for its result first")
                );
                result = envs.wait();
            }
            other => return other.unwrap(),
        }
    };
    let first = envs.reset(Seed(7));
    assert_eq!(shown(&waited(&mut envs, first)), shown(&all.reset(Seed(7)).unwrap()));
    for step in 0..20 {
        let actions: Vec<_> = (0..rows).map(|row| action(row, step)).collect();
        let batch = envs.step(&actions);
        let batch = waited(&mut envs, batch);
        assert_eq!(shown(&batch), shown(&all.step(&actions).unwrap()), "step {step}");
    }
    assert!(timeouts > 0, "nothing waits with a timeout of zero");
}
