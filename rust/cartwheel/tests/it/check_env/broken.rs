//! An environment with one defect at a time.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use cartwheel::{
    BlockOf, Buffer, DType, Env, EnvOptions, Error, Failure, InfoValue, InfoWriter, NoOptions,
    OptionDoc, Rng, Shared, Space, Spaces, Transition,
};

/// A defect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub(crate) enum Defect {
    #[default]
    None,
    UnsortedKeys,
    WrongType,
    BeyondBounds,
    NanReward,
    Fails,
    Panics,
    OwnRandomness,
    IgnoresSeed,
    LeavesLeaf,
    LeavesElement,
    LeavesSometimes,
    LeavesAtFirst,
    ObserveDraws,
    InfoChanges,
    InfoTwice,
    InfoTypes,
    InfoShapes,
    InfoShapesWithin,
    InfoReserved,
    BlockDiffers,
    BlockTouchesOthers,
    SavesLess,
    SavesNoParameter,
    RefusesState,
    ParameterDrifts,
    ParameterRefused,
    PanicSticks,
    RowsShare,
    SixRows,
    EightRows,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    pub(crate) defect: Defect,
}

impl EnvOptions for Options {
    fn describe() -> Vec<OptionDoc> {
        let (default, text) = (Some("\"None\"".to_owned()), "What is wrong.".to_owned());
        vec![OptionDoc { name: "defect", default, text }]
    }
}

cartwheel::view! {
    /// The observation.
    pub(crate) struct Sight, SightMut, SightRef {
        /// Pixels.
        pixels: [u8; 6],
        /// Its position.
        position: [f32; 1],
    }
}

cartwheel::info! {
    /// The info.
    pub(crate) struct Report {
        /// A name of vector environments.
        final_obs: Option<u8>,
        /// A value that may be malformed.
        luck: Luck,
    }
}

/// A number, or what is none.
#[derive(Debug, Clone)]
pub(crate) struct Luck(Defect, f64, u32);

impl InfoValue for Luck {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self.0 {
            Defect::InfoTwice => {
                writer.float(self.1);
                writer.float(self.1);
            }
            Defect::InfoTypes if self.2 % 2 == 1 => writer.int(1),
            Defect::InfoShapes => vec![1_u8; 1 + self.2 as usize % 2].write(writer),
            Defect::InfoShapesWithin => {
                writer.dict(1);
                writer.key("draws");
                vec![1_u8; 1 + self.2 as usize % 2].write(writer);
            }
            _ => writer.float(self.1),
        }
    }
}

/// Shared by the rows: its references count them.
pub(crate) struct Counter;

impl Shared<Options> for Counter {
    fn prepare(_: &Options) -> Result<Self, Error> {
        Ok(Self)
    }
}

static CLOCK: AtomicI64 = AtomicI64::new(0);

/// The environment.
pub(crate) struct Broken {
    defect: Defect,
    shared: Arc<Counter>,
    position: f32,
    speed: Drifting,
    seen: Cell<u32>,
    steps: u32,
    episodes: u32,
    /// Whether the episode has ended: a step is an error until the next one begins.
    is_over: bool,
    is_stuck: bool,
}

/// A parameter that may drift when it is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drifting(f64, bool);

impl cartwheel::Parameter for Drifting {
    fn get(&self) -> cartwheel::ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: cartwheel::ParameterValue) -> Result<(), Error> {
        self.0.set(value)?;
        self.0 += if self.1 { 0.5 } else { 0.0 };
        Ok(())
    }
}

impl Env for Broken {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Sight;
    type Info = Report;
    type Shared = Counter;

    fn spaces(options: &Options, _: &Counter) -> Spaces {
        let pixels = Space::integer_box(DType::U8, &[6], 0, 200);
        let position = Space::float_box(&[-8.0], &[8.0]);
        let observation = match options.defect {
            Defect::UnsortedKeys => {
                Space::Dict(vec![("position".to_owned(), position), ("pixels".to_owned(), pixels)])
            }
            Defect::WrongType => {
                Space::dict([("pixels", pixels), ("position", Space::discrete(3))])
            }
            _ => Space::dict([("pixels", pixels), ("position", position)]),
        };
        Spaces { observation, action: Space::discrete(3) }
    }

