//! Every draw equals NumPy's, bit for bit, alone and mixed with every other kind of draw.

use cartwheel_core::rng::{Rng, SeedSequence};

/// Written by `fixtures/random_numbers.py`, which describes the format.
static FIXTURE: &[u8] = include_bytes!("../fixtures/random_numbers.bin");
const SEEDS: usize = 8;
const ROUNDS: usize = 12;
const BULK_ROUNDS: usize = 4000;
const BULK_SEED: u64 = 20_240_229;
const CALLS: usize = 26;

/// The values of call number `call`, the `i`-th of its stream, as the fixture's generator makes it.
#[expect(clippy::cast_precision_loss, reason = "the counter is small")]
fn make_call(rng: &mut Rng, call: usize, i: usize, values: &mut Vec<u64>) {
    let signed = i64::cast_unsigned;
    match call {
        0 => values.push(rng.random().to_bits()),
        1 => values.push(rng.random_f32().to_bits().into()),
        2 => values.push(rng.uniform(-(i as f64), 0.5 * i as f64 + 1.0).to_bits()),
        3 => values.push(signed(rng.integers(0..1 + i64::try_from(i % 1000).unwrap()))),
        4 => values.push(signed(rng.integers(-5..5_000_000_000_000))),
        5 => values.push(signed(rng.integers(0..1 << 32))),
        6 => values.push(signed(rng.integers(-100_i32..101).into())),
        7 => {
            let mut drawn = [0_u8; 5];
            rng.fill_integers(0..200, &mut drawn);
            values.extend(drawn.map(u64::from));
        }
        8 => {
            let mut drawn = [0_i16; 3];
            rng.fill_integers(-3..30_000, &mut drawn);
            values.extend(drawn.map(|value| signed(value.into())));
        }
        9 => {
            let mut drawn = [false; 7];
            rng.fill_integers(false..=true, &mut drawn);
            values.extend(drawn.map(u64::from));
        }
        10 => values.push(rng.standard_normal().to_bits()),
        11 => values.push(rng.normal(1.5, 2.5).to_bits()),
        12 => values.push(rng.choice_index(13) as u64),
        13 => values.push(rng.choice_weighted(&[0.1, 0.2, 0.3, 0.4]) as u64),
        14 => values.extend(rng.choice_without_replacement(40, 5).iter().map(|&pick| pick as u64)),
        15 => values.extend(rng.permutation(11).iter().map(|&item| item as u64)),
        16 => {
            let mut items: Vec<u64> = (0..=i as u64 % 9).collect();
            rng.shuffle(&mut items);
            values.extend(items);
        }
        17 => values.push(rng.integers(0..=u64::MAX)),
        18 => values.push(signed(rng.integers(7..8))),
        19 => {
            let mut drawn = [0_u8; 3];
            rng.fill_integers(0..=255, &mut drawn);
            values.extend(drawn.map(u64::from));
        }
        20 => values.push(rng.integers(0..(1_u64 << 63) + 5)),
        21 => values.extend(rng.uniform_array::<4>(-0.05, 0.05).map(f64::to_bits)),
        22 => values.push(signed(rng.integers(-128_i8..127).into())),
        23 => values.push(rng.integers(0..=u16::MAX).into()),
        24 => {
            let picks = rng.choice_without_replacement(10_001, 201);
            values.push(picks.iter().zip(1..).map(|(&pick, at)| at * pick as u64).sum());
        }
        25 => values.push(rng.integers(0..3_000_000_000_u32).into()),
        _ => unreachable!("there are {CALLS} calls"),
    }
}

fn words() -> impl Iterator<Item = u64> {
    FIXTURE.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

#[test]
fn mixed_calls_of_every_kind_draw_as_numpy_does() {
    let mut words = words();
    let mut next = || usize::try_from(words.next().unwrap()).unwrap();
    for _ in 0..SEEDS {
        let length = next();
        let seed: Vec<u32> = (0..length).map(|_| u32::try_from(next()).unwrap()).collect();
        let expected: Vec<usize> = (0..next()).map(|_| next()).collect();
        let mut streams = vec![Rng::from_seed_words(&seed)];
        if length <= 4 {
            let wide = seed.iter().rev().fold(0, |wide, &word| wide << 32 | u128::from(word));
            streams.push(Rng::from_wide_seed(wide));
            streams.extend(u64::try_from(wide).map(Rng::from_seed));
        }
        for mut rng in streams {
            let mut values = Vec::new();
            for i in 0..ROUNDS * CALLS {
                make_call(&mut rng, i * 7 % CALLS, i, &mut values);
                let through_state = Rng::from_state(rng.state());
                assert_eq!(rng, through_state, "the state is complete");
            }
            let expected: Vec<u64> = expected.iter().map(|&value| value as u64).collect();
            assert_eq!(values, expected, "seed {seed:x?}");
        }
    }
}

#[test]
fn long_streams_of_one_call_draw_as_numpy_does() {
    let sums: Vec<u64> = words().collect();
    let sums = sums[sums.len() - 2 * CALLS..].chunks_exact(2);
    for (call, expected) in sums.enumerate() {
        let mut rng = Rng::from_seed(BULK_SEED);
        let mut values = Vec::new();
        (0..BULK_ROUNDS).for_each(|i| make_call(&mut rng, call, i, &mut values));
        let folded = values.iter().fold(0, |folded, value| folded ^ value);
        let total = values.iter().fold(0_u64, |total, &value| total.wrapping_add(value));
        assert_eq!([folded, total], expected, "call {call}");
    }
}

#[test]
fn seed_zero_gives_the_published_values() {
    let sequence = SeedSequence::new(&[]);
    let expected = [0xdb2c_d7e7_b0f4_78be, 0xabf4_641a_2c71_ba49, 0x20c6_ed6d_9d7b_8d41];
    assert_eq!(sequence.generate::<3>(), expected);
    let rng = Rng::from_sequence(&sequence);
    assert_eq!(rng.state().state, 0x1aa1_b534_5996_452d_0958_5eb7_a695_61e3);
    assert_eq!(rng.state().increment, 0x418d_dadb_3af7_1a82_5881_33bc_4478_73a9);
    assert!(!rng.state().has_half);
}

#[test]
fn entropy_differs_from_call_to_call() {
    assert_ne!(Rng::from_entropy().unwrap(), Rng::from_entropy().unwrap());
}

#[test]
#[should_panic(expected = "at least one integer")]
fn an_empty_range_is_refused() {
    Rng::from_seed(0).integers(3_i64..3);
}

#[test]
#[should_panic(expected = "sum to 1")]
fn probabilities_that_do_not_sum_to_one_are_refused() {
    Rng::from_seed(0).choice_weighted(&[0.5, 0.4]);
}
