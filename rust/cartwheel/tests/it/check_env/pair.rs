//! An environment of two agents, with one defect at a time.

use std::sync::Arc;

use cartwheel::{
    AgentFlags, DType, Env, Error, Failure, Flat, NoOptions, Rng, Space, Spaces, Transition,
};

/// A defect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub(crate) enum PairDefect {
    #[default]
    None,
    ThreeNames,
    ResetsNoFlags,
    BeginsNoStep,
    RewardsAbsent,
    ShowsAbsent,
    NeverOver,
}

cartwheel::options! {
    pub(crate) struct PairOptions {
        /// The defect.
        defect: PairDefect,
    }
}

cartwheel::view! {
    pub(crate) struct Both, BothMut, BothRef {
        agents: Flat<u8>,
        flags: Flat<i8>,
        rewards: Flat<f64>,
    }
}

/// The first agent ends with the second step, the other one with the fourth.
pub(crate) struct Pair {
    defect: PairDefect,
    flags: AgentFlags,
    steps: usize,
}

impl Env for Pair {
    type Options = PairOptions;
    type ResetOptions = NoOptions;
    type Action = Flat<i64>;
    type Observation = Both;
    type Info = ();
    type Shared = ();

    fn spaces(_: &PairOptions, (): &()) -> Spaces {
        Spaces {
            observation: Space::dict([
                ("agents", Space::integer_box(DType::U8, &[2, 3], 0, 9)),
                ("flags", AgentFlags::space(2)),
                ("rewards", Space::shaped_box(DType::F64, &[2], 0.0, 1.0)),
            ]),
            action: Space::multi_discrete(&[2; 2]),
        }
    }

    fn agents(options: &PairOptions, (): &()) -> Vec<String> {
        let count = if options.defect == PairDefect::ThreeNames { 3 } else { 2 };
        (0..count).map(|agent| format!("agent_{agent}")).collect()
    }

    fn new(options: &PairOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { defect: options.defect, flags: AgentFlags::new(2), steps: 0 })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        let is_first = self.steps == 0;
        if is_first || self.defect != PairDefect::ResetsNoFlags {
            self.flags.begin();
        }
        self.steps = 0;
        Ok(())
    }

    fn step(&mut self, _: &[i64], _: &mut Rng) -> Result<Transition, Failure> {
        self.steps += 1;
        if self.defect != PairDefect::BeginsNoStep {
            self.flags.step();
        }
        match self.steps {
            2 => self.flags.terminate(0),
            4 => self.flags.truncate(1),
            _ => {}
        }
        let terminated = self.flags.is_over() && self.defect != PairDefect::NeverOver;
        Ok(Transition { reward: 0.0, terminated, truncated: self.steps == 6 })
    }

    fn observe(&self, both: BothMut<'_>) {
        for (agent, shown) in both.agents.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let is_shown = self.flags.present(agent) || self.defect == PairDefect::ShowsAbsent;
            *shown = if is_shown { [7; 3] } else { [0; 3] };
            let is_paid = self.flags.acted(agent) || self.defect == PairDefect::RewardsAbsent;
            both.rewards[agent] = if is_paid { 1.0 } else { 0.0 };
        }
        self.flags.write(both.flags);
    }

    fn info(&self) {}
}
