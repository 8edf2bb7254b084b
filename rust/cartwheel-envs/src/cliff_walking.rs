//! CliffWalking: from one end of a cliff to the other, along its edge or around.
//!
//! Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction", example 6.6, as in
//! Gymnasium 1.4.0, `toy_text/cliffwalking.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: up, 1: right, 2: down, 3: left |
//! | observation | row × 12 + column, on 4 × 12 cells; the start is 36, the goal 47 |
//! | reward | −1 a step; −100 for a fall, which leads back to the start |
//! | terminates | at the goal |
//! | info | `prob`: how likely the move was |

use cartwheel::Error;
use cartwheel::autoreset::Transition;
use cartwheel::env::{Env, NoOptions};
use cartwheel::native::{Space, Spaces};
use cartwheel::rng::Rng;
use serde::Deserialize;

use crate::toy_text::{Outcome, Probability, sample};

const ROWS: i64 = 4;
const COLUMNS: i64 = 12;
const START: i64 = (ROWS - 1) * COLUMNS;
const GOAL: i64 = ROWS * COLUMNS - 1;

/// Keywords.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Whether a move may go to either side, each way being equally likely.
    pub is_slippery: bool,
}

/// Somebody near a cliff.
#[derive(Debug, Clone)]
pub struct CliffWalking {
    cell: i64,
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

    fn spaces(_: &Options) -> Spaces {
        Spaces { observation: Space::discrete(ROWS * COLUMNS), action: Space::discrete(4) }
    }

    fn new(options: &Options) -> Result<Self, Error> {
        let Options { is_slippery } = *options;
        Ok(Self { cell: START, last_action: None, probability: Probability::One, is_slippery })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) {
        sample([1.0], rng); // there is one start only
        self.cell = START;
        self.last_action = None;
        self.probability = Probability::One;
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Transition {
        self.last_action = Some(action);
        let (probability, direction) = if self.is_slippery {
            let outcome = sample([1.0 / 3.0; 3], rng);
            (1.0 / 3.0, (action + 3 + i64::try_from(outcome).expect("below 3")) % 4)
        } else {
            sample([1.0], rng);
            (1.0, action)
        };
        self.probability = Probability::Of(probability);
        let (row, column) = (self.cell / COLUMNS, self.cell % COLUMNS);
        let (row, column) = match direction {
            0 => ((row - 1).max(0), column),
            1 => (row, (column + 1).min(COLUMNS - 1)),
            2 => ((row + 1).min(ROWS - 1), column),
            3 => (row, (column - 1).max(0)),
            _ => unreachable!("actions were checked"),
        };
        self.cell = row * COLUMNS + column;
        if self.cell > START && self.cell < GOAL {
            self.cell = START;
            return Transition { reward: -100.0, terminated: false, truncated: false };
        }
        Transition { reward: -1.0, terminated: self.cell == GOAL, truncated: false }
    }

    #[inline]
    fn observe(&self, observation: &mut i64) {
        *observation = self.cell;
    }

    #[inline]
    fn info(&self) -> Outcome {
        Outcome { prob: self.probability }
    }

    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }

    cartwheel::parameters! { s: cell, lastaction: last_action, is_slippery: is_slippery }
}
