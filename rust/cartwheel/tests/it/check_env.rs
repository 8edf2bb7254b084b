//! The test kit finds every defect, and finds nothing in sound environments.

mod broken;
mod pair;

use broken::{Broken, Defect, Described, DescribedSizes, Options, Wide};
use cartwheel::testing::{CHECKS, check_env};
use pair::{Pair, PairDefect, PairOptions};

use crate::walk::{self, Walk};

/// Each defect, the check that finds it, and a part of what it says.
const FOUND: &[(Defect, &str, &str)] = &[
    (Defect::UnsortedKeys, "types", "the observation space has the keys"),
    (Defect::WrongType, "types", "the observation type sees"),
    (
        Defect::BeyondBounds,
        "spaces",
        "observation.position: element 0 is 9, outside Box([1], float32)",
    ),
    (Defect::NanReward, "spaces", "the reward is NaN"),
    (Defect::Fails, "steps", "failed: no luck"),
    (Defect::Panics, "steps", "it panicked: no luck"),
    (Defect::OwnRandomness, "same_seed", "observation.position differs in event 0"),
    (Defect::IgnoresSeed, "other_seeds", "8 seeds give the same life"),
    (Defect::LeavesLeaf, "observe", "observation.pixels is never written"),
    (Defect::LeavesElement, "observe", "element 4 of observation.pixels is never written"),
    (Defect::LeavesSometimes, "observe", "is not always written: not after 5 steps"),
    (Defect::LeavesAtFirst, "observe", "is not always written: not before the first reset"),
    (Defect::ObserveDraws, "reads", "a second `observe` differs"),
    (Defect::InfoChanges, "reads", "`observe` or `info` changed the state"),
    (Defect::InfoTwice, "steps", "the info cannot be read"),
    (Defect::InfoTypes, "infos", "info[\"luck\"] has several types: int and float"),
    (Defect::InfoShapes, "infos", "info[\"luck\"] has arrays of several shapes: [1] and [2]"),
    (Defect::InfoShapesWithin, "infos", "info[\"luck\"][\"draws\"] has arrays of several shapes"),
    (Defect::InfoReserved, "infos", "info[\"final_obs\"] is a key of vector environments"),
    (Defect::BlockDiffers, "blocks", "alone"),
    (Defect::BlockTouchesOthers, "blocks", "of row 3 of 4, which did not run, differs"),
    (Defect::SavesLess, "states", "`load` shows another observation"),
    (
        Defect::SavesNoParameter,
        "states",
        "a loaded state does not have the parameter \"speed\" that was set",
    ),
    (Defect::RefusesState, "states", "`load` refuses what `save` wrote: bad state"),
    (Defect::ParameterDrifts, "parameters", "parameter \"speed\" was set to"),
    (
        Defect::ParameterRefused,
        "parameters",
        "`check_parameter` refuses \"speed\" as it is: it must not be set now",
    ),
    (Defect::PanicSticks, "recovers", "differs after a step with an action outside of its space"),
    (Defect::RowsShare, "rows", "with 7 rows and 2 threads, observation.position of row 0 differs"),
    (
        Defect::SixRows,
        "modes",
        "with mode NextStep, 1 threads, observation.position of row 0 differs",
    ),
    (Defect::EightRows, "send_recv", "with rows sent and received in batches of 8"),
];

#[test]
fn every_defect_is_found_by_its_check() {
    for (defect, check, part) in FOUND {
        let found = check_env::<Broken>(Options { defect: *defect });
        let Err(error) = found else { panic!("{defect:?} was not found") };
        assert_eq!(error.check, *check, "{defect:?}: {error}");
        assert!(error.finding.contains(part), "{defect:?}: {error}");
        let lines: Vec<_> = error.to_string().lines().map(str::to_owned).collect();
        assert!(lines[0].contains("Broken fails the check") && lines.len() == 2, "{error}");
    }
    let names: Vec<_> = FOUND.iter().map(|(_, check, _)| *check).collect();
    let has_defect = |check: &str| names.contains(&check) || ["agents", "options"].contains(&check);
    assert!(CHECKS.iter().all(|check| has_defect(check)), "each check has a defect");
}

#[test]
fn agents_whose_flags_rewards_and_observations_disagree_are_found() {
    check_env::<Pair>(PairOptions::default()).unwrap();
    for (defect, part) in [
        (PairDefect::ThreeNames, "does not have `flags` of MultiBinary([5, 3]) and `rewards` of"),
        (PairDefect::ResetsNoFlags, "the agent \"agent_1\" ended or acted at a reset"),
        (PairDefect::BeginsNoStep, "the agent \"agent_0\" did not act, and lived before"),
        (PairDefect::RewardsAbsent, "the agent \"agent_0\" did not act, and has a reward"),
        (PairDefect::ShowsAbsent, "the agent \"agent_0\" is not there, and its observation is not"),
        (PairDefect::NeverOver, "no agent lives, and the episode is not over"),
    ] {
        let error = check_env::<Pair>(PairOptions { defect }).unwrap_err();
        assert_eq!(error.check, "agents", "{error}");
        assert!(error.finding.contains(part), "{error}");
    }
}

#[test]
fn options_without_a_description_and_descriptions_without_an_option_are_found() {
    check_env::<Described<0>>(DescribedSizes::default()).unwrap();
    for (found, part) in [
        (check_env::<Described<1>>(DescribedSizes::default()), "does not have `columns`"),
        (check_env::<Described<2>>(DescribedSizes::default()), "has no text for `columns`"),
        (
            check_env::<Described<3>>(DescribedSizes::default()),
            "has `depth`, which is not an option",
        ),
        (
            check_env::<Described<4>>(DescribedSizes::default()),
            "refused: `rows` must be a whole number",
        ),
    ] {
        let error = found.unwrap_err();
        assert_eq!(error.check, "options", "{error}");
        assert!(error.finding.contains(part), "{error}");
    }
}

#[test]
fn sound_environments_pass() {
    check_env::<Broken>(Options { defect: Defect::None }).unwrap();
    check_env::<Wide>(cartwheel::NoOptions {}).unwrap();
    check_env::<Walk>(walk::Options { goal: 40, trail: 3 }).unwrap_err(); // some actions fail
}
