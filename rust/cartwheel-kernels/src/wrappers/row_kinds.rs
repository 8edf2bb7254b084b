//! The kind of each row in a step, derived from the results of calls.

use cartwheel_core::AutoresetMode;

use super::places::{FAILED, INCOMPLETE, NoSuchRow, RESET, SHOWN, TRANSITION, check_rows, index};
use cartwheel_core::simd::{self, Loops};

/// The last step of the row ended its episode, and the row has not begun another one.
const OVER: u8 = 1;
/// A reset of the row was sent and has not been received.
const RESETTING: u8 = 2;
/// A step was lost in the present episode of the row.
const LOST: u8 = 4;

/// Tells transitions, resets, repeated rows and failures apart, in every autoreset mode.
#[derive(Debug, Clone)]
pub struct RowKinds {
    mode: AutoresetMode,
    /// One byte for each environment: [`OVER`], [`RESETTING`], [`LOST`].
    notes: Vec<u8>,
    /// The notes of the rows of a batch in parts.
    gathered: Vec<u8>,
}

impl RowKinds {
    /// All rows are running; a vector environment has to be reset first anyway.
    pub fn new(num_envs: usize, mode: AutoresetMode) -> Self {
        Self { mode, notes: vec![0; num_envs], gathered: Vec::new() }
    }

    /// The number of environments.
    pub fn num_envs(&self) -> usize {
        self.notes.len()
    }

    /// The known facts of each row, one byte each, for [`RowKinds::restore`].
    pub fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// Continues with the notes of as many rows; `false`, and no change, for any others.
    #[must_use]
    pub fn restore(&mut self, notes: &[u8]) -> bool {
        let fits = notes.len() == self.notes.len()
            && notes.iter().all(|&note| note & !(OVER | RESETTING | LOST) == 0);
        if fits {
            self.notes.copy_from_slice(notes);
        }
        fits
    }

    /// All rows were reset.
    pub fn reset_all(&mut self) {
        self.notes.fill(0);
    }

    /// The rows of a mask were reset; the others show their observation again.
    ///
    /// # Panics
    ///
    /// When `mask` or `kinds` does not have an entry for each environment.
    pub fn reset_masked(&mut self, mask: &[u8], kinds: &mut [u8]) {
        assert_eq!(mask.len(), self.notes.len(), "entries of the mask");
        assert_eq!(kinds.len(), self.notes.len(), "places");
        for ((notes, &is_reset), kind) in self.notes.iter_mut().zip(mask).zip(kinds) {
            *kind = if is_reset == 0 { SHOWN } else { RESET };
            *notes = if is_reset == 0 { *notes } else { 0 };
        }
    }

    /// These rows were reset.
    ///
    /// # Errors
    ///
    /// A row does not exist.
    pub fn reset_rows(&mut self, rows: &[i64]) -> Result<(), NoSuchRow> {
        self.change(rows, |_| 0)
    }

    /// Resets of these rows were sent; [`step`](Self::step) finds them when they are received.
    ///
    /// # Errors
    ///
    /// A row does not exist.
    pub fn send_reset(&mut self, rows: &[i64]) -> Result<(), NoSuchRow> {
        self.change(rows, |notes| notes | RESETTING)
    }

    /// Writes what the next step of each row will do: a transition, only a reset, or nothing.
    ///
    /// # Errors
    ///
    /// A row does not exist.
    ///
    /// # Panics
    ///
    /// When `kinds` does not have an entry for each of the rows, of which `None` is all.
    pub fn ahead(&self, rows: Option<&[i64]>, kinds: &mut [u8]) -> Result<(), NoSuchRow> {
        let after_an_end = match self.mode {
            AutoresetMode::NextStep => RESET,
            AutoresetMode::SameStep => TRANSITION,
            AutoresetMode::Disabled => SHOWN,
        };
        let kind_of = |note: u8| match note {
            _ if note & RESETTING != 0 => RESET,
            _ if note & OVER != 0 => after_an_end,
            _ => TRANSITION,
        };
        let Some(rows) = rows else {
            assert_eq!(kinds.len(), self.notes.len(), "places");
            for (&note, kind) in self.notes.iter().zip(kinds) {
                *kind = kind_of(note);
            }
            return Ok(());
        };
        check_rows(rows, self.notes.len())?;
        assert_eq!(kinds.len(), rows.len(), "places");
        for (&row, kind) in rows.iter().zip(kinds) {
            *kind = kind_of(self.notes[index(row)]);
        }
        Ok(())
    }

