//! Native environments: classic control and toy text, bit for bit as in Gymnasium 1.4.0.
//!
//! Each environment is one file, with the source of its equations, and takes Gymnasium's keywords.
//! The same seed gives the same episodes as in a single environment of Gymnasium; row `i` of a
//! batch has the seed `seed + i`.
//!
//! [`PLUGIN`] is the table of them all, made as that of any other library of environments.
//!
//! Exact results need the right C library: `sin`, `cos` and `pow` must be the functions that NumPy
//! calls. This is tested on x86-64 Linux with glibc.

/// The items of an `Env` whose rows are stepped in lanes, where the processor has them.
macro_rules! in_simd {
    () => {
        #[cfg(target_arch = "x86_64")]
        const BLOCK: usize = $crate::simd::block::BLOCK;

        #[cfg(target_arch = "x86_64")]
        fn step_block(block: &mut cartwheel::BlockOf<'_, '_, Self>) {
            $crate::simd::block::step_block(block);
        }
    };
}

/// Makes the constants of an environment, each with its standard value: rows share them as
/// [`Tuned`](cartwheel::Tuned) constants, and states have those of a row that differ.
macro_rules! physics {
    (
        $(#[$meta:meta])*
        struct $physics:ident {
            $($(#[$constant_meta:meta])* $constant:ident: $type:ty = $standard:expr,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        struct $physics {
            $($(#[$constant_meta])* $constant: $type,)+
        }

        impl cartwheel::Standard for $physics {
            const STANDARD: &'static Self = &Self { $($constant: $standard),+ };
        }

        cartwheel::state! { impl State for $physics { $($constant),+ } }
    };
}

pub mod acrobot;
pub mod blackjack;
pub mod cart_pole;
pub mod cliff_walking;
pub mod continuous_mountain_car;
pub mod frozen_lake;
mod interval;
pub mod libm;
pub mod mountain_car;
pub mod null;
pub mod numeric;
pub mod pendulum;
mod plain_loop;
#[cfg(target_arch = "x86_64")]
mod simd;
mod table;
pub mod taxi;
mod toy_text;

pub use acrobot::Acrobot;
pub use blackjack::Blackjack;
pub use cart_pole::CartPole;
pub use cliff_walking::CliffWalking;
pub use continuous_mountain_car::ContinuousMountainCar;
pub use frozen_lake::{FrozenLake, random_map};
pub use mountain_car::MountainCar;
pub use null::Null;
pub use pendulum::Pendulum;
pub use plain_loop::{PlainLoops, run};
pub use table::{PLUGIN, plain_loop};
pub use taxi::{Taxi, TaxiInfo};
pub use toy_text::{Outcome, Probability};

/// Makes the first use of everything that is computed once. A process that is forked while another thread
/// computes it would wait for that thread, which does not exist there.
pub fn make_first_uses() {
    taxi::make_first_uses();
    #[cfg(target_arch = "x86_64")]
    simd::block::exact_simd();
}
