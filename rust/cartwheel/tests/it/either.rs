//! Observations whose form the options decide, seen by authors and by programs in Rust.

use std::marker::PhantomData;
use std::sync::Arc;

use cartwheel::testing::check_env;
use cartwheel::{
    DType, Either, Env, Error, Failure, Flat, NoOptions, Rng, Seed, Space, Spaces, Text,
    Transition, VectorEnv, View,
};

cartwheel::options! {
    /// The form of the observation.
    struct Options {
        /// 0: everything; 1: everything, with wide numbers; 2: the numbers alone; 3: wide ones alone.
        form: usize,
    }
}

cartwheel::view! {
    /// Numbers of either width, and their name.
    struct Named, NamedMut, NamedRef {
        digits: Either<Flat<u8>, Flat<i64>>,
        name: Text,
    }
}

type Numbers = Either<Flat<u8>, Flat<i64>>;

/// Counts, and shows it as `V`.
struct Counter<V> {
    count: u8,
    shown: PhantomData<fn() -> V>,
}

/// Writes a number to a place of type `V`.
trait Shown: View {
    fn show(place: Self::Mut<'_>, count: u8);
}

fn fill(place: Either<&mut [u8], &mut [i64]>, count: u8) {
    match place {
        Either::Left(narrow) => narrow.fill(count),
        Either::Right(wide) => wide.fill(i64::from(count) - 1000),
    }
}

impl Shown for Either<Named, Numbers> {
    fn show(place: Self::Mut<'_>, count: u8) {
        match place {
            Either::Left(mut named) => {
                fill(named.digits, count);
                named.name.set(["even", "odd"][usize::from(count % 2)]);
            }
            Either::Right(numbers) => fill(numbers, count),
        }
    }
}

/// The shorter view first, whose leaves the longer one begins with.
impl Shown for Either<Flat<u8>, Either<Named, Flat<i64>>> {
    fn show(_: Self::Mut<'_>, _: u8) {}
}

impl<V: Shown> Env for Counter<V> {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = V;
    type Info = ();
    type Shared = ();

    fn spaces(options: &Options, (): &()) -> Spaces {
        let digits = if options.form.is_multiple_of(2) {
            Space::integer_box(DType::U8, &[2, 2], 0, 255)
        } else {
            Space::integer_box(DType::I64, &[3], -1000, 0)
        };
        let observation = match options.form {
            0 | 1 => Space::dict([("digits", digits), ("name", Space::text(4, "devno"))]),
            _ => digits,
        };
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(_: &Options, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { count: 0, shown: PhantomData })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.count = u8::try_from(rng.integers(0_u64..9))?;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.count += u8::try_from(action)? + 1;
        Ok(Transition { reward: 0.0, terminated: self.count > 20, truncated: false })
    }

    fn observe(&self, place: V::Mut<'_>) {
        V::show(place, self.count);
    }

    fn info(&self) {}

    cartwheel::state! { count }
}

type Right = Counter<Either<Named, Numbers>>;

#[test]
fn the_test_kit_accepts_every_form_that_options_decide() {
    for form in 0..4 {
        check_env::<Right>(Options { form }).unwrap();
    }
}

#[test]
fn a_program_in_rust_reads_the_form_of_the_space() {
    let envs = |form| {
        let mut envs = VectorEnv::<Right>::builder(2).options(Options { form }).build().unwrap();
        envs.reset(Seed(1)).unwrap();
        envs
    };
    let mut complete = envs(1);
    let batch = complete.step(&[0, 1]).unwrap();
    let observations = batch.observations();
    let Either::Left(row) = observations.row(1) else { panic!("not a dictionary") };
    let Either::Right(digits) = row.digits else { panic!("not wide") };
    let Either::Left((elements, names)) = observations.columns() else { panic!("not columns") };
    let Either::Right(all) = elements else { panic!("not wide") };
    assert_eq!((digits, all.len()), (&all[3..], 6));
    let parity = if (digits[0] + 1000) % 2 == 0 { "even" } else { "odd" };
    assert_eq!((row.name, names.row(1)), (parity, parity));

    let mut alone = envs(2);
    let batch = alone.step(&[0, 1]).unwrap();
    let Either::Right(Either::Left(digits)) = batch.observations().row(0) else {
        panic!("not narrow and alone")
    };
    let owned = <Either<Named, Numbers> as View>::owned(batch.observations().row(0));
    assert_eq!(owned, Either::Right(Either::Left(digits.to_vec())));
}

#[test]
fn choices_that_do_not_fit_or_are_in_the_wrong_order_are_refused() {
    type Wrong = Counter<Either<Flat<u8>, Either<Named, Flat<i64>>>>;
    for form in [1, 2, 3] {
        VectorEnv::<Wrong>::builder(1).options(Options { form }).build().unwrap();
    }
    let error = VectorEnv::<Wrong>::builder(1).options(Options { form: 0 }).build().unwrap_err();
    let error = error.to_string();
    assert!(error.contains("uint8 of any shape or {digits: "), "{error}");
    assert!(
        error.contains("the observation space has {digits: uint8[2, 2], name: text}"),
        "{error}"
    );
}
