//! Faults of a bad environment stay in its row: failures, panics anywhere, destructors, blocks,
//! stops.
#![expect(clippy::float_cmp, reason = "rewards are the same bits")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cartwheel::{BlockOf, Env, Error, Failure, NoOptions, Rng, Shared, Space, Spaces, Transition};
use cartwheel_abi as abi;
use serde::Deserialize;

use crate::support::{self, HostKind, HostRows, find};

/// The call in which an environment fails.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    #[default]
    Nowhere,
    Prepare,
    Spaces,
    New,
    SecondNew,
    Reset,
    Step,
    Observe,
    Info,
    Drop,
    Save,
    Load,
    Changed,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    /// Panic there.
    panics: Place,
    /// Fail there.
    fails: Place,
    /// Fail there, too.
    also_fails: Place,
    /// Only in the environment of this number, counted from the first of a kind, after the one that
    /// checks the options.
    number: Option<usize>,
    /// Panic with a payload whose destructor panics.
    bomb: bool,
}

impl cartwheel::EnvOptions for Options {}

/// Counts the environments of a kind that were made.
#[derive(Debug, Default)]
struct Counts {
    made: AtomicUsize,
}

impl Shared<Options> for Counts {
    fn prepare(options: &Options) -> Result<Self, Error> {
        go_wrong(options, Place::Prepare).map_err(Error::bad_options)?;
        Ok(Self::default())
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload panics too");
    }
}

/// The line of the panic in the function below.
const PANIC_LINE: u32 = line!() + 3;

fn panic_in(place: Place) -> ! {
    panic!("panic in {place:?}");
}

/// The host's text of a panic: its message, file and line.
fn panicked(place: &str) -> String {
    format!("panic in {place} ({}:{PANIC_LINE})", file!())
}

fn go_wrong(options: &Options, place: Place) -> Result<(), Failure> {
    if options.panics == place {
        if options.bomb {
            std::panic::panic_any(Bomb);
        }
        panic_in(place);
    }
    if options.fails == place || options.also_fails == place {
        let cause = "nothing".parse::<u8>();
        cause.map_err(|error| Failure::new(format!("failure in {place:?}: {error}")))?;
    }
    Ok(())
}

cartwheel::info! {
    struct Counted {
        before: i64,
        text: String,
    }
}

/// Counts its steps.
struct Trial<const BLOCK: usize> {
    options: Options,
    number: usize,
    steps: i64,
}

impl<const BLOCK: usize> Trial<BLOCK> {
    fn go_wrong(&self, place: Place) -> Result<(), Failure> {
        if self.options.number.is_some_and(|number| number != self.number) {
            return Ok(());
        }
        go_wrong(&self.options, place)
    }
}

impl<const BLOCK: usize> Drop for Trial<BLOCK> {
    fn drop(&mut self) {
        if self.number > 0 {
            self.go_wrong(Place::Drop).unwrap();
        }
    }
}

impl<const BLOCK: usize> Env for Trial<BLOCK> {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Counted;
    type Shared = Counts;

    fn spaces(options: &Options, _: &Counts) -> Spaces {
        go_wrong(options, Place::Spaces).unwrap();
        Spaces { observation: Space::discrete(1000), action: Space::discrete(100) }
    }

    fn new(options: &Options, counts: &Arc<Counts>) -> Result<Self, Error> {
        let number = counts.made.fetch_add(1, Ordering::Relaxed);
        let options = options.clone();
        let made = Self { options, number, steps: 0 };
        let place = if number > 1 { Place::SecondNew } else { Place::New };
        if let Err(failure) = made.go_wrong(place) {
            // Before the error is made: Rust leaks a result if a destructor panics as it is returned.
            drop(made);
            return Err(Error::bad_options(failure));
        }
        Ok(made)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.steps = 0;
        self.go_wrong(Place::Reset)
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        self.go_wrong(Place::Step)?;
        self.steps += 1 + action;
        Ok(Transition { reward: rng.random(), terminated: false, truncated: false })
    }

    const BLOCK: usize = BLOCK;

