//! Taxi: fetch a passenger at one of four places and bring them to another.
//!
//! Source: T. G. Dietterich, "Hierarchical reinforcement learning with the MAXQ value function
//! decomposition" (2000), as in Gymnasium 1.4.0, `toy_text/taxi.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: south, 1: north, 2: east, 3: west, 4: pick up, 5: drop off |
//! | observation | ((row × 5 + column) × 5 + passenger) × 4 + destination; passenger 4 is aboard |
//! | reward | −1 for each step; 20 for the delivery, −10 for an impossible pick-up or drop-off |
//! | terminates | with the delivery |
//! | info | `prob`: the probability of the move; `action_mask`: `int8[6]`, 1 where an action has an effect |
//!
//! Rows are stepped one by one: a step is a draw of the row's generator and some branches, and blocks of
//! rows were no faster.

use std::sync::{Arc, LazyLock};

use cartwheel::{
    Env, Error, Failure, NoOptions, Parameter, ParameterValue, Rng, Space, Spaces, Transition,
    options, wrong,
};

use crate::toy_text::{Probability, sample};

/// Bars are walls; a colon lets the taxi pass.
const MAP: [&[u8; 11]; 5] =
    [b"|R: | : :G|", b"| : | : : |", b"| : : : : |", b"| | : | : |", b"|Y| : |B: |"];
const SIDE: i64 = 5;
const STATES: usize = 500;
const PLACES: [(i64, i64); 4] = [(0, 0), (0, 4), (4, 0), (4, 3)];
const ABOARD: i64 = 4;

options! {
    /// Keywords.
    #[derive(Copy)]
    pub struct Options {
        /// Whether a move may also go to either side.
        is_rainy: bool,
        /// Whether the passenger may change the destination once, on the first move after the pick-up.
        fickle_passenger: bool,
        /// Probability that a move goes in its direction in the rain.
        rainy_probability: Probability = Probability::Of(0.8),
        /// Probability that a fickle passenger changes the destination.
        fickle_probability: f64 = 0.3,
    }
}

/// The positions of taxi, passenger and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    row: i64,
    column: i64,
    passenger: i64,
    destination: i64,
}

impl State {
    #[inline]
    fn encode(self) -> i64 {
        ((self.row * SIDE + self.column) * 5 + self.passenger) * 4 + self.destination
    }

    fn decode(code: i64) -> Self {
        let (rest, destination) = (code / 4, code % 4);
        let (rest, passenger) = (rest / 5, rest % 5);
        Self { row: rest / SIDE, column: rest % SIDE, passenger, destination }
    }

    /// Whether the taxi can go from its column to the next one in this direction, 1 or −1.
    #[inline]
    fn is_open(self, direction: i64) -> bool {
        let (row, at) = (self.row, 2 * self.column + 1 + direction);
        let cell = usize::try_from(row).ok().zip(usize::try_from(at).ok());
        cell.is_some_and(|(row, at)| MAP[row][at] == b':')
    }

    /// The state after a move: 0 south, 1 north, 2 east, 3 west.
    #[inline]
    fn moved(self, direction: i64) -> Self {
        let (row, column) = (self.row, self.column);
        match direction {
            0 => Self { row: (row + 1).min(SIDE - 1), ..self },
            1 => Self { row: (row - 1).max(0), ..self },
            2 if self.is_open(1) => Self { column: column + 1, ..self },
            3 if self.is_open(-1) => Self { column: column - 1, ..self },
            _ => self,
        }
    }

    /// The place at which the taxi is, if any.
    #[inline]
    fn place(self) -> Option<i64> {
        let at = PLACES.iter().position(|&place| place == (self.row, self.column));
        at.map(|place| i64::try_from(place).expect("one of four"))
    }

    fn action_mask(self) -> [i8; 6] {
        let place = self.place();
        [
            self.row < SIDE - 1,
            self.row > 0,
            self.is_open(1),
            self.is_open(-1),
            self.passenger < ABOARD && place == Some(self.passenger),
            self.passenger == ABOARD && place.is_some(),
        ]
        .map(i8::from)
    }
}

impl cartwheel::State for State {
    fn save(&self, state: &mut Vec<u8>) {
        self.encode().save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        match cartwheel::State::load(state)? {
            code @ 0..=499 => Ok(Self::decode(code)),
            code => Err(Failure::new(format!("there is no state {code}"))),
        }
    }
}

/// A state as the integer that Gymnasium calls `s`.
impl Parameter for State {
    fn get(&self) -> ParameterValue {
        ParameterValue::Int(self.encode())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        match value {
            ParameterValue::Int(code @ 0..=499) => *self = Self::decode(code),
            got => return Err(wrong("a state below 500", &got)),
        }
        Ok(())
    }
}

/// Running sums of the distribution of the first state: the passenger is neither aboard nor at the
/// destination.
static FIRST: LazyLock<[f64; STATES]> = LazyLock::new(|| {
    let mut sum = 0.0;
    std::array::from_fn(|code| {
        let state = State::decode(i64::try_from(code).expect("below 500"));
        if state.passenger < ABOARD && state.passenger != state.destination {
            sum += 1.0 / 300.0;
        }
        sum
    })
});

