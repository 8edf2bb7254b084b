//! Names that are words of Rust, dictionaries of many keys, and numbers that a type or JSON cannot hold.

use std::sync::Arc;

use cartwheel::__private::parse;
use cartwheel::testing::check_env;
use cartwheel::{Env, EnvOptions, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_abi as abi;
use serde::Deserialize;

use crate::support::{HostKind, HostRows, find, shown, shown_info};

cartwheel::options! {
    struct Options {
        /// Steps of an episode.
        r#loop: u8 = 3,
        /// A number of each step.
        single: f32 = 0.5,
        /// Two such numbers.
        pair: [f32; 2] = [0.0, 1.0],
        /// One, or none.
        maybe: Option<f32>,
        /// Without a limit by default.
        limit: f64 = f64::INFINITY,
        /// The same for the second of two.
        limits: [f32; 2] = [0.0, f32::INFINITY],
    }
}

/// Options of a crate that knows this one under another name.
mod renamed {
    #![deny(unused_imports)] // the macro imports something, here twice

    use ::cartwheel as wheels;

    mod cartwheel {}

    wheels::options! {
        pub struct Options {
            /// A number.
            one: u8 = 1,
        }
    }

    wheels::options! {
        pub struct ResetOptions {
            /// Another one.
            two: u8 = 2,
        }
    }
}

/// An environment with a name that Rust's prelude has.
mod shadowed {
    struct Option {
        rate: f64,
    }

    impl Option {
        cartwheel::parameters! { rate: rate }
    }

    #[test]
    fn parameters_do_not_use_the_names_of_the_module_around_them() {
        let mut env = Option { rate: 0.5 };
        assert_eq!(Option::parameters(), ["rate"]);
        let value = env.parameter("rate").unwrap().get();
        env.parameter_mut("rate").unwrap().set(value).unwrap();
        assert!(env.parameter("speed").is_none());
    }
}

cartwheel::options! {
    /// Options that serde knows under other names.
    #[serde(rename_all = "UPPERCASE")]
    struct Renamed {
        /// Also a word of Rust.
        #[serde(rename = "lambda")]
        rate: f64 = 0.5,
        /// Without a name of its own.
        depth: u8,
    }
}

cartwheel::view! {
    /// A row that is compared and kept.
    #[derive(Default, PartialOrd)]
    struct Place, PlaceMut, PlaceRef {
        column: i64,
        row: i64,
    }
}

cartwheel::view! {
    struct Seen, SeenMut, SeenRef {
        b01: i64,
        b02: i64,
        b03: i64,
        b04: i64,
        b05: i64,
        b06: i64,
        b07: i64,
        b08: i64,
        b09: i64,
        r#move: i64,
        other: i64,
        r#type: [f32; 1],
    }
}

cartwheel::info! {
    struct Report {
        r#type: i64,
    }
}

struct Words {
    steps: i64,
    last: u8,
    single: f32,
}

impl Env for Words {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Seen;
    type Info = Report;
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let number = || Space::discrete(300);
        let mut parts: Vec<_> = (1..=9).map(|at| (format!("b{at:02}"), number())).collect();
        let any = Space::float_box(&[f64::NEG_INFINITY], &[f64::INFINITY]);
        let named = [("move", number()), ("other", number()), ("type", any)];
        parts.extend(named.map(|(key, part)| (key.to_owned(), part)));
        let observation = Space::Dict(parts);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let single = options.single + options.pair[0] + options.maybe.unwrap_or(0.0);
        Ok(Self { steps: 0, last: options.r#loop, single })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.steps = 0;
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.steps += 1;
        let terminated = self.steps >= self.last.into();
        Ok(Transition { reward: 0.0, terminated, truncated: false })
    }

    fn observe(&self, seen: SeenMut<'_>) {
        for place in [
            seen.b01, seen.b02, seen.b03, seen.b04, seen.b05, seen.b06, seen.b07, seen.b08,
            seen.b09,
        ] {
            *place = 0;
        }
        (*seen.r#move, *seen.other, *seen.r#type) = (self.steps, 0, [self.single]);
    }

    fn info(&self) -> Report {
        Report { r#type: self.steps }
    }

    cartwheel::state! { steps, last, single }
    cartwheel::parameters! { r#match: last, single: single }
}

cartwheel::table! {
    static PLUGIN { "names/Words-v0" => Words }
}

#[test]
fn words_of_rust_are_names_without_a_prefix() {
    let kind = HostKind::new(find(&PLUGIN, "names/Words-v0"), r#"{"loop": 2}"#).unwrap();
    assert_eq!(kind.parameters, ["match", "single"]);
    let Space::Dict(parts) = &kind.spaces.observation else { panic!("a dictionary") };
    assert_eq!(parts.iter().map(|(key, _)| key.as_str()).nth(9), Some("move"));
    let mut rows = HostRows::new(&kind, 1).unwrap();
    rows.all(abi::RESET);
    rows.all(abi::STEP);
    assert_eq!(rows.observations.leaf(9), 1_i64.to_ne_bytes());
    let infos: Vec<_> = rows.take_infos().iter().map(|(_, info)| shown_info(info)).collect();
    assert_eq!(infos, ["type: Int(0)", "type: Int(1)"]);
    assert_eq!(shown(&rows.get(0, "match").unwrap()), "Int(2)");
    let mut five = cartwheel::InfoWriter::new();
    five.int(5);
    rows.set(0, "match", five.stream()).unwrap();
    assert_eq!(shown(&rows.get(0, "match").unwrap()), "Int(5)");
}

#[test]
fn the_test_kit_knows_the_names() {
    check_env::<Words>(Options::default()).unwrap();
}

#[test]
fn a_default_that_json_cannot_hold_is_not_described() {
    let docs = Options::describe();
    let default = |name| docs.iter().find(|doc| doc.name == name).unwrap().default.as_deref();
    assert_eq!([default("limit"), default("limits")], [None; 2]);
    assert_eq!([default("maybe"), default("pair")], [Some("null"), Some("[0.0,1.0]")]);
}

#[test]
fn options_are_described_by_the_names_that_callers_pass() {
    let names: Vec<_> = Renamed::describe().iter().map(|doc| doc.name).collect();
    assert_eq!(names, ["lambda", "DEPTH"]);
}

#[test]
fn derived_traits_of_a_view_are_those_of_its_owned_row() {
    assert!(Place::default() < Place { column: 0, row: 1 });
}

#[test]
fn numbers_that_the_type_of_an_option_cannot_hold_are_refused_with_what_it_can() {
    let error = |options: &str| {
        HostKind::new(find(&PLUGIN, "names/Words-v0"), options).map(|_| ()).unwrap_err()
    };
    let single = "must be a number of float32, at most 3.4e38, got";
    assert_eq!(error(r#"{"single": 1e40}"#), format!("`single` {single} 1e+40"));
    assert_eq!(error(r#"{"single": -3.5e38}"#), format!("`single` {single} -3.5e+38"));
    assert_eq!(error(r#"{"maybe": 1e39}"#), format!("`maybe` {single} 1e+39"));
    assert_eq!(error(r#"{"pair": [1, 1e39]}"#), format!("`pair` {single} [1,1e+39]"));
    assert_eq!(error(r#"{"pair": [1, 2, 3]}"#), "`pair` must be 2 elements, got [1,2,3]");
    assert_eq!(error(r#"{"pair": [1]}"#), "`pair` must be an array of length 2, got [1]");
    let byte = "`loop` must be a whole number from 0 to 255, got";
    assert_eq!(error(r#"{"loop": 256}"#), format!("{byte} 256"));
    assert_eq!(error(r#"{"loop": -1}"#), format!("{byte} -1"));
    for fine in [r#"{"single": 3.4e38}"#, r#"{"maybe": null}"#, r#"{"pair": [1, 2.5]}"#] {
        HostKind::new(find(&PLUGIN, "names/Words-v0"), fine).unwrap();
    }
}

#[derive(Debug, Default, Deserialize)]
struct Numbers {
    first: u8,
    second: u8,
    third: u8,
}

#[test]
fn the_option_that_is_wrong_is_named_where_another_is_missing() {
    let error = |options: &str| parse::<Numbers>(options).unwrap_err().to_string();
    let byte = "must be a whole number from 0 to 255, got 'x'";
    assert_eq!(error(r#"{"first": 1, "second": "x"}"#), format!("`second` {byte}"));
    assert_eq!(error(r#"{"first": 1, "second": 2}"#), "missing field `third`");
    let Numbers { first, second, third } =
        parse(r#"{"first": 1, "second": 2, "third": 3}"#).unwrap();
    assert_eq!([first, second, third], [1, 2, 3]);
}
