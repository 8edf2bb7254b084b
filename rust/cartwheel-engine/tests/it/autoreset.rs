//! The autoreset machine keeps Gymnasium's transcripts, mode by mode.

mod columns;
mod oracle;
mod property;
mod script;

use cartwheel_engine::autoreset::{
    Autoreset, AutoresetMode, OnDone, Outcomes, Refusal, RowCommand, Rules, SavedRow, mixed,
};
use cartwheel_engine::{PhaseTag, Transition};

use columns::{Columns, Fault, Row};
use script::{Script, Scripted};

/// A machine of one row, which is running.
fn one(mode: AutoresetMode, on_done: OnDone, env: Scripted) -> Columns {
    Columns { machine: Autoreset::new(mode, on_done, 1), envs: vec![env] }
}

/// The row after a step.
fn stepped(columns: &mut Columns) -> Row {
    columns.step(0..1).remove(0)
}

fn step(columns: &mut Columns) -> (f64, bool, Vec<String>) {
    let row = stepped(columns);
    assert_eq!(row.fault, None);
    (row.transition.reward, row.transition.is_over(), columns.envs[0].taken())
}

/// Resets the row; returns the fault.
fn reset(columns: &mut Columns) -> Option<Fault> {
    columns.reset(0..1, |_| true).remove(0).fault
}

fn failure(text: &str) -> Fault {
    Fault::Environment(text.to_owned())
}

