//! Checks of one environment alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cartwheel_core::info::{InfoReader, Value};
use cartwheel_core::{Error, drop_payload};

use super::STEPS;
use super::error::{Finding, fail};
use super::life::{Single, compare, saved};
use super::subject::Subject;
use super::values::outside;
use crate::env::{Arrays, Env, ParameterValue, View};

/// Moments of a life at which its state is saved.
const SAVED: [usize; 4] = [0, 1, STEPS / 2, STEPS - 3];

const ONLY_READS: &str = "`observe` and `info` must only read the state: whether a row is shown once, \
     twice or not at all must not matter. What `step` computes for them is part of the state.";

/// Observations lie in their space, rewards are numbers.
pub(super) fn spaces<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    for seed in 0..3 {
        for (at, event) in subject.life(seed)?.iter().enumerate() {
            for (leaf, (name, bytes)) in subject.names.iter().enumerate() {
                let space = subject.spaces.observation.array(leaf);
                if let Some(what) = outside(space, &event.observation[bytes.clone()]) {
                    return fail(
                        format!("{name}: {what} (event {at} with the seed {seed})"),
                        "`observe` must write values within the bounds that `spaces` declares: widen \
                         the bounds or clip the values.",
                    );
                }
            }
            if !f64::from_bits(event.reward).is_finite() {
                return fail(
                    format!("the reward is {} (event {at})", f64::from_bits(event.reward)),
                    "Rewards must be finite.",
                );
            }
        }
    }
    Ok(())
}

/// The same seed gives the same life.
pub(super) fn same_seed<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    compare(
        &subject.life(11)?,
        &subject.life(11)?,
        &subject.names,
        "All randomness must come from the `Rng` that `reset` and `step` get, and nothing may be kept \
         in statics, clocks, addresses or the order of hash maps.",
        |field, at| format!("{field} differs in event {at} of two environments with the seed 11"),
    )
}

/// Other seeds give other lives, if anything is random: if a second episode with the same actions
/// differs from the first.
pub(super) fn other_seeds<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    let actions = subject.actions(0);
    let life = |seed| Single::new(subject, seed)?.live(&actions, 0..STEPS);
    let lives = (0..8).map(life).collect::<Result<Vec<_>, _>>()?;
    if lives.iter().any(|life| *life != lives[0]) {
        return Ok(());
    }
    let mut single = Single::new(subject, 0)?;
    let first = single.live(&actions, 0..STEPS)?;
    single.over = true;
    let second = single.live(&actions, 0..STEPS)?;
    if first == second {
        return Ok(()); // deterministic
    }
    fail(
        "8 seeds give the same life, but a second episode with the same actions differs",
        "The seed must choose the random numbers: draw them from the `Rng` that `reset` and `step` \
         get.",
    )
}

/// `observe` writes every element, also before the first reset.
pub(super) fn observe<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    const REMEDY: &str = "`observe` must write every element, zeros too: the memory holds an older \
         observation. Begin with `fill(0)` where some elements are not set.";
    let (actions, mut single) = (subject.actions(1), Single::new(subject, 1)?);
    let mut unwritten = Vec::new(); // for each moment, of each byte
    for at in 0..STEPS {
        let (one, other) = (single.observed(0x00), single.observed(0xa5));
        unwritten.push(one.iter().zip(&other).map(|(one, other)| one != other).collect::<Vec<_>>());
        single.live(&actions, at..at + 1)?;
    }
    let first = |byte: usize| unwritten.iter().position(|bytes| bytes[byte]);
    let never = |byte: usize| unwritten.iter().all(|bytes| bytes[byte]);
    let leaves = subject.spaces.observation.leaves();
    for (leaf, (name, bytes)) in leaves.iter().zip(&subject.names) {
        let Some(byte) = bytes.clone().find(|&byte| first(byte).is_some()) else { continue };
        if bytes.clone().all(never) {
            return fail(format!("{name} is never written"), REMEDY);
        }
        let element = (byte - bytes.start) / leaf.dtype.size();
        if never(byte) {
            return fail(format!("element {element} of {name} is never written"), REMEDY);
        }
        let moment = match first(byte).unwrap_or_default() {
            0 => "before the first reset".to_owned(),
            steps => format!("after {steps} steps"),
        };
        let seen = format!("element {element} of {name} is not always written: not {moment}");
        return fail(seen, REMEDY);
    }
    Ok(())
}

