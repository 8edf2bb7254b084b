//! Keywords, spaces and limits are Gymnasium's, and an error says what is wrong with a keyword.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::num::NonZero;

use cartwheel_engine::env::{Bounds, Space};
use cartwheel_engine::rng::Rng;
use cartwheel_envs::{ENTRIES, find, random_map};

fn error(id: &str, keywords: &str) -> String {
    find(id).unwrap().recipe(keywords).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn unknown_and_invalid_keywords_are_errors_that_name_them() {
    let unknown = error("CartPole-v1", r#"{"gravity": 3}"#);
    assert_eq!(unknown, "CartPole-v1: unknown field `gravity`, expected `sutton_barto_reward`");
    let none = error("Acrobot-v1", r#"{"x": 3}"#);
    assert!(none.starts_with("Acrobot-v1: unknown field `x`"), "{none}");
    let kind = error("Pendulum-v1", r#"{"g": "9.8"}"#);
    assert_eq!(kind, "Pendulum-v1: `g` must be a number, got '9.8'");
    let flag = error("CartPole-v1", r#"{"sutton_barto_reward": null}"#);
    assert_eq!(flag, "CartPole-v1: `sutton_barto_reward` must be True or False, got None");
    let long = error("Pendulum-v1", &format!("{{\"g\": \"{}\"}}", "9".repeat(1000)));
    assert_eq!(long, format!("Pendulum-v1: `g` must be a number, got '{}…", "9".repeat(59)));
    let rate = error("FrozenLake-v1", r#"{"success_rate": 1.5}"#);
    assert_eq!(rate, "FrozenLake-v1: success_rate must be in [0, 1], got 1.5");
    let rain = error("Taxi-v4", r#"{"rainy_probability": -0.1}"#);
    assert_eq!(rain, "Taxi-v4: rainy_probability must be in [0, 1], got -0.1");
    assert!(error("CartPole-v1", "[1]").contains("invalid type"));
    assert_eq!(
        find("CartPole-v7").unwrap_err().to_string(),
        "there is no native environment \"CartPole-v7\""
    );
    assert_eq!(find("cartwheel/Taxi-v4").unwrap().id, "Taxi-v4");
}

#[test]
fn the_names_of_keywords_are_those_that_are_read() {
    for entry in ENTRIES {
        for name in (entry.options)() {
            let keywords = format!("{{{name:?}: {{\"of the wrong type\": 1}}}}");
            let refused = error(entry.id, &keywords);
            assert!(!refused.contains("unknown field"), "{refused}");
        }
    }
    let names = |id: &str| (find(id).unwrap().options)();
    assert_eq!(names("CartPole-v1"), ["sutton_barto_reward"]);
    assert!(names("Acrobot-v1").is_empty());
    assert!(names("FrozenLake-v1").contains(&"success_rate"));
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
    let recipe = find("FrozenLake-v1").unwrap().recipe(r#"{"map_name": null}"#).unwrap();
    assert_eq!(recipe.spaces().observation, Space::discrete(64));
}

#[test]
fn reset_options_are_checked() {
    let recipe = find("CartPole-v1").unwrap().recipe("").unwrap();
    assert!(recipe.reset_options(r#"{"low": -1, "high": 0.5}"#).is_ok());
    let error = |json| recipe.reset_options(json).map(|_| ()).unwrap_err().to_string();
    let order = error(r#"{"low": 1}"#);
    assert!(
        order.starts_with("Lower bound (1) must be lower than higher bound (0.05)."),
        "{order}"
    );
    assert!(error(r#"{"low": null}"#).starts_with("invalid type: null, expected f64"));
    let range = error(r#"{"low": -1e308, "high": 1e308}"#);
    assert!(range.contains("is too large"), "{range}");
    let acrobot = find("Acrobot-v1").unwrap().recipe("").unwrap();
    assert!(acrobot.reset_options(r#"{"low": -1e9, "high": 1e9}"#).is_ok());
    for (json, got) in [
        (r#"{"low": 1e17, "high": 1e18}"#, "got 1e17 and 1e18"),
        (r#"{"low": -1.1e9}"#, "got -1.1e9 and 1e-1"),
    ] {
        let far = acrobot.reset_options(json).map(|_| ()).unwrap_err().to_string();
        let expected = format!("bounds must be between -1e9 and 1e9, {got}");
        assert!(far.starts_with(&expected), "{far}");
    }
    let pendulum = find("Pendulum-v1").unwrap().recipe("").unwrap();
    assert!(pendulum.reset_options(r#"{"x_init": 0, "y_init": 0.5}"#).is_ok());
    let error = |json| pendulum.reset_options(json).map(|_| ()).unwrap_err().to_string();
    assert!(error(r#"{"y_init": -0.5}"#).starts_with("y_init must not be negative, got -0.5"));
    assert!(error(r#"{"x_init": 1e308}"#).contains("is too large"));
    assert!(error(r#"{"x_init": null}"#).starts_with("invalid type: null, expected f64"));
}

#[test]
fn options_that_an_environment_does_not_have_are_ignored_unless_they_look_like_a_mask() {
    for entry in ENTRIES {
        let recipe = entry.recipe("").unwrap();
        assert!(recipe.reset_options(r#"{"lo": 1, "x": [null, {"y": "z"}]}"#).is_ok());
        for name in ["mask", "reset_masks", "Reset-Mask"] {
            let json = format!("{{\"x\": 1, {name:?}: [true]}}");
            let refused = recipe.reset_options(&json).map(|_| ()).unwrap_err().to_string();
            let expected = format!("there is no option {name:?}: the rows to reset are");
            assert!(refused.starts_with(&expected), "{}: {refused}", entry.id);
        }
    }
}

#[test]
fn spaces_have_gymnasiums_bounds() {
    let spaces = |id: &str| find(id).unwrap().recipe("").unwrap().spaces().clone();
    let Space::Box { low: Bounds::Each(low), high: Bounds::Each(high), .. } =
        spaces("CartPole-v1").observation
    else {
        panic!("a box");
    };
    let most = [4.800_000_190_734_863, f64::INFINITY, 0.418_879_032_135_009_77, f64::INFINITY];
    assert_eq!(high, most);
    assert_eq!(low, most.map(|bound| -bound));
    let blackjack = Space::Tuple([32, 11, 2].map(Space::discrete).to_vec());
    assert_eq!(spaces("Blackjack-v1").observation, blackjack);
    assert_eq!(spaces("Taxi-v4").action, Space::discrete(6));
    assert_eq!(spaces("FrozenLake8x8-v1").observation, Space::discrete(64));
}

#[test]
fn limits_and_thresholds_are_those_of_the_registry() {
    let all: Vec<_> = ENTRIES
        .iter()
        .map(|entry| (entry.id, entry.max_episode_steps.map(NonZero::get), entry.reward_threshold))
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
