//! Types of observations and actions against the spaces that they stand for.

use super::*;
use crate::support;

cartwheel::view! {
    /// The leaves of a `Dict`.
    pub(super) struct Parts, PartsMut, PartsRef {
        grid: [[u8; 3]; 2],
        rest: cartwheel::Flat<f32>,
        total: i64,
    }
}

/// Shows its last action in a `Dict`.
pub(super) struct Mirror(i64);

impl Env for Mirror {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = Parts;
    type Observation = Parts;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let array = |dtype, shape: &[usize]| Space::Box {
            dtype,
            shape: shape.to_vec(),
            low: cartwheel::Bounds::All(0.0),
            high: cartwheel::Bounds::All(9.0),
        };
        let space = Space::Dict(vec![
            ("grid".into(), array(DType::U8, &[2, 3])),
            ("rest".into(), array(DType::F32, &[1, 2])),
            ("total".into(), Space::discrete(9)),
        ]);
        Spaces { observation: space.clone(), action: space }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self(0))
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = 0;
        Ok(())
    }

    fn step(&mut self, action: PartsRef<'_>, _: &mut Rng) -> Result<Transition, Failure> {
        self.0 = action.total + i64::from(action.grid[1][2]);
        let reward = f64::from(action.rest[1]);
        Ok(Transition { reward, terminated: true, truncated: false })
    }

    fn observe(&self, parts: PartsMut<'_>) {
        *parts.grid = [[1, 2, 3], [4, 5, 6]];
        parts.rest.fill(0.5);
        *parts.total = self.0;
    }

    fn info(&self) {}
}

#[test]
fn structs_see_the_leaves_of_a_dict_in_place() {
    let kind = kind(&PLUGIN, "test/Mirror-v0", "{}").unwrap();
    let mut envs = Envs::new(&kind, 2, 0, settings(AutoresetMode::SameStep));
    envs.seed(0);
    let grid = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2];
    let mut store = |leaf, tag, elements: &[u8]| {
        support::store_actions(&mut envs.pool, leaf, tag, elements).unwrap();
    };
    store(0, ActionTag::Array(DType::U8), &grid);
    let rest = [0.0_f32, 1.5, 0.0, 2.5].map(f32::to_ne_bytes);
    store(1, ActionTag::Array(DType::F32), rest.as_flattened());
    store(2, ActionTag::Integers, &support::bytes_of(&[3, 4]));
    let batch = envs.call(Call::Step, 0).unwrap();
    assert_eq!(batch.rewards(), [1.5, 2.5]);
    assert_eq!(batch.leaf(0), [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
    assert_eq!(batch.integers(2), [0, 0], "the reset observation");
    let mut reader = InfoReader::new(&batch.infos, 0);
    reader.record().unwrap().unwrap();
    assert_eq!(reader.entry().unwrap().key, "final_obs");
    assert!(matches!(reader.value().unwrap(), Value::Dict(3)));
    let mut keys = Vec::new();
    for _ in 0..3 {
        let entry = reader.entry().unwrap();
        keys.push(entry.key);
        let mut value = reader;
        if let Value::Int(int) = value.value().unwrap() {
            assert_eq!(int, 3 + 1, "the terminal observation");
        }
        reader.skip().unwrap();
    }
    assert_eq!(keys, ["grid", "rest", "total"]);
}

#[test]
fn actions_out_of_range_are_named_with_their_row() {
    let discrete = Space::Discrete { n: 3, start: -1 };
    let check = |space: &Space, actions: &[i64]| {
        space.check_actions(0, &support::bytes_of(actions)).map_err(|e| e.to_string())
    };
    assert!(check(&discrete, &[-1, 0, 1]).is_ok());
    let error = check(&discrete, &[0, 1, 2]).unwrap_err();
    assert_eq!(error, "action 2 of row 2 is not in Discrete(3, start=-1)");
    let several = Space::multi_discrete(&[2, 5]);
    assert!(check(&several, &[1, 4, 0, 0]).is_ok());
    let error = check(&several, &[1, 4, 0, 5]).unwrap_err();
    assert_eq!(error, "action 5 of row 1 is not in MultiDiscrete([2, 5])");
    let floats = Space::float_box(&[-1.0; 2], &[1.0; 2]);
    let actions = [0.0_f32, 9.0, 0.0, f32::NAN].map(f32::to_ne_bytes);
    let error = floats.check_actions(0, actions.as_flattened()).unwrap_err();
    assert_eq!(error.to_string(), "action nan of row 1 is not in Box([2], float32)");
}

/// An environment whose types do not fit its space.
pub(crate) struct Mismatched;

impl Env for Mismatched {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = [f32; 3];
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let observation = Space::symmetric_box(&[1.0; 4]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition::RESET)
    }

    fn observe(&self, _: &mut [f32; 3]) {}

    fn info(&self) {}
}

#[test]
fn types_that_do_not_fit_the_space_are_refused() {
    let error = kind(&PLUGIN, "test/Mismatched-v0", "").unwrap_err().to_string();
    let expected = "test/Mismatched-v0: the observation type sees float32[3]; the observation space has float32[4]";
    assert_eq!(error, expected);
}