/// `observe` and `info` change nothing.
pub(super) fn reads<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    let expected = subject.life(2)?;
    let (actions, mut single) = (subject.actions(2), Single::new(subject, 2)?);
    let mut life = Vec::new();
    for at in 0..STEPS {
        let before = saved(&single.env);
        let first = single.observed(0);
        for _ in 0..3 {
            single.env.info();
            if single.observed(0) != first {
                return fail(format!("a second `observe` differs (before step {at})"), ONLY_READS);
            }
        }
        if saved(&single.env) != before {
            return fail(format!("`observe` or `info` changed the state (step {at})"), ONLY_READS);
        }
        life.extend(single.live(&actions, at..at + 1)?);
    }
    compare(&life, &expected, &subject.names, ONLY_READS, |field, at| {
        format!("{field} of event {at} depends on how often the row was shown before")
    })
}

/// Keys that vector environments add to infos, as the mask of a key, which begins with an underscore.
const RESERVED: [&str; 4] = ["final_obs", "final_info", "env_index", "env_error"];

/// A key of an info has one type in all steps, and one at all resets; its arrays have one shape. So have
/// the keys of dictionaries in it. No key is one that vector environments add.
pub(super) fn infos<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    let (mut types, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..3 {
        for event in subject.life(seed)? {
            let mut values = Vec::new();
            for (key, value) in &event.info {
                if key.starts_with('_') || RESERVED.contains(&key.as_str()) {
                    return fail(
                        format!("info[{key:?}] is a key of vector environments"),
                        "They add `final_obs`, `final_info`, `env_index`, `env_error` and a mask \
                         `_key` for each key, which would be lost or replaced: choose another name.",
                    );
                }
                let read =
                    values_of(format!("[{key:?}]"), &mut InfoReader::new(value, 0), &mut values);
                read.expect("the event's values were read");
            }
            for (path, value) in values {
                let (form, shape) = form_of(value);
                let known = types.entry((event.is_reset, path.clone())).or_insert(form.clone());
                if *known != form {
                    return fail(
                        format!("info{path} has several types: {known} and {form}"),
                        "A key must have one type in all steps, and one at all resets: a column of \
                         it has one dtype. Leave the key out with `None` where there is no value.",
                    );
                }
                let Some(shape) = shape else { continue };
                let known = shapes.entry(path.clone()).or_insert(shape.clone());
                if *known != shape {
                    return fail(
                        format!("info{path} has arrays of several shapes: {known:?} and {shape:?}"),
                        "A batch has the arrays of a key as one array, so all rows must have one \
                         shape. Numbers whose count varies are a `List`, or an array that is as long \
                         as the longest.",
                    );
                }
            }
        }
    }
    Ok(())
}

/// Reads a value, and lists it and those of the dictionaries in it, each with its keys.
fn values_of<'a>(
    path: String,
    reader: &mut InfoReader<'a>,
    values: &mut Vec<(String, Value<'a>)>,
) -> Result<(), Error> {
    let mut parts = *reader;
    reader.skip()?;
    let value = parts.value()?;
    if let Value::Dict(entries) = value {
        for _ in 0..entries {
            let key = parts.entry()?.key;
            values_of(format!("{path}[{key:?}]"), &mut parts, values)?;
        }
    }
    values.push((path, value));
    Ok(())
}

