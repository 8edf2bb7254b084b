//! Parameters, states, drawings, batches that are kept.

use cartwheel::vector::Drawing;
use cartwheel::{AutoresetMode, Batch, RenderMode, Seed, VectorEnv};

use super::oracle::{action, shown};
use crate::walk::Walk;

const ROWS: usize = 5;

fn begun(threads: usize, mode: AutoresetMode) -> VectorEnv<Walk> {
    let mut envs = VectorEnv::builder(ROWS).threads(threads).autoreset(mode).build().unwrap();
    envs.reset(Seed(3)).unwrap();
    envs
}

fn played(envs: &mut VectorEnv<Walk>, steps: std::ops::Range<usize>) -> Vec<Batch<Walk>> {
    let actions = |step| (0..ROWS).map(|row| action(row, step)).collect::<Vec<_>>();
    steps.map(|step| envs.step(&actions(step)).unwrap()).collect()
}

#[test]
fn parameters_are_read_and_set_for_each_row() {
    for threads in [1, 3] {
        let mut envs = begun(threads, AutoresetMode::NextStep);
        assert_eq!(envs.parameter::<f64>("gravity").unwrap(), [9.81; ROWS]);
        let gravity = [1.0, 2.0, 3.0, 4.0, 5.0];
        envs.set_parameter("gravity", &gravity).unwrap();
        assert_eq!(envs.parameter::<f64>("gravity").unwrap(), gravity);
        envs.set_parameter("goal", &[1000_i64]).unwrap();
        assert_eq!(envs.parameter::<i64>("goal").unwrap(), [1000; ROWS]);
        let batch = envs.step(&[(1, [0.0; 2]); ROWS]).unwrap();
        let luck = batch.infos().unwrap().column::<f64>("luck").unwrap();
        for row in 0..ROWS {
            let expected = luck[row].unwrap() * gravity[row];
            assert_eq!(batch.rewards()[row].to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn rows_go_on_alike_from_a_saved_state_wherever_it_is_loaded() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        for threads in [1, 3] {
            let mut envs = begun(threads, mode);
            played(&mut envs, 0..11);
            let states = envs.get_state(&[4, 0, 2]).unwrap();
            let expected: Vec<_> = played(&mut envs, 11..30).iter().map(shown).collect();
            let mut others = VectorEnv::<Walk>::builder(ROWS).autoreset(mode).build().unwrap();
            others.reset(Seed(99)).unwrap();
            others.set_state(&[4, 0, 2], &states).unwrap();
            assert_eq!(others.get_state(&[4, 0, 2]).unwrap(), states);
            for (batch, expected) in played(&mut others, 11..30).iter().zip(&expected) {
                for row in [4, 0, 2] {
                    assert_eq!(shown(batch)[row], expected[row], "row {row}, {mode:?}");
                }
            }
        }
    }
}

#[test]
fn a_row_is_drawn_in_each_mode() {
    let mut envs = begun(3, AutoresetMode::NextStep);
    envs.step(&[(2, [0.0; 2]), (1, [0.0; 2]), (0, [0.0; 2]), (1, [0.0; 2]), (2, [0.0; 2])])
        .unwrap();
    assert_eq!(envs.render(4, RenderMode::Ansi).unwrap(), Drawing::Text("1".to_owned()));
    let pixels = envs.render(2, RenderMode::RgbArray).unwrap();
    let mut bytes = vec![0; 18];
    bytes[..3].copy_from_slice(&[1, 1, 2]);
    assert_eq!(pixels, Drawing::Pixels { height: 2, width: 3, bytes });
}

#[test]
fn batches_that_are_kept_never_change_however_many() {
    // Far more than the engine keeps in place: the others are copies.
    let mut envs = begun(1, AutoresetMode::NextStep);
    let actions: Vec<_> = (0..ROWS).map(|row| action(row, 0)).collect();
    let mut kept = Vec::new();
    for _ in 0..1100 {
        let batch = envs.step(&actions).unwrap();
        kept.push((shown(&batch), batch));
    }
    let kept = std::thread::spawn(move || {
        assert!(kept.iter().all(|(before, batch)| shown(batch) == *before));
        kept
    });
    drop(envs); // the memory of batches outlives the environments
    for (before, batch) in kept.join().unwrap() {
        assert_eq!(shown(&batch), before);
    }
}