    fn new(options: &Options, shared: &Arc<Counter>) -> Result<Self, Error> {
        let defect = options.defect;
        Ok(Self {
            defect,
            shared: Arc::clone(shared),
            position: 0.0,
            speed: Drifting(0.25, defect == Defect::ParameterDrifts),
            seen: Cell::new(0),
            steps: 0,
            episodes: 0,
            is_over: false,
            is_stuck: false,
        })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.is_over = false;
        if self.is_stuck {
            self.position = 7.5;
            return Ok(());
        }
        self.episodes += 1;
        self.steps = 0;
        let rows = Arc::strong_count(&self.shared) - 1;
        let half_if = |is_so| if is_so { 0.5 } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let chance = match self.defect {
            Defect::OwnRandomness => (CLOCK.fetch_add(1, Relaxed) % 7) as f32 / 7.0,
            Defect::IgnoresSeed => self.episodes as f32 / 10.0,
            // The others count: alone, every life begins as before.
            Defect::RowsShare => half_if(rows > 3),
            Defect::SixRows => half_if(rows == 6),
            Defect::EightRows => half_if(rows == 8),
            _ => rng.random_f32(),
        };
        self.position = chance;
        Ok(())
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        if !(0..3).contains(&action) {
            self.is_stuck = self.defect == Defect::PanicSticks;
            panic!("there is no action {action}");
        }
        if self.is_over {
            return Err(Failure::new("the episode is over"));
        }
        self.steps += 1;
        match self.defect {
            Defect::Fails if self.steps == 6 => return Err(Failure::new("no luck")),
            Defect::Panics if self.steps == 6 => panic!("no luck"),
            _ => {}
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "-1, 0, 1"
        )]
        let pushed = (action - 1) as f32 * self.speed.0 as f32;
        self.position = (self.position + pushed).clamp(-8.0, 8.0);
        let is_random = self.defect != Defect::IgnoresSeed;
        let terminated = is_random && rng.random() < 0.02;
        let truncated = self.steps >= 20;
        self.is_over = terminated || truncated;
        let reward = if self.defect == Defect::NanReward { f64::NAN } else { self.position.into() };
        Ok(Transition { reward, terminated, truncated })
    }

    const BLOCK: usize = 4;

    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        for row in 0..block.len() {
            let action = block.action(row);
            let env = &mut block.envs[row];
            if !block.running[row] {
                if env.defect == Defect::BlockTouchesOthers {
                    env.steps += 1;
                }
                continue;
            }
            // The last row is left to `step`, as a special case.
            if row % 4 == 3 {
                continue;
            }
            if let Ok(mut stepped) = env.step(action, &mut block.rngs[row]) {
                if env.defect == Defect::BlockDiffers {
                    stepped.reward = (stepped.reward * 3.0) / 3.0 + 1e-16 + f64::EPSILON;
                }
                block.transitions[row] = Some(stepped);
            }
        }
    }

    fn observe(&self, sight: SightMut<'_>) {
        if self.defect == Defect::LeavesLeaf {
            sight.position[0] = self.position;
            return;
        }
        sight.pixels[..4].fill(self.steps.to_le_bytes()[0]);
        let leaves = match self.defect {
            Defect::LeavesElement => true,
            Defect::LeavesSometimes => self.steps == 5,
            Defect::LeavesAtFirst => self.episodes == 0,
            _ => false,
        };
        if !leaves {
            sight.pixels[4] = 0;
        }
        sight.pixels[5] = 1;
        sight.position[0] = match self.defect {
            Defect::BeyondBounds if self.steps == 3 => 9.0,
            Defect::ObserveDraws => {
                self.seen.set(self.seen.get() + 1);
                self.position + if self.seen.get().is_multiple_of(2) { 1e-3 } else { 0.0 }
            }
            _ => self.position,
        };
    }

    fn info(&self) -> Report {
        if self.defect == Defect::InfoChanges {
            self.seen.set(self.seen.get() + 1);
        }
        let final_obs = (self.defect == Defect::InfoReserved).then_some(1);
        Report { final_obs, luck: Luck(self.defect, self.position.into(), self.steps) }
    }

    cartwheel::parameters! { speed: speed }

    fn check_parameter(&self, _: &str) -> Result<(), Error> {
        let refuses = self.defect == Defect::ParameterRefused && self.steps == 3;
        if refuses { Err(Error::BadParameter("must not be set now".to_owned())) } else { Ok(()) }
    }

    const SAVES: bool = true;

    fn save(&self, state: &mut Vec<u8>) {
        state.extend(self.steps.to_le_bytes());
        state.extend(self.episodes.to_le_bytes());
        let is_lost = self.defect == Defect::SavesNoParameter;
        state.extend(if is_lost { 0.25 } else { self.speed.0 }.to_le_bytes());
        state.extend(self.seen.get().to_le_bytes());
        if self.defect != Defect::SavesLess {
            state.extend(self.position.to_le_bytes());
        }
        state.push(u8::from(self.is_over));
    }

    fn load(&mut self, state: &[u8]) -> Result<(), Failure> {
        if self.defect == Defect::RefusesState {
            return Err(Failure::new("bad state"));
        }
        let number = |at: usize| u32::from_le_bytes(state[at..at + 4].try_into().unwrap());
        (self.steps, self.episodes) = (number(0), number(4));
        self.speed.0 = f64::from_le_bytes(state[8..16].try_into().unwrap());
        self.seen.set(number(16));
        if self.defect != Defect::SavesLess {
            self.position = f32::from_bits(number(20));
        }
        self.is_over = state.last() == Some(&1);
        Ok(())
    }
}

