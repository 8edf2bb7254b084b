//! Transitions, beginnings of episodes, and values of next observations, in every mode.
//!
//! The tables are those of Gymnasium 1.4.0's `SyncVectorEnv`. Environment 0 is truncated after 2 steps,
//! environment 1 terminates after 4; the observation, which is its own value, is `100 * episode + t`.

use cartwheel_core::{AutoresetMode, OnDone};
use cartwheel_kernels::returns::{
    Bootstrap, Error, FinalValues, Flags, Restart, TimeMajor, is_first, next_values, valid_mask,
};

const T: u8 = 1;
const F: u8 = 0;

/// A rollout of 5 steps; one array for each environment.
struct Table {
    restart: Restart,
    observations: [[f64; 6]; 2],
    truncated: [u8; 5],
    terminated: [u8; 5],
    finals: &'static [(f64, [usize; 2])],
    valid: [[u8; 5]; 2],
    is_first: [[u8; 6]; 2],
    next: [[f64; 5]; 2],
}

const NEXT_STEP: Table = Table {
    restart: Restart::NextStep,
    observations: [[0., 1., 2., 100., 101., 102.], [0., 1., 2., 3., 4., 100.]],
    truncated: [F, T, F, F, T],
    terminated: [F, F, F, T, F],
    finals: &[],
    valid: [[T, T, F, T, T], [T, T, T, T, F]],
    is_first: [[T, F, F, T, F, F], [T, F, F, F, F, T]],
    next: [[1., 2., 100., 101., 102.], [1., 2., 3., 4., 100.]],
};

const SAME_STEP: Table = Table {
    restart: Restart::SameStep,
    observations: [[0., 1., 100., 101., 200., 201.], [0., 1., 2., 3., 100., 101.]],
    truncated: [F, T, F, T, F],
    terminated: [F, F, F, T, F],
    finals: &[(2., [1, 0]), (102., [3, 0]), (4., [3, 1])],
    valid: [[T; 5], [T; 5]],
    is_first: [[T, F, T, F, T, F], [T, F, F, F, T, F]],
    next: [[1., 2., 101., 102., 201.], [1., 2., 3., 4., 101.]],
};

/// Reset by mask right after each end: the policy sees what it sees in `SAME_STEP`.
const MASKED: Table = Table { restart: Restart::Masked, ..SAME_STEP };

/// Frozen rows: both stay at the end of their first episode, and the flags stay set.
const FROZEN: Table = Table {
    restart: Restart::Frozen,
    observations: [[0., 1., 2., 2., 2., 2.], [0., 1., 2., 3., 4., 4.]],
    truncated: [F, T, T, T, T],
    terminated: [F, F, F, T, T],
    finals: &[],
    valid: [[T, T, F, F, F], [T, T, T, T, F]],
    is_first: [[T, F, F, F, F, F], [T, F, F, F, F, F]],
    next: [[1., 2., 2., 2., 2.], [1., 2., 3., 4., 4.]],
};

const TABLES: [Table; 4] = [NEXT_STEP, SAME_STEP, MASKED, FROZEN];

/// Two environments side by side, time-major.
fn interleaved<C: Copy>([first, second]: [&[C]; 2]) -> Vec<C> {
    first.iter().zip(second).flat_map(|(&one, &other)| [one, other]).collect()
}

impl Table {
    /// Terminated and truncated cells: environment 0 is only truncated, environment 1 only terminated.
    fn cells(&self) -> [Vec<u8>; 2] {
        [interleaved([&[F; 5][..], &self.terminated]), interleaved([&self.truncated, &[F; 5][..]])]
    }

    fn next_values(
        &self,
        bootstrap: Bootstrap,
        finals: &[(f64, [usize; 2])],
    ) -> Result<Vec<f64>, Error> {
        let [terminated, truncated] = self.cells();
        let values = interleaved(self.observations.each_ref().map(|row| &row[..]));
        let (finals, index): (Vec<_>, Vec<_>) = finals.iter().copied().unzip();
        let finals = FinalValues { values: &finals, index: &index };
        let mut next = vec![-1.0; 10];
        let result = next_values(
            TimeMajor::new(&values, 6, 2)?,
            flags(&terminated, &truncated),
            self.restart,
            bootstrap,
            Some(finals),
            &mut next,
        );
        if result.is_err() {
            assert_eq!(next, [-1.0; 10], "nothing is written before an error");
        }
        result.map(|()| next)
    }
}

fn flags<'a>(terminated: &'a [u8], truncated: &'a [u8]) -> Flags<'a> {
    let array =
        |cells: &'a [u8]| TimeMajor::new(cells, cells.len() / 2, 2).expect("two environments");
    Flags { terminated: array(terminated), truncated: array(truncated) }
}

#[test]
fn valid_rows_are_those_of_the_tables() {
    for table in TABLES {
        let ([terminated, truncated], mut valid) = (table.cells(), [F; 10]);
        valid_mask(flags(&terminated, &truncated), table.restart, &[F, F], &mut valid).unwrap();
        let expected = interleaved(table.valid.each_ref().map(|row| &row[..]));
        assert_eq!(valid[..], expected, "{:?}", table.restart);
    }
}

