//! Actions that are `float32` or `float64`, as the caller passes them, through the ABI.

use std::mem::offset_of;
use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, Floats, FloatsRef, NoOptions, Rng, Space, Spaces, Transition,
};
use cartwheel_abi as abi;

use crate::support::{HostKind, HostRows, find};

/// The reward is the sum of the squares, rounded as the action's dtype rounds; the observation says
/// how many bytes an element had.
#[derive(Debug)]
struct Effort<const BLOCK: usize> {
    size: i64,
}

fn effort(action: FloatsRef<'_>) -> (f64, i64) {
    match action {
        FloatsRef::F32(action) => (action.iter().map(|a| a * a).sum::<f32>().into(), 4),
        FloatsRef::F64(action) => (action.iter().map(|a| a * a).sum(), 8),
    }
}

impl<const BLOCK: usize> Env for Effort<BLOCK> {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = (i64, Floats, [f32; 1]);
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let floats = Space::float_box(&[-1.0; 2], &[1.0; 2]);
        let single = Space::float_box(&[-1.0], &[1.0]);
        let action = Space::Tuple(vec![Space::discrete(2), floats, single]);
        Spaces { observation: Space::discrete(9), action }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { size: 0 })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.size = 0;
        Ok(())
    }

    fn step(
        &mut self,
        (_, action, _): (i64, FloatsRef<'_>, &[f32; 1]),
        _: &mut Rng,
    ) -> Result<Transition, Failure> {
        let (reward, size) = effort(action);
        self.size = size;
        Ok(Transition { reward, terminated: false, truncated: false })
    }

    const BLOCK: usize = BLOCK;

    fn step_block(block: &mut cartwheel::BlockOf<'_, '_, Self>) {
        for row in (0..block.len()).filter(|&row| block.running[row]) {
            let (_, action, _) = block.action(row);
            let (reward, size) = effort(action);
            block.envs[row].size = size;
            block.transitions[row] =
                Some(Transition { reward, terminated: false, truncated: false });
        }
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.size;
    }

    fn info(&self) {}
}

cartwheel::table! {
    static PLUGIN {
        "floats/Effort-v1" => Effort<1> {},
        "floats/Effort-v4" => Effort<4> {},
    }
}

const NUMBERS: [f64; 4] = [0.1, -0.7, 1.0 / 3.0, 0.9];

fn singles() -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
    NUMBERS.iter().map(|&number| number as f32).collect()
}

/// The rewards of two rows with these numbers, of either dtype.
fn rewards(dtype: u32) -> Vec<f64> {
    let (singles, is_single) = (singles(), dtype == abi::FLOAT32);
    let of = |row: usize| {
        let at = 2 * row..2 * row + 2;
        if is_single {
            effort(FloatsRef::F32(&singles[at])).0
        } else {
            effort(FloatsRef::F64(&NUMBERS[at])).0
        }
    };
    (0..2).map(of).collect()
}

