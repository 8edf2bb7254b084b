//! Estimators of returns agree where theory says so, and do not depend on the number of threads.
//!
//! `tests/returns/` compares them with brute force over simulated episodes.

use std::num::NonZero;

use cartwheel_kernels::returns::{
    Bootstrap, Clipping, Error, Flags, Float, PerStep, TimeMajor, Traces, Transitions, discounted,
    gae, gae_normalized, lambda_returns, masked_mean, masked_normalize, n_step, retrace, vtrace,
};

const STEPS: usize = 23;
const ENVS: usize = 37;
const CELLS: usize = STEPS * ENVS;
const N: NonZero<usize> = NonZero::new(3).expect("it is not 0");

/// Arrays of a rollout without invalid rows. The value of a next observation is that of the next row, except
/// at the end of an episode.
struct Rollout<F> {
    rewards: Vec<F>,
    values: Vec<F>,
    next_values: Vec<F>,
    ratios: Vec<F>,
    terminated: Vec<u8>,
    truncated: Vec<u8>,
    valid: Vec<u8>,
}

impl<F: Float> Rollout<F> {
    fn new() -> Self {
        let mut state = 1_u64;
        let mut uniform = move || {
            // A linear congruential generator; its upper bits.
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            f64::from(u32::try_from(state >> 32).expect("32 bits are left")) / f64::from(u32::MAX)
        };
        let mut floats = |count| (0..count).map(|_| F::from_f64(uniform())).collect::<Vec<_>>();
        let (rewards, values, ratios) = (floats(CELLS), floats(CELLS + ENVS), floats(CELLS));
        let (finals, dice) = (floats(CELLS), floats(2 * CELLS));
        let hit = |number: &F| u8::from(number.to_f64() < 0.1);
        let terminated: Vec<_> = dice[..CELLS].iter().map(hit).collect();
        let truncated: Vec<_> = dice[CELLS..].iter().map(hit).collect();
        let next = |cell: usize| {
            if terminated[cell] | truncated[cell] == 1 { finals[cell] } else { values[cell + ENVS] }
        };
        let next_values = (0..CELLS).map(next).collect();
        let values = values[..CELLS].to_vec();
        let valid = vec![1; CELLS];
        Self { rewards, values, next_values, ratios, terminated, truncated, valid }
    }

    fn transitions(&self) -> Transitions<'_, F> {
        Transitions {
            rewards: array(&self.rewards),
            flags: Flags { terminated: array(&self.terminated), truncated: array(&self.truncated) },
            valid: Some(array(&self.valid)),
            gamma: PerStep::Same(0.9),
            bootstrap: Bootstrap::Truncated,
            num_threads: NonZero::new(1),
        }
    }

    /// Everything that is computed from these transitions, one output after the other.
    fn everything(&self, transitions: &Transitions<'_, F>) -> Result<Vec<F>, Error> {
        let (values, next_values) = (array(&self.values), array(&self.next_values));
        let (ratios, lam) = (array(&self.ratios), PerStep::Same(0.8));
        let clipping = Clipping { lambda_: lam, rho_bar: 0.7, c_bar: 0.5, pg_rho_bar: 0.9 };
        let traces = Traces { lambda_: lam, ratios, c_bar: 0.6 };
        let mut lengths = vec![0; CELLS];
        let mut all = vec![F::from_f64(f64::NAN); 11 * CELLS];
        let mut outputs = all.chunks_exact_mut(CELLS);
        let mut out = || outputs.next().expect("there are 11");
        gae(transitions, values, next_values, lam, out(), out())?;
        gae_normalized(transitions, values, next_values, lam, out(), out())?;
        vtrace(transitions, values, next_values, ratios, &clipping, out(), out())?;
        retrace(transitions, values, next_values, &traces, out())?;
        lambda_returns(transitions, next_values, lam, out())?;
        discounted(transitions, None, out())?;
        n_step(transitions, Some(next_values), N, out(), out(), &mut lengths)?;
        #[expect(clippy::cast_precision_loss, reason = "lengths are at most 3")]
        all.extend(lengths.iter().map(|&length| F::from_f64(length as f64)));
        Ok(all)
    }
}

