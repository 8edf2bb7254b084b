//! An environment of three agents with names; its twin is in `tests/native/plugins/chase_and_relay.py`.

use std::sync::Arc;

use cartwheel::{
    AgentFlags, DType, Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition,
};

const AGENTS: usize = 3;

/// Agents walk to the goal at 3: by 0, 1 or 2 cells, of which chance takes away one. Who arrives is
/// terminated with the reward 5, and every step costs 1. The last agent joins once another one has
/// arrived. Who stands is cut short by a roll of a die. The action 2 is masked on odd cells; the
/// option `fails` makes it fail there.
pub(crate) struct Relay {
    fails: bool,
    loud: bool,
    flags: AgentFlags,
    /// Whether the last agent has joined.
    joined: bool,
    place: [i64; AGENTS],
    rewards: [f64; AGENTS],
    steps: i64,
}

cartwheel::options! {
    pub(crate) struct Options {
        /// Whether a masked action fails.
        fails: bool = false,
        /// Whether flags that are true are 2 and not 1.
        loud: bool = false,
        /// Whether the last agent has one action less.
        uneven: bool = false,
    }
}

cartwheel::view! {
    pub(crate) struct Places, PlacesMut, PlacesRef {
        action_mask: [[i8; 3]; AGENTS],
        place: [[f32; 2]; AGENTS],
    }
}

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        agents: Places,
        flags: [[i8; AGENTS]; 5],
        rewards: [f64; AGENTS],
        state: [f64; 2],
    }
}

cartwheel::info! {
    pub(crate) struct Steps {
        steps: i64,
    }
}

impl Env for Relay {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = [i64; AGENTS];
    type Observation = Seen;
    type Info = Steps;
    type Shared = ();

    cartwheel::state! { flags, joined, place, rewards, steps }

    fn spaces(options: &Options, (): &()) -> Spaces {
        let floats = Space::shaped_box;
        let observation = Space::dict([
            (
                "agents",
                Space::dict([
                    ("action_mask", Space::MultiBinary(vec![AGENTS, 3])),
                    ("place", floats(DType::F32, &[AGENTS, 2], 0.0, 99.0)),
                ]),
            ),
            ("flags", AgentFlags::space(AGENTS)),
            ("rewards", floats(DType::F64, &[AGENTS], -9.0, 9.0)),
            ("state", floats(DType::F64, &[2], 0.0, 99.0)),
        ]);
        let action = Space::multi_discrete(&[3, 3, if options.uneven { 2 } else { 3 }]);
        Spaces { observation, action }
    }

    fn agents(_: &Options, (): &()) -> Vec<String> {
        ["left", "right", "late"].map(str::to_owned).to_vec()
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let (flags, place, rewards) = (AgentFlags::new(AGENTS), [0; AGENTS], [0.0; AGENTS]);
        let Options { fails, loud, .. } = *options;
        Ok(Self { fails, loud, flags, joined: false, place, rewards, steps: 0 })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.flags.clear();
        self.flags.join(0);
        self.flags.join(1);
        self.place = std::array::from_fn(|_| rng.integers(0..2));
        (self.joined, self.rewards, self.steps) = (false, [0.0; AGENTS], 0);
        Ok(())
    }

    fn step(&mut self, actions: &[i64; AGENTS], rng: &mut Rng) -> Result<Transition, Failure> {
        self.flags.step();
        (self.rewards, self.steps) = ([0.0; AGENTS], self.steps + 1);
        let mut arrived = false;
        for (agent, action) in actions.iter().copied().enumerate() {
            if !self.flags.acted(agent) {
                continue;
            }
            if self.fails && action == 2 && self.place[agent] % 2 == 1 {
                return Err(Failure::new(format!("agent {agent} stumbled")));
            }
            self.place[agent] += (action - rng.integers(0..2)).max(0);
            self.rewards[agent] = -1.0;
            if self.place[agent] >= 3 {
                self.flags.terminate(agent);
                self.rewards[agent] = 4.0;
                arrived = true;
            } else if action == 0 && rng.integers(0..4) == 0 {
                self.flags.truncate(agent);
            }
        }
        if arrived && !self.joined {
            self.joined = true;
            self.flags.join(2);
        }
        let reward = self.rewards.iter().sum();
        Ok(Transition { reward, terminated: self.flags.is_over(), truncated: false })
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn observe(&self, seen: SeenMut<'_>) {
        for agent in 0..AGENTS {
            let (is_there, place) = (self.flags.present(agent), self.place[agent]);
            let mask = [1, 1, i8::from(place % 2 == 0)];
            seen.agents.action_mask[agent] = if is_there { mask } else { [0; 3] };
            let shown = [place as f32, self.steps as f32];
            seen.agents.place[agent] = if is_there { shown } else { [0.0; 2] };
        }
        self.flags.write(seen.flags.as_flattened_mut());
        if self.loud {
            seen.flags.as_flattened_mut().iter_mut().for_each(|flag| *flag *= 2);
        }
        *seen.rewards = self.rewards;
        *seen.state = [self.steps as f64, self.place.iter().sum::<i64>() as f64];
    }

    fn info(&self) -> Steps {
        Steps { steps: self.steps }
    }
}
