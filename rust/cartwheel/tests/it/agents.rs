//! Environments of several agents name them to the host.

use std::mem::offset_of;
use std::sync::Arc;

use cartwheel::{
    AgentFlags, Env, Error, Failure, NoOptions, Rng, Space, Spaces, State, Transition,
};
use cartwheel_abi as abi;

use crate::support::{HostKind, find};

cartwheel::options! {
    /// The options of [`Couple`].
    pub(crate) struct Options {
        /// The name of the second agent.
        name: String = "right".to_owned(),
    }
}

/// Only its names count here.
#[derive(Debug)]
struct Couple;

impl Env for Couple {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = [i64; 2];
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(2), action: Space::multi_discrete(&[2; 2]) }
    }

    fn agents(options: &Options, (): &()) -> Vec<String> {
        vec!["left".to_owned(), options.name.clone()]
    }

    fn new(_: &Options, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: &[i64; 2], _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition { reward: 0.0, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = 0;
    }

    fn info(&self) {}
}

cartwheel::table! {
    static PLUGIN {
        "agents/Couple-v0" => Couple {},
    }
}

#[test]
fn the_host_gets_the_names_in_their_order() {
    let table = find(&PLUGIN, "agents/Couple-v0");
    let names = |options| HostKind::new(table, options).map(|kind| kind.agents.clone());
    assert_eq!(names("{}").unwrap(), ["left", "right"]);
    assert_eq!(names(r#"{"name": "größer"}"#).unwrap(), ["left", "größer"]);
    let refused = names(r#"{"name": "a\u0000b"}"#).unwrap_err();
    assert!(refused.contains(r#"the name "a\0b" has a zero byte"#), "{refused}");
}

#[test]
fn a_host_of_the_version_before_is_told_no_names() {
    let table = find(&PLUGIN, "agents/Couple-v0");
    let older = HostKind::sized(table, offset_of!(abi::Description, agents));
    assert_eq!(older, [0xAB; size_of::<usize>()], "what is not the host's was left alone");
}

#[test]
fn flags_are_saved_and_other_bytes_are_refused() {
    let mut flags = AgentFlags::new(3);
    flags.begin();
    flags.step();
    flags.truncate(1);
    let mut bytes = Vec::new();
    flags.save(&mut bytes);
    assert_eq!(AgentFlags::load(&mut bytes.as_slice()).unwrap(), flags);
    assert!(AgentFlags::load(&mut &bytes[..bytes.len() - 1]).is_err(), "too short");
    *bytes.last_mut().unwrap() = 2;
    let failure = AgentFlags::load(&mut bytes.as_slice()).unwrap_err();
    assert_eq!(failure.to_string(), "flags of agents are 0 or 1");
}

/// The flags of the agents, one text for each: terminated, truncated, present, acted, lives.
fn shown(flags: &AgentFlags, agents: usize) -> Vec<String> {
    let mut all = vec![9; 5 * agents];
    flags.write(&mut all);
    (0..agents)
        .map(|agent| (0..5).map(|flag| all[flag * agents + agent].to_string()).collect())
        .collect()
}

#[test]
fn an_agent_ends_once_and_another_may_join_later() {
    let mut flags = AgentFlags::new(3);
    assert_eq!(shown(&flags, 3), ["00000"; 3]);
    flags.join(0);
    flags.join(1);
    assert_eq!(shown(&flags, 3), ["00101", "00101", "00000"]);
    flags.step();
    flags.terminate(0);
    flags.truncate(0); // both at once
    flags.terminate(2); // it is not there
    assert_eq!(shown(&flags, 3), ["11110", "00111", "00000"]);
    flags.step();
    flags.terminate(0); // again
    flags.join(2);
    assert_eq!(shown(&flags, 3), ["00000", "00111", "00101"]);
    flags.terminate(2); // as soon as it has joined
    assert_eq!(shown(&flags, 3)[2], "10100");
    flags.clear();
    assert!(flags.is_over());
    assert_eq!(shown(&flags, 3), ["00000"; 3]);
    flags.begin();
    assert_eq!(shown(&flags, 3), ["00101"; 3]);
}

#[test]
#[should_panic(expected = "flags of 3 agents")]
fn flags_of_another_number_of_agents_are_not_written() {
    AgentFlags::new(3).write(&mut [0; 10]);
}
