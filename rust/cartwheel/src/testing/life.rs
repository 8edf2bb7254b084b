//! Lives: everything that a row shows from its seed on, in the order in which it happens.

use std::marker::PhantomData;
use std::ops::Range;

use cartwheel_core::Transition;
use cartwheel_core::info::{InfoReader, InfoWriter};

use super::STEPS;
use super::error::{Finding, fail};
use super::subject::Subject;
use crate::Rng;
use crate::env::{Arrays, Env, Info, View};

const STEPS_SUCCEED: &str = "`step` and `reset` must accept every action of the action space, masked ones \
     too, however long an episode is: end the episode where the task ends, do nothing or end it for an \
     action that is not allowed, and correct the space where it has actions that are none.";

/// The limit of steps where no episode ends by nature.
const SHORT: u32 = 7;

/// A reset or a step of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) is_reset: bool,
    /// The bytes of the observation, leaf after leaf.
    pub(super) observation: Vec<u8>,
    pub(super) reward: u64,
    pub(super) terminated: bool,
    pub(super) truncated: bool,
    /// Keys, and the bytes of their values.
    pub(super) info: Vec<(String, Vec<u8>)>,
}

/// Fails at the first event in which two lives differ; `seen` says it in words, from the part that
/// differs and the number of the event. `names` are those of the leaves, with their bytes.
pub(super) fn compare(
    one: &[Event],
    other: &[Event],
    names: &[(String, Range<usize>)],
    remedy: &'static str,
    seen: impl Fn(&str, usize) -> String,
) -> Result<(), Finding> {
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        if let Some(part) = difference(one, other, names) {
            return fail(seen(&part, at), remedy);
        }
    }
    Ok(())
}

/// The first part in which two events differ, in words.
fn difference(one: &Event, other: &Event, names: &[(String, Range<usize>)]) -> Option<String> {
    for (name, bytes) in names {
        if one.observation[bytes.clone()] != other.observation[bytes.clone()] {
            return Some(name.clone());
        }
    }
    if one.reward != other.reward {
        let (one, other) = (f64::from_bits(one.reward), f64::from_bits(other.reward));
        return Some(format!("reward ({one} and {other})"));
    }
    if one.terminated != other.terminated {
        return Some(format!("terminated ({} and {})", one.terminated, other.terminated));
    }
    if one.truncated != other.truncated {
        return Some(format!("truncated ({} and {})", one.truncated, other.truncated));
    }
    let keys = |event: &Event| event.info.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    if keys(one) != keys(other) {
        return Some(format!("info (keys {:?} and {:?})", keys(one), keys(other)));
    }
    let unlike = one.info.iter().zip(&other.info).find(|(one, other)| one != other);
    unlike.map(|((key, _), _)| format!("info[{key:?}]"))
}

/// The state of an environment, if it can be saved.
pub(super) fn saved<E: Env>(env: &E) -> Vec<u8> {
    let mut state = Vec::new();
    if E::SAVES {
        env.save(&mut state);
    }
    state
}

/// The keys of an info, and the bytes of their values.
pub(super) fn info_of(info: &impl Info) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut writer = InfoWriter::new();
    info.write(&mut writer);
    let stream = writer.stream();
    let (mut reader, mut entries) = (InfoReader::new(stream, 0), Vec::<(String, Vec<u8>)>::new());
    while reader.at() < stream.len() {
        let entry = reader.entry().map_err(|error| error.to_string())?;
        let before = entries.last().map_or("its begin".to_owned(), |(key, _)| format!("{key:?}"));
        if entries.iter().any(|(key, _)| key == entry.key) {
            return Err(format!("the key {:?} is written twice", entry.key));
        }
        reader.skip().map_err(|_| format!("after {before} there is no value: {:?}", entry.key))?;
        entries.push((entry.key.to_owned(), stream[entry.value_at..reader.at()].to_vec()));
    }
    if entries.len() != info.len() {
        return Err(format!("`len` says {} keys, and {} are written", info.len(), entries.len()));
    }
    Ok(entries)
}

/// One environment alone, and the memory that it shows itself in.
pub(super) struct Single<'s, E: Env> {
    pub(super) env: E,
    pub(super) rng: Rng,
    pub(super) subject: &'s Subject<E>,
    screen: Screen<E>,
    /// Steps of the episode.
    pub(super) steps: u32,
    pub(super) over: bool,
}

