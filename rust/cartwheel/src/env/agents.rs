//! Flags of several agents: which are there, and which have ended.

use cartwheel_core::space::Space;

use super::state::State;
use crate::failure::Failure;

/// Number of flags of an agent, and their places, in the order of the part `flags` of an observation.
const FLAGS: usize = 5;
const TERMINATED: usize = 0;
const TRUNCATED: usize = 1;
const PRESENT: usize = 2;
const ACTED: usize = 3;
const LIVES: usize = 4;

/// Which agents ended with the last step, are observed, were stepped, and live on: the part `flags` of
/// an observation, see [`Env::agents`](super::Env::agents).
///
/// ```
/// use cartwheel::AgentFlags;
///
/// let mut flags = AgentFlags::new(2);
/// flags.begin(); // a reset: both are there
/// flags.step(); // a step begins: both act
/// flags.terminate(1);
/// assert!(flags.acted(1) && !flags.lives(1) && !flags.is_over());
/// flags.step(); // the second is absent from now on
/// flags.terminate(1); // and stays so
/// flags.truncate(0);
/// assert!(!flags.present(1) && flags.is_over());
/// let mut shown = [[0; 2]; 5];
/// flags.write(shown.as_flattened_mut());
/// assert_eq!(shown, [[0, 0], [1, 0], [1, 0], [1, 0], [0, 0]]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFlags(Vec<[i8; FLAGS]>);

impl AgentFlags {
    /// The flags of `agents` agents, none of which is there, as before the first reset.
    pub fn new(agents: usize) -> Self {
        Self(vec![[0; FLAGS]; agents])
    }

    /// The space of the flags of `agents` agents: a [`Flat<i8>`](super::Flat), or an `[[i8; agents]; 5]`.
    pub fn space(agents: usize) -> Space {
        Space::MultiBinary(vec![FLAGS, agents])
    }

    /// An episode begins with all agents.
    pub fn begin(&mut self) {
        self.clear();
        (0..self.0.len()).for_each(|agent| self.join(agent));
    }

    /// No agent is there: an episode begins with those that [`AgentFlags::join`] it.
    pub fn clear(&mut self) {
        self.0.fill([0; FLAGS]);
    }

    /// A step begins: the agents that live act, and will be observed.
    pub fn step(&mut self) {
        for flags in &mut self.0 {
            let lives = flags[LIVES];
            *flags = [0, 0, lives, lives, lives];
        }
    }

    /// The agent ends here: its task is over. Its last observation is that of this step. One that ended
    /// in an earlier step is not there, and ends no second time.
    ///
    /// # Panics
    ///
    /// When there is no such agent. So do the functions below.
    pub fn terminate(&mut self, agent: usize) {
        self.end(agent, TERMINATED);
    }

    /// The agent ends here, because it is cut short; otherwise as [`AgentFlags::terminate`].
    pub fn truncate(&mut self, agent: usize) {
        self.end(agent, TRUNCATED);
    }

    fn end(&mut self, agent: usize, flag: usize) {
        let flags = &mut self.0[agent];
        (flags[flag], flags[LIVES]) = (flags[PRESENT], 0);
    }

    /// The agent joins: it is observed with this step, and acts from the next one on.
    pub fn join(&mut self, agent: usize) {
        (self.0[agent][PRESENT], self.0[agent][LIVES]) = (1, 1);
    }

    /// Whether the agent was stepped by the last step.
    pub fn acted(&self, agent: usize) -> bool {
        self.0[agent][ACTED] == 1
    }

    /// Whether there is an observation of the agent.
    pub fn present(&self, agent: usize) -> bool {
        self.0[agent][PRESENT] == 1
    }

    /// Whether the agent acts in the next step.
    pub fn lives(&self, agent: usize) -> bool {
        self.0[agent][LIVES] == 1
    }

    /// Whether no agent lives: the episode is over.
    pub fn is_over(&self) -> bool {
        self.0.iter().all(|flags| flags[LIVES] == 0)
    }

    /// Writes the part `flags` of an observation: an array of five rows, each with one flag of every
    /// agent.
    ///
    /// # Panics
    ///
    /// When it is of another number of agents.
    pub fn write(&self, flags: &mut [i8]) {
        let agents = self.0.len();
        assert_eq!(flags.len(), FLAGS * agents, "flags of {agents} agents");
        for (at, shown) in flags.iter_mut().enumerate() {
            *shown = self.0[at % agents][at / agents];
        }
    }
}

impl State for AgentFlags {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    /// # Errors
    ///
    /// A [`Failure`] for bytes that are not flags.
    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let flags: Vec<[i8; FLAGS]> = State::load(state)?;
        if flags.iter().flatten().all(|flag| matches!(flag, 0 | 1)) {
            return Ok(Self(flags));
        }
        Err(Failure::new("flags of agents are 0 or 1"))
    }
}
