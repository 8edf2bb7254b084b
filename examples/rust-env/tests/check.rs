//! The environment keeps the promises of `cartwheel::Env`.

use cartwheel::testing::{CheckError, check_env};
use my_game::{Maze, Options};

#[test]
fn every_check_passes() -> Result<(), CheckError> {
    check_env::<Maze>(Options::default())?;
    check_env::<Maze>(Options { size: 5 })
}
