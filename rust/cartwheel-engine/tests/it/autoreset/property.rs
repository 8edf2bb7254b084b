//! Any sequence of steps, resets and failures: the columns equal the oracle.

use std::num::NonZero;
use std::ops::Range;

use cartwheel_engine::autoreset::{Autoreset, AutoresetMode, OnDone, Rules};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::columns::{Columns, Row};
use super::oracle::{Phase, RowByRow};
use super::script::{Chances, Script, Scripted};

/// An event of some rows; rows and masks are taken modulo what there is.
#[derive(Debug, Clone)]
enum Event {
    Step(usize, usize),
    Reset(usize, usize, u64),
    /// A call of the environment did not return.
    Fail(usize),
    Save(usize),
    Restore(usize),
    Stagger(usize, u64),
}

#[derive(Debug, Clone, Copy)]
enum Start {
    Running,
    Unstarted,
    /// The bits say which rows were over.
    Resumed(u64),
}

#[derive(Debug, Clone)]
struct Case {
    mode: AutoresetMode,
    on_done: OnDone,
    limit: u32,
    ignores_terminations: bool,
    repeats: u32,
    start: Start,
    replacements: u32,
    chances: Chances,
    seed: u64,
    rows: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let chance = || prop_oneof![4 => Just(0), 3 => 1..64_u8, 1 => Just(255)];
    let chances = (chance(), chance(), chance(), chance()).prop_map(
        |(terminates, truncates, step_fails, reset_fails)| Chances {
            terminates,
            truncates,
            step_fails: step_fails.min(128),
            reset_fails: reset_fails.min(128),
        },
    );
    let mode = select(&[AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled]);
    let start = prop_oneof![
        Just(Start::Running),
        Just(Start::Unstarted),
        any::<u64>().prop_map(Start::Resumed)
    ];
    let on_done = select(&[OnDone::Raise, OnDone::Freeze]);
    let rules = (0..4_u32, any::<bool>(), prop_oneof![2 => Just(1), 1 => 2..6_u32]);
    (mode, on_done, rules, start, 0..4_u32, chances, any::<u64>(), 1..70_usize).prop_map(
        |(
            mode,
            on_done,
            (limit, ignores_terminations, repeats),
            start,
            replacements,
            chances,
            seed,
            rows,
        )| Case {
            mode,
            on_done,
            limit,
            ignores_terminations,
            repeats,
            start,
            replacements,
            chances,
            seed,
            rows,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let at = any::<usize>;
    prop_oneof![
        8 => (at(), at()).prop_map(|(a, b)| Event::Step(a, b)),
        8 => Just(Event::Step(0, usize::MAX)),
        2 => (at(), at(), any::<u64>()).prop_map(|(a, b, mask)| Event::Reset(a, b, mask)),
        1 => Just(Event::Reset(0, usize::MAX, u64::MAX)),
        1 => at().prop_map(Event::Fail),
        1 => at().prop_map(Event::Save),
        1 => at().prop_map(Event::Restore),
        1 => (at(), any::<u64>()).prop_map(|(row, draw)| Event::Stagger(row, draw)),
    ]
}

/// At least one of `rows` rows; all of them for 0 and the greatest number.
fn span(first: usize, last: usize, rows: usize) -> Range<usize> {
    let (first, last) = (first % rows, if last == usize::MAX { rows - 1 } else { last % rows });
    first.min(last)..first.max(last) + 1
}

fn bit(bits: u64, row: usize) -> bool {
    bits >> (row % 64) & 1 == 1
}

impl Case {
    fn both(&self) -> (Columns, Vec<RowByRow>) {
        let Self { mode, on_done, limit, ignores_terminations, repeats, rows, .. } = *self;
        let over: Vec<_> = (0..rows)
            .map(|row| matches!(self.start, Start::Resumed(bits) if bit(bits, row)))
            .collect();
        let machine = match self.start {
            Start::Running => Autoreset::new(mode, on_done, rows),
            Start::Unstarted => Autoreset::unstarted(mode, on_done, rows),
            Start::Resumed(_) => Autoreset::resumed(mode, on_done, &over),
        };
        let envs: Vec<_> = (0..rows as u64)
            .map(|row| {
                let seed = self.seed ^ row << 32;
                Scripted::new(Script::Draws { seed, chances: self.chances }, self.replacements)
            })
            .collect();
        let phase = |row: usize| match self.start {
            Start::Unstarted => Phase::Unstarted,
            Start::Resumed(_) if over[row] && mode == AutoresetMode::NextStep => {
                Phase::Over { terminated: false, truncated: true }
            }
            Start::Running | Start::Resumed(_) => Phase::Running,
        };
        let oracle = envs.iter().enumerate().map(|(row, env)| {
            let (phase, elapsed, env) = (phase(row), 0, env.clone());
            RowByRow { mode, on_done, limit, ignores_terminations, repeats, phase, elapsed, env }
        });
        let oracle = oracle.collect();
        let rules = Rules {
            ignore_terminations: ignores_terminations,
            action_repeat: NonZero::new(repeats).expect("at least one"),
            ..Rules::limited(limit)
        };
        (Columns { machine: machine.with_rules(rules), envs }, oracle)
    }
}

/// Runs the events on both, and compares everything after each of them.
fn compare(case: &Case, events: &[Event]) {
    let (mut columns, mut oracle) = case.both();
    let mut saved = vec![None; case.rows];
    for event in events {
        match *event {
            Event::Step(first, last) => {
                let span = span(first, last, case.rows);
                let expected: Vec<Row> =
                    oracle[span.clone()].iter_mut().map(RowByRow::step).collect();
                assert_eq!(columns.step(span), expected);
            }
            Event::Reset(first, last, mask) => {
                let span = span(first, last, case.rows);
                let rows = oracle[span.clone()].iter_mut().zip(span.clone());
                let expected: Vec<Row> =
                    rows.map(|(oracle, row)| oracle.reset(bit(mask, row))).collect();
                assert_eq!(columns.reset(span, |row| bit(mask, row)), expected);
            }
            Event::Fail(row) => {
                let row = row % case.rows;
                columns.machine.fail(row);
                oracle[row].phase = Phase::Failed;
            }
            Event::Save(row) => {
                let row = row % case.rows;
                let RowByRow { phase, elapsed, .. } = oracle[row];
                saved[row] = Some((columns.machine.save(row), phase, elapsed));
            }
            Event::Restore(row) => {
                let row = row % case.rows;
                if let Some((state, phase, elapsed)) = saved[row] {
                    columns.machine.restore(row, state);
                    (oracle[row].phase, oracle[row].elapsed) = (phase, elapsed);
                }
            }
            Event::Stagger(row, draw) => {
                let row = row % case.rows;
                columns.machine.stagger(row, draw);
                oracle[row].stagger(draw);
            }
        }
        for (row, (env, oracle)) in columns.envs.iter_mut().zip(&mut oracle).enumerate() {
            assert_eq!(env.taken(), oracle.env.taken(), "calls of row {row}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn columns_have_the_transcripts_of_a_machine_that_works_row_by_row(
        case in case(),
        events in vec(event(), 1..40),
    ) {
        compare(&case, &events);
    }
}
