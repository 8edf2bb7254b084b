//! The state of every built-in environment is saved and loaded to the last bit.

use cartwheel::{InfoWriter, ParameterValue, Rng};
use cartwheel_abi as abi;
use cartwheel_envs::PLUGIN;

use crate::support::{HostKind, HostRows, find, ids};

const ROWS: usize = 5;

/// Everything that some steps return, as bits.
fn play(kind: &HostKind, rows: &mut HostRows<'_>, steps: usize, seed: u64) -> Vec<u8> {
    let (mut rng, mut all) = (Rng::from_seed(seed), Vec::new());
    let mut elapsed = vec![0; ROWS];
    for _ in 0..steps {
        rows.actions.store(0, &kind.spaces.action.sample(0, ROWS, &mut rng));
        rows.next_step(&mut elapsed, 40);
        (0..rows.observations.leaves.len())
            .for_each(|leaf| all.extend(rows.observations.leaf(leaf)));
        all.extend(rows.rewards.iter().flat_map(|reward| reward.to_ne_bytes()));
        rows.take_infos().into_iter().for_each(|(_, info)| all.extend(info));
    }
    all
}

fn parameters(kind: &HostKind, rows: &mut HostRows<'_>) -> Vec<Vec<u8>> {
    let rows = (0..ROWS)
        .flat_map(|row| kind.parameters.iter().map(move |name| (row, name)))
        .map(|(row, name)| rows.get(row, name).unwrap());
    rows.collect()
}

#[test]
fn a_loaded_row_continues_as_the_saved_one_to_the_last_bit() {
    for (id, ..) in ids(&PLUGIN) {
        for steps in [0, 1, 7, 100] {
            // Without a map, each row of a frozen lake has its own.
            let options = if id == "FrozenLake-v1" { r#"{"map_name": null}"# } else { "" };
            let kind = HostKind::with_defaults(find(&PLUGIN, &id), options).unwrap();
            let mut rows = HostRows::new(&kind, ROWS).unwrap();
            rows.all(abi::RESET);
            rows.infos.clear();
            if kind.parameters.iter().any(|name| name == "gravity") {
                let mut value = InfoWriter::new();
                ParameterValue::Float(0.003).write(&mut value);
                rows.set(2, "gravity", value.stream()).unwrap();
            }
            play(&kind, &mut rows, steps, 3);
            let mut others = HostRows::new(&kind, ROWS).unwrap();
            for row in 0..ROWS {
                let state = rows.save(row).unwrap();
                others.load(row, &state).unwrap();
                assert_eq!(others.save(row).unwrap(), state, "{id}");
                let (code, _) = others.load(row, &state[1..]).unwrap_err();
                assert_eq!(code, abi::FAILED, "{id}");
                assert_eq!(others.save(row).unwrap(), state, "{id}");
            }
            assert_eq!(parameters(&kind, &mut others), parameters(&kind, &mut rows), "{id}");
            others.rngs.clone_from(&rows.rngs);
            others.terminations.clone_from(&rows.terminations);
            others.truncations.clone_from(&rows.truncations);
            let (saved, loaded) =
                (play(&kind, &mut rows, 150, 9), play(&kind, &mut others, 150, 9));
            assert!(saved == loaded, "{id} after {steps} steps");
        }
    }
}
