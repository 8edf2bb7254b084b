//! The levels of MiniGrid, a file for each kind of task.

pub mod fetching;
pub mod goals;
pub mod hazards;
pub mod mazes;
pub mod open_rooms;
pub mod unlocking;

use cartwheel::{Error, Failure, Rng};

use crate::cell::{Color, Kind};
use crate::options::require;
use crate::world::{Direction, MAX_TRIES, World, element, integer};

const TO_THE_GOAL: &str = "get to the green goal square";

/// Refuses a size that is not between two others.
fn require_size(name: &str, size: i32, [low, high]: [i32; 2]) -> Result<(), Error> {
    require((low..=high).contains(&size), name, &format!("from {low} to {high}"), size)
}

/// Puts the agent where a keyword says, or anywhere.
fn start(
    world: &mut World,
    place: Option<[i32; 2]>,
    direction: u8,
    rng: &mut Rng,
) -> Result<(), Failure> {
    match place {
        Some(place) => {
            world.agent = place;
            world.direction = Direction::from_number(direction).unwrap_or_default();
        }
        None => world.place_agent(world.everywhere(), None, rng)?,
    }
    Ok(())
}

/// Checks the keywords of [`start`], and that the agent begins on a free cell.
fn require_start(
    place: Option<[i32; 2]>,
    direction: u8,
    [width, height]: [i32; 2],
) -> Result<(), Error> {
    require(direction < 4, "agent_start_dir", "from 0 to 3", direction)?;
    let inside = |[x, y]: [i32; 2]| (1..width - 1).contains(&x) && (1..height - 1).contains(&y);
    require(place.is_none_or(inside), "agent_start_pos", "a cell within the walls, or None", place)
}

/// Draws kinds and colors until one is not among `taken`.
fn other_object(
    rng: &mut Rng,
    kinds: &[Kind],
    taken: &[(Kind, Color)],
) -> Result<(Kind, Color), Failure> {
    for _ in 0..MAX_TRIES {
        let object = (element(rng, kinds)?, element(rng, &Color::SORTED)?);
        if !taken.contains(&object) {
            return Ok(object);
        }
    }
    Err(Failure::new(format!("no object was found that differs from the level's {}", taken.len())))
}

/// A random number of `0 .. count` other than `one`.
fn other_number(rng: &mut Rng, count: usize, one: usize) -> Result<usize, Failure> {
    for _ in 0..MAX_TRIES {
        let number = usize::try_from(integer(rng, 0, i32::try_from(count)?)?)?;
        if number != one {
            return Ok(number);
        }
    }
    Err(Failure::new("a level needs two objects or rooms to choose from"))
}