/// Two rows, reset, with `float32` actions.
fn with_rows(id: &str, test: impl Fn(&HostKind, HostRows<'_>)) {
    let kind = HostKind::new(find(&PLUGIN, id), "{}").unwrap();
    let mut rows = HostRows::new(&kind, 2).unwrap();
    rows.all(abi::RESET);
    let bytes: Vec<u8> = singles().into_iter().flat_map(f32::to_ne_bytes).collect();
    rows.actions.store(1, &bytes);
    test(&kind, rows);
}

const IDS: [&str; 2] = ["floats/Effort-v1", "floats/Effort-v4"];

#[test]
fn the_kind_says_which_leaves_take_both_dtypes() {
    with_rows(IDS[0], |kind, _| assert_eq!(kind.action_floats, [0, 1, 0]));
}

#[test]
fn elements_are_seen_in_the_dtype_that_the_batch_names() {
    assert_ne!(rewards(abi::FLOAT32), rewards(abi::FLOAT64));
    for id in IDS {
        with_rows(id, |_, mut rows| {
            rows.action_dtypes = vec![abi::INT64, abi::FLOAT32, abi::FLOAT32];
            rows.all(abi::STEP);
            assert_eq!(rows.rewards, rewards(abi::FLOAT32));
            rows.actions.leaves[1].dtype = cartwheel::DType::F64;
            let bytes: Vec<u8> = NUMBERS.into_iter().flat_map(f64::to_ne_bytes).collect();
            rows.actions.replace(1, &bytes);
            rows.action_dtypes = vec![abi::INT64, abi::FLOAT64, abi::FLOAT32];
            rows.all(abi::STEP);
            assert_eq!(rows.rewards, rewards(abi::FLOAT64));
            assert_eq!(rows.observations.leaf(0), [8_i64.to_ne_bytes(); 2].concat());
        });
    }
}

#[test]
fn a_host_of_the_version_before_passes_the_dtype_of_the_space() {
    for id in IDS {
        with_rows(id, |_, mut rows| {
            rows.batch_size = offset_of!(abi::Batch, action_dtypes);
            rows.action_dtypes = vec![77; 3]; // behind the end of that version's batch
            rows.all(abi::STEP);
            assert_eq!(rows.rewards, rewards(abi::FLOAT32));
        });
        let older = HostKind::sized(find(&PLUGIN, id), offset_of!(abi::Description, action_floats));
        assert_eq!(older, [0xAB; size_of::<usize>()], "what is not the host's was left alone");
    }
}

#[test]
fn a_dtype_that_no_float_has_fails_the_batch() {
    with_rows(IDS[0], |_, mut rows| {
        rows.commands.fill(abi::STEP);
        rows.action_dtypes = vec![abi::INT64, abi::INT8, abi::FLOAT32];
        let (code, next, text) = rows.run_some((0, 2), 0, None);
        assert_eq!((code, next), (abi::PANICKED, 0));
        assert!(text.starts_with("a leaf of floats has the dtype int8 ("), "{text}");
    });
}

#[cfg(feature = "engine")]
mod vector {
    use cartwheel::{Batch, Reset, VectorEnv};

    use super::*;

    type Action = (i64, Floats, [f32; 1]);

    fn single(row: usize) -> Action {
        (0, Floats::F32(singles()[2 * row..2 * row + 2].to_vec()), [0.5])
    }

    fn double(row: usize) -> Action {
        (0, Floats::F64(NUMBERS[2 * row..2 * row + 2].to_vec()), [0.5])
    }

    fn envs(threads: usize) -> VectorEnv<Effort<1>> {
        let builder = VectorEnv::<Effort<1>>::builder(2).threads(threads);
        let mut envs = builder.build().unwrap();
        envs.reset(Reset::new()).unwrap();
        envs
    }

    fn sizes(batch: &Batch<Effort<1>>) -> Vec<i64> {
        batch.observations().columns().to_vec()
    }

    #[test]
    fn steps_from_rust_have_the_dtype_of_their_actions() {
        for threads in [1, 2] {
            let mut envs = envs(threads);
            for _ in 0..3 {
                let batch = envs.step(&[single(0), single(1)]).unwrap();
                assert_eq!((batch.rewards(), sizes(&batch)), (&*rewards(abi::FLOAT32), vec![4; 2]));
                let batch = envs.step(&[double(0), double(1)]).unwrap();
                assert_eq!((batch.rewards(), sizes(&batch)), (&*rewards(abi::FLOAT64), vec![8; 2]));
            }
        }
    }

    #[test]
    fn a_double_among_the_rows_makes_all_of_them_double() {
        let batch = envs(1).step(&[single(0), double(1)]).unwrap();
        let wide: Vec<f64> = singles()[..2].iter().copied().map(f64::from).collect();
        let expected = [effort(FloatsRef::F64(&wide)).0, rewards(abi::FLOAT64)[1]];
        assert_eq!((batch.rewards(), sizes(&batch)), (&expected[..], vec![8; 2]));
    }

    #[test]
    fn rows_that_are_sent_apart_keep_their_dtypes() {
        for threads in [1, 2] {
            let mut envs = envs(threads);
            for swap in [0, 1] {
                envs.send(&[swap], &[single(swap)]).unwrap();
                envs.send(&[1 - swap], &[double(1 - swap)]).unwrap();
                let batch = envs.recv().unwrap();
                let expected = [rewards(abi::FLOAT32)[swap], rewards(abi::FLOAT64)[1 - swap]];
                assert_eq!(batch.rewards(), expected);
            }
        }
    }

    #[test]
    fn what_is_no_number_and_what_has_another_length_is_refused() {
        let mut envs = envs(1);
        let nan = (0, Floats::F64(vec![0.0, f64::NAN]), [0.0]);
        let error = envs.step(&[double(0), nan]).unwrap_err().to_string();
        assert_eq!(error, "action nan of row 1 is not in Box([2], float32)");
        let long = (0, Floats::F64(vec![0.0; 3]), [0.0]);
        let error = envs.step(&[long, double(1)]).unwrap_err().to_string();
        assert_eq!(error, "action of 3 elements of row 0 is not in Box([2], float32)");
        assert_eq!(envs.step(&[double(0), double(1)]).unwrap().rewards(), rewards(abi::FLOAT64));
    }
}
