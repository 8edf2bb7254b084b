//! Plugins that do not fit are refused, and plugins that break their contract are named; in no case
//! does the host lose its way.

use std::mem::offset_of;
use std::sync::{Arc, Mutex};

use cartwheel_abi::{Env, MAJOR, MINOR, Plugin};
use cartwheel_engine::Error;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::native::{Answer, Request, RowReset, ShardSettings};
use cartwheel_engine::plugin::{EnvKind, all, find};

use super::hostile::{Table, env, parameter_get, plugin, row_render};
use crate::support::{self, Envs, register_table, settings};

static ENVS: Table<[Env; 1]> = Table([env(c"hostile/Rows-v0")]);
static PLUGIN: Plugin = plugin(&ENVS.0);
static NEWER: Table<[Env; 1]> = Table([env(c"hostile/Newer-v0")]);
static SHORT: Table<[Env; 1]> =
    Table([Env { struct_size: offset_of!(Env, run), ..env(c"hostile/Short-v0") }]);
static UNEVEN: Table<[Env; 1]> = Table([Env {
    struct_size: offset_of!(Env, run) + size_of::<usize>() + 1,
    ..env(c"hostile/Uneven-v0")
}]);
static OLD: Table<[Env; 1]> = Table([Env {
    struct_size: offset_of!(Env, run) + size_of::<usize>(),
    ..env(c"hostile/Old-v0")
}]);
static OTHERS: Table<[Env; 2]> = Table([env(c"hostile/New-v0"), env(c"hostile/Rows-v0")]);

fn kind(fault: &str) -> Result<Arc<EnvKind>, Error> {
    support::kind(&PLUGIN, "hostile/Rows-v0", &format!("{{\"fault\": \"{fault}\"}}"))
}

/// The tables of the tests. They are static, as those of plugins are, and no leak.
static TABLES: Mutex<Vec<&'static Plugin>> = Mutex::new(Vec::new());

fn kept(plugin: Plugin) -> &'static Plugin {
    let plugin = Box::leak(Box::new(plugin));
    TABLES.lock().unwrap().push(plugin);
    plugin
}

/// The error of registering a table.
fn refused(plugin: Plugin) -> String {
    register_table(kept(plugin), "hostile.so").unwrap_err().to_string()
}

fn envs_of(envs: &'static [Env]) -> Plugin {
    plugin(envs)
}

#[test]
fn another_major_version_is_refused_with_both_versions_and_the_remedy() {
    let newer = Plugin { major: MAJOR + 1, ..envs_of(&ENVS.0) };
    let expected = format!(
        "plugin hostile 1.2.3 was built for version {}.{MINOR} of the interface, and this cartwheel \
         has {MAJOR}.{MINOR}: install a newer cartwheel",
        MAJOR + 1
    );
    assert_eq!(refused(newer), expected);
    let older = refused(Plugin { major: MAJOR - 1, ..envs_of(&ENVS.0) });
    assert!(older.ends_with(": build the plugin against this cartwheel"), "{older}");
}

#[test]
fn a_plugin_that_needs_a_newer_host_is_refused_and_a_newer_plugin_that_does_not_is_taken() {
    let needs = refused(Plugin { needs_minor: MINOR + 1, ..envs_of(&ENVS.0) });
    assert!(needs.contains(&format!("needs version {MAJOR}.{} of", MINOR + 1)), "{needs}");
    let newer = Plugin { minor: MINOR + 1, ..envs_of(&NEWER.0) };
    let ids = register_table(kept(newer), "newer.so").unwrap();
    assert_eq!(ids, ["hostile/Newer-v0"]);
}

#[test]
fn short_tables_lack_what_they_do_not_have() {
    let tiny = refused(Plugin { struct_size: 8, ..envs_of(&ENVS.0) });
    assert_eq!(tiny, "this is not a table of a plugin: its size is 8 bytes");
    let short = refused(Plugin { struct_size: offset_of!(Plugin, envs), ..envs_of(&ENVS.0) });
    assert!(short.contains("which lacks its environments"), "{short}");
    let up_to_run = offset_of!(Env, run);
    let short = refused(envs_of(&SHORT.0));
    assert!(short.contains(&format!("a table of {up_to_run} bytes for an environment")), "{short}");
    let uneven = refused(envs_of(&UNEVEN.0));
    let size = up_to_run + size_of::<usize>() + 1;
    assert!(uneven.contains(&format!("a table of {size} bytes for an environment")), "{uneven}");
    // The functions behind its size count as absent, whatever is there.
    register_table(kept(envs_of(&OLD.0)), "old.so").unwrap();
    let kind = EnvKind::new(&find("hostile/Old-v0").unwrap(), "").unwrap();
    let options = kind.reset_options("{}").unwrap_err().to_string();
    assert_eq!(options, "resets have no options");
    let mut envs = Envs::new(&kind, 3, 0, settings(AutoresetMode::NextStep));
    envs.seed(0);
    assert_eq!(envs.step(&[0; 3]).unwrap().integers(0), [0, 1, 2]);
}

