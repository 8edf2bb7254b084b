//! CliffWalking: walk from one end of a cliff to the other, along its edge or around it.
//!
//! Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction", example 6.6, as in
//! Gymnasium 1.4.0, `toy_text/cliffwalking.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: up, 1: right, 2: down, 3: left |
//! | observation | row × 12 + column, on 4 × 12 cells; the start is 36, the goal 47 |
//! | reward | −1 for each step; −100 for a fall, which leads back to the start |
//! | terminates | at the goal |
//! | info | `prob`: the probability of the move |
//!
//! Rows are stepped one by one: a step is a draw of the row's generator and some branches, and blocks of
//! rows were no faster.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition, options};

use crate::toy_text::{Cell, Outcome, Probability, sample};

const ROWS: usize = 4;
const COLUMNS: usize = 12;
const CELLS: usize = ROWS * COLUMNS;
const START: usize = (ROWS - 1) * COLUMNS;
const GOAL: usize = CELLS - 1;

options! {
    /// Keywords.
    #[derive(Copy)]
    pub struct Options {
        /// Whether a move may also go to either side; all three directions are equally probable.
        is_slippery: bool,
    }
}

/// A walker near a cliff.
#[derive(Debug, Clone)]
pub struct CliffWalking {
    cell: Cell,
    last_action: Option<i64>,
    probability: Probability,
    is_slippery: bool,
}

impl Env for CliffWalking {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Outcome;
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let cells = i64::try_from(CELLS).expect("four rows of twelve");
        Spaces { observation: Space::discrete(cells), action: Space::discrete(4) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { is_slippery } = *options;
        let cell = Cell::new(START, CELLS);
        Ok(Self { cell, last_action: None, probability: Probability::One, is_slippery })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        sample([1.0], rng); // there is one start only
        self.cell.at = START;
        self.last_action = None;
        self.probability = Probability::One;
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        self.last_action = Some(action);
        let (probability, direction) = if self.is_slippery {
            let outcome = sample([1.0 / 3.0; 3], rng);
            (1.0 / 3.0, (action + 3 + i64::try_from(outcome).expect("below 3")) % 4)
        } else {
            sample([1.0], rng);
            (1.0, action)
        };
        self.probability = Probability::Of(probability);
        let (row, column) = (self.cell.at / COLUMNS, self.cell.at % COLUMNS);
        let (row, column) = match direction {
            0 => (row.saturating_sub(1), column),
            1 => (row, (column + 1).min(COLUMNS - 1)),
            2 => ((row + 1).min(ROWS - 1), column),
            3 => (row, column.saturating_sub(1)),
            _ => unreachable!("actions were checked"),
        };
        self.cell.at = row * COLUMNS + column;
        if self.cell.at > START && self.cell.at < GOAL {
            self.cell.at = START;
            return Ok(Transition { reward: -100.0, terminated: false, truncated: false });
        }
        Ok(Transition { reward: -1.0, terminated: self.cell.at == GOAL, truncated: false })
    }

    #[inline]
    fn observe(&self, observation: &mut i64) {
        *observation = self.cell.observation();
    }

    #[inline]
    fn info(&self) -> Outcome {
        Outcome { prob: self.probability }
    }

    cartwheel::state! { cell, last_action, probability, is_slippery }

    cartwheel::parameters! { s: cell, lastaction: last_action, is_slippery: is_slippery }
}
