//! Open a door (`envs/babyai/open.py`).

use cartwheel::Error;

use super::options::RoomsOptions;
use super::{Described, Instruction, Layout, Location, MIDDLE, Maker, Task, require};
use crate::cell::{Cell, Color, Kind};
use crate::options::{CommonOptions, level_options};
use crate::world::Unmade;

/// Doors of a color.
fn door(color: Color) -> Described {
    Described::like(Cell::new(Kind::Door, color))
}

/// The color of a keyword.
fn color(name: &str, value: Option<&str>) -> Result<Option<Color>, Error> {
    let found = |value: &str| Color::SORTED.into_iter().find(|color| color.name() == value);
    let color = value.and_then(found);
    require(value.is_none() || color.is_some(), name, "a color, or None", value)?;
    Ok(color)
}

/// Open a door in a maze of rooms.
#[derive(Debug)]
pub struct Open;

impl Task for Open {
    type Options = RoomsOptions;

    fn new(options: &RoomsOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        maker.connect_all()?;
        maker.add_distractors(None, 18, false)?;
        maker.require_reachable()?;
        let doors = maker.doors();
        Ok(Instruction::open(door(maker.element(&doors)?.color)))
    }
}

/// Open the only door, which is red.
#[derive(Debug)]
pub struct OpenRedDoor;

impl Task for OpenRedDoor {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::new(5, [2, 1])))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.add_door([0; 2], Some(0), Some(Color::Red), Some(false))?;
        maker.place_agent(Some([0; 2]))?;
        Ok(Instruction::open(door(Color::Red)))
    }
}

level_options! {
    /// Keywords of `OpenDoor`.
    pub struct OpenDoorOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Whether another door ends the episode.
        debug: bool,
        /// Description of the door: "color", "loc", or `None` for one of them.
        select_by: Option<String>,
    }
}

/// Open one of the four doors of the middle room.
#[derive(Debug)]
pub struct OpenDoor {
    strict: bool,
    by_color: Option<bool>,
}

impl Task for OpenDoor {
    type Options = OpenDoorOptions;

    fn new(options: &OpenDoorOptions) -> Result<(Self, Layout), Error> {
        let by_color = match options.select_by.as_deref() {
            None => None,
            Some("color") => Some(true),
            Some("loc") => Some(false),
            Some(other) => {
                require(false, "select_by", "\"color\", \"loc\" or None", other)?;
                None
            }
        };
        Ok((Self { strict: options.debug, by_color }, Layout::nine(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let colors = maker.subset(&Color::SORTED, 4)?;
        for (side, &color) in colors.iter().enumerate() {
            maker.add_door(MIDDLE, Some(side), Some(color), Some(false))?;
        }
        let by_color = match self.by_color {
            Some(by_color) => by_color,
            None => maker.element(&[true, false])?,
        };
        let door = if by_color {
            door(colors[0])
        } else {
            let location = Some(maker.element(&Location::ALL)?);
            Described { location, ..Described::of(Kind::Door) }
        };
        maker.place_agent(Some(MIDDLE))?;
        Ok(Instruction::Open { door, strict: self.strict })
    }
}

/// The limit of steps of tasks with several doors.
const LIMIT: i64 = 20 * 6 * 6;

level_options! {
    /// Keywords of `OpenTwoDoors`.
    pub struct OpenTwoDoorsOptions {
        /// The color of the first door; `None` for a random one.
        first_color: Option<String>,
        /// The color of the second door; `None` for a random one.
        second_color: Option<String>,
        /// Whether another door ends the episode before the first is open.
        strict: bool,
    }
}

/// Open two doors in order.
#[derive(Debug)]
pub struct OpenTwoDoors {
    colors: [Option<Color>; 2],
    strict: bool,
}

impl Task for OpenTwoDoors {
    type Options = OpenTwoDoorsOptions;

    fn new(options: &OpenTwoDoorsOptions) -> Result<(Self, Layout), Error> {
        let colors = [
            color("first_color", options.first_color.as_deref())?,
            color("second_color", options.second_color.as_deref())?,
        ];
        let layout = Layout { max_steps: Some(LIMIT), ..Layout::nine(6) };
        Ok((Self { colors, strict: options.strict }, layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let random = maker.subset(&Color::SORTED, 2)?;
        let [first, second] = [0, 1].map(|at| self.colors[at].unwrap_or(random[at]));
        maker.add_door(MIDDLE, Some(2), Some(first), Some(false))?;
        maker.add_door(MIDDLE, Some(0), Some(second), Some(false))?;
        maker.place_agent(Some(MIDDLE))?;
        let parts = [
            Instruction::Open { door: door(first), strict: self.strict },
            Instruction::open(door(second)),
        ];
        Ok(Instruction::Before(Box::new(parts)))
    }
}

level_options! {
    /// Keywords of `OpenDoorsOrder`.
    pub struct OpenDoorsOrderOptions {
        /// Number of doors, from 2 to 4.
        num_doors: usize = 2,
        /// Whether another door ends the episode.
        debug: bool,
    }
}

/// Open one or two of several doors.
#[derive(Debug)]
pub struct OpenDoorsOrder {
    count: usize,
    strict: bool,
}

impl Task for OpenDoorsOrder {
    type Options = OpenDoorsOrderOptions;

    fn new(options: &OpenDoorsOrderOptions) -> Result<(Self, Layout), Error> {
        let count = options.num_doors;
        require((2..=4).contains(&count), "num_doors", "from 2 to 4", count)?;
        let layout = Layout { max_steps: Some(LIMIT), ..Layout::nine(6) };
        Ok((Self { count, strict: options.debug }, layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let colors = maker.subset(&Color::SORTED, self.count)?;
        for &color in &colors {
            maker.add_door(MIDDLE, None, Some(color), Some(false))?;
        }
        maker.place_agent(Some(MIDDLE))?;
        let chosen = maker.subset(&colors, 2)?;
        let open = |at: usize| Instruction::Open { door: door(chosen[at]), strict: self.strict };
        let parts = Box::new([open(0), open(1)]);
        Ok(match maker.integer(3)? {
            0 => open(0),
            1 => Instruction::Before(parts),
            _ => Instruction::After(parts),
        })
    }
}