#[test]
fn a_table_without_a_required_function_is_refused_by_its_name() {
    static NO_RUN: Table<[Env; 1]> = Table([Env { run: None, ..env(c"hostile/NoRun-v0") }]);
    let missing = refused(envs_of(&NO_RUN.0));
    assert_eq!(missing, "plugin hostile 1.2.3 has no function run for hostile/NoRun-v0");
    assert!(matches!(find("hostile/NoRun-v0"), Err(Error::UnknownEnv(_))));
}

#[test]
fn an_id_belongs_to_one_table_and_the_same_table_may_be_registered_again() {
    for _ in 0..2 {
        assert_eq!(register_table(&PLUGIN, "first.so").unwrap(), ["hostile/Rows-v0"]);
    }
    let twice = register_table(kept(envs_of(&OTHERS.0)), "second.so").unwrap_err();
    assert!(matches!(&twice, Error::BadId(_)));
    let source = find("hostile/Rows-v0").unwrap().source().to_owned();
    let expected =
        format!("second.so offers the environment hostile/Rows-v0, which {source} offers already");
    assert_eq!(twice.to_string(), expected);
    assert!(matches!(find("hostile/New-v0"), Err(Error::UnknownEnv(_))), "all or nothing");
    assert!(all().iter().any(|table| table.id() == "hostile/Rows-v0"));
}