#[test]
fn first_observations_are_those_of_the_tables() {
    for table in TABLES {
        let ([terminated, truncated], mut first) = (table.cells(), [F; 12]);
        is_first(flags(&terminated, &truncated), table.restart, &[F, F], &[T, T], &mut first)
            .unwrap();
        let expected = interleaved(table.is_first.each_ref().map(|row| &row[..]));
        assert_eq!(first[..], expected, "{:?}", table.restart);
    }
}

#[test]
fn next_values_are_those_of_the_true_next_observations() {
    for table in TABLES {
        let next = table.next_values(Bootstrap::Always, table.finals).unwrap();
        let expected = interleaved(table.next.each_ref().map(|row| &row[..]));
        assert_eq!(next, expected, "{:?}", table.restart);
    }
}

#[test]
fn a_final_value_is_required_only_where_it_is_used() {
    let (truncated, all) = (&SAME_STEP.finals[..2], SAME_STEP.finals);
    for table in [SAME_STEP, MASKED] {
        assert!(table.next_values(Bootstrap::Never, &[]).is_ok());
        assert!(table.next_values(Bootstrap::Truncated, truncated).is_ok());
        assert!(table.next_values(Bootstrap::Truncated, all).is_ok());
        let missing = |first, count| Err(Error::MissingFinalValue { first, count });
        assert_eq!(table.next_values(Bootstrap::Always, truncated), missing([3, 1], 3));
        assert_eq!(table.next_values(Bootstrap::Truncated, &all[1..]), missing([1, 0], 2));
    }
}

#[test]
fn final_values_of_other_rows_are_refused() {
    let with = |row| {
        let finals = [SAME_STEP.finals, &[(0.0, row)]].concat();
        SAME_STEP.next_values(Bootstrap::Truncated, &finals)
    };
    assert_eq!(with([0, 0]), Err(Error::FinalOfRunning { at: 3, row: [0, 0] }));
    assert_eq!(with([3, 1]), Err(Error::FinalTwice { at: 3, row: [3, 1] }));
    for row in [[5, 0], [0, 2]] {
        assert_eq!(with(row), Err(Error::FinalOutOfRange { at: 3, row, shape: [5, 2] }));
    }
}

#[test]
fn final_values_are_refused_where_the_next_row_shows_the_observation() {
    for (table, mode) in [(NEXT_STEP, AutoresetMode::NextStep), (FROZEN, AutoresetMode::Disabled)] {
        let refused = table.next_values(Bootstrap::Truncated, &[(2.0, [1, 0])]);
        assert_eq!(refused, Err(Error::UnusedFinalValues { mode, count: 1 }));
    }
}

#[test]
fn consecutive_rollouts_mark_the_rows_of_one_long_rollout() {
    for table in [NEXT_STEP, SAME_STEP, MASKED] {
        let [terminated, truncated] = table.cells();
        let (mut prev_done, mut initial) = ([F, F], [T, T]);
        for t in 0..5 {
            let flags = flags(&terminated[2 * t..][..2], &truncated[2 * t..][..2]);
            let (mut valid, mut first) = ([F; 2], [F; 4]);
            valid_mask(flags, table.restart, &prev_done, &mut valid).unwrap();
            is_first(flags, table.restart, &prev_done, &initial, &mut first).unwrap();
            assert_eq!(valid, [table.valid[0][t], table.valid[1][t]], "step {t}");
            assert_eq!(first[..2], [table.is_first[0][t], table.is_first[1][t]], "step {t}");
            initial.copy_from_slice(&first[2..]);
            prev_done = [
                truncated[2 * t] | terminated[2 * t],
                truncated[2 * t + 1] | terminated[2 * t + 1],
            ];
        }
        assert_eq!(initial, [table.is_first[0][5], table.is_first[1][5]]);
    }
}

#[test]
fn flags_of_another_mode_are_refused_in_next_step() {
    let (terminated, truncated) = ([F, F, T, F], [F, T, F, T]);
    let mask = |steps: usize, prev_done: &[u8]| {
        let flags = flags(&terminated[..2 * steps], &truncated[..2 * steps]);
        valid_mask(flags, Restart::NextStep, prev_done, &mut [F; 4][..2 * steps])
    };
    let twice = |row| Err(Error::OverTwice { row });
    assert_eq!(mask(2, &[F, F]), twice([1, 1]));
    assert_eq!(mask(1, &[F, T]), twice([0, 1]));
    assert_eq!(mask(1, &[T, F]), Ok(()));
    let mut first = [F; 6];
    let flags = flags(&terminated, &truncated);
    assert_eq!(is_first(flags, Restart::NextStep, &[F, F], &[T, T], &mut first), twice([1, 1]));
}

#[test]
fn only_disabled_freezes_rows() {
    use AutoresetMode::{Disabled, NextStep, SameStep};

    for (mode, on_done, restart) in [
        (NextStep, OnDone::Freeze, Restart::NextStep),
        (SameStep, OnDone::Freeze, Restart::SameStep),
        (Disabled, OnDone::Freeze, Restart::Frozen),
        (Disabled, OnDone::Raise, Restart::Masked),
    ] {
        assert_eq!(Restart::new(mode, on_done), restart);
    }
}
