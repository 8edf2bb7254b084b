//! A kit that tests environments: one call plays an environment in every way and names what is wrong.
//!
//! It needs the feature `engine`, which is on by default. A library for Python turns it off, and lists
//! the crate once more among its `[dev-dependencies]`, where it is on.
//!
//! ```
//! # use std::sync::Arc;
//! # use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};
//! # struct Coin(i64);
//! # impl Env for Coin {
//! #     type Options = NoOptions;
//! #     type ResetOptions = NoOptions;
//! #     type Action = i64;
//! #     type Observation = i64;
//! #     type Info = ();
//! #     type Shared = ();
//! #     fn spaces(_: &NoOptions, _: &()) -> Spaces {
//! #         Spaces { observation: Space::discrete(2), action: Space::discrete(2) }
//! #     }
//! #     fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> { Ok(Self(0)) }
//! #     fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
//! #         self.0 = rng.integers(0..2);
//! #         Ok(())
//! #     }
//! #     fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
//! #         let reward = if action == self.0 { 1.0 } else { 0.0 };
//! #         self.0 = rng.integers(0..2);
//! #         Ok(Transition { reward, terminated: reward == 1.0, truncated: false })
//! #     }
//! #     fn observe(&self, observation: &mut i64) { *observation = self.0; }
//! #     fn info(&self) {}
//! # }
//! use cartwheel::testing::{CheckError, check_env};
//!
//! # fn main() -> Result<(), CheckError> {
//! check_env::<Coin>(NoOptions {})?; // in a test: fn coin() -> Result<(), CheckError>
//! # Ok(())
//! # }
//! ```

mod agents;
mod blocks;
mod error;
mod life;
mod options;
mod single;
mod subject;
mod values;
mod vectors;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::env::Env;
use crate::table::{panic_text, printing, watch_panics};
pub use error::CheckError;
use error::Finding;
use subject::Subject;
use vectors::Vectors;

/// Steps of each life.
const STEPS: usize = 64;

/// The names of the checks, in their order.
pub const CHECKS: &[&str] = &[
    "types",
    "options",
    "steps",
    "spaces",
    "agents",
    "same_seed",
    "other_seeds",
    "reads",
    "observe",
    "infos",
    "blocks",
    "states",
    "parameters",
    "recovers",
    "rows",
    "modes",
    "send_recv",
];

/// Checks that environments with these options keep what [`Env`] promises.
///
/// Each check plays lives of 64 steps with random actions, and compares them bit for bit:
///
/// * `types`: the types fit the spaces, and the options are valid.
/// * `options`: keywords and options of a reset have descriptions, and valid defaults.
/// * `steps`: resets succeed, and so do steps with actions of the space.
/// * `spaces`: observations lie in their spaces, rewards are finite.
/// * `agents`: flags of several agents follow from those before, rewards and observations of agents
///   from their flags, and the end of the episode from all of them.
/// * `same_seed`, `other_seeds`: the same seed gives the same life; other seeds give others, if
///   anything is random: if a second episode with the same actions differs from the first.
/// * `reads`: `observe` and `info` change nothing.
/// * `observe`: every element is always written, also before the first reset. Memory is filled with
///   two patterns in turn, so that an element that is never or not always written shows.
/// * `infos`: every value can be read, and a key has one type, and arrays of one shape.
/// * `blocks`: `step_block` equals `step` to the last bit, and leaves rows alone that do not run.
/// * `states`: rows go on alike from a saved state, in another environment too, with the parameters
///   that were set.
/// * `parameters`: setting a parameter to its own value changes nothing.
/// * `recovers`: a reset after a step with an action outside of the space, whatever that led to,
///   begins as any other.
/// * `rows`, `modes`, `send_recv`: each row of a [`VectorEnv`](crate::VectorEnv) does what an
///   environment alone does, with any rows, threads and blocks, in every autoreset mode, stepped
///   or sent.
///
/// Where no episode ends by nature, episodes are truncated after a few steps.
///
/// # Errors
///
/// [`CheckError`]: the first check that fails, and how to fix the environment. A panic is one, too.
pub fn check_env<E: Env>(options: E::Options) -> Result<(), CheckError> {
    watch_panics();
    let _printing = printing(false);
    let mut subject = run::<E, _>("types", || Subject::<E>::new(options))?;
    run::<E, _>("options", options::described::<E>)?;
    run::<E, _>("steps", || subject.steps())?;
    run::<E, _>("spaces", || single::spaces(&subject))?;
    run::<E, _>("agents", || agents::agents(&subject))?;
    run::<E, _>("same_seed", || single::same_seed(&subject))?;
    run::<E, _>("other_seeds", || single::other_seeds(&subject))?;
    run::<E, _>("reads", || single::reads(&subject))?;
    run::<E, _>("observe", || single::observe(&subject))?;
    run::<E, _>("infos", || single::infos(&subject))?;
    run::<E, _>("blocks", || blocks::blocks(&subject))?;
    run::<E, _>("states", || single::states(&subject))?;
    run::<E, _>("parameters", || single::parameters(&subject))?;
    run::<E, _>("recovers", || single::recovers(&subject))?;
    let vectors = run::<E, _>("rows", || Vectors::new(subject))?;
    run::<E, _>("rows", || vectors.rows())?;
    run::<E, _>("modes", || vectors.modes())?;
    run::<E, _>("send_recv", || vectors.send_recv())
}

/// Runs a check; a panic is a failure of it.
fn run<E: Env, T>(
    check: &'static str,
    call: impl FnOnce() -> Result<T, Finding>,
) -> Result<T, CheckError> {
    let ended = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        error::fail(
            format!("it panicked: {}", panic_text(payload)),
            "An environment must not panic for actions of its space: correct the code, or the space.",
        )
    });
    let env = std::any::type_name::<E>();
    ended.map_err(|Finding { seen, remedy }| CheckError { env, check, finding: seen, remedy })
}