    /// Steps all rows but every third one.
    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        for row in (0..block.len()).filter(|row| row % 3 != 2) {
            if block.running[row] {
                let action = block.action(row);
                block.transitions[row] = block.envs[row].step(action, &mut block.rngs[row]).ok();
            }
        }
    }

    fn observe(&self, observation: &mut i64) {
        self.go_wrong(Place::Observe).unwrap();
        *observation = self.steps;
    }

    fn info(&self) -> Counted {
        self.go_wrong(Place::Info).unwrap();
        Counted { before: self.steps, text: "counted".to_owned() }
    }

    const SAVES: bool = true;

    fn save(&self, state: &mut Vec<u8>) {
        self.go_wrong(Place::Save).unwrap();
        state.extend(self.steps.to_le_bytes());
    }

    fn load(&mut self, state: &[u8]) -> Result<(), Failure> {
        self.steps = -1; // half loaded
        self.go_wrong(Place::Load)?;
        self.steps = i64::from_le_bytes(state.try_into()?);
        Ok(())
    }

    cartwheel::parameters! { steps: steps }

    fn parameters_changed(&mut self) {
        self.go_wrong(Place::Changed).unwrap();
    }
}

cartwheel::table! {
    static PLUGIN {
        "trial/One-v0" => Trial<1>,
        "trial/Four-v0" => Trial<4>,
        "trial/Many-v0" => Trial<64>,
    }
}

const IDS: [&str; 3] = ["trial/One-v0", "trial/Four-v0", "trial/Many-v0"];

fn kind(id: &str, options: &str) -> Result<HostKind, String> {
    HostKind::new(find(&PLUGIN, id), options)
}

/// Steps of every row, as they were observed.
fn steps(rows: &HostRows<'_>) -> Vec<i64> {
    rows.observations.leaf(0).as_chunks::<8>().0.iter().map(|n| i64::from_ne_bytes(*n)).collect()
}

/// Runs the present commands, calling again after each row that fails. Returns these rows, with code
/// and text.
fn run_all(rows: &mut HostRows<'_>) -> Vec<(usize, u32, String)> {
    let (mut next, mut failed) = (0, Vec::new());
    loop {
        let (code, row, text) = rows.run_some((0, rows.commands.len()), next, None);
        if code == abi::OK {
            assert_eq!((row, text.as_str()), (rows.commands.len(), ""));
            return failed;
        }
        failed.push((row, code, text));
        next = row + 1;
    }
}

