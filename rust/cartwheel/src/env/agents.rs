//! Flags of several agents: which are there, and which have ended.

use cartwheel_core::space::Space;

use super::state::State;
use crate::failure::Failure;

const TERMINATED: usize = 0;
const TRUNCATED: usize = 1;
const PRESENT: usize = 2;
const ACTED: usize = 3;
const LIVES: usize = 4;

/// Which of `N` agents ended with the last step, are observed, were stepped, and live on: the part
/// `flags` of an observation, see [`Env::agents`](super::Env::agents).
///
/// ```
/// use cartwheel::AgentFlags;
///
/// let mut flags = AgentFlags::<2>::default();
/// flags.begin(); // a reset: both are there
/// flags.step(); // a step begins: both act
/// flags.terminate(1);
/// assert!(flags.acted(1) && !flags.lives(1) && !flags.is_over());
/// flags.step(); // the second is absent from now on
/// flags.truncate(0);
/// assert!(!flags.present(1) && flags.is_over());
/// let mut shown = [[0; 2]; 5];
/// flags.write(&mut shown);
/// assert_eq!(shown, [[0, 0], [1, 0], [1, 0], [1, 0], [0, 0]]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFlags<const N: usize>([[i8; N]; 5]);

impl<const N: usize> AgentFlags<N> {
    /// The space of `flags`.
    pub fn space() -> Space {
        Space::MultiBinary(vec![5, N])
    }

    /// An episode begins with all agents.
    pub fn begin(&mut self) {
        *self = Self::default();
        self.0[PRESENT] = [1; N];
        self.0[LIVES] = [1; N];
    }

    /// A step begins: the agents that live act, and will be observed.
    pub fn step(&mut self) {
        let lives = self.0[LIVES];
        self.0 = [[0; N], [0; N], lives, lives, lives];
    }

    /// The agent ends here: its task is over. Its last observation is that of this step.
    ///
    /// # Panics
    ///
    /// When `agent` is `N` or more.
    pub fn terminate(&mut self, agent: usize) {
        self.end(agent, TERMINATED);
    }

    /// The agent ends here, because it is cut short.
    ///
    /// # Panics
    ///
    /// When `agent` is `N` or more.
    pub fn truncate(&mut self, agent: usize) {
        self.end(agent, TRUNCATED);
    }

    fn end(&mut self, agent: usize, flag: usize) {
        self.0[flag][agent] = 1;
        self.0[LIVES][agent] = 0;
    }

    /// The agent joins: it is observed with this step, and acts from the next one on.
    ///
    /// # Panics
    ///
    /// When `agent` is `N` or more.
    pub fn join(&mut self, agent: usize) {
        self.0[PRESENT][agent] = 1;
        self.0[LIVES][agent] = 1;
    }

    /// Whether the agent was stepped by the last step.
    ///
    /// # Panics
    ///
    /// When `agent` is `N` or more, as the functions below.
    pub fn acted(&self, agent: usize) -> bool {
        self.0[ACTED][agent] == 1
    }

    /// Whether there is an observation of the agent.
    pub fn present(&self, agent: usize) -> bool {
        self.0[PRESENT][agent] == 1
    }

    /// Whether the agent acts in the next step.
    pub fn lives(&self, agent: usize) -> bool {
        self.0[LIVES][agent] == 1
    }

    /// Whether no agent lives: the episode is over.
    pub fn is_over(&self) -> bool {
        self.0[LIVES] == [0; N]
    }

    /// Writes the part `flags` of an observation.
    pub fn write(&self, flags: &mut [[i8; N]; 5]) {
        *flags = self.0;
    }
}

/// No agent is there, as before the first reset.
impl<const N: usize> Default for AgentFlags<N> {
    fn default() -> Self {
        Self([[0; N]; 5])
    }
}

impl<const N: usize> State for AgentFlags<N> {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    /// # Errors
    ///
    /// A [`Failure`] for bytes that are not flags.
    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let flags = <[[i8; N]; 5]>::load(state)?;
        if flags.iter().flatten().all(|flag| matches!(flag, 0 | 1)) {
            return Ok(Self(flags));
        }
        Err(Failure::new("flags of agents are 0 or 1"))
    }
}