/// The type of a value, as the dtype of its column, and the shape of an array.
fn form_of(value: Value<'_>) -> (String, Option<Vec<u32>>) {
    let form = match value {
        Value::Array(dtype, shape, _) => {
            let shape = shape.iter().map(|&length| u32::from_le_bytes(length)).collect();
            return (format!("an array of {}", dtype.name()), Some(shape));
        }
        Value::Scalar(dtype, _) => dtype.name(),
        Value::None => "None",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "str",
        Value::Dict(_) => "dict",
        Value::Tuple(_) => "tuple",
        Value::List(_) => "list",
        Value::Foreign(_) | Value::Object(_) => "object",
    };
    (form.to_owned(), None)
}

const COMPLETE: &str = "`save` must write everything that steps, resets, observations and infos \
     depend on, and `load` must restore all of it: name every field in `state!`.";

/// A row goes on alike from a saved state, in an environment that did something else before.
pub(super) fn states<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    if !E::SAVES {
        return Ok(());
    }
    let actions = subject.actions(3);
    for moment in SAVED {
        let mut single = Single::new(subject, 3)?;
        single.live(&actions, 0..moment)?;
        if single.over {
            single.reset()?;
        }
        let (state, rng, steps) = (saved(&single.env), single.rng.clone(), single.steps);
        let shown = single.observed(0);
        let expected = single.live(&actions, moment..STEPS)?;
        let mut other = Single::new(subject, 99)?;
        other.live(&subject.actions(4), 0..STEPS / 3)?;
        if let Err(failure) = other.env.load(&state) {
            return fail(format!("`load` refuses what `save` wrote: {failure}"), COMPLETE);
        }
        if saved(&other.env) != state {
            return fail(format!("`save` after `load` differs (before step {moment})"), COMPLETE);
        }
        if other.observed(0) != shown {
            return fail(format!("`load` shows another observation (step {moment})"), COMPLETE);
        }
        (other.rng, other.steps, other.over) = (rng, steps, false);
        let life = other.live(&actions, moment..STEPS)?;
        compare(&life, &expected, &subject.names, COMPLETE, |field, at| {
            format!("{field} differs {} events after a state was loaded", at + 1)
        })?;
    }
    E::parameters().iter().try_for_each(|name| keeps_parameter(subject, name))
}

/// A saved state has a parameter that was set, as far as another value of it can be guessed.
fn keeps_parameter<E: Env>(subject: &Subject<E>, name: &str) -> Result<(), Finding> {
    let begun = || {
        let mut single = Single::new(subject, 3)?;
        single.reset().map(|_| single.env)
    };
    // As text: a value that is NaN equals itself there.
    let get = |env: &E| env.parameter(name).map(|own| format!("{:?}", own.get()));
    let present = begun()?.parameter(name).map(crate::Parameter::get);
    for value in present.iter().flat_map(others) {
        let mut env = begun()?;
        let set = catch_unwind(AssertUnwindSafe(|| {
            let set = env.parameter_mut(name)?.set(value).and_then(|()| env.check_parameter(name));
            env.parameters_changed();
            set.ok()
        }));
        let Ok(Some(())) = set.map_err(drop_payload) else { continue };
        let mut other = subject.make()?;
        if let Err(failure) = other.load(&saved(&env)) {
            let seen =
                format!("`load` refuses what `save` wrote after {name:?} was set: {failure}");
            return fail(seen, COMPLETE);
        }
        if get(&other) != get(&env) {
            let seen = format!("a loaded state does not have the parameter {name:?} that was set");
            return fail(seen, COMPLETE);
        }
    }
    Ok(())
}