fn said(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const MODES: [AutoresetMode; 3] =
    [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];

#[test]
fn next_step_ignores_the_action_after_the_last_step_and_resets() {
    let mut rows = one(AutoresetMode::NextStep, OnDone::Raise, Scripted::counts(2));
    assert_eq!(step(&mut rows), (1.0, false, said(&["step", "obs 1"])));
    assert_eq!(step(&mut rows), (2.0, true, said(&["step", "obs 2"])));
    assert_eq!(rows.machine.phase(0), PhaseTag::Over);
    assert_eq!(step(&mut rows), (0.0, false, said(&["reset", "obs 0"])));
    assert_eq!(step(&mut rows), (1.0, false, said(&["step", "obs 1"])));
}

#[test]
fn same_step_keeps_the_final_frame_before_it_resets() {
    let mut rows = one(AutoresetMode::SameStep, OnDone::Raise, Scripted::counts(2));
    step(&mut rows);
    assert_eq!(step(&mut rows), (2.0, true, said(&["step", "final 2", "reset", "obs 0"])));
    assert_eq!(rows.machine.phase(0), PhaseTag::Running);
    assert_eq!(step(&mut rows), (1.0, false, said(&["step", "obs 1"])));
}

#[test]
fn episodes_of_length_one_are_over_at_every_real_step() {
    let mut next = one(AutoresetMode::NextStep, OnDone::Raise, Scripted::counts(1));
    for _ in 0..3 {
        assert_eq!(step(&mut next), (1.0, true, said(&["step", "obs 1"])));
        assert_eq!(step(&mut next), (0.0, false, said(&["reset", "obs 0"])));
    }
    let mut same = one(AutoresetMode::SameStep, OnDone::Raise, Scripted::counts(1));
    for _ in 0..3 {
        assert_eq!(step(&mut same), (1.0, true, said(&["step", "final 1", "reset", "obs 0"])));
    }
}

#[test]
fn disabled_refuses_a_row_that_is_over_and_changes_nothing() {
    let mut rows = one(AutoresetMode::Disabled, OnDone::Raise, Scripted::counts(1));
    step(&mut rows);
    for _ in 0..2 {
        assert_eq!(stepped(&mut rows).fault, Some(Fault::Refused(Refusal::Over)));
        assert_eq!((rows.envs[0].now, rows.envs[0].taken()), (1, said(&[])));
    }
    assert_eq!(reset(&mut rows), None);
    assert_eq!(rows.envs[0].taken(), said(&["reset", "obs 0"]));
    assert_eq!(step(&mut rows), (1.0, true, said(&["step", "obs 1"])));
}

#[test]
fn a_frozen_row_repeats_its_frame_and_flags_until_it_is_reset() {
    let mut rows = one(AutoresetMode::Disabled, OnDone::Freeze, Scripted::counts(2));
    step(&mut rows);
    step(&mut rows);
    for _ in 0..3 {
        assert_eq!(step(&mut rows), (0.0, true, said(&["again 2"])));
    }
    assert_eq!(reset(&mut rows), None);
    rows.envs[0].taken();
    assert_eq!(step(&mut rows), (1.0, false, said(&["step", "obs 1"])));
}

#[test]
fn an_explicit_reset_clears_a_pending_autoreset() {
    let mut rows = one(AutoresetMode::NextStep, OnDone::Raise, Scripted::counts(1));
    step(&mut rows);
    assert_eq!(reset(&mut rows), None);
    rows.envs[0].taken();
    assert_eq!(step(&mut rows), (1.0, true, said(&["step", "obs 1"])));
}

#[test]
fn a_failed_row_is_refused_until_a_reset_succeeds() {
    for mode in MODES {
        let script = Script::Counts { length: 9, fails_at: 1, failing_resets: 1 };
        let mut rows = one(mode, OnDone::Raise, Scripted::new(script, 0));
        assert_eq!(stepped(&mut rows).fault, Some(failure("step 1")));
        assert_eq!(rows.machine.phase(0), PhaseTag::Failed);
        assert_eq!(stepped(&mut rows).fault, Some(Fault::Refused(Refusal::Failed)));
        assert_eq!(reset(&mut rows), Some(failure("reset")));
        assert_eq!(stepped(&mut rows).fault, Some(Fault::Refused(Refusal::Failed)));
        rows.envs[0].script = Scripted::counts(9).script;
        assert_eq!(reset(&mut rows), None);
        assert_eq!(stepped(&mut rows).fault, None);
    }
}

#[test]
fn an_unstarted_row_is_refused_until_a_reset_succeeds() {
    for mode in MODES {
        let machine = Autoreset::unstarted(mode, OnDone::Freeze, 1);
        let mut rows = Columns { machine, envs: vec![Scripted::counts(9)] };
        assert_eq!(stepped(&mut rows).fault, Some(Fault::Refused(Refusal::Unstarted)));
        let seen = (rows.machine.phase(0), rows.envs[0].taken());
        assert_eq!(seen, (PhaseTag::Unstarted, said(&[])));
        assert_eq!(reset(&mut rows), None);
        assert_eq!(stepped(&mut rows).fault, None);
    }
}

#[test]
fn a_row_whose_environment_is_replaced_is_truncated_in_every_mode() {
    let cases = [
        (AutoresetMode::NextStep, PhaseTag::Over, vec!["obs 2"]),
        (AutoresetMode::SameStep, PhaseTag::Running, vec!["final 2", "reset", "obs 0"]),
        (AutoresetMode::Disabled, PhaseTag::Over, vec!["obs 2"]),
    ];
    for (mode, phase, shown) in cases {
        let script = Script::Counts { length: 9, fails_at: 2, failing_resets: 0 };
        let mut rows = one(mode, OnDone::Raise, Scripted::new(script, 1));
        step(&mut rows);
        let row = stepped(&mut rows);
        assert_eq!(row, Row { transition: Transition::CUT, phase, fault: None });
        let expected: Vec<_> = ["step", "replace: step 2"].into_iter().chain(shown).collect();
        assert_eq!(rows.envs[0].taken(), said(&expected));
    }
}

#[test]
fn the_end_of_the_episode_is_kept_when_its_autoreset_is_tried_twice() {
    let script = Script::Counts { length: 1, fails_at: 0, failing_resets: 1 };
    let mut same = one(AutoresetMode::SameStep, OnDone::Raise, Scripted::new(script, 2));
    let expected = ["step", "final 1", "reset", "replace: reset", "reset", "obs 0"];
    assert_eq!(step(&mut same), (1.0, true, said(&expected)));
    same.envs[0].script = Script::Counts { length: 1, fails_at: 0, failing_resets: 2 };
    let failed = Row {
        transition: Transition::RESET,
        phase: PhaseTag::Failed,
        fault: Some(failure("reset")),
    };
    assert_eq!(stepped(&mut same), failed);
}

#[test]
fn rows_of_a_restarted_worker_resume_in_their_phase() {
    let over = [true, false];
    let next = Autoreset::resumed(AutoresetMode::NextStep, OnDone::Raise, &over);
    assert_eq!([next.phase(0), next.phase(1)], [PhaseTag::Over, PhaseTag::Running]);
    assert_eq!([next.command(0), next.command(1)], [RowCommand::Reset, RowCommand::Step]);
    assert_eq!(next.last_transition(0), Transition::CUT);
    for mode in [AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let machine = Autoreset::resumed(mode, OnDone::Raise, &over);
        assert_eq!([machine.phase(0), machine.phase(1)], [PhaseTag::Running; 2]);
    }
}

#[test]
fn an_episode_is_truncated_at_its_last_allowed_step_in_every_mode() {
    for mode in MODES {
        let mut rows = one(mode, OnDone::Freeze, Scripted::counts(9));
        rows.machine = rows.machine.with_rules(Rules::limited(2));
        for _ in 0..3 {
            assert!(!stepped(&mut rows).transition.truncated);
            let last = Transition { reward: 2.0, terminated: false, truncated: true };
            assert_eq!(stepped(&mut rows).transition, last);
            reset(&mut rows);
        }
    }
}

#[test]
fn a_restored_row_goes_on_in_its_phase_and_at_its_place_in_the_episode() {
    let mut rows = one(AutoresetMode::Disabled, OnDone::Freeze, Scripted::counts(9));
    rows.machine = rows.machine.with_rules(Rules::limited(2));
    step(&mut rows);
    let half_way = rows.machine.save(0);
    step(&mut rows);
    let over = rows.machine.save(0);
    reset(&mut rows);
    rows.machine.restore(0, half_way);
    assert!(stepped(&mut rows).transition.truncated);
    reset(&mut rows);
    rows.machine.restore(0, over);
    assert_eq!(stepped(&mut rows).transition, Transition::CUT);
}

#[test]
fn a_row_settled_alone_has_the_outcome_of_a_row_in_columns() {
    let outcome = Transition { reward: 3.0, terminated: false, truncated: false };
    for mode in MODES {
        let machine = || Autoreset::new(mode, OnDone::Freeze, 3).with_rules(Rules::limited(2));
        let (mut alone, mut together) = (machine(), machine());
        for _ in 0..6 {
            let mut commands = [9; 3];
            together.plan(0..3, &mut commands);
            let (mut rewards, mut flags) = ([3.0; 3], [[0; 3]; 3]);
            let [terminations, truncations, phases] = &mut flags;
            let mut outcomes =
                Outcomes { rewards: &mut rewards, terminations, truncations, phases };
            together.settle(0..3, &commands, &mut outcomes);
            let resets = together.plan_resets(0..3, &mut commands);
            together.settle_resets(0..3, &commands, &mut outcomes);
            for row in 0..3 {
                let transition = alone.settle_row(row, alone.command(row), outcome);
                assert_eq!(alone.resets_now(row), resets);
                if resets {
                    alone.begin_episode(row);
                }
                let shown = Transition {
                    reward: outcomes.rewards[row],
                    terminated: outcomes.terminations[row] != 0,
                    truncated: outcomes.truncations[row] != 0,
                };
                assert_eq!((shown, together.save(row)), (transition, alone.save(row)));
            }
        }
    }
}

#[test]
fn an_episode_whose_terminations_are_ignored_is_over_when_it_is_truncated() {
    for mode in MODES {
        let mut rows = one(mode, OnDone::Raise, Scripted::counts(1));
        rows.machine =
            rows.machine.with_rules(Rules { ignore_terminations: true, ..Rules::limited(3) });
        for _ in 0..2 {
            let flags = |row: Row| (row.transition.terminated, row.transition.truncated);
            assert_eq!(flags(stepped(&mut rows)), (false, false));
            assert_eq!(flags(stepped(&mut rows)), (false, false));
            assert_eq!(flags(stepped(&mut rows)), (false, true));
            reset(&mut rows);
        }
    }
}

#[test]
fn a_repeated_action_stops_where_the_episode_ends_and_its_rewards_are_summed() {
    let mut rows = one(AutoresetMode::NextStep, OnDone::Raise, Scripted::counts(5));
    let action_repeat = std::num::NonZero::new(3).expect("three");
    rows.machine = rows.machine.with_rules(Rules { action_repeat, ..Rules::default() });
    assert_eq!(step(&mut rows), (6.0, false, said(&["step", "step", "step", "obs 3"])));
    assert_eq!(step(&mut rows), (9.0, true, said(&["step", "step", "obs 5"])));
    assert_eq!(step(&mut rows), (0.0, false, said(&["reset", "obs 0"])), "one reset");
    rows.machine = rows.machine.with_rules(Rules { action_repeat, ..Rules::limited(4) });
    assert_eq!(step(&mut rows), (6.0, false, said(&["step", "step", "step", "obs 3"])));
    assert_eq!(step(&mut rows), (4.0, true, said(&["step", "obs 4"])));
}

#[test]
fn a_staggered_row_has_at_least_one_step_left_and_at_most_all() {
    for limit in [1, 2, 7, u32::MAX] {
        let rules = Rules::limited(limit);
        let mut machine =
            Autoreset::new(AutoresetMode::NextStep, OnDone::Raise, 1).with_rules(rules);
        let mut elapsed = |draw| {
            machine.stagger(0, draw);
            let bytes = machine.save(0).to_bytes();
            u32::from_le_bytes(*bytes.last_chunk().expect("four bytes"))
        };
        assert_eq!((elapsed(0), elapsed(u64::MAX)), (0, limit - 1));
        assert_eq!(elapsed(1 << 63), limit / 2);
    }
}

#[test]
fn a_saved_row_is_read_only_if_its_flags_are_those_of_its_phase() {
    let (running, over) = (PhaseTag::Running as u8, PhaseTag::Over as u8);
    for ([phase, terminated, truncated], is_read) in [
        ([running, 0, 0], true),
        ([over, 1, 1], true),
        ([running, 0, 1], false),
        ([over, 0, 0], false),
        ([over, 2, 0], false),
        ([9, 0, 0], false),
    ] {
        let bytes = [phase, terminated, truncated, 5, 0, 0, 0];
        let read = SavedRow::from_bytes(bytes).map(SavedRow::to_bytes);
        assert_eq!(read, is_read.then_some(bytes), "{bytes:?}");
    }
}

#[test]
fn neighboring_seeds_are_spread_evenly_and_their_length_does_not_matter() {
    let mut counts = [0; 10];
    for seed in 0..10_000_u64 {
        let draw = mixed([seed]);
        assert_eq!(draw, mixed([seed, 0, 0]));
        assert_ne!(draw, mixed([seed, 1]));
        assert_ne!(mixed([0, seed + 1]), mixed([seed + 1]));
        counts[usize::try_from((u128::from(draw) * 10) >> 64).expect("below ten")] += 1;
    }
    assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
}
