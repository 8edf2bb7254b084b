//! FrozenLake: cross a frozen lake without falling into a hole.
//!
//! Source: Gymnasium 1.4.0, `toy_text/frozen_lake.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: left, 1: down, 2: right, 3: up |
//! | observation | row × columns + column |
//! | reward | 1 at the goal, 0 elsewhere; `reward_schedule` |
//! | terminates | at the goal and in a hole |
//! | info | `prob`: the probability of the move |
//!
//! Rows are stepped one by one: a step is a draw of the row's generator and a look-up, and blocks of rows
//! were no faster.

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, NoOptions, Parameter, ParameterValue, Rng, Shared, Space, Spaces, State,
    Transition, options, wrong,
};
use serde::{Deserialize, Serialize};

use crate::toy_text::{Cell, Outcome, Probability, sample};

options! {
    /// Keywords.
    pub struct Options {
        /// The map, a list of rows: S start, F frozen, H hole, G goal; replaces map_name.
        desc: Option<Vec<Row>>,
        /// "4x4" or "8x8"; without a map and a name, each row of the batch has a random map.
        map_name: Option<String> = Some("4x4".to_owned()),
        /// Whether a move may also go to either side.
        is_slippery: bool = true,
        /// Probability that a move goes in its direction on slippery ice.
        success_rate: Probability = Probability::Of(1.0 / 3.0),
        /// Rewards for reaching the goal, a hole and ice.
        reward_schedule: (f64, f64, f64) = (1.0, 0.0, 0.0),
    }
}