pub(crate) fn make_first_uses() {
    LazyLock::force(&FIRST);
}

/// The last move with which the taxi was drawn: rendering reads and stores it, steps do not change
/// it.
#[derive(Debug, Clone, Copy)]
struct Orientation(i64);

impl cartwheel::State for Orientation {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        cartwheel::State::load(state).map(Self)
    }
}

impl Parameter for Orientation {
    fn get(&self) -> ParameterValue {
        ParameterValue::Int(self.0)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        match value {
            ParameterValue::Int(direction @ 0..=3) => self.0 = direction,
            got => return Err(wrong("one of the four moves, 0 to 3", &got)),
        }
        Ok(())
    }
}

cartwheel::info! {
    /// The info of a taxi.
    pub struct TaxiInfo {
        /// Probability of the move.
        prob: Probability,
        /// 1 where an action has an effect.
        action_mask: [i8; 6],
    }
}

/// A taxi and its passenger.
#[derive(Debug, Clone)]
pub struct Taxi {
    state: State,
    last_action: Option<i64>,
    orientation: Orientation,
    probability: Probability,
    /// Whether the passenger is going to change the destination.
    fickle_step: bool,
    fickle_passenger: bool,
    fickle_probability: f64,
    /// Probabilities that a move goes in its direction and to either side; `None` without rain.
    rain: Option<(Probability, f64)>,
}

impl Env for Taxi {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = TaxiInfo;
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(500), action: Space::discrete(6) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { is_rainy, fickle_passenger, rainy_probability, fickle_probability } =
            *options;
        let aside = (1.0 - rainy_probability.check("rainy_probability")?) / 2.0;
        Probability::Of(fickle_probability).check("fickle_probability")?;
        Ok(Self {
            state: State::decode(0),
            last_action: None,
            orientation: Orientation(0),
            probability: Probability::Of(1.0),
            fickle_step: false,
            fickle_passenger,
            fickle_probability,
            rain: is_rainy.then_some((rainy_probability, aside)),
        })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        let draw = rng.random();
        let code = FIRST.partition_point(|&sum| sum <= draw);
        let code = if code < STATES { code } else { 0 }; // as in `sample`
        self.state = State::decode(i64::try_from(code).expect("below 500"));
        self.last_action = None;
        self.orientation = Orientation(0);
        self.probability = Probability::Of(1.0);
        self.fickle_step = self.fickle_passenger && rng.random() < self.fickle_probability;
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        self.last_action = Some(action);
        let before = self.state;
        let (mut reward, mut terminated) = (-1.0, false);
        self.probability = Probability::Of(1.0);
        let mut after = match (action, self.rain) {
            (0..=3, Some((forward, aside))) => {
                let outcome = sample([forward.value(), aside, aside], rng);
                self.probability = if outcome == 0 { forward } else { Probability::Of(aside) };
                rainy_move(before, action, outcome)
            }
            (0..=3, None) => {
                sample([1.0], rng);
                before.moved(action)
            }
            _ => {
                sample([1.0], rng);
                let place = before.place();
                let mut after = before;
                if action == 4 && before.passenger < ABOARD && place == Some(before.passenger) {
                    after.passenger = ABOARD;
                } else if action == 5 && before.passenger == ABOARD && place.is_some() {
                    after.passenger = place.expect("just looked");
                    terminated = place == Some(before.destination);
                    reward = if terminated { 20.0 } else { -1.0 };
                } else {
                    reward = -10.0;
                }
                after
            }
        };
        let moved = (after.row, after.column) != (before.row, before.column);
        let fickle = self.fickle_passenger && self.fickle_step;
        if fickle && before.passenger == ABOARD && moved {
            self.fickle_step = false;
            let other = i64::try_from(rng.choice_index(PLACES.len() - 1)).expect("below 3");
            after.destination = other + i64::from(other >= before.destination);
        }
        self.state = after;
        Ok(Transition { reward, terminated, truncated: false })
    }

    #[inline]
    fn observe(&self, observation: &mut i64) {
        *observation = self.state.encode();
    }

    #[inline]
    fn info(&self) -> TaxiInfo {
        TaxiInfo { prob: self.probability, action_mask: self.state.action_mask() }
    }

    cartwheel::state! {
        state, last_action, orientation, probability, fickle_step, fickle_passenger,
        fickle_probability,
    }

    cartwheel::parameters! {
        s: state,
        lastaction: last_action,
        taxi_orientation: orientation,
        fickle_step: fickle_step,
        fickle_passenger: fickle_passenger,
        fickle_probability: fickle_probability,
    }
}

/// A move in the rain: outcome 0 goes in its direction, 1 to the left of it and 2 to the right. A
/// move against a wall or the edge stays in place, whatever the outcome.
fn rainy_move(before: State, action: i64, outcome: usize) -> State {
    let ways = [[0, 2, 3], [1, 3, 2], [2, 1, 0], [3, 0, 1]];
    if before.moved(action) == before {
        return before;
    }
    before.moved(ways[usize::try_from(action).expect("one of four")][outcome])
}
