//! An environment whose number of agents an option decides.

use std::sync::Arc;

use cartwheel::{
    AgentFlags, DType, Env, Error, Failure, Flat, List, NoOptions, Rng, Space, Spaces, Transition,
};

/// Player `i` has fuel for `i + 1` moves, each of which is worth 1. A player without fuel is out, which
/// every further step says again, as programs do that look at all players.
pub(crate) struct Team {
    last: usize,
    fuel: Vec<i64>,
    rewards: Vec<f64>,
    flags: AgentFlags,
}

cartwheel::options! {
    pub(crate) struct Options {
        /// Number of players that end the episode when no others are left.
        last: usize,
        /// Number of players.
        players: usize = 3,
    }
}

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        agents: Flat<i64>,
        flags: Flat<i8>,
        rewards: Flat<f64>,
    }
}

cartwheel::info! {
    pub(crate) struct Left {
        /// Players that are not out.
        left: usize,
        /// The same, in a list that gets shorter.
        players: List<usize>,
    }
}

impl Env for Team {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = Flat<i64>;
    type Observation = Seen;
    type Info = Left;
    type Shared = ();

    cartwheel::state! { fuel, rewards, flags }

    fn spaces(&Options { players, .. }: &Options, (): &()) -> Spaces {
        Spaces {
            observation: Space::dict([
                ("agents", Space::integer_box(DType::I64, &[players, 1], 0, 99)),
                ("flags", AgentFlags::space(players)),
                ("rewards", Space::shaped_box(DType::F64, &[players], 0.0, 1.0)),
            ]),
            action: Space::multi_discrete(&vec![2; players]),
        }
    }

    fn agents(&Options { players, .. }: &Options, (): &()) -> Vec<String> {
        (0..players).map(|player| format!("player_{player}")).collect()
    }

    fn new(&Options { last, players }: &Options, _: &Arc<()>) -> Result<Self, Error> {
        if !(1..=99).contains(&players) {
            return Err(Error::bad_options(format!("`players` must be 1 to 99, got {players}")));
        }
        let flags = AgentFlags::new(players);
        Ok(Self { last, fuel: vec![0; players], rewards: vec![0.0; players], flags })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.flags.begin();
        self.rewards.fill(0.0);
        self.fuel.iter_mut().zip(1..).for_each(|(fuel, moves)| *fuel = moves);
        Ok(())
    }

    fn step(&mut self, actions: &[i64], _: &mut Rng) -> Result<Transition, Failure> {
        self.flags.step();
        self.rewards.fill(0.0);
        for (player, &moves) in actions.iter().enumerate() {
            if self.flags.acted(player) && moves == 1 {
                self.fuel[player] -= 1;
                self.rewards[player] = 1.0;
            }
            if self.fuel[player] == 0 {
                self.flags.terminate(player);
            }
        }
        let left = self.fuel.iter().filter(|&&fuel| fuel > 0).count();
        let reward = self.rewards.iter().sum();
        Ok(Transition { reward, terminated: left <= self.last, truncated: false })
    }

    fn observe(&self, seen: SeenMut<'_>) {
        seen.agents.copy_from_slice(&self.fuel);
        seen.rewards.copy_from_slice(&self.rewards);
        self.flags.write(seen.flags);
    }

    fn info(&self) -> Left {
        let players: Vec<usize> =
            (0..self.fuel.len()).filter(|&player| self.fuel[player] > 0).collect();
        Left { left: players.len(), players: players.into() }
    }
}
