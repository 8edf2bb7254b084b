//! The example of an author's library, through its exported symbol.
#![expect(unsafe_code, reason = "names an exported symbol")]

#[path = "../../examples/maze.rs"]
mod example;

use cartwheel_abi as abi;

use crate::support::{self, HostKind, HostRows, find, shown_info};

// The symbol that a host finds in the library.
unsafe extern "C" {
    safe static cartwheel_plugin: abi::Plugin;
}

fn kind(id: &str, options: &str) -> HostKind {
    HostKind::with_defaults(find(&cartwheel_plugin, id), options).unwrap()
}

fn play(rows: &mut HostRows<'_>, steps: u64) -> Vec<Vec<u8>> {
    let mut elapsed = vec![0; rows.commands.len()];
    let mut all = Vec::new();
    for step in 0..steps {
        let moves = (0..rows.commands.len()).flat_map(|row| {
            let turn = cartwheel::Rng::from_seed(step * 100 + row as u64).choice_index(4);
            [[1_i64, 0], [0, 1], [-1, 0], [0, -1]][turn].map(i64::to_ne_bytes).concat()
        });
        let moves: Vec<u8> = moves.collect();
        rows.actions.store(0, &moves);
        rows.next_step(&mut elapsed, 200);
        all.extend((0..3).map(|leaf| rows.observations.leaf(leaf)));
        all.extend(rows.take_infos().into_iter().map(|(_, info)| info));
    }
    all
}

#[test]
fn the_library_exports_its_table_under_the_name_of_its_package() {
    let ids = support::ids(&cartwheel_plugin);
    let ids: Vec<_> = ids.iter().map(|(id, limit, _)| (id.as_str(), *limit)).collect();
    assert_eq!(ids, [("maze/Maze-v0", 200), ("maze/Hall-v0", 50)]);
    assert_eq!((cartwheel_plugin.major, cartwheel_plugin.minor), (abi::MAJOR, abi::MINOR));
    assert_eq!(support::text(cartwheel_plugin.name), "cartwheel");
    assert_eq!(support::text(cartwheel_plugin.version), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_saved_row_continues_in_another_place_as_it_would_have() {
    let kind = kind("maze/Maze-v0", "");
    let mut rows = HostRows::new(&kind, 4).unwrap();
    rows.all(abi::RESET);
    play(&mut rows, 30);
    let mut others = HostRows::new(&kind, 4).unwrap();
    for row in 0..4 {
        let state = rows.save(row).unwrap();
        others.load(row, &state).unwrap();
        assert_eq!(others.save(row).unwrap(), state);
        for cut in 0..state.len() {
            let (_, text) = others.load(row, &state[..cut]).unwrap_err();
            assert!(text.contains("ends too early"), "{text}");
        }
        let longer = [state.as_slice(), b"x"].concat();
        assert_eq!(others.load(row, &longer).unwrap_err().1, "the state has 1 bytes too many");
        assert_eq!(others.save(row).unwrap(), state, "a state that is refused changes nothing");
    }
    others.rngs.clone_from(&rows.rngs);
    others.terminations.clone_from(&rows.terminations);
    others.truncations.clone_from(&rows.truncations);
    assert_eq!(play(&mut rows, 300), play(&mut others, 300));
}

#[test]
fn options_settings_resets_and_frames_are_the_authors() {
    let hall = kind("maze/Hall-v0", r#"{"size": 4}"#);
    assert_eq!(hall.render_modes, ["rgb_array", "ansi"]);
    let mut rows = HostRows::new(&hall, 1).unwrap();
    rows.all(abi::RESET);
    assert_eq!(rows.render(0, 1).unwrap().2, b"####\n#@ #\n# E#\n####\n");
    let (height, width, pixels) = rows.render(0, 0).unwrap();
    assert_eq!((height, width, pixels.len()), (4, 4, 48));
    assert_eq!(pixels[15..18], [200, 0, 0]);
    assert_eq!(rows.render(0, 2).unwrap_err(), "there is no render mode number 2");
    let infos = rows.take_infos();
    assert_eq!(shown_info(&infos[0].1), "distance: uint32[2, 0, 0, 0], path: uint16[0][]");

    let options = hall.reset_options(r#"{"start": [2, 1]}"#).unwrap();
    rows.commands.fill(abi::RESET);
    assert_eq!(rows.run_some((0, 1), 0, Some(&options)).0, abi::OK);
    assert_eq!(rows.render(0, 1).unwrap().2, b"####\n#  #\n#@E#\n####\n");
    for outside in ["[0, 1]", "[1, 5]"] {
        let options = hall.reset_options(&format!(r#"{{"start": {outside}}}"#)).unwrap();
        let (code, row, text) = rows.run_some((0, 1), 0, Some(&options));
        let expected = format!("{outside} is not inside the maze");
        assert_eq!((code, row, text), (abi::FAILED, 0, expected));
    }
    let refused = HostKind::new(find(&cartwheel_plugin, "maze/Maze-v0"), r#"{"size": 3}"#);
    assert_eq!(refused.map(|_| ()).unwrap_err(), "size is 3, walls are 0.2");
}