/// Every kind of space, without a defect and without an end.
pub(crate) struct Wide(i64);

impl Env for Wide {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = ([i8; 3], (u64, [[f64; 2]; 2]));
    type Observation = ([i8; 2], [i64; 2], u64, bool);
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let free = Space::shaped_box(DType::F64, &[2, 2], f64::NEG_INFINITY, f64::INFINITY);
        let huge = Space::integer_box(DType::U64, &[], 3, u64::MAX.into());
        Spaces {
            observation: Space::Tuple(vec![
                Space::MultiBinary(vec![2]),
                Space::multi_discrete(&[2, 3]),
                huge.clone(),
                Space::integer_box(DType::Bool, &[], 0, 1),
            ]),
            action: Space::Tuple(vec![Space::MultiBinary(vec![3]), Space::Tuple(vec![huge, free])]),
        }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self(0))
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = rng.integers(0..100);
        Ok(())
    }

    fn step(
        &mut self,
        (bits, (huge, free)): (&[i8; 3], (u64, &[[f64; 2]; 2])),
        rng: &mut Rng,
    ) -> Result<Transition, Failure> {
        self.0 = rng.integers(0..100) + i64::from(bits.iter().sum::<i8>().rem_euclid(2));
        let reward = if free[1][0] > 0.0 { 1.0 } else { 0.0 } + f64::from(huge % 2 == 0);
        Ok(Transition { reward, terminated: false, truncated: false })
    }

    fn observe(
        &self,
        (bits, numbers, huge, flag): (&mut [i8; 2], &mut [i64; 2], &mut u64, &mut bool),
    ) {
        *bits = [i8::from(self.0 % 2 == 0), 1];
        *numbers = [self.0 % 2, self.0 % 3];
        *huge = u64::MAX - self.0.unsigned_abs();
        *flag = self.0 % 5 == 0;
    }

    fn info(&self) {}
}

cartwheel::options! {
    /// Options with a description each.
    pub(crate) struct Sizes {
        /// Rows.
        rows: usize = 3,
        /// Columns.
        columns: usize,
    }
}

/// The same, described as `HOW` says.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct DescribedSizes<const HOW: u8>(
    #[expect(dead_code, reason = "only the documentation is read")] Sizes,
);

impl<const HOW: u8> EnvOptions for DescribedSizes<HOW> {
    fn describe() -> Vec<OptionDoc> {
        let mut docs = Sizes::describe();
        match HOW {
            0 => {}
            1 => docs.truncate(1),
            2 => docs[1].text.clear(),
            3 => docs.push(OptionDoc { name: "depth", default: None, text: "Layers.".to_owned() }),
            _ => docs[0].default = Some("-3".to_owned()),
        }
        docs
    }
}

/// An environment with these options.
pub(crate) struct Described<const HOW: u8>;

impl<const HOW: u8> Env for Described<HOW> {
    type Options = DescribedSizes<HOW>;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &DescribedSizes<HOW>, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(2), action: Space::discrete(2) }
    }

    fn new(_: &DescribedSizes<HOW>, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition { reward: 0.0, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = 1;
    }

    fn info(&self) {}
}
