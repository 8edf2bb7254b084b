//! Keywords, spaces and limits are Gymnasium's, and an error says what is wrong with a keyword.

use cartwheel::{Bounds, Rng, Space};
use cartwheel_envs::{PLUGIN, random_map};

use crate::support::{HostKind, find, ids, option_names};

/// The kind of this id with keywords, over those of the id.
fn kind(id: &str, keywords: &str) -> Result<HostKind, String> {
    HostKind::with_defaults(find(&PLUGIN, id), keywords)
}

fn error(id: &str, keywords: &str) -> String {
    kind(id, keywords).map(|_| ()).unwrap_err()
}

#[test]
fn unknown_and_invalid_keywords_are_errors_that_name_them() {
    let unknown = error("CartPole-v1", r#"{"gravity": 3}"#);
    assert_eq!(unknown, "unknown field `gravity`, expected `sutton_barto_reward`");
    let none = error("Acrobot-v1", r#"{"x": 3}"#);
    assert!(none.starts_with("unknown field `x`"), "{none}");
    let kind = error("Pendulum-v1", r#"{"g": "9.8"}"#);
    assert_eq!(kind, "`g` must be a number, got '9.8'");
    let flag = error("CartPole-v1", r#"{"sutton_barto_reward": null}"#);
    assert_eq!(flag, "`sutton_barto_reward` must be True or False, got None");
    let long = error("Pendulum-v1", &format!("{{\"g\": \"{}\"}}", "9".repeat(1000)));
    assert_eq!(long, format!("`g` must be a number, got '{}…", "9".repeat(59)));
    let rate = error("FrozenLake-v1", r#"{"success_rate": 1.5}"#);
    assert_eq!(rate, "success_rate must be in [0, 1], got 1.5");
    let rain = error("Taxi-v4", r#"{"rainy_probability": -0.1}"#);
    assert_eq!(rain, "rainy_probability must be in [0, 1], got -0.1");
    assert!(error("CartPole-v1", "[1]").contains("invalid type"));
}

#[test]
fn the_names_of_keywords_are_those_that_are_read() {
    for (id, ..) in ids(&PLUGIN) {
        for name in option_names(find(&PLUGIN, &id)) {
            let keywords = format!("{{{name:?}: {{\"of the wrong type\": 1}}}}");
            let refused = error(&id, &keywords);
            assert!(!refused.contains("unknown field"), "{refused}");
        }
    }
    let names = |id: &str| option_names(find(&PLUGIN, id));
    assert_eq!(names("CartPole-v1"), ["sutton_barto_reward"]);
    assert!(names("Acrobot-v1").is_empty());
    assert!(names("FrozenLake-v1").contains(&"success_rate".to_owned()));
}

#[test]
fn malformed_maps_are_refused() {
    let lake = |desc: &str| error("FrozenLake-v1", &format!("{{\"desc\": {desc}}}"));
    assert!(lake("[]").ends_with("malformed map: it has no cells"));
    assert!(lake(r#"["SF", "FFG"]"#).ends_with("row 1 has 3 cells, row 0 has 2"));
    assert!(lake(r#"["SX", "FG"]"#).ends_with("row 0 has 'X', which is none of S, F, H and G"));
    assert!(lake(r#"["FF", "FG"]"#).ends_with("it has no start S"));
    assert!(lake(r#"[["S", "FG"]]"#).ends_with("a row of a map is a text or a list of letters"));
    assert!(lake(r#"[["S", "X"]]"#).ends_with("row 0 has 'X', which is none of S, F, H and G"));
    let name = error("FrozenLake-v1", r#"{"map_name": "16x16"}"#);
    assert!(name.ends_with("there is no map \"16x16\", only 4x4 and 8x8"));
}

#[test]
fn random_maps_are_those_of_generate_random_map() {
    let map = |side, frozen, seed| random_map(side, frozen, &mut Rng::from_seed(seed));
    assert_eq!(map(4, 0.6, 5), ["SHFF", "FFFF", "FHHF", "FHHG"]);
    assert_eq!(map(6, 0.5, 77), ["SFHHHF", "FFHHHH", "FFHHHH", "HFFFFH", "HFFFFF", "FHFFFG"]);
}

#[test]
fn without_map_and_name_each_row_has_a_random_map() {
    let recipe = kind("FrozenLake-v1", r#"{"map_name": null}"#).unwrap();
    assert_eq!(recipe.spaces.observation, Space::discrete(64));
}

#[test]
fn reset_options_are_checked() {
    let recipe = kind("CartPole-v1", "").unwrap();
    assert!(recipe.reset_options(r#"{"low": -1, "high": 0.5}"#).is_ok());
    let error = |json| recipe.reset_options(json).map(|_| ()).unwrap_err();
    let order = error(r#"{"low": 1}"#);
    assert!(
        order.starts_with("Lower bound (1) must be lower than higher bound (0.05)."),
        "{order}"
    );
    assert_eq!(error(r#"{"low": null}"#), "`low` must be a number, got None");
    let range = error(r#"{"low": -1e308, "high": 1e308}"#);
    assert!(range.contains("is too large"), "{range}");
    let acrobot = kind("Acrobot-v1", "").unwrap();
    assert!(acrobot.reset_options(r#"{"low": -1e9, "high": 1e9}"#).is_ok());
    for (json, got) in [
        (r#"{"low": 1e17, "high": 1e18}"#, "got 1e17 and 1e18"),
        (r#"{"low": -1.1e9}"#, "got -1.1e9 and 1e-1"),
    ] {
        let far = acrobot.reset_options(json).map(|_| ()).unwrap_err();
        let expected = format!("bounds must be between -1e9 and 1e9, {got}");
        assert!(far.starts_with(&expected), "{far}");
    }
    let pendulum = kind("Pendulum-v1", "").unwrap();
    assert!(pendulum.reset_options(r#"{"x_init": 0, "y_init": 0.5}"#).is_ok());
    let error = |json| pendulum.reset_options(json).map(|_| ()).unwrap_err();
    assert!(error(r#"{"y_init": -0.5}"#).starts_with("y_init must not be negative, got -0.5"));
    assert!(error(r#"{"x_init": 1e308}"#).contains("is too large"));
    assert_eq!(error(r#"{"x_init": null}"#), "`x_init` must be a number, got None");
}

#[test]
fn options_that_a_reset_does_not_have_are_refused() {
    for (id, ..) in ids(&PLUGIN) {
        let refused = kind(&id, "").unwrap().reset_options(r#"{"lo": 1}"#).map(|_| ()).unwrap_err();
        assert!(refused.starts_with("unknown field `lo`, "), "{id}: {refused}");
    }
}

#[test]
fn spaces_have_gymnasiums_bounds() {
    let spaces = |id: &str| kind(id, "").unwrap().spaces.clone();
    let Space::Box { low: Bounds::Each(low), high: Bounds::Each(high), .. } =
        spaces("CartPole-v1").observation
    else {
        panic!("a box");
    };
    let max = [4.800_000_190_734_863, f64::INFINITY, 0.418_879_032_135_009_77, f64::INFINITY];
    assert_eq!(high, max);
    assert_eq!(low, max.map(|bound| -bound));
    let blackjack = Space::Tuple([32, 11, 2].map(Space::discrete).to_vec());
    assert_eq!(spaces("Blackjack-v1").observation, blackjack);
    assert_eq!(spaces("Taxi-v4").action, Space::discrete(6));
    assert_eq!(spaces("FrozenLake8x8-v1").observation, Space::discrete(64));
}

#[test]
fn limits_and_thresholds_are_those_of_the_registry() {
    let all: Vec<_> = ids(&PLUGIN);
    let all: Vec<_> = all
        .iter()
        .map(|(id, limit, threshold)| {
            let limit = (*limit != 0).then_some(*limit);
            (id.as_str(), limit, (!threshold.is_nan()).then_some(*threshold))
        })
        .collect();
    let expected = [
        ("CartPole-v0", Some(200), Some(195.0)),
        ("CartPole-v1", Some(500), Some(475.0)),
        ("MountainCar-v0", Some(200), Some(-110.0)),
        ("MountainCarContinuous-v0", Some(999), Some(90.0)),
        ("Pendulum-v1", Some(200), None),
        ("Acrobot-v1", Some(500), Some(-100.0)),
        ("Blackjack-v1", None, None),
        ("FrozenLake-v1", Some(100), Some(0.7)),
        ("FrozenLake8x8-v1", Some(200), Some(0.85)),
        ("CliffWalking-v1", None, None),
        ("CliffWalkingSlippery-v1", None, None),
        ("Taxi-v4", Some(200), Some(8.0)),
        ("Null-v0", None, None),
    ];
    assert_eq!(all, expected);
}
