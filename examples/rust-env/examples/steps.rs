//! Steps mazes from a program in Rust, without Python.

use cartwheel::{AutoresetMode, Seed, VectorEnv, VectorError};
use my_game::Maze;

fn main() -> Result<(), VectorError> {
    let builder = VectorEnv::<Maze>::builder(1024).threads(2).max_episode_steps(200);
    let mut envs = builder.autoreset(AutoresetMode::SameStep).build()?;
    envs.reset(Seed(7))?; // row i has the seed 7 + i
    let mut exits = 0;
    for step in 0..1000 {
        let ways = [[2, 1], [1, 2]]; // down, right
        let batch = envs.step(&vec![ways[step % 2]; 1024])?;
        exits += batch.terminations().iter().filter(|found| **found).count();
    }
    println!("{exits} exits in 1,024,000 steps");
    Ok(())
}