    /// The results of these rows were lost, because the call raised; `None` for all rows. `is_known`:
    /// [`step`](Self::step) was told which episodes ended; otherwise none may be over.
    ///
    /// # Errors
    ///
    /// A row does not exist.
    pub fn lose(&mut self, rows: Option<&[i64]>, is_known: bool) -> Result<(), NoSuchRow> {
        let forgotten = if is_known { 0 } else { OVER };
        let lost = |notes| (notes | LOST) & !forgotten;
        let Some(rows) = rows else {
            self.notes.iter_mut().for_each(|notes| *notes = lost(*notes));
            return Ok(());
        };
        self.change(rows, lost)
    }

    /// A step returned, or a batch was received: writes the kinds of its places.
    ///
    /// `rows` are the environments of the places, `None` for all in order; flags are bytes, of which
    /// every one but zero is true.
    ///
    /// # Errors
    ///
    /// A row does not exist.
    ///
    /// # Panics
    ///
    /// When the slices differ in length, or `rows` is `None` and they do not have an entry for each
    /// environment.
    pub fn step(
        &mut self,
        rows: Option<&[i64]>,
        terminations: &[u8],
        truncations: &[u8],
        failed: Option<&[u8]>,
        kinds: &mut [u8],
    ) -> Result<(), NoSuchRow> {
        let Self { mode, notes, gathered } = self;
        let tell = match mode {
            AutoresetMode::NextStep => tell::<NEXT_STEP>,
            AutoresetMode::SameStep => tell::<SAME_STEP>,
            AutoresetMode::Disabled => tell::<DISABLED>,
        };
        let Some(rows) = rows else {
            tell(notes, terminations, truncations, failed, kinds);
            return Ok(());
        };
        check_rows(rows, notes.len())?;
        gathered.clear();
        gathered.extend(rows.iter().map(|&row| notes[index(row)]));
        tell(gathered, terminations, truncations, failed, kinds);
        for (&row, &changed) in rows.iter().zip(&*gathered) {
            notes[index(row)] = changed;
        }
        Ok(())
    }

    fn change(&mut self, rows: &[i64], change: impl Fn(u8) -> u8) -> Result<(), NoSuchRow> {
        check_rows(rows, self.notes.len())?;
        for &row in rows {
            let notes = &mut self.notes[index(row)];
            *notes = change(*notes);
        }
        Ok(())
    }
}

/// Writes kinds and updates the notes, place by place, without branches: the loops over bytes become
/// vector instructions.
fn tell<const MODE: u8>(
    notes: &mut [u8],
    terminations: &[u8],
    truncations: &[u8],
    failed: Option<&[u8]>,
    kinds: &mut [u8],
) {
    let count = notes.len();
    assert_eq!(terminations.len(), count, "terminations");
    assert_eq!(truncations.len(), count, "truncations");
    assert_eq!(kinds.len(), count, "kinds");
    assert!(failed.is_none_or(|failed| failed.len() == count), "failed rows");
    simd::run(Tell::<MODE> { notes, terminations, truncations, failed, kinds });
}

/// The arguments of [`tell`].
struct Tell<'a, const MODE: u8> {
    notes: &'a mut [u8],
    terminations: &'a [u8],
    truncations: &'a [u8],
    failed: Option<&'a [u8]>,
    kinds: &'a mut [u8],
}

