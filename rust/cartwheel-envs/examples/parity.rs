//! Compares the native environments with trajectories of Gymnasium from standard input, and counts the
//! bits that differ.
//!
//! ```text
//! python rust/cartwheel-envs/tests/fixtures/trajectories.py --episodes 1000 \
//!     | cargo run --release -p cartwheel-envs --example parity
//! ```
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

#[path = "../../cartwheel/tests/it/support/mod.rs"]
mod support;
#[path = "../tests/it/trajectory/mod.rs"]
mod trajectory;

use trajectory::{Comparison, play};

fn main() {
    let mut source = std::io::stdin().lock();
    let mut sums: Vec<(String, Comparison)> = Vec::new();
    while let Some((header, comparison)) = play(&mut source) {
        let name = header.to_string();
        match sums.last_mut().filter(|(last, _)| *last == name) {
            Some((_, sum)) => sum.add(&comparison),
            None => sums.push((name, comparison)),
        }
    }
    println!("{:>9} {:>9}   bits that differ in", "frames", "episodes");
    println!("{:>9} {:>9} {:>8} {:>8} {:>8} {:>8}", "", "", "obs", "reward", "flags", "info");
    for (name, sum) in sums {
        let [obs, reward, flags, info] = sum.differing_bits;
        let (frames, episodes) = (sum.frames, sum.episodes);
        println!("{frames:>9} {episodes:>9} {obs:>8} {reward:>8} {flags:>8} {info:>8}  {name}");
    }
}