/// Memory for one observation of an `E`.
pub(super) struct Screen<E>(Arrays, PhantomData<fn() -> E>);

impl<E: Env> Screen<E> {
    pub(super) fn new(subject: &Subject<E>) -> Self {
        Self(Arrays::new(subject.spaces.observation.leaves(), 1), PhantomData)
    }

    /// The bytes of the observation, written over `pattern`.
    pub(super) fn observed(&mut self, env: &E, pattern: u8) -> Vec<u8> {
        for leaf in 0..self.0.leaves() {
            self.0.store(leaf, &vec![pattern; self.0.bytes(leaf).len()]);
        }
        {
            let mut rows = self.0.rows_mut(E::Observation::rows_mut);
            env.observe(E::Observation::row_mut(&mut rows, 0));
        }
        (0..self.0.leaves()).flat_map(|leaf| self.0.bytes(leaf).to_vec()).collect()
    }
}

impl<'s, E: Env> Single<'s, E> {
    pub(super) fn new(subject: &'s Subject<E>, seed: u64) -> Result<Self, Finding> {
        Ok(Self {
            env: subject.make()?,
            rng: Rng::from_seed(seed),
            subject,
            screen: Screen::new(subject),
            steps: 0,
            over: true,
        })
    }

    /// The bytes of the observation, written over `pattern`.
    pub(super) fn observed(&mut self, pattern: u8) -> Vec<u8> {
        self.screen.observed(&self.env, pattern)
    }

    /// Returns the event after a transition.
    fn event(&mut self, is_reset: bool, transition: Transition) -> Result<Event, Finding> {
        let info = info_of(&self.env.info()).or_else(|what| {
            fail(
                format!("the info cannot be read: {what}"),
                "A value of an info must write exactly one value: see `InfoValue`.",
            )
        })?;
        Ok(Event {
            is_reset,
            observation: self.observed(0),
            reward: transition.reward.to_bits(),
            terminated: transition.terminated,
            truncated: transition.truncated,
            info,
        })
    }

    pub(super) fn reset(&mut self) -> Result<Event, Finding> {
        let reset = self.env.reset(&mut self.rng, &E::ResetOptions::default());
        reset.or_else(|failure| fail(format!("`reset` failed: {failure}"), STEPS_SUCCEED))?;
        (self.steps, self.over) = (0, false);
        self.event(true, Transition::RESET)
    }

    pub(super) fn step(&mut self, actions: &Arrays, at: usize) -> Result<Event, Finding> {
        let actions = actions.rows(E::Action::rows);
        let stepped = self.env.step(E::Action::row(&actions, at), &mut self.rng);
        let mut transition = stepped
            .or_else(|failure| fail(format!("step {at} failed: {failure}"), STEPS_SUCCEED))?;
        self.steps += 1;
        transition.truncated |= self.steps == self.subject.limit;
        self.over = transition.terminated || transition.truncated;
        self.event(false, transition)
    }

    /// Goes on for `steps` steps, with the actions from `first` on, and resets where episodes end.
    pub(super) fn live(
        &mut self,
        actions: &Arrays,
        steps: Range<usize>,
    ) -> Result<Vec<Event>, Finding> {
        let mut life = Vec::new();
        for at in steps {
            if self.over {
                life.push(self.reset()?);
            }
            life.push(self.step(actions, at)?);
        }
        Ok(life)
    }
}

impl<E: Env> Subject<E> {
    /// Plays a few lives. Where no episode ends by nature, episodes have a limit from now on.
    pub(super) fn steps(&mut self) -> Result<(), Finding> {
        let lives = (0..3).map(|seed| self.life(seed)).collect::<Result<Vec<_>, _>>()?;
        let ends = lives.iter().flatten().any(|event| event.terminated || event.truncated);
        self.limit = if ends { 0 } else { SHORT };
        Ok(())
    }

    /// The life of one environment alone.
    pub(super) fn life(&self, seed: u64) -> Result<Vec<Event>, Finding> {
        Single::new(self, seed)?.live(&self.actions(seed), 0..STEPS)
    }
}