/// A row of a map, passed as a text or as a list of its letters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Letters")]
pub struct Row(pub String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a row of a map is a text or a list of letters")]
enum Letters {
    Text(String),
    List(Vec<char>),
}

impl From<Letters> for Row {
    fn from(letters: Letters) -> Self {
        Self(match letters {
            Letters::Text(text) => text,
            Letters::List(letters) => letters.into_iter().collect(),
        })
    }
}

impl AsRef<str> for Row {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

const MAPS: [(&str, &[&str]); 2] = [
    ("4x4", &["SFFF", "FHFH", "FFFH", "HFFG"]),
    (
        "8x8",
        &[
            "SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF",
            "FFFHFFFG",
        ],
    ),
];

/// Side of a random map, and the probability that a cell is frozen.
const RANDOM_SIDE: usize = 8;
const RANDOM_FROZEN: f64 = 0.8;

#[derive(Debug)]
struct Lake {
    rows: usize,
    columns: usize,
    /// Letters, row-major.
    cells: Vec<u8>,
    /// Probability of each start.
    start: f64,
}

impl Lake {
    /// A lake from the texts of its rows.
    fn new<T: AsRef<str>>(desc: &[T]) -> Result<Self, Error> {
        let bad = |what: String| Err(Error::bad_options(format!("malformed map: {what}")));
        let columns = desc.first().map_or(0, |row| row.as_ref().len());
        if columns == 0 {
            return bad("it has no cells".to_owned());
        }
        for (at, row) in desc.iter().enumerate() {
            let row = row.as_ref();
            if let Some(letter) = row.chars().find(|letter| !"SFHG".contains(*letter)) {
                return bad(format!("row {at} has {letter:?}, which is none of S, F, H and G"));
            }
            if row.len() != columns {
                return bad(format!("row {at} has {} cells, row 0 has {columns}", row.len()));
            }
        }
        let cells: Vec<u8> = desc.iter().flat_map(|row| row.as_ref().bytes()).collect();
        if !cells.contains(&b'S') {
            return bad("it has no start S".to_owned());
        }
        Ok(Self::from_cells(desc.len(), cells))
    }

    /// A lake with this number of rows.
    fn from_cells(rows: usize, cells: Vec<u8>) -> Self {
        let starts = cells.iter().map(|&cell| f64::from(u8::from(cell == b'S'))).sum::<f64>();
        Self { rows, columns: cells.len() / rows, cells, start: 1.0 / starts }
    }

    /// The cell next to `cell` in this direction, or itself at the edge.
    #[inline]
    fn next(&self, cell: usize, direction: usize) -> usize {
        let (row, column) = (cell / self.columns, cell % self.columns);
        match direction {
            0 if column > 0 => cell - 1,
            1 if row + 1 < self.rows => cell + self.columns,
            2 if column + 1 < self.columns => cell + 1,
            3 if row > 0 => cell - self.columns,
            _ => cell,
        }
    }

    fn desc(&self) -> Vec<String> {
        let rows = self.cells.chunks(self.columns);
        rows.map(|row| row.iter().map(|&letter| char::from(letter)).collect()).collect()
    }
}

/// A square map on which the goal can be reached, as `generate_random_map` makes it: `side` cells
/// on each side, each frozen with probability `frozen`, with start and goal in opposite corners.
///
/// # Panics
///
/// When `side` is below 2 or `frozen` is not a probability.
pub fn random_map(side: usize, frozen: f64, rng: &mut Rng) -> Vec<String> {
    assert!(side >= 2, "a map has a start and a goal");
    let frozen = frozen.min(1.0);
    loop {
        let mut cells: Vec<u8> =
            (0..side * side).map(|_| b"FH"[rng.choice_weighted(&[frozen, 1.0 - frozen])]).collect();
        cells[0] = b'S';
        cells[side * side - 1] = b'G';
        let lake = Lake::from_cells(side, cells);
        if goal_is_reachable(&lake) {
            return lake.desc();
        }
    }
}

/// Whether there is a way from the first cell to a goal around the holes.
fn goal_is_reachable(lake: &Lake) -> bool {
    let mut seen = vec![false; lake.cells.len()];
    let mut frontier = vec![0];
    while let Some(cell) = frontier.pop() {
        if std::mem::replace(&mut seen[cell], true) {
            continue;
        }
        for next in (0..4).map(|direction| lake.next(cell, direction)) {
            match lake.cells[next] {
                b'G' => return true,
                b'H' => {}
                _ => frontier.push(next),
            }
        }
    }
    false
}

/// A walker on a frozen lake.
#[derive(Debug, Clone)]
pub struct FrozenLake {
    cell: Cell,
    last_action: Option<i64>,
    probability: Probability,
    lake: Ice,
    rewards: (f64, f64, f64),
    /// Probabilities that a move goes in its direction and to either side; `None` on ice that is
    /// not slippery.
    slip: Option<(Probability, f64)>,
}

/// The map that all rows have; none when each has its own random one.
#[derive(Debug)]
pub struct Map(Option<Arc<Lake>>);

impl Shared<Options> for Map {
    fn prepare(options: &Options) -> Result<Self, Error> {
        let lake = match (&options.desc, &options.map_name) {
            (Some(desc), _) => Lake::new(desc)?,
            (None, Some(name)) => {
                let map = MAPS.iter().find(|(known, _)| known == name).ok_or_else(|| {
                    Error::bad_options(format!("there is no map {name:?}, only 4x4 and 8x8"))
                })?;
                Lake::new(map.1)?
            }
            (None, None) => return Ok(Self(None)),
        };
        Ok(Self(Some(Arc::new(lake))))
    }
}

impl Map {
    /// The map of one row.
    fn lake(&self) -> Result<Arc<Lake>, Error> {
        if let Some(lake) = &self.0 {
            return Ok(Arc::clone(lake));
        }
        let map = random_map(RANDOM_SIDE, RANDOM_FROZEN, &mut Rng::from_entropy()?);
        Lake::new(&map).map(Arc::new)
    }
}

impl Env for FrozenLake {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Outcome;
    type Shared = Map;

    fn spaces(_: &Options, map: &Map) -> Spaces {
        let cells = map.0.as_ref().map_or(RANDOM_SIDE * RANDOM_SIDE, |lake| lake.cells.len());
        let cells = i64::try_from(cells).expect("maps fit memory");
        Spaces { observation: Space::discrete(cells), action: Space::discrete(4) }
    }

    fn new(options: &Options, map: &Arc<Map>) -> Result<Self, Error> {
        let Options { is_slippery, success_rate, reward_schedule, .. } = *options;
        let fail_rate = (1.0 - success_rate.check("success_rate")?) / 2.0;
        let lake = map.lake()?;
        Ok(Self {
            cell: Cell::new(0, lake.cells.len()),
            last_action: None,
            probability: Probability::One,
            lake: Ice(lake),
            rewards: reward_schedule,
            slip: is_slippery.then_some((success_rate, fail_rate)),
        })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        let Lake { cells, start, .. } = &*self.lake.0;
        let distribution = cells.iter().map(|&cell| if cell == b'S' { *start } else { 0.0 });
        self.cell.at = sample(distribution, rng);
        self.last_action = None;
        self.probability = Probability::One;
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        self.last_action = Some(action);
        let action = usize::try_from(action).expect("actions were checked");
        if matches!(self.lake.0.cells[self.cell.at], b'G' | b'H') {
            sample([1.0], rng);
            self.probability = Probability::Of(1.0);
            return Ok(Transition { reward: 0.0, terminated: true, truncated: false });
        }
        let (probability, direction) = match self.slip {
            None => {
                sample([1.0], rng);
                (Probability::Of(1.0), action)
            }
            Some((success, fail)) => {
                let outcome = sample([fail, success.value(), fail], rng);
                let probability = if outcome == 1 { success } else { Probability::Of(fail) };
                (probability, (action + 3 + outcome) % 4)
            }
        };
        self.cell.at = self.lake.0.next(self.cell.at, direction);
        self.probability = probability;
        let (goal, hole, ice) = self.rewards;
        let (reward, terminated) = match self.lake.0.cells[self.cell.at] {
            b'G' => (goal, true),
            b'H' => (hole, true),
            _ => (ice, false),
        };
        Ok(Transition { reward, terminated, truncated: false })
    }

    #[inline]
    fn observe(&self, observation: &mut i64) {
        *observation = self.cell.observation();
    }

    #[inline]
    fn info(&self) -> Outcome {
        Outcome { prob: self.probability }
    }

    cartwheel::state! { cell, last_action, probability, lake }

    cartwheel::parameters! { s: cell, lastaction: last_action, desc: lake }
}

/// A lake that rows share until they set another one.
#[derive(Debug, Clone)]
struct Ice(Arc<Lake>);

impl Parameter for Ice {
    fn get(&self) -> ParameterValue {
        self.0.desc().get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut desc: Vec<String> = Vec::new();
        desc.set(value.clone()).map_err(|_| wrong("the rows of a map", &value))?;
        let lake = Lake::new(&desc)?;
        if (lake.rows, lake.columns) != (self.0.rows, self.0.columns) {
            return Err(wrong("a map of the same size", &value));
        }
        self.0 = Arc::new(lake);
        Ok(())
    }
}

impl State for Ice {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.desc().save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let desc: Vec<String> = State::load(state)?;
        Ok(Self(Arc::new(Lake::new(&desc)?)))
    }
}
