//! Requests about all rows of a shard: parameters, random number streams, snapshots.

use super::mailbox::{Answer, Request};
use super::rows::EnvColumns;
use super::snapshot::save;
use super::stream::Stream;
use crate::autoreset::Autoreset;
use crate::env::{Env, Parameter, ParameterValue};
use crate::error::Error;
use cartwheel_core::rng::Rng;

/// Carries out a request about all rows of a shard.
pub(super) fn answer<E: Env>(
    columns: &mut EnvColumns<E>,
    autoreset: &Autoreset,
    request: Request,
) -> Result<Answer, Error> {
    match request {
        Request::Get(name) => {
            let values = columns.envs.iter().map(|env| {
                env.parameter(&name).map(Parameter::get).ok_or_else(|| no_such::<E>(&name))
            });
            values.collect::<Result<_, _>>().map(Answer::Values)
        }
        Request::Set(name, values) => set(columns, &name, values).map(|()| Answer::Done),
        Request::Save => {
            let rows = 0..columns.envs.len();
            rows.map(|row| save(columns, autoreset, row))
                .collect::<Result<_, _>>()
                .map(Answer::Snapshots)
        }
        Request::Streams => {
            let EnvColumns { rngs, seeds, .. } = columns;
            let streams = seeds.iter().zip(rngs);
            let streams = streams.map(|(seed, rng)| Stream { seed: seed.clone(), at: rng.state() });
            Ok(Answer::Streams(streams.collect()))
        }
        Request::SetStreams(streams) => {
            let EnvColumns { rngs, seeds, .. } = columns;
            for ((seed, rng), stream) in seeds.iter_mut().zip(rngs).zip(streams) {
                (*seed, *rng) = (stream.seed, Rng::from_state(stream.at));
            }
            Ok(Answer::Done)
        }
    }
}

fn set<E: Env>(
    columns: &mut EnvColumns<E>,
    name: &str,
    values: Vec<ParameterValue>,
) -> Result<(), Error> {
    columns.keep_shown();
    let (mut rows, mut first) = (Vec::new(), None);
    for (row, (env, value)) in columns.envs.iter_mut().zip(values).enumerate() {
        let set = env.parameter_mut(name).ok_or_else(|| no_such::<E>(name))?.set(value);
        env.parameters_changed();
        if let Err(error) = set {
            rows.push(row);
            first = first.or(Some(error));
        }
    }
    first.map_or(Ok(()), |error| Err(Error::BadValues { rows, reason: error.to_string() }))
}

fn no_such<E: Env>(name: &str) -> Error {
    let names = E::parameters().join(", ");
    cartwheel_core::Error::BadParameter(format!(
        "there is no parameter {name:?}; there are: {names}"
    ))
    .into()
}
