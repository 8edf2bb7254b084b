//! Options are described, and their defaults are those of their types.

use super::error::{Finding, fail};
use crate::env::Env;
use crate::options::{EnvOptions, OptionDoc, names_of, parse};

/// Every keyword and every option of a reset has a description, and each describes an option.
pub(super) fn described<E: Env>() -> Result<(), Finding> {
    check::<E::Options>("`Options::describe`")?;
    check::<E::ResetOptions>("`ResetOptions::describe`")
}

fn check<T: EnvOptions>(what: &str) -> Result<(), Finding> {
    const REMEDY: &str = "`python -m cartwheel envs` shows a description of each option: make the struct with `options!` \
         and give each field a comment, or implement `EnvOptions::describe`.";
    let docs = T::describe();
    let names = names_of::<T>();
    if names == [""] {
        return Ok(()); // a map: any name
    }
    for name in names {
        match docs.iter().find(|doc| doc.name == *name) {
            None => return fail(format!("{what} does not have `{name}`"), REMEDY),
            Some(doc) if doc.text.trim().is_empty() => {
                return fail(format!("{what} has no text for `{name}`"), REMEDY);
            }
            Some(_) => {}
        }
    }
    for OptionDoc { name, default, .. } in docs {
        if !names.contains(&name) {
            return fail(format!("{what} has `{name}`, which is not an option"), REMEDY);
        }
        let Some(default) = default else { continue };
        if let Err(error) = parse::<T>(&format!("{{{name:?}: {default}}}")) {
            return fail(format!("{what} has a default that is refused: {error}"), REMEDY);
        }
    }
    Ok(())
}
