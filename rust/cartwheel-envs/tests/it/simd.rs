//! Rows that are stepped together equal rows that are alone in their table, to the last bit.

use cartwheel::{InfoWriter, Parameter, ParameterValue, Rng, Space};
use cartwheel_abi as abi;
use cartwheel_envs::PLUGIN;

use crate::support::{HostKind, HostRows, find};

/// Whole blocks, groups of lanes and a rest.
const MANY: usize = 64 + 32 + 8 + 3;
/// Numbers around a group and around a block, for each mode.
const FEW: [&[usize]; 3] = [&[1, 7, 65], &[3, 64], &[4, 63]];
const STEPS: usize = 300;

/// The treatment of rows that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are reset instead of the next step.
    NextStep,
    /// They are reset at once.
    SameStep,
    /// They are left alone, among rows that step.
    Disabled,
}

/// Changes of rows in the middle of a run.
struct Changes {
    id: &'static str,
    /// A constant, its standard value and another one.
    constant: (&'static str, f64, f64),
    /// States which some rows get: on the way to an end, and those that lanes leave to `step`.
    states: &'static [&'static [f64]],
}

const ALL: [Changes; 5] = [
    Changes {
        id: "CartPole-v1",
        constant: ("gravity", 9.8, 4.9),
        states: &[&[0.1, 0.0, 2.0, 0.3], &[2.39, 3.0, 0.0, -0.0], &[0.0, 0.0, 1e300, 0.0]],
    },
    Changes {
        id: "MountainCar-v0",
        constant: ("gravity", 0.0025, 0.002),
        states: &[
            &[0.49, 0.06],
            &[-1.19, -0.07],
            &[5e8, 0.0],
            &[-0.0, -0.0],
            &[f64::INFINITY, 0.0],
        ],
    },
    Changes {
        id: "MountainCarContinuous-v0",
        constant: ("power", 0.0015, 0.002),
        states: &[&[0.3, 0.07], &[-1.0, -0.07], &[0.59, 0.07], &[5e8, 0.0], &[-0.0, -0.0]],
    },
    Changes {
        id: "Pendulum-v1",
        constant: ("g", 10.0, 9.81),
        states: &[
            &[-0.0, 0.0],
            &[-std::f64::consts::PI, 8.0],
            &[std::f64::consts::PI, -8.0],
            &[99_999_999.9, 8.0],
            &[-3e15, 1e-300],
            &[f64::NAN, 0.0],
        ],
    },
    Changes {
        id: "Acrobot-v1",
        constant: ("LINK_MASS_2", 1.0, 1.25),
        states: &[
            &[3.0, 0.0, 1.0, 1.0],
            &[-3.1, 3.1, -12.0, 28.0],
            &[0.1, -9000.0, 0.0, 0.0],
            &[0.0, 0.0, 60.0, 0.0],
            &[-0.0, 0.0, -0.0, 0.0],
        ],
    },
];

/// The same rows in one table, and alone in tables of their own.
struct Both<'a> {
    together: HostRows<'a>,
    alone: Vec<HostRows<'a>>,
    over: Vec<bool>,
}

impl<'a> Both<'a> {
    fn new(kind: &'a HostKind, rows: usize) -> Self {
        let single = |row: usize| {
            let mut single = HostRows::new(kind, 1).unwrap();
            single.rngs[0] = Rng::from_seed(row as u64);
            single
        };
        let alone = (0..rows).map(single).collect();
        let mut both =
            Self { together: HostRows::new(kind, rows).unwrap(), alone, over: vec![false; rows] };
        both.run(&vec![abi::RESET; rows], "the first reset");
        both
    }