fn array<T>(cells: &[T]) -> TimeMajor<'_, T> {
    TimeMajor::new(cells, STEPS, ENVS).expect("a cell for each row")
}

fn assert_close(got: &[f64], expected: &[f64]) {
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() < 1e-12, "cell {at}: {got}, expected {expected}");
    }
}

/// The two outputs of a computation.
fn two(compute: impl FnOnce(&mut [f64], &mut [f64]) -> Result<(), Error>) -> [Vec<f64>; 2] {
    let mut outputs = [vec![f64::NAN; CELLS], vec![f64::NAN; CELLS]];
    let [first, second] = &mut outputs;
    compute(first, second).expect("good arguments");
    outputs
}

fn one(compute: impl FnOnce(&mut [f64]) -> Result<(), Error>) -> Vec<f64> {
    let mut output = vec![f64::NAN; CELLS];
    compute(&mut output).expect("good arguments");
    output
}

#[test]
fn estimators_agree_where_theory_says_so() {
    let rollout = Rollout::<f64>::new();
    let (values, next_values) = (array(&rollout.values), array(&rollout.next_values));
    let ones = vec![1.0; CELLS];
    for bootstrap in [Bootstrap::Truncated, Bootstrap::Always, Bootstrap::Never] {
        let transitions = Transitions { bootstrap, ..rollout.transitions() };
        let lambda =
            |lam| one(|out| lambda_returns(&transitions, next_values, PerStep::Same(lam), out));
        let [advantages, returns] =
            two(|a, b| gae(&transitions, values, next_values, PerStep::Same(0.8), a, b));
        assert_close(&returns, &lambda(0.8));
        let difference: Vec<_> = returns.iter().zip(&rollout.values).map(|(r, v)| r - v).collect();
        assert_close(&advantages, &difference);

        let traces = Traces { lambda_: PerStep::Same(0.8), ratios: array(&ones), c_bar: 1.0 };
        let on_policy = one(|out| retrace(&transitions, values, next_values, &traces, out));
        assert_close(&on_policy, &returns);
        let clipping = Clipping { lambda_: PerStep::Same(0.8), ..Clipping::default() };
        let [targets, _] =
            two(|a, b| vtrace(&transitions, values, next_values, array(&ones), &clipping, a, b));
        assert_close(&targets, &returns);

        let sums = one(|out| discounted(&transitions, Some(next_values), out));
        assert_close(&sums, &lambda(1.0));
        let steps = |n| {
            let mut lengths = vec![0; CELLS];
            let n = NonZero::new(n).unwrap();
            two(|a, b| n_step(&transitions, Some(next_values), n, a, b, &mut lengths))
        };
        assert_close(&steps(1)[0], &lambda(0.0));
        assert_close(&steps(STEPS)[0], &sums);
        assert_close(&steps(usize::MAX)[0], &sums);
        let [_, normalized] =
            two(|a, b| gae_normalized(&transitions, values, next_values, PerStep::Same(0.0), a, b));
        assert_close(&normalized, &lambda(0.0));
    }
}