#[test]
fn a_kind_that_panics_or_fails_has_its_reason() {
    for id in IDS {
        for place in ["prepare", "new"] {
            let name = if place == "new" { "New" } else { "Prepare" };
            let refused = kind(id, &format!(r#"{{"panics": "{place}"}}"#)).map(|_| ());
            assert_eq!(refused, Err(panicked(name)));
            let failed = kind(id, &format!(r#"{{"fails": "{place}"}}"#)).map(|_| ());
            let expected = format!("failure in {name}: invalid digit found in string");
            assert_eq!(failed, Err(expected));
        }
        assert_eq!(kind(id, r#"{"panics": "spaces"}"#).map(|_| ()), Err(panicked("Spaces")));
        let bomb = kind(id, r#"{"panics": "new", "bomb": true}"#).map(|_| ());
        assert_eq!(bomb, Err("a panic whose payload is not text".into()));
    }
}

#[test]
fn options_that_do_not_parse_are_refused_and_named() {
    let error = |options: &str| kind(IDS[0], options).map(|_| ()).unwrap_err();
    assert!(error(r#"{"color": 1}"#).starts_with("unknown field `color`, expected one of"));
    assert_eq!(error(r#"{"bomb": 3}"#), "`bomb` must be True or False, got 3");
    assert!(error("{").contains("EOF"));
    assert!(error("[1]").contains("invalid"));
    let names = support::option_names(find(&PLUGIN, IDS[0]));
    assert_eq!(names, ["panics", "fails", "also_fails", "number", "bomb"]);
    let kind = kind(IDS[0], "").unwrap();
    let refused = kind.reset_options(r#"{"x": 1}"#).map(|_| ()).unwrap_err();
    assert!(refused.starts_with("unknown field `x`"), "{refused}");
}

#[test]
fn rows_that_cannot_all_be_made_are_dropped_one_by_one() {
    for options in [
        r#"{"panics": "second_new"}"#,
        r#"{"fails": "second_new"}"#,
        r#"{"panics": "second_new", "bomb": true}"#,
        r#"{"fails": "second_new", "also_fails": "drop"}"#,
    ] {
        let kind = kind(IDS[0], options).unwrap();
        let refused = HostRows::new(&kind, 5).map(|_| ()).unwrap_err();
        let reasons = ["in SecondNew", "in Drop", "not text"];
        assert!(reasons.iter().any(|reason| refused.contains(reason)), "{refused}");
    }
}

#[test]
fn destructors_that_panic_end_nothing() {
    for bomb in [false, true] {
        let options = format!(r#"{{"panics": "drop", "bomb": {bomb}}}"#);
        let kind = kind(IDS[0], &options).unwrap();
        let mut rows = HostRows::new(&kind, 9).unwrap();
        rows.all(abi::RESET);
        // The new environment is there, though the old one's destructor panicked.
        let (code, _) = rows.replace(4).unwrap_err();
        assert_eq!(code, abi::PANICKED);
        rows.all(abi::RESET);
        drop(rows);
    }
}

#[test]
fn a_row_that_panics_or_fails_is_named_and_the_others_go_on() {
    const ROWS: usize = 11;
    for id in IDS {
        for (command, places) in
            [(abi::RESET, ["reset", "observe", "info"]), (abi::STEP, ["step", "observe", "info"])]
        {
            for (at, place) in places.into_iter().enumerate() {
                for how in ["panics", "fails"] {
                    if how == "fails" && at > 0 {
                        continue; // observations and infos do not fail
                    }
                    // Number 0 is the environment that checked the options.
                    let options = format!(r#"{{"{how}": "{place}", "number": 7}}"#);
                    let kind = kind(id, &options).unwrap();
                    let mut rows = HostRows::new(&kind, ROWS).unwrap();
                    rows.commands.fill(command);
                    let failed = run_all(&mut rows);
                    let [(row, code, text)] = failed.as_slice() else { panic!("{failed:?}") };
                    let expected = if how == "fails" { abi::FAILED } else { abi::PANICKED };
                    assert_eq!((*row, *code), (6, expected), "{id} {options}");
                    assert!(text.to_lowercase().contains(&format!(" in {place}")), "{text}");
                    let others = |row: &usize| *row != 6;
                    let stepped = i64::from(command == abi::STEP);
                    let found = steps(&rows);
                    assert!((0..ROWS).filter(others).all(|row| found[row] == stepped), "{found:?}");
                    // The failed row has no record, and every other row has one.
                    let infos: Vec<usize> = rows.take_infos().iter().map(|info| info.0).collect();
                    assert_eq!(infos, (0..ROWS).filter(others).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn a_block_is_stepped_once_whatever_fails_in_it() {
    const ROWS: usize = 130;
    for id in IDS {
        for also in ["nowhere", "reset"] {
            let options = format!(r#"{{"fails": "step", "also_fails": "{also}", "number": 71}}"#);
            let kind = kind(id, &options).unwrap();
            let mut rows = HostRows::new(&kind, ROWS).unwrap();
            rows.commands.fill(abi::RESET);
            run_all(&mut rows);
            let streams = rows.rngs.clone();
            rows.commands.fill(abi::STEP);
            let (code, row, text) = rows.run_some((0, ROWS), 0, None);
            assert_eq!((code, row), (abi::FAILED, 70));
            assert_eq!(text, "failure in Step: invalid digit found in string");
            if also == "nowhere" {
                rows.replace(70).unwrap();
            }
            // The host resets the row, in a call that ends with it, and goes on whatever becomes of it.
            rows.commands[70] = abi::RESET;
            let (code, ..) = rows.run_some((0, 71), 70, None);
            assert_eq!(code == abi::OK, also == "nowhere");
            assert_eq!(rows.run_some((0, ROWS), 71, None), (abi::OK, ROWS, String::new()));
            for row in (0..ROWS).filter(|&row| row != 70) {
                let mut stream = streams[row].clone();
                assert_eq!(rows.rewards[row], stream.random(), "{id}, row {row}");
                assert_eq!(rows.rngs[row], stream, "row {row} of {id} was stepped once");
            }
            let found = steps(&rows);
            assert!((0..ROWS).all(|row| row == 70 || found[row] == 1), "{id}: {found:?}");
        }
    }
}

#[test]
fn a_block_in_which_a_row_failed_is_not_taken_for_a_later_step() {
    const ROWS: usize = 10;
    for id in IDS {
        // The last row, or one behind which no row steps.
        for (failing, how) in [(9, "fails"), (9, "panics"), (3, "fails"), (3, "panics")] {
            let options = format!(r#"{{"{how}": "step", "number": {}}}"#, failing + 1);
            let kind = kind(id, &options).unwrap();
            let mut rows = HostRows::new(&kind, ROWS).unwrap();
            rows.all(abi::RESET);
            rows.commands[..=failing].fill(abi::STEP);
            let (_, row, _) = rows.run_some((0, ROWS), 0, None);
            assert_eq!(row, failing);
            if failing + 1 < ROWS {
                let rest = rows.run_some((0, ROWS), failing + 1, None);
                assert_eq!(rest, (abi::OK, ROWS, String::new()));
            }
            // The host splits the next step where the options of its resets differ.
            rows.commands[0] = abi::RESET;
            assert_eq!(rows.run_some((0, 1), 0, None), (abi::OK, 1, String::new()));
            let (_, row, _) = rows.run_some((0, ROWS), 1, None);
            assert_eq!(row, failing);
            let expected: Vec<i64> = (0..failing).map(|row| if row == 0 { 0 } else { 2 }).collect();
            assert_eq!(steps(&rows)[..failing], expected, "{id}, row {failing} {how}");
        }
    }
}

#[test]
fn a_panic_in_a_block_is_one_rows() {
    let kind = kind("trial/Many-v0", r#"{"panics": "step", "number": 31}"#).unwrap();
    let mut rows = HostRows::new(&kind, 100).unwrap();
    rows.all(abi::RESET);
    for steps_so_far in 1..4 {
        rows.commands.fill(abi::STEP);
        let failed = run_all(&mut rows);
        assert_eq!(failed, [(30, abi::PANICKED, panicked("Step"))]);
        let found = steps(&rows);
        assert!((0..100).all(|row| row == 30 || found[row] == steps_so_far), "{found:?}");
    }
}

#[test]
fn commands_are_mixed_within_a_block() {
    for id in IDS {
        let kind = kind(id, "").unwrap();
        let mut rows = HostRows::new(&kind, 70).unwrap();
        rows.all(abi::RESET);
        assert_eq!((&rows.rewards, &rows.terminations), (&vec![0.0; 70], &vec![0; 70]));
        rows.all(abi::STEP);
        rows.take_infos();
        rows.actions.store(0, &(0..70_i64).flat_map(i64::to_ne_bytes).collect::<Vec<_>>());
        let kinds = [abi::STEP, abi::RESET, abi::LEAVE, abi::SHOW];
        rows.commands = (0..70).map(|row| kinds[row % 4]).collect();
        rows.observations.fill(0x11);
        rows.rewards.fill(5.0);
        rows.run();
        for (row, (found, action)) in steps(&rows).into_iter().zip(0..).enumerate() {
            let untouched = i64::from_ne_bytes([0x11; 8]);
            assert_eq!(found, [2 + action, 0, untouched, 1][row % 4], "{id}, row {row}");
            let reward = rows.rewards[row];
            assert!(if row % 4 == 0 {
                reward < 1.0
            } else {
                reward == [0.0, 0.0, 5.0, 5.0][row % 4]
            });
        }
        let infos: Vec<usize> = rows.take_infos().iter().map(|info| info.0).collect();
        assert_eq!(infos, (0..70).filter(|row| row % 4 < 2).collect::<Vec<_>>());
    }
}

#[test]
fn an_unknown_command_is_an_error() {
    let kind = kind(IDS[0], "").unwrap();
    let mut rows = HostRows::new(&kind, 2).unwrap();
    rows.commands = vec![abi::RESET, 9];
    let (code, row, text) = rows.run_some((0, 2), 0, None);
    assert_eq!((code, row), (abi::PANICKED, 1));
    assert!(text.contains("the command 9"), "{text}");
}

#[test]
fn a_state_that_is_refused_changes_nothing() {
    for options in [r#"{"fails": "load"}"#, r#"{"panics": "load"}"#, "{}"] {
        let kind = kind(IDS[0], options).unwrap();
        let mut rows = HostRows::new(&kind, 1).unwrap();
        rows.all(abi::RESET);
        rows.all(abi::STEP);
        rows.load(0, b"bad").unwrap_err();
        rows.all(abi::SHOW);
        let restored = if options == "{}" { 1 } else { -1 };
        // An environment that cannot load its own state either is left as its `load` left it.
        assert_eq!(steps(&rows), [restored]);
    }
    let saving = kind(IDS[0], r#"{"panics": "save"}"#).unwrap();
    let mut rows = HostRows::new(&saving, 1).unwrap();
    assert_eq!(rows.save(0), Err((abi::PANICKED, panicked("Save"))));
}

#[test]
fn a_parameter_whose_change_panics_is_an_error() {
    let kind = kind(IDS[0], r#"{"panics": "changed"}"#).unwrap();
    let mut rows = HostRows::new(&kind, 1).unwrap();
    let mut value = cartwheel::InfoWriter::new();
    value.int(3);
    let (code, text) = rows.set(0, "steps", value.stream()).unwrap_err();
    assert_eq!((code, text), (abi::PANICKED, panicked("Changed")));
    let (code, text) = rows.set(0, "steps", b"\x63").unwrap_err();
    assert_eq!((code, text.as_str()), (abi::FAILED, "malformed info stream at byte 1"));
}
