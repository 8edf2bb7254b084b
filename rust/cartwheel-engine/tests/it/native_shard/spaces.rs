//! The spaces of a native environment equal those that Gymnasium builds from them.

use std::sync::Arc;

use cartwheel::{Env, Failure, NoOptions, Rng, Space, Spaces, Transition};

use super::PLUGIN;
use crate::support::kind;

/// Its observations and actions are two numbers with names; the names are an option.
#[derive(Debug, Clone)]
pub(crate) struct Named;

cartwheel::options! {
    pub(crate) struct Options {
        keys: [String; 2] = ["left", "right"].map(str::to_owned),
        /// Whether the names are in the action space, one level deep.
        is_nested: bool,
    }
}

impl Env for Named {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = (i64, i64);
    type Observation = (i64, i64);
    type Info = ();
    type Shared = ();

    fn spaces(options: &Options, (): &()) -> Spaces {
        let named = |keys: [&str; 2]| {
            Space::Dict(keys.map(|key| (key.to_owned(), Space::discrete(2))).into())
        };
        let [first, second] = &options.keys;
        if options.is_nested {
            let action = Space::Tuple(vec![named([first, second])]);
            return Spaces { observation: named(["left", "right"]), action };
        }
        Spaces { observation: named([first, second]), action: named(["left", "right"]) }
    }

    fn new(_: &Options, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: (i64, i64), _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition::RESET)
    }

    fn observe(&self, observation: (&mut i64, &mut i64)) {
        *observation.0 = 0;
        *observation.1 = 1;
    }

    fn info(&self) {}
}

fn refused(options: &str) -> String {
    let refused = kind(&PLUGIN, "test/Named-v0", options).unwrap_err().to_string();
    refused.strip_prefix("test/Named-v0: ").unwrap().to_owned()
}

#[test]
fn keys_that_gymnasium_would_sort_are_refused_by_name() {
    assert!(kind(&PLUGIN, "test/Named-v0", "").is_ok());
    assert_eq!(
        refused(r#"{"keys": ["speed", "angle"]}"#),
        r#"the observation space has the keys ["speed", "angle"]: order them alphabetically, each once: ["angle", "speed"]"#
    );
    // Python sorts by code points and Rust by bytes of UTF-8, which is the same order.
    assert!(kind(&PLUGIN, "test/Named-v0", r#"{"keys": ["Z", "a"]}"#).is_ok());
    assert!(kind(&PLUGIN, "test/Named-v0", r#"{"keys": ["\uFFFD", "\uD83D\uDE00"]}"#).is_ok());
}

#[test]
fn keys_of_nested_spaces_are_checked_too() {
    let nested = refused(r#"{"keys": ["speed", "angle"], "is_nested": true}"#);
    assert!(
        nested.starts_with(r#"the action.0 space has the keys ["speed", "angle"]"#),
        "{nested}"
    );
}

#[test]
fn a_duplicate_key_is_refused() {
    let twice = refused(r#"{"keys": ["speed", "speed"]}"#);
    assert!(twice.ends_with(r#"order them alphabetically, each once: ["speed"]"#), "{twice}");
}