impl<const MODE: u8> Loops for Tell<'_, MODE> {
    #[inline(always)]
    fn run(self) {
        let places =
            self.notes.iter_mut().zip(self.terminations).zip(self.truncations).zip(self.kinds);
        let Some(failed) = self.failed else {
            for (((note, &term), &trunc), kind) in places {
                (*note, *kind) = one::<MODE>(*note, term, trunc, 0);
            }
            return;
        };
        for ((((note, &term), &trunc), kind), &failed) in places.zip(failed) {
            (*note, *kind) = one::<MODE>(*note, term, trunc, failed);
        }
    }
}

const NEXT_STEP: u8 = 0;
const SAME_STEP: u8 = 1;
const DISABLED: u8 = 2;

/// The notes of a row after a step, and the kind of its place.
#[inline(always)]
fn one<const MODE: u8>(note: u8, term: u8, trunc: u8, failed: u8) -> (u8, u8) {
    let (terminated, truncated, failed) = (term != 0, trunc != 0, failed != 0);
    let (was_over, resetting, lost) = (note & OVER != 0, note & RESETTING != 0, note & LOST != 0);
    let mut over = terminated || truncated;
    let mut kind = if lost { INCOMPLETE } else { TRANSITION };
    kind = if failed && truncated && !terminated { FAILED } else { kind };
    match MODE {
        NEXT_STEP => kind = if was_over { RESET } else { kind },
        DISABLED => {
            kind = if was_over { SHOWN } else { kind };
            over = over || was_over;
        }
        _ => {}
    }
    kind = if resetting { RESET } else { kind };
    over = over && kind != RESET; // a row that was over goes on
    let stays_lost = kind == INCOMPLETE && !over;
    let is_over = over && MODE != SAME_STEP;
    ((u8::from(is_over) * OVER) | (u8::from(stays_lost) * LOST), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps one row through `(terminated, truncated, failed)` and returns its kinds.
    fn kinds(mode: AutoresetMode, steps: &[[u8; 3]]) -> Vec<u8> {
        let mut rows = RowKinds::new(1, mode);
        let step = |&[terminated, truncated, failed]: &[u8; 3]| {
            let mut kind = [9];
            rows.step(None, &[terminated], &[truncated], Some(&[failed]), &mut kind)
                .expect("exists");
            kind[0]
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn the_step_after_an_end_is_what_the_mode_makes_of_it() {
        let end = [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]];
        assert_eq!(
            kinds(AutoresetMode::NextStep, &end),
            [TRANSITION, TRANSITION, RESET, TRANSITION]
        );
        assert_eq!(kinds(AutoresetMode::SameStep, &end), [TRANSITION; 4]);
        assert_eq!(kinds(AutoresetMode::Disabled, &end), [TRANSITION, TRANSITION, SHOWN, SHOWN]);
    }

    #[test]
    fn what_a_step_will_do_is_known_before_it() {
        let cases = [
            (AutoresetMode::NextStep, RESET),
            (AutoresetMode::SameStep, TRANSITION),
            (AutoresetMode::Disabled, SHOWN),
        ];
        for (mode, after_an_end) in cases {
            let mut rows = RowKinds::new(3, mode);
            rows.step(None, &[0, 1, 1], &[0; 3], None, &mut [9; 3]).expect("all rows");
            rows.send_reset(&[2]).expect("exists");
            let (mut kinds, mut chosen) = ([9; 3], [9; 2]);
            rows.ahead(None, &mut kinds).expect("all rows");
            rows.ahead(Some(&[2, 1]), &mut chosen).expect("exist");
            assert_eq!((kinds, chosen), ([0, after_an_end, RESET], [RESET, after_an_end]));
            assert!(rows.ahead(Some(&[3]), &mut [9]).is_err());
        }
    }

    #[test]
    fn a_truncation_by_a_failure_is_no_transition_and_a_termination_is_one() {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
            assert_eq!(kinds(mode, &[[0, 1, 1]]), [FAILED]);
            assert_eq!(kinds(mode, &[[1, 1, 1]]), [TRANSITION]);
            assert_eq!(kinds(mode, &[[0, 0, 1]]), [TRANSITION]);
        }
    }

    #[test]
    fn an_episode_with_a_lost_step_is_incomplete_until_it_ends() {
        let mut rows = RowKinds::new(2, AutoresetMode::SameStep);
        rows.lose(Some(&[1]), false).expect("exists");
        let mut kinds = [9; 2];
        for (terminated, expected) in [(0, INCOMPLETE), (1, INCOMPLETE), (0, TRANSITION)] {
            rows.step(None, &[0, terminated], &[0, 0], None, &mut kinds).expect("exists");
            assert_eq!(kinds, [TRANSITION, expected]);
        }
    }

    #[test]
    fn a_row_that_is_known_to_be_over_is_reset_after_a_loss() {
        for (is_known, expected) in [(true, RESET), (false, INCOMPLETE)] {
            let mut rows = RowKinds::new(1, AutoresetMode::NextStep);
            let mut kinds = [9];
            rows.step(None, &[1], &[0], None, &mut kinds).expect("all rows");
            rows.lose(None, is_known).expect("all rows");
            rows.step(None, &[0], &[0], None, &mut kinds).expect("all rows");
            assert_eq!(kinds, [expected]);
        }
    }

    #[test]
    fn a_reset_that_was_sent_arrives_as_a_reset_and_ends_the_end() {
        let mut rows = RowKinds::new(3, AutoresetMode::Disabled);
        let mut kinds = [9];
        rows.step(Some(&[2]), &[1], &[0], None, &mut kinds).expect("exists");
        rows.send_reset(&[2]).expect("exists");
        for expected in [RESET, TRANSITION] {
            rows.step(Some(&[2]), &[0], &[0], None, &mut kinds).expect("exists");
            assert_eq!(kinds, [expected]);
        }
    }

    #[test]
    fn notes_are_restored_unless_no_rows_could_have_them() {
        let mut rows = RowKinds::new(3, AutoresetMode::Disabled);
        let notes = [OVER, 0, RESETTING | LOST];
        assert!(rows.restore(&notes));
        for wrong in [&[0; 2][..], &[0; 4], &[OVER, 0, u8::MAX]] {
            assert!(!rows.restore(wrong));
            assert_eq!(rows.notes(), notes);
        }
    }

    #[test]
    fn a_row_that_does_not_exist_changes_nothing() {
        let mut rows = RowKinds::new(3, AutoresetMode::Disabled);
        for row in [-1, 3, i64::MAX] {
            let refused = Err(NoSuchRow { row, place: 1, num_envs: 3 });
            assert_eq!(rows.lose(Some(&[0, row]), true), refused);
            assert_eq!(rows.step(Some(&[0, row]), &[1; 2], &[0; 2], None, &mut [9; 2]), refused);
        }
        let mut kinds = [9; 3];
        rows.step(None, &[0; 3], &[0; 3], None, &mut kinds).expect("all rows");
        assert_eq!(kinds, [TRANSITION; 3]);
    }

    #[test]
    fn flags_of_any_byte_count_and_all_lengths_give_the_same_kinds() {
        for count in [0, 1, 15, 16, 17, 100] {
            let mut rows = RowKinds::new(count, AutoresetMode::NextStep);
            let flags: Vec<u8> = (0..count).map(|row| if row % 3 == 0 { 254 } else { 0 }).collect();
            let mut kinds = vec![9; count];
            rows.step(None, &flags, &vec![0; count], None, &mut kinds).expect("all rows");
            rows.step(None, &vec![0; count], &vec![0; count], None, &mut kinds).expect("all rows");
            let expected = |row: usize| if row.is_multiple_of(3) { RESET } else { TRANSITION };
            assert!(kinds.iter().enumerate().all(|(row, &kind)| kind == expected(row)));
        }
    }
}
