//! The example learns, and says how fast it is.

use std::process::Command;

#[test]
fn the_policy_finds_the_exit_and_speeds_are_printed() {
    let run = Command::new(env!("CARGO_BIN_EXE_pure-rust")).output().expect("the example runs");
    let printed = String::from_utf8(run.stdout).expect("text");
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    assert!(printed.contains("the policy goes right in every cell"), "{printed}");
    for name in ["Corridor", "Taxi-v4", "CartPole-v1"] {
        let speed = printed.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let speed = speed.and_then(|line| line.strip_suffix(" million steps/s"));
        assert!(speed.is_some_and(|number| number.parse::<f64>().is_ok()), "{printed}");
    }
}
