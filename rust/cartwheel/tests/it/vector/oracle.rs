//! A plain loop over environments, with autoreset by brute force: what a `VectorEnv` must show.

use std::sync::Arc;

use cartwheel::{AutoresetMode, Batch, Env, Rng, Transition};

use crate::walk::{Options, Report, Sight, Start, Walk};

/// Results of a row: observation, bits of the reward, flags and info.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) sight: Sight,
    pub(crate) reward: u64,
    pub(crate) flags: [bool; 2],
    pub(crate) luck: Option<u64>,
    pub(crate) moves: Option<i64>,
    pub(crate) trail: Option<Vec<f32>>,
    /// The last observation and number of moves of an episode that ended here.
    pub(crate) last: Option<(Sight, i64)>,
}

/// One row of the plain loop.
pub(crate) struct Row {
    env: Walk,
    rng: Rng,
    steps: u32,
    over: bool,
    mode: AutoresetMode,
    limit: u32,
}

fn sight(env: &Walk) -> Sight {
    let Report { place, .. } = env.info();
    let mut seen = Sight { last: [false; 2], position: 0, trail: vec![0.0; place.trail.len()] };
    env.observe(crate::walk::SightMut {
        last: &mut seen.last,
        position: &mut seen.position,
        trail: &mut seen.trail,
    });
    seen
}

impl Row {
    pub(crate) fn new(mode: AutoresetMode, limit: u32) -> Self {
        let env = Walk::new(&Options::default(), &Arc::new(())).unwrap();
        Self { env, rng: Rng::from_seed(0), steps: 0, over: false, mode, limit }
    }

    fn shown(&self, transition: Transition) -> Shown {
        let Report { luck, moves, place } = self.env.info();
        Shown {
            sight: sight(&self.env),
            reward: transition.reward.to_bits(),
            flags: [transition.terminated, transition.truncated],
            luck: luck.map(f64::to_bits),
            moves: Some(moves),
            trail: Some(place.trail),
            last: None,
        }
    }

    pub(crate) fn reset(&mut self, seed: Option<u128>, options: &Start) -> Shown {
        if let Some(seed) = seed {
            self.rng = Rng::from_wide_seed(seed);
        }
        self.env.reset(&mut self.rng, options).unwrap();
        (self.steps, self.over) = (0, false);
        self.shown(Transition::RESET)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The observation of the row when it is left alone in a reset.
    pub(crate) fn left(&self) -> Sight {
        sight(&self.env)
    }

    pub(crate) fn step(&mut self, action: (i64, [f32; 2])) -> Shown {
        if self.over && self.mode == AutoresetMode::NextStep {
            return self.reset(None, &Start::default());
        }
        let mut transition = self.env.step((action.0, &action.1), &mut self.rng).unwrap();
        self.steps += 1;
        transition.truncated |= self.steps == self.limit;
        self.over = transition.terminated || transition.truncated;
        if !self.over || self.mode != AutoresetMode::SameStep {
            return self.shown(transition);
        }
        let last = (sight(&self.env), self.env.info().moves);
        let first = self.reset(None, &Start::default());
        let flags = [transition.terminated, transition.truncated];
        Shown { reward: transition.reward.to_bits(), flags, last: Some(last), ..first }
    }
}

/// Results of a batch, by place.
pub(crate) fn shown(batch: &Batch<Walk>) -> Vec<Shown> {
    let (infos, finals) = (batch.infos().unwrap(), batch.finals().unwrap());
    let luck = infos.column::<f64>("luck").unwrap();
    let observations = batch.observations();
    assert_eq!(observations.len(), batch.len());
    let of = |place: usize| {
        let info = infos.row(place);
        let position = infos.row(place).dict("place").unwrap();
        let last = finals.observation(place).map(|sight| {
            let info = finals.info(place).unwrap();
            (owned(sight), info.get::<i64>("moves").unwrap().unwrap())
        });
        Shown {
            sight: owned(batch.observation(place)),
            reward: batch.rewards()[place].to_bits(),
            flags: [batch.terminations()[place], batch.truncations()[place]],
            luck: luck[place].map(f64::to_bits),
            moves: info.get("moves").unwrap(),
            trail: position.map(|position| position.get("trail").unwrap().unwrap()),
            last,
        }
    };
    let all: Vec<Shown> = (0..batch.len()).map(of).collect();
    let (last, positions, trails) = observations.columns();
    let width = trails.len() / batch.len().max(1);
    for (place, shown) in all.iter().enumerate() {
        assert_eq!((last[place], positions[place]), (shown.sight.last, shown.sight.position));
        assert_eq!(trails[place * width..][..width], shown.sight.trail);
    }
    all
}

pub(crate) fn owned(sight: crate::walk::SightRef<'_>) -> Sight {
    <Sight as cartwheel::View>::owned(sight)
}

/// The action of one step of a row; never a bad one.
pub(crate) fn action(row: usize, step: usize) -> (i64, [f32; 2]) {
    let mut rng = Rng::from_seed((row * 1009 + step) as u64);
    (rng.integers(0..3_i64), [rng.random_f32(), -rng.random_f32()])
}
