//! `step_block` and `step` do the same.

use super::STEPS;
use super::error::{Finding, fail};
use super::life::{Screen, info_of, saved};
use super::subject::Subject;
use crate::env::{Block, Env, View};
use crate::{Rng, Transition};

const REMEDY: &str = "`step_block` must do what `step` does, to the last bit: the same arithmetic in the \
     same order, and the same draws. It must leave rows alone that are not running, and give a \
     transition to each row that it stepped.";

/// The state of a row after a step: everything that could differ.
#[derive(PartialEq)]
struct After {
    observation: Vec<u8>,
    info: Option<Vec<(String, Vec<u8>)>>,
    state: Vec<u8>,
    rng: Rng,
}

fn after<E: Env>(screen: &mut Screen<E>, env: &E, rng: &Rng) -> After {
    let (observation, info) = (screen.observed(env, 0), info_of(&env.info()).ok());
    After { observation, info, state: saved(env), rng: rng.clone() }
}

fn bits(transition: &Transition) -> (u64, bool, bool) {
    (transition.reward.to_bits(), transition.terminated, transition.truncated)
}

fn reset<E: Env>(env: &mut E, rng: &mut Rng) -> Result<(), Finding> {
    env.reset(rng, &E::ResetOptions::default()).or_else(|failure| fail(failure, REMEDY))
}

/// Blocks of every size, in which some rows do not run.
pub(super) fn blocks<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    if E::BLOCK == 1 {
        return Ok(());
    }
    for rows in [E::BLOCK, E::BLOCK / 2 + 1, 1] {
        let made = || (0..rows).map(|_| subject.make()).collect::<Result<Vec<E>, _>>();
        let (mut alone, mut together) = (made()?, made()?);
        let mut rngs: Vec<Rng> = (0..rows as u64).map(Rng::from_seed).collect();
        let mut both = rngs.clone();
        for row in 0..rows {
            reset(&mut alone[row], &mut rngs[row])?;
            reset(&mut together[row], &mut both[row])?;
        }
        let (mut screen, mut choice) = (Screen::new(subject), Rng::from_seed(rows as u64));
        for at in 0..STEPS {
            let actions = subject.sample(rows, &mut choice);
            let actions = actions.rows(E::Action::rows);
            let runs = |row: usize| at % 3 != 1 || !(row + at).is_multiple_of(4);
            let running: Vec<bool> = (0..rows).map(runs).collect();
            let mut transitions = vec![None; rows];
            E::step_block(&mut Block::new(
                (&mut together, &mut both),
                &running,
                &mut transitions,
                (&actions, 0),
            ));
            for row in 0..rows {
                let mut is_over = false;
                if running[row] {
                    let action = || E::Action::row(&actions, row);
                    let expected = alone[row].step(action(), &mut rngs[row]);
                    let expected = expected.or_else(|failure| fail(failure, REMEDY))?;
                    let stepped = match transitions[row] {
                        Some(stepped) => stepped,
                        None => together[row]
                            .step(action(), &mut both[row])
                            .or_else(|failure| fail(failure, REMEDY))?,
                    };
                    if bits(&stepped) != bits(&expected) {
                        let seen = format!(
                            "row {row} of {rows}, step {at}: {stepped:?} in a block, {expected:?} alone"
                        );
                        return fail(seen, REMEDY);
                    }
                    is_over = expected.terminated || expected.truncated;
                }
                let one = after(&mut screen, &together[row], &both[row]);
                let other = after(&mut screen, &alone[row], &rngs[row]);
                if one != other {
                    let part = if one.observation != other.observation {
                        "the observation"
                    } else if one.info != other.info {
                        "the info"
                    } else if one.state != other.state {
                        "the state"
                    } else {
                        "the random stream"
                    };
                    let ran = if running[row] { "ran" } else { "did not run" };
                    let seen = format!(
                        "{part} of row {row} of {rows}, which {ran}, differs after step {at}"
                    );
                    return fail(seen, REMEDY);
                }
                if is_over {
                    reset(&mut alone[row], &mut rngs[row])?;
                    reset(&mut together[row], &mut both[row])?;
                }
            }
        }
    }
    Ok(())
}