#[test]
fn ids_have_a_namespace_of_their_own_and_a_version() {
    static BAD: [Table<[Env; 1]>; 6] = [
        Table([env(c"Rows-v0")]),
        Table([env(c"cartwheel/Rows-v0")]),
        Table([env(c"hostile/Rows")]),
        Table([env(c"hostile/Rows-v01")]),
        Table([env(c"hostile/Rows-v+1")]),
        Table([env(c"host ile/Rows-v0")]),
    ];
    let texts = [
        "a namespace, as in hostile/Rows-v0",
        "that of cartwheel itself",
        "ends with its version, as in hostile/Rows-v0",
        "ends with its version, as in hostile/Rows-v0",
        "ends with its version, as in hostile/Rows-v0",
        "consists of",
    ];
    for (table, expected) in BAD.iter().zip(texts) {
        let text = refused(envs_of(&table.0));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn spaces_that_are_no_spaces_are_refused() {
    for (fault, expected) in [
        ("lone tuple", "says 3 children, but has 0 nodes"),
        ("keyless", "has a part of a Dict without a key"),
        ("floating", "has a Discrete of float32, expected int64"),
        (
            "unknown",
            "has a node of kind 77, which this cartwheel does not know: install a newer one",
        ),
        ("untyped", "has the element type 9"),
        ("endless", "which no memory holds"),
        ("long", "has a Discrete of shape [1099511627776]"),
        ("crowded", "has a MultiDiscrete of 1099511627776 elements, above 1048576"),
        ("actionless", "the action space has no arrays"),
        ("unbound", "has a Box of 1 elements with 5 bounds"),
        ("twice", "has 1 nodes behind its end"),
    ] {
        let error = kind(fault).unwrap_err();
        assert!(matches!(error, Error::Plugin { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("plugin hostile broke its contract in hostile/Rows-v0: "),
            "{text}"
        );
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn floats_of_two_dtypes_are_floats_and_a_plugin_that_does_not_know_them_has_none() {
    let text = kind("floats").unwrap_err().to_string();
    let expected = "the action space has int64 in leaf 0, which takes floats of two dtypes";
    assert!(text.ends_with(expected), "{text}");
    assert!(kind("none").unwrap().action_floats().is_empty());
}

#[test]
fn agents_without_a_list_of_names_are_refused_and_a_plugin_that_does_not_know_them_has_none() {
    let text = kind("nameless agents").unwrap_err().to_string();
    assert!(text.ends_with("has 2 names and no list of them"), "{text}");
    assert!(kind("none").unwrap().agents().is_empty());
}

#[test]
fn options_that_a_plugin_refuses_are_named_with_the_id() {
    let error = kind("of another world").unwrap_err().to_string();
    assert!(error.starts_with("hostile/Rows-v0: no such fault in {"), "{error}");
}

#[test]
fn a_call_that_breaks_the_contract_fails_its_rows_and_the_pool_can_be_closed() {
    for (fault, expected) in [
        ("next", "`run` of rows 0..3 returned the status 0 and the row 4"),
        ("status", "`run` of rows 0..3 returned the status 77 and the row 3"),
        ("row", "an info record of row 1000 at byte 0, expected 0..3"),
        ("order", "an info record of row 0 at byte 11, expected 2..3"),
        ("kind", "an info record of kind Opaque at byte 0"),
        ("number", "an info record at byte 0 that is not a dictionary"),
        ("length", "malformed info stream"),
        ("sink", "has the length 18446744073709551615"),
    ] {
        for workers in [0, 1] {
            let kind = kind(fault).unwrap();
            let mut envs = Envs::new(&kind, 3, workers, settings(AutoresetMode::NextStep));
            envs.seed(0);
            let batch = envs.step(&[0; 3]).unwrap();
            assert_eq!(batch.faults.len(), 3, "{fault}");
            for fault in &batch.faults {
                assert!(matches!(&fault.error, Error::Plugin { .. }), "{}", fault.error);
                let text = fault.error.to_string();
                assert!(text.contains(expected), "{text}");
            }
            assert_eq!(batch.integers(0), [0; 3], "nothing of it is shown");
            assert!(batch.infos.is_empty());
            let again = envs.step(&[0; 3]).map(|_| ()).unwrap_err();
            assert!(matches!(again, Error::NeedsReset { rows } if rows == [0, 1, 2]));
            assert!(envs.seed(0).faults.is_empty());
        }
    }
}

#[test]
fn a_row_that_fails_or_panics_is_named_with_the_plugins_text_and_the_others_go_on() {
    for (fault, verb) in [("failed", "failed"), ("panicked", "panicked")] {
        let mut envs = Envs::new(&kind(fault).unwrap(), 4, 0, settings(AutoresetMode::NextStep));
        envs.seed(0);
        let batch = envs.step(&[0; 4]).unwrap();
        let [fault] = batch.faults.as_slice() else { panic!("one fault") };
        let text = format!("the environment of row 1 {verb}: row one is \u{fffd}");
        assert_eq!((fault.row, fault.error.to_string()), (1, text));
        assert_eq!(batch.rewards(), [1.0, 0.0, 1.0, 1.0]);
        assert_eq!(batch.integers(0), [0, 1, 2, 3], "it shows what it can");
    }
}

#[test]
fn stray_writes_are_found_where_plugins_are_checked() {
    let checked = ShardSettings { is_checked: true, ..settings(AutoresetMode::Disabled) };
    let mut sound = Envs::new(&kind("none").unwrap(), 3, 0, checked);
    sound.seed(0);
    assert_eq!(sound.step(&[0; 3]).unwrap().integers(0), [0, 1, 2]);
    let mut envs = Envs::new(&kind("outside").unwrap(), 3, 0, checked);
    envs.seed(0);
    let batch = envs.step(&[0; 3]).unwrap();
    let text = batch.faults[0].error.to_string();
    let expected = "`run` wrote outside of its arrays: behind leaf 0 of the observations";
    assert!(text.ends_with(expected), "{text}");
    let mut envs = Envs::new(&kind("leave").unwrap(), 3, 0, checked);
    // A row that was never reset is left alone when the others are reset.
    let how = vec![RowReset::Continue, RowReset::Leave, RowReset::Continue];
    let text = envs.reset(how, None).faults[0].error.to_string();
    let expected = "`run` wrote to leaf 0 of the observations of row 1 of the batch, which it had to \
                    leave alone";
    assert!(text.ends_with(expected), "{text}");
}

static NAMED: Table<[Env; 1]> = Table([Env {
    row_render: Some(row_render),
    parameter_get: Some(parameter_get),
    ..env(c"hostile/Named-v0")
}]);
static NAMED_PLUGIN: Plugin = plugin(&NAMED.0);

fn named(fault: &str) -> Arc<EnvKind> {
    let options = format!("{{\"fault\": \"{fault}\"}}");
    support::kind(&NAMED_PLUGIN, "hostile/Named-v0", &options).unwrap()
}

/// A dictionary of terminal parameters would end at another place.
#[test]
fn a_parameter_that_is_not_one_value_is_an_error_of_its_row() {
    for (fault, expected) in [
        ("no value", "\"size\" cannot be read: malformed info stream at byte 0"),
        ("two values", "\"size\" has 9 bytes behind its end"),
    ] {
        let mut envs = Envs::new(&named(fault), 3, 0, settings(AutoresetMode::NextStep));
        let got = envs.ask(Request::Get("size".to_owned(), vec![1])).map(|_| ()).unwrap_err();
        let text = got.to_string();
        assert!(text.contains("row 1 failed") && text.ends_with(expected), "{text}");
    }
}

#[test]
fn a_plugin_gets_no_number_of_a_mode_or_a_parameter_that_it_does_not_have() {
    let kind = named("named");
    for (external_resets, reported) in [(Some(0), 3), (Some(1), 0)] {
        let settings = ShardSettings { external_resets, ..settings(AutoresetMode::NextStep) };
        let mut envs = Envs::new(&kind, 3, 0, settings);
        envs.seed(0);
        assert_eq!(envs.mailboxes[0].take_begun().len(), reported);
        let mut render = |mode| envs.ask(Request::Render { rows: vec![1], mode });
        assert!(matches!(render(0), Ok(Answer::Frames(frames)) if frames.len() == 1));
        let text = render(1).map(|_| ()).unwrap_err().to_string();
        assert!(text.ends_with(r#"there is no render mode 1 of ["ansi"]"#), "{text}");
    }
}