    /// Gives these commands to both, and compares what they do.
    fn run(&mut self, commands: &[u8], when: &str) {
        self.together.commands.copy_from_slice(commands);
        self.together.run();
        let infos = self.together.take_infos();
        for (row, single) in self.alone.iter_mut().enumerate() {
            single.commands[0] = commands[row];
            single.run();
            let info = infos.iter().find(|(of, _)| *of == row).map(|(_, info)| info.clone());
            assert_eq!(
                info,
                single.take_infos().pop().map(|(_, info)| info),
                "info of row {row}, {when}"
            );
            if commands[row] == abi::LEAVE {
                continue;
            }
            let observed = self.together.observations.row(0, row);
            assert_eq!(observed, single.observations.row(0, 0), "observation of row {row}, {when}");
            let results = |rows: &HostRows<'_>, row: usize| {
                (rows.rewards[row].to_bits(), rows.terminations[row], rows.truncations[row])
            };
            let single_results = results(single, 0);
            assert_eq!(
                results(&self.together, row),
                single_results,
                "results of row {row}, {when}"
            );
            self.over[row] = commands[row] == abi::STEP && single.terminations[0] != 0;
        }
    }

    /// Compares all of the states, and the random streams.
    fn compare_states(&mut self, when: &str) {
        for (row, single) in self.alone.iter_mut().enumerate() {
            let state = self.together.save(row).unwrap();
            assert!(state == single.save(0).unwrap(), "state of row {row}, {when}");
            assert!(self.together.rngs[row] == single.rngs[0], "stream of row {row}, {when}");
        }
    }

    /// Sets a parameter of a row in both.
    fn set(&mut self, row: usize, name: &str, value: &ParameterValue) {
        let mut bytes = InfoWriter::new();
        value.write(&mut bytes);
        self.together.set(row, name, bytes.stream()).unwrap();
        self.alone[row].set(0, name, bytes.stream()).unwrap();
    }
}

/// Makes some `float32` actions of a box larger than its bounds.
fn beyond_the_bounds(actions: &mut [u8]) {
    for action in actions.as_chunks_mut().0 {
        *action = (1.25 * f32::from_ne_bytes(*action)).to_ne_bytes();
    }
}

/// Steps both with random actions.
fn play(kind: &HostKind, changes: &Changes, rows: usize, mode: Mode) {
    let Changes { constant: (name, standard, other), states, .. } = changes;
    let (mut both, mut rng) = (Both::new(kind, rows), Rng::from_seed(9));
    for step in 0..STEPS {
        let when = format!("step {step} of {rows} rows in {mode:?}");
        if step % 50 == 20 {
            let some = (0..rows).filter(|row| (row + step / 50) % 3 == 1);
            for (at, row) in some.enumerate() {
                let state = states[(at + step / 50) % states.len()];
                both.set(row, "state", &state.to_vec().get());
            }
        }
        if step == 100 {
            (0..rows).filter(|row| row % 17 == 3).for_each(|row| {
                both.set(row, name, &ParameterValue::Float(*other));
            });
        }
        if step == 200 {
            (0..rows).for_each(|row| both.set(row, name, &ParameterValue::Float(*standard)));
        }
        let mut actions = kind.spaces.action.sample(0, rows, &mut rng);
        if matches!(kind.spaces.action, Space::Box { .. }) {
            beyond_the_bounds(&mut actions);
        }
        both.together.actions.store(0, &actions);
        for (single, action) in both.alone.iter_mut().zip(actions.chunks(actions.len() / rows)) {
            single.actions.store(0, action);
        }
        // Every 90 steps a few rows are cut off, as a host does that limits episodes.
        let cut = |row: usize| (step + row).is_multiple_of(90);
        let command = |(row, &over): (usize, &bool)| match (mode, over || cut(row)) {
            (Mode::NextStep, true) => abi::RESET,
            (Mode::Disabled, true) if step.is_multiple_of(40) => abi::RESET,
            (Mode::Disabled, true) => abi::LEAVE,
            _ => abi::STEP,
        };
        let commands: Vec<u8> = both.over.iter().enumerate().map(command).collect();
        both.run(&commands, &when);
        if mode == Mode::SameStep {
            let command = |&over: &bool| if over { abi::RESET } else { abi::LEAVE };
            let commands: Vec<u8> = both.over.iter().map(command).collect();
            both.run(&commands, &when);
        }
        if step % 50 == 49 {
            both.compare_states(&when);
        }
    }
}

#[test]
fn rows_together_equal_rows_alone_in_every_mode() {
    for changes in &ALL {
        let kind = HostKind::with_defaults(find(&PLUGIN, changes.id), "").unwrap();
        for (mode, few) in [Mode::NextStep, Mode::SameStep, Mode::Disabled].into_iter().zip(FEW) {
            for &rows in [MANY].iter().chain(few) {
                play(&kind, changes, rows, mode);
            }
        }
    }
}
