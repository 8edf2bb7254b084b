//! An environment of agents with unequal spaces; its twin is in `tests/native/plugins/chase_and_relay.py`.

use std::sync::Arc;

use cartwheel::{
    AgentFlags, DType, Env, Error, Failure, Flat, NoOptions, Rng, Space, Spaces, Transition,
};

/// Their places; the hunter is between the scouts, so that neighbors have unequal spaces.
const NAMES: [&str; 3] = ["scout_0", "hunter", "scout_1"];
const HUNTER: usize = 1;

/// Scouts run to the cell 6 and terminate there; one that the hunter catches is cut short. The hunter
/// terminates with the last of them. It must not jump, which is its action 3, from odd cells.
pub(crate) struct Chase {
    cells: [i64; 3],
    flags: AgentFlags,
    rewards: [f64; 3],
}

cartwheel::view! {
    pub(crate) struct Hunter, HunterMut, HunterRef {
        action_mask: [i8; 4],
        cells: [i64; 3],
    }
}

cartwheel::view! {
    pub(crate) struct Agents, AgentsMut, AgentsRef {
        hunter: Hunter,
        scout_0: [f32; 2],
        scout_1: [f32; 2],
    }
}

cartwheel::view! {
    pub(crate) struct Moves, MovesMut, MovesRef {
        hunter: i64,
        scout_0: [f32; 1],
        scout_1: [f32; 1],
    }
}

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        agents: Agents,
        flags: Flat<i8>,
        rewards: [f64; 3],
    }
}

impl Chase {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn of_scout(&self, agent: usize) -> [f32; 2] {
        if self.flags.present(agent) {
            [self.cells[agent] as f32, (self.cells[HUNTER] - self.cells[agent]) as f32]
        } else {
            [0.0; 2]
        }
    }
}

impl Env for Chase {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = Moves;
    type Observation = Seen;
    type Info = ();
    type Shared = ();

    cartwheel::state! { cells, flags, rewards }

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let hunter = Space::dict([
            ("action_mask", Space::MultiBinary(vec![4])),
            ("cells", Space::shaped_box(DType::I64, &[3], -99.0, 99.0)),
        ]);
        let scout = || Space::shaped_box(DType::F32, &[2], -99.0, 99.0);
        let run = || Space::shaped_box(DType::F32, &[1], -1.0, 1.0);
        Spaces {
            observation: Space::dict([
                (
                    "agents",
                    Space::dict([("hunter", hunter), ("scout_0", scout()), ("scout_1", scout())]),
                ),
                ("flags", AgentFlags::space(3)),
                ("rewards", Space::shaped_box(DType::F64, &[3], -99.0, 99.0)),
            ]),
            action: Space::dict([
                ("hunter", Space::discrete(4)),
                ("scout_0", run()),
                ("scout_1", run()),
            ]),
        }
    }

    fn agents(_: &NoOptions, (): &()) -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { cells: [0; 3], flags: AgentFlags::new(3), rewards: [0.0; 3] })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.flags.begin();
        self.cells = [rng.integers(2..4), 0, rng.integers(2..4)];
        self.rewards = [0.0; 3];
        Ok(())
    }

    fn step(&mut self, moves: MovesRef<'_>, rng: &mut Rng) -> Result<Transition, Failure> {
        self.flags.step();
        self.rewards = [0.0; 3];
        self.cells[HUNTER] += moves.hunter;
        for (agent, run) in [(0, moves.scout_0[0]), (2, moves.scout_1[0])] {
            if !self.flags.acted(agent) {
                continue;
            }
            self.cells[agent] += rng.integers(0..2) + i64::from(run > 0.0);
            if self.cells[agent] >= 6 {
                self.flags.terminate(agent);
                self.rewards[agent] = 1.0;
            } else if self.cells[agent] <= self.cells[HUNTER] {
                self.flags.truncate(agent);
                self.rewards[HUNTER] += 2.0;
            }
        }
        if !self.flags.lives(0) && !self.flags.lives(2) {
            self.flags.terminate(HUNTER);
        }
        let reward = self.rewards.iter().sum();
        Ok(Transition { reward, terminated: self.flags.is_over(), truncated: false })
    }

    fn observe(&self, seen: SeenMut<'_>) {
        let is_there = self.flags.present(HUNTER);
        let mask = [1, 1, 1, i8::from(self.cells[HUNTER] % 2 == 0)];
        *seen.agents.hunter.action_mask = if is_there { mask } else { [0; 4] };
        *seen.agents.hunter.cells = if is_there { self.cells } else { [0; 3] };
        *seen.agents.scout_0 = self.of_scout(0);
        *seen.agents.scout_1 = self.of_scout(2);
        self.flags.write(seen.flags);
        *seen.rewards = self.rewards;
    }

    fn info(&self) {}
}