/// Values near this one, which a parameter may take or refuse.
fn others(value: &ParameterValue) -> Vec<ParameterValue> {
    use ParameterValue as V;
    match value {
        V::Bool(flag) => vec![V::Bool(!flag)],
        V::Int(int) => vec![V::Int(int.wrapping_sub(1)), V::Int(int.wrapping_add(1))],
        V::Float(float) => vec![V::Float(float / 2.0), V::Float(float + 0.25)],
        V::Float32(float) => vec![V::Float32(float / 2.0), V::Float32(float + 0.25)],
        other => {
            let parts = other.parts().unwrap_or_default();
            let Some((first, rest)) = parts.split_first() else { return Vec::new() };
            let list =
                |first| V::List(std::iter::once(first).chain(rest.iter().cloned()).collect());
            others(first).into_iter().map(list).collect()
        }
    }
}

/// Parameters are there, can be set to what they are, and this changes nothing.
pub(super) fn parameters<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    const REMEDY: &str = "A parameter must read back as it was set, and setting it to its own value \
         must change nothing: write `parameter`, `parameter_mut` and `parameters` by `parameters!`, \
         compute what depends on them in `parameters_changed`, and accept in `check_parameter` what \
         episodes lead to.";
    let expected = subject.life(5)?;
    let (actions, mut single) = (subject.actions(5), Single::new(subject, 5)?);
    let mut life = Vec::new();
    for at in 0..STEPS {
        life.extend(single.live(&actions, at..at + 1)?);
        for name in E::parameters() {
            let get = |env: &E| env.parameter(name).map(crate::Parameter::get);
            let Some(value) = get(&single.env) else {
                return fail(
                    format!("there is no parameter {name:?}, which `parameters` names"),
                    REMEDY,
                );
            };
            let Some(own) = single.env.parameter_mut(name) else {
                return fail(format!("parameter {name:?} cannot be set"), REMEDY);
            };
            let _ = own.set(value.clone()); // a parameter may be read-only, if it stays as it is
            if let Err(error) = single.env.check_parameter(name) {
                let refusal = format!("`check_parameter` refuses {name:?} as it is: it {error}");
                return fail(refusal, REMEDY);
            }
            single.env.parameters_changed();
            let back = get(&single.env).unwrap_or(crate::ParameterValue::None);
            // As texts: a value that is NaN equals itself there.
            if format!("{back:?}") != format!("{value:?}") {
                return fail(
                    format!("parameter {name:?} was set to {value}, and is {back}"),
                    REMEDY,
                );
            }
        }
    }
    compare(&life, &expected, &subject.names, REMEDY, |field, at| {
        format!("{field} of event {at} differs after parameters were set to what they were")
    })
}

/// Whatever an action outside of its space leads to, the next reset begins as if nothing had
/// happened.
pub(super) fn recovers<E: Env>(subject: &Subject<E>) -> Result<(), Finding> {
    const REMEDY: &str = "`reset` must begin an episode whatever happened before, also after a step \
         that failed or panicked in the middle: set every field.";
    let expected = subject.life(6)?;
    let leaves = subject.spaces.action.leaves();
    for pattern in [0xff_u8, 0x7f, 0x00] {
        let mut wild = Arrays::new(leaves.clone(), 1);
        for (leaf, shape) in leaves.iter().enumerate() {
            let bit = shape.dtype == crate::DType::Bool;
            let pattern = if bit { pattern & 1 } else { pattern };
            wild.store(leaf, &vec![pattern; shape.row_bytes()]);
        }
        let wild = wild.rows(E::Action::rows);
        let mut single = Single::new(subject, 1)?;
        single.live(&subject.actions(1), 0..3)?;
        let mut rng = single.rng.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            single
                .env
                .step(E::Action::row(&wild, 0), &mut rng)
                .map(drop)
                .map_err(|error| error.to_string())
        }));
        if let Err(payload) = ended {
            drop_payload(payload);
        }
        (single.rng, single.over) = (crate::Rng::from_seed(6), true);
        let life = single.live(&subject.actions(6), 0..STEPS)?;
        compare(&life, &expected, &subject.names, REMEDY, |field, at| {
            format!(
                "{field} of event {at} differs after a step with an action outside of its space"
            )
        })?;
    }
    Ok(())
}
