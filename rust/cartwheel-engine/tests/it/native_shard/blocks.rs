//! Rows that are stepped in blocks give the same results as rows that are stepped one by one.

use std::sync::Arc;

use cartwheel::{BlockOf, Env, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::native::RowReset;

use super::PLUGIN;
use crate::support::{Envs, kind, limited};

/// Adds up its actions, with noise; 9 makes it panic, 7 and 8 the next reset panic and fail. Stepped in
/// blocks of `BLOCK` rows.
#[derive(Debug, Clone)]
pub(crate) struct Sum<const BLOCK: usize> {
    sum: i64,
    last: i64,
}

impl<const BLOCK: usize> Env for Sum<BLOCK> {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    const BLOCK: usize = BLOCK;

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(1 << 40), action: Space::discrete(10) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self { sum: 0, last: 0 })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.sum = rng.integers(0..100);
        match std::mem::take(&mut self.last) {
            7 => panic!("seven is not an end"),
            8 => Err(Failure::new("eight is not an end")),
            _ => Ok(()),
        }
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        self.last = action;
        assert!(action != 9, "nine is refused");
        self.sum += action + rng.integers(0..3);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let reward = self.sum as f64;
        Ok(Transition { reward, terminated: self.sum % 7 == 0, truncated: false })
    }

    /// Leaves every third row to `step`, and panics where `step` does.
    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        assert!(block.len() <= BLOCK, "no block is longer");
        for row in (0..block.len()).filter(|row| row % 3 != 1 && block.running[*row]) {
            let action = block.action(row);
            block.transitions[row] = block.envs[row].step(action, &mut block.rngs[row]).ok();
        }
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.sum;
    }

    fn info(&self) {}
}

/// The results of 60 steps of 11 rows: faults, and the bytes of the batches.
fn play<const BLOCK: usize>(mode: AutoresetMode, workers: usize) -> (Vec<String>, Vec<u8>) {
    let kind = kind(&PLUGIN, &format!("test/Sum-v{BLOCK}"), "").unwrap();
    let mut envs = Envs::new(&kind, 11, workers, limited(mode, 13));
    let (mut faults, mut all) = (Vec::new(), envs.seed(4).everything());
    let mut rng = Rng::from_seed(1);
    for step in 0..60 {
        if step % 10 == 9 {
            for _ in 0..2 {
                all.extend(envs.reset(vec![RowReset::Continue; 11], None).everything()); // some fail once
            }
        }
        let mut actions = [0; 11];
        rng.fill_integers(0..9, &mut actions);
        if step % 10 == 9 {
            actions[step / 10] = 9;
        }
        let batch = envs.step(&actions).unwrap();
        all.extend(batch.everything());
        let failed: Vec<_> = batch.faults.iter().map(|fault| fault.row).collect();
        faults.extend(batch.faults.iter().map(|fault| format!("{step}: {}", fault.error)));
        let reset = |row| if failed.contains(&row) { RowReset::Continue } else { RowReset::Leave };
        if !failed.is_empty() {
            all.extend(envs.reset((0..11).map(reset).collect(), None).everything());
        }
    }
    (faults, all)
}

#[test]
fn blocks_of_any_size_equal_single_rows_and_name_the_row_that_panics() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let (faults, expected) = play::<1>(mode, 0);
        for text in ["nine is refused", "seven is not an end", "eight is not an end"] {
            let is_there = faults.iter().any(|fault| fault.contains(text));
            let resets = mode != AutoresetMode::Disabled || text.starts_with("nine");
            assert_eq!(is_there, resets, "{text} in {mode:?}");
        }
        for workers in [0, 3] {
            assert_eq!(play::<2>(mode, workers), (faults.clone(), expected.clone()), "{mode:?}");
            assert_eq!(play::<4>(mode, workers), (faults.clone(), expected.clone()), "{mode:?}");
            assert_eq!(play::<64>(mode, workers), (faults.clone(), expected.clone()), "{mode:?}");
        }
    }
}
