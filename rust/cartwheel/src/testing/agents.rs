//! Flags, rewards and observations of several agents agree with each other.

use std::ops::Range;

use cartwheel_core::DType;
use cartwheel_core::space::Space;

use super::error::{Finding, fail};
use super::life::Event;
use super::subject::Subject;
use crate::env::{AgentFlags, Env};

const REMEDY: &str = "`Env::agents` says which parts an observation of several agents has. `AgentFlags` keeps \
     the flags: `reset` calls `begin`, `step` calls `step` first, and `terminate` or `truncate` for agents \
     that end.";

/// Flags of agents follow from those before; only agents that acted have rewards, and only those that
/// are there an observation; a row is over when none lives.
pub(super) fn agents<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    let names = E::agents(&subject.options, &subject.shared);
    if names.is_empty() {
        return Ok(());
    }
    let parts = Parts::new(subject, names)?;
    for seed in 0..3 {
        let mut lived = vec![false; parts.names.len()];
        for (at, event) in subject.life(seed)?.iter().enumerate() {
            if let Some(what) = parts.wrong(event, &lived) {
                return fail(format!("{what} (event {at} with the seed {seed})"), REMEDY);
            }
            lived = (0..lived.len()).map(|agent| parts.flags(event, agent)[4]).collect();
        }
    }
    Ok(())
}

/// The agents, and where observations have what is theirs.
struct Parts {
    names: Vec<String>,
    flags: Range<usize>,
    rewards: Range<usize>,
    /// The bytes of each agent's observation, leaf by leaf.
    observations: Vec<Vec<Range<usize>>>,
}

impl Parts {
    fn new<E: Env>(subject: &Subject<E>, names: Vec<String>) -> Result<Self, Finding> {
        let (space, count) = (&subject.spaces.observation, names.len());
        let part = |name: &str| match space {
            Space::Dict(parts) => parts.iter().find(|(key, _)| key == name).map(|(_, part)| part),
            _ => None,
        };
        let rewards = part("rewards").map(Space::leaves).unwrap_or_default();
        let has_rewards = matches!(rewards.as_slice(), [leaf]
            if leaf.dtype == DType::F64 && leaf.shape == [count]);
        if part("flags") != Some(&AgentFlags::space(count)) || !has_rewards {
            let seen = format!(
                "there are the agents {names:?}, and the observation space does not have `flags` of {} \
                 and `rewards` of float64[{count}]",
                AgentFlags::space(count)
            );
            return fail(seen, REMEDY);
        }
        let bytes = |name: &str| {
            let found = subject.names.iter().find(|(own, _)| own == name);
            found.map_or(0..0, |(_, bytes)| bytes.clone())
        };
        let has_names = matches!(part("agents"), Some(Space::Dict(parts))
            if parts.len() == count && parts.iter().all(|(key, _)| names.contains(key)));
        let of = |agent: usize| -> Vec<Range<usize>> {
            let own = if has_names {
                format!("observation.agents.{}", names[agent])
            } else {
                "observation.agents".to_owned()
            };
            let is_own = |name: &str| {
                name.strip_prefix(&own)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let leaves = subject.names.iter().filter(|(name, _)| is_own(name));
            let rows = |(_, bytes): &(String, Range<usize>)| {
                if has_names {
                    return bytes.clone();
                }
                let length = bytes.len() / count;
                bytes.start + agent * length..bytes.start + (agent + 1) * length
            };
            leaves.map(rows).collect()
        };
        let observations = (0..count).map(of).collect();
        let (flags, rewards) = (bytes("observation.flags"), bytes("observation.rewards"));
        Ok(Self { names, flags, rewards, observations })
    }

    /// Whether the agent was terminated, was truncated, is observed, was stepped, and lives.
    fn flags(&self, event: &Event, agent: usize) -> [bool; 5] {
        let flags = &event.observation[self.flags.clone()];
        std::array::from_fn(|flag| flags[flag * self.names.len() + agent] != 0)
    }

    /// The first fault of an event; `lived` has who lived after the one before.
    fn wrong(&self, event: &Event, lived: &[bool]) -> Option<String> {
        let (mut any_present, mut any_lives) = (false, false);
        for (agent, name) in self.names.iter().enumerate() {
            let [terminated, truncated, is_there, stepped, goes_on] = self.flags(event, agent);
            let ended = terminated || truncated;
            any_present |= is_there;
            any_lives |= goes_on;
            let (rewards, _) = event.observation[self.rewards.clone()].as_chunks::<8>();
            let mut own = self.observations[agent].iter().cloned();
            let what = if event.is_reset && (ended || stepped) {
                "ended or acted at a reset"
            } else if !event.is_reset && stepped && !lived[agent] {
                "acted, and did not live before"
            } else if !event.is_reset && !stepped && lived[agent] {
                "did not act, and lived before"
            } else if ended && goes_on {
                "ended, and lives"
            } else if (ended || stepped || goes_on) && !is_there {
                "acted, ended or lives, and is not there"
            } else if !stepped && f64::from_ne_bytes(rewards[agent]) != 0.0 {
                "did not act, and has a reward"
            } else if !is_there
                && own.any(|bytes| event.observation[bytes].iter().any(|&byte| byte != 0))
            {
                "is not there, and its observation is not zeros"
            } else {
                continue;
            };
            return Some(format!("the agent {name:?} {what}"));
        }
        if event.is_reset && !any_present {
            return Some("no agent is there after a reset".to_owned());
        }
        let is_over = event.terminated || event.truncated;
        (!any_lives && !is_over).then(|| "no agent lives, and the episode is not over".to_owned())
    }
}