#[test]
fn the_return_of_the_last_step_is_its_reward_and_the_bootstrapped_value() {
    let rollout = Rollout::<f64>::new();
    let values = array(&rollout.next_values);
    for bootstrap in [Bootstrap::Truncated, Bootstrap::Always, Bootstrap::Never] {
        let transitions = Transitions { bootstrap, ..rollout.transitions() };
        let sums = one(|out| discounted(&transitions, Some(values), out));
        for (cell, sum) in sums.iter().enumerate() {
            let ends = [rollout.terminated[cell], rollout.truncated[cell]];
            let bootstraps = match (ends, bootstrap) {
                ([0, 0], _) => continue,
                (_, Bootstrap::Always) | ([0, 1], Bootstrap::Truncated) => 0.9,
                _ => 0.0,
            };
            let expected = rollout.rewards[cell] + bootstraps * rollout.next_values[cell];
            assert!((sum - expected).abs() < 1e-15, "{bootstrap:?}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    fn check<F: Float>(bits: fn(F) -> u64) {
        let rollout = Rollout::<F>::new();
        let of = |threads| {
            let transitions =
                Transitions { num_threads: NonZero::new(threads), ..rollout.transitions() };
            rollout.everything(&transitions).unwrap().into_iter().map(bits).collect::<Vec<_>>()
        };
        for threads in [0, 2, 3, ENVS, 100] {
            assert!(of(1) == of(threads), "{threads} threads");
        }
    }
    check::<f32>(|number| number.to_bits().into());
    check::<f64>(f64::to_bits);
}

#[test]
fn flags_of_any_byte_give_the_same_bits() {
    let mut rollout = Rollout::<f32>::new();
    for cell in (5..CELLS).step_by(11) {
        rollout.valid[cell] = 0;
    }
    let bits = |rollout: &Rollout<f32>| {
        let all = rollout.everything(&rollout.transitions()).unwrap();
        all.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let expected = bits(&rollout);
    let Rollout { terminated, truncated, valid, .. } = &mut rollout;
    for (cell, flag) in [terminated, truncated, valid].into_iter().flatten().enumerate() {
        *flag *= [2, 254, 255, 128][cell % 4];
    }
    assert!(bits(&rollout) == expected);
}

#[test]
fn values_of_invalid_rows_reach_no_other_row() {
    let mut rollout = Rollout::<f64>::new();
    for cell in (5..CELLS).step_by(11) {
        rollout.valid[cell] = 0;
    }
    let clean = rollout.everything(&rollout.transitions()).unwrap();
    let gammas = |stale: f64| {
        rollout.valid.iter().map(|&valid| if valid == 1 { 0.9 } else { stale }).collect::<Vec<_>>()
    };
    let (fine, odd) = (gammas(0.9), gammas(f64::NAN));
    for (cell, valid) in rollout.valid.clone().into_iter().enumerate() {
        if valid == 0 {
            rollout.rewards[cell] = f64::NAN;
            rollout.values[cell] = f64::NAN;
            rollout.next_values[cell] = f64::NAN;
            rollout.ratios[cell] = f64::NAN;
            rollout.terminated[cell] ^= 1;
        }
    }
    for gammas in [fine, odd] {
        let gamma = PerStep::Each(array(&gammas));
        let dirty = rollout.everything(&Transitions { gamma, ..rollout.transitions() }).unwrap();
        for (at, (clean, dirty)) in clean.iter().zip(&dirty).enumerate() {
            if rollout.valid[at % CELLS] == 1 {
                assert_eq!(clean.to_bits(), dirty.to_bits(), "output {}", at / CELLS);
            }
        }
    }
}

#[test]
fn a_nan_ratio_is_not_hidden_by_clipping() {
    let mut rollout = Rollout::<f64>::new();
    rollout.ratios[0] = f64::NAN;
    let all = rollout.everything(&rollout.transitions()).unwrap();
    assert!(all[4 * CELLS].is_nan(), "the V-trace target");
    assert!(all[5 * CELLS].is_nan(), "the policy advantage");
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_written() {
    let rollout = Rollout::<f64>::new();
    let good = rollout.transitions();
    let short = TimeMajor::new(&rollout.values[..CELLS - ENVS], STEPS - 1, ENVS).unwrap();
    let (values, lam) = (array(&rollout.values), PerStep::Same(0.5));
    let shape = |what| Error::WrongShape { what, expected: [STEPS, ENVS], got: [STEPS - 1, ENVS] };
    let refused = |transitions, values, next_values, lam, mut out: Vec<f64>| {
        let before = out.clone();
        let mut other = vec![1.0; CELLS];
        let result = gae(&transitions, values, next_values, lam, &mut out, &mut other);
        assert_eq!(out, before);
        result.unwrap_err()
    };
    let out = || vec![1.0; CELLS];
    assert_eq!(refused(good, short, values, lam, out()), shape("values"));
    assert_eq!(refused(good, values, short, lam, out()), shape("next_values"));
    let count = Error::WrongCount { what: "advantages", expected: CELLS, got: CELLS - 1 };
    assert_eq!(refused(good, values, values, lam, vec![1.0; CELLS - 1]), count);
    for value in [-0.1, 1.5, f64::INFINITY] {
        let wrong = |what| Error::NotInUnitRange { what, value, row: None };
        assert_eq!(refused(good, values, values, PerStep::Same(value), out()), wrong("gae_lambda"));
        let transitions = Transitions { gamma: PerStep::Same(value), ..good };
        assert_eq!(refused(transitions, values, values, lam, out()), wrong("gamma"));
    }
    let mut gammas = vec![0.5; CELLS];
    gammas[ENVS + 2] = 2.0;
    let transitions = Transitions { gamma: PerStep::Each(array(&gammas)), ..good };
    let wrong = Error::NotInUnitRange { what: "gamma", value: 2.0, row: Some([1, 2]) };
    assert_eq!(refused(transitions, values, values, lam, out()), wrong);
    let flags = Flags {
        truncated: TimeMajor::new(&rollout.valid[ENVS..], STEPS - 1, ENVS).unwrap(),
        ..good.flags
    };
    let transitions = Transitions { flags, ..good };
    assert_eq!(refused(transitions, values, values, lam, out()), shape("truncated"));
}

#[test]
fn an_array_has_a_cell_for_each_row() {
    let cells = [0.0; 6];
    assert_eq!(TimeMajor::new(&cells, 0, 6).unwrap_err(), Error::Empty { got: [0, 6] });
    assert_eq!(TimeMajor::new(&cells, 6, 0).unwrap_err(), Error::Empty { got: [6, 0] });
    let wrong = Error::WrongLength { steps: 2, num_envs: 2, got: 6 };
    assert_eq!(TimeMajor::new(&cells, 2, 2).unwrap_err(), wrong);
    assert!(TimeMajor::new(&cells, usize::MAX, 2).is_err());
    assert_eq!(TimeMajor::new(&cells, 3, 2).unwrap().shape(), [3, 2]);
}

#[test]
fn statistics_are_of_the_valid_rows_alone() {
    let valid: Vec<_> = (0..10_007).map(|row| u8::from(row % 3 != 1)).collect();
    let wave = |row: i32| (f64::from(row) * 0.1).sin() + 1e3;
    let numbers: Vec<_> =
        (0..10_007).map(|row| if row % 3 == 1 { f64::NAN } else { wave(row) }).collect();
    let kept: Vec<_> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let count = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / count;
    assert!((masked_mean(&numbers, &valid).unwrap() - mean).abs() < 1e-9);

    let squares: f64 = kept.iter().map(|number| (number - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    let mut normalized = vec![f64::NAN; numbers.len()];
    masked_normalize(&numbers, &valid, 1e-8, &mut normalized).unwrap();
    for ((normalized, number), valid) in normalized.iter().zip(&numbers).zip(&valid) {
        let expected = if *valid == 1 { (number - mean) / (deviation + 1e-8) } else { 0.0 };
        assert!((normalized - expected).abs() < 1e-9);
    }
    masked_normalize(&[2.0, 2.0], &[1, 1], 1e-8, &mut normalized[..2]).unwrap();
    assert_eq!(normalized[..2], [0.0, 0.0]);
}

#[test]
fn a_mean_without_valid_rows_is_an_error() {
    assert_eq!(masked_mean(&[1.0], &[0]), Err(Error::NoValidRow { count: 1 }));
    assert_eq!(masked_mean::<f32>(&[], &[]), Err(Error::NoValidRow { count: 0 }));
    let wrong = Error::WrongCount { what: "valid", expected: 1, got: 0 };
    assert_eq!(masked_mean(&[1.0], &[]), Err(wrong));
    for epsilon in [0.0, -1.0, f64::NAN] {
        let refused = masked_normalize(&[1.0], &[1], epsilon, &mut [0.0]);
        assert!(matches!(refused, Err(Error::NotPositive { what: "epsilon", .. })));
    }
}
