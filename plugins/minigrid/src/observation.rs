//! Observations: the agent's view, or what the package's wrappers make of it
//! (`minigrid/wrappers.py`).

use std::sync::OnceLock;

use cartwheel::{Bounds, DType, Either, Error, Flat, Shared, Space, Text};

use crate::cell::Kind;
use crate::options::{Common, LevelOptions, Wrappers, require};
use crate::picture::{self, Tile};
use crate::view::{ONE_HOT, Scene};
use crate::world::World;

cartwheel::view! {
    /// An observation: a dictionary with these keys.
    pub struct Sight, SightMut, SightRef {
        /// Where the agent looks: 0 to 3, right, down, left, up.
        direction: i64,
        /// Its view: object, color and state of each cell, `[column, row, 3]`; or what a wrapper shows.
        image: Either<Flat<u8>, Flat<i64>>,
        /// The task.
        mission: Text,
    }
}

/// A dictionary, or one array where a wrapper makes it so.
pub type Observation = Either<Sight, Either<Flat<u8>, Flat<i64>>>;

/// The letters of missions.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz ,";
/// The code of the agent where it is an object (`OBJECT_TO_IDX`).
const AGENT: u8 = 10;
/// Names of wrappers that replace the image, and of others.
const CHOICES: &str = "one of \"full\", \"one_hot\", \"rgb\", \"rgb_partial\" and \"symbolic\", then one of \
                       \"image\" and \"flat\", or only one of them all";

/// The image of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Image {
    /// The agent's view.
    Partial,
    /// The grid, with the agent (`FullyObsWrapper`).
    Full,
    /// The agent's view in zeros and ones (`OneHotPartialObsWrapper`).
    OneHot,
    /// A picture of the grid (`RGBImgObsWrapper`).
    Rgb,
    /// A picture of the agent's view (`RGBImgPartialObsWrapper`).
    RgbPartial,
    /// Column, row and object of each cell (`SymbolicObsWrapper`).
    Symbolic,
}

impl Image {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "full" => Self::Full,
            "one_hot" => Self::OneHot,
            "rgb" => Self::Rgb,
            "rgb_partial" => Self::RgbPartial,
            "symbolic" => Self::Symbolic,
            _ => return None,
        })
    }
}

/// The form of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Dict,
    /// The image alone (`ImgObsWrapper`).
    Image,
    /// The image and the mission's letters in one vector (`FlatObsWrapper`).
    Flat,
}

/// The form of observations.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    image: Image,
    form: Form,
    /// Pixels along a side of a cell.
    tile: usize,
    /// Letters of a mission in a vector.
    letters: usize,
}

impl Shown {
    /// The form that the keywords `observation`, `observation_tile_size` and `maxStrLen` ask for.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for wrappers that do not exist or cannot be in this order.
    pub fn new(common: &Common) -> Result<Self, Error> {
        let (tile, letters) = (common.observation_tile_size, common.max_str_len);
        let names = match &common.observation {
            None => &[],
            Some(Wrappers::One(name)) => std::slice::from_ref(name),
            Some(Wrappers::Several(names)) => names.as_slice(),
        };
        require((1..=1024).contains(&tile), "observation_tile_size", "from 1 to 1,024", tile)?;
        require((1..=1024).contains(&letters), "maxStrLen", "from 1 to 1,024", letters)?;
        let image = names.first().and_then(|name| Image::from_name(name));
        let form = match &names[usize::from(image.is_some())..] {
            [] => Some(Form::Dict),
            [name] if name == "image" => Some(Form::Image),
            [name] if name == "flat" => Some(Form::Flat),
            _ => None,
        };
        require(form.is_some(), "observation", CHOICES, names)?;
        let (image, form) = (image.unwrap_or(Image::Partial), form.unwrap_or(Form::Dict));
        // The package's own has numbers below 0 in a space of bytes.
        let is_of_bytes = (image, form) != (Image::Symbolic, Form::Flat);
        require(is_of_bytes, "observation", "without \"symbolic\" before \"flat\"", names)?;
        Ok(Self { image, form, tile, letters })
    }

    /// The space of observations, in a grid of this size, of an agent that sees so many cells along a
    /// side, with missions of at most so many letters.
    pub fn space(&self, [columns, rows]: [usize; 2], seen: usize, mission: usize) -> Space {
        let shape = match self.image {
            Image::Partial => [seen, seen, 3],
            Image::OneHot => [seen, seen, ONE_HOT],
            Image::RgbPartial => [seen * self.tile, seen * self.tile, 3],
            Image::Rgb => [rows * self.tile, columns * self.tile, 3],
            Image::Full | Image::Symbolic => [columns, rows, 3],
        };
        let bytes = |shape: &[usize]| Space::integer_box(DType::U8, shape, 0, 255);
        let image = if self.image == Image::Symbolic {
            let bounds = |bounds: [usize; 2], object| {
                let each = [bounds[0] as i128, bounds[1] as i128, object];
                Bounds::Integers(each.repeat(columns * rows))
            };
            let high = bounds([columns, rows].map(|cells| cells.saturating_sub(1)), AGENT.into());
            Space::Box { dtype: DType::I64, shape: shape.to_vec(), low: bounds([0; 2], -1), high }
        } else {
            bytes(&shape)
        };
        match self.form {
            Form::Image => image,
            Form::Flat => bytes(&[shape.iter().product::<usize>() + self.letters * LETTERS.len()]),
            Form::Dict => Space::dict([
                ("direction", Space::discrete(4)),
                ("image", image),
                ("mission", Space::text(mission, LETTERS)),
            ]),
        }
    }

    /// The most letters of a mission, if there is a limit.
    pub fn most_letters(&self) -> Option<usize> {
        (self.form == Form::Flat).then_some(self.letters)
    }

    /// Writes an observation.
    pub fn write(
        &self,
        scene: Scene<'_>,
        tiles: &Tiles,
        place: Either<SightMut<'_>, Either<&mut [u8], &mut [i64]>>,
    ) {
        match place {
            Either::Left(mut sight) => {
                *sight.direction = i64::from(scene.world.direction.number());
                self.write_image(scene, tiles, sight.image);
                sight.mission.set(&scene.world.mission);
            }
            Either::Right(Either::Left(bytes)) if self.form == Form::Flat => {
                let letters = self.letters * LETTERS.len();
                let (image, letters) = bytes.split_at_mut(bytes.len() - letters);
                self.write_image(scene, tiles, Either::Left(image));
                write_letters(&scene.world.mission, letters);
            }
            Either::Right(image) => self.write_image(scene, tiles, image),
        }
    }

    fn write_image(&self, scene: Scene<'_>, tiles: &Tiles, to: Either<&mut [u8], &mut [i64]>) {
        let Scene { world, view, through_walls, .. } = scene;
        let image = match to {
            Either::Left(image) => image,
            Either::Right(symbols) => return write_symbols(world, symbols),
        };
        match self.image {
            Image::Partial => view.encode(world, through_walls, image),
            Image::OneHot => view.encode_one_hot(world, through_walls, image),
            Image::Full => write_grid(world, image),
            Image::RgbPartial | Image::Rgb => {
                let (pixels, _) = image.as_chunks_mut::<3>();
                let put = |width: usize| {
                    move |place: [usize; 2], tile: Tile| {
                        picture::put(pixels, width, self.tile, place, tiles.get(tile));
                    }
                };
                if self.image == Image::Rgb {
                    picture::tiles_of_grid(scene, put(usize_of(world.width) * self.tile));
                } else {
                    picture::tiles_of_view(scene, put(view.size() * self.tile));
                }
            }
            Image::Symbolic => unreachable!("symbols are `int64`"),
        }
    }
}

/// Whether a mission may have this character.
pub fn is_letter(character: char) -> bool {
    LETTERS.contains(character)
}

fn usize_of(cells: i32) -> usize {
    cells.unsigned_abs() as usize
}

/// Every cell with its place in an array `[column, row]`.
fn cells(world: &World) -> impl Iterator<Item = [i32; 2]> {
    let rows = world.height;
    (0..world.width).flat_map(move |column| (0..rows).map(move |row| [column, row]))
}

/// Writes object, color and state of each cell; of the agent its direction.
fn write_grid(world: &World, image: &mut [u8]) {
    let (codes, _) = image.as_chunks_mut::<3>();
    for (code, place) in codes.iter_mut().zip(cells(world)) {
        *code = if place == world.agent {
            [AGENT, 0, world.direction.number()]
        } else {
            world.get(place).encode()
        };
    }
}

/// Writes column, row and object of each cell, -1 for nothing.
fn write_symbols(world: &World, symbols: &mut [i64]) {
    let (codes, _) = symbols.as_chunks_mut::<3>();
    for (code, place) in codes.iter_mut().zip(cells(world)) {
        let object = match world.get(place).kind {
            _ if place == world.agent => i64::from(AGENT),
            Kind::Empty => -1,
            kind => i64::from(kind as u8),
        };
        *code = [place[0].into(), place[1].into(), object];
    }
}

/// Writes a one in the row of each letter.
fn write_letters(mission: &str, to: &mut [u8]) {
    to.fill(0);
    for (row, letter) in to.chunks_mut(LETTERS.len()).zip(mission.bytes()) {
        let at = LETTERS.bytes().position(|known| known == letter);
        row[at.expect("a letter of `LETTERS`")] = 1;
    }
}

/// The pixels of a tile, row by row.
type Pixels = Box<[[u8; 3]]>;

/// The tiles of pictures that observations show, each painted when it is seen for the first time, for
/// all rows.
#[derive(Debug)]
pub struct Tiles {
    size: usize,
    painted: Box<[OnceLock<Pixels>]>,
}

impl Tiles {
    fn get(&self, tile: Tile) -> &[[u8; 3]] {
        self.painted[tile.number()].get_or_init(|| tile.painted(self.size).into_boxed_slice())
    }
}

impl<O: LevelOptions> Shared<O> for Tiles {
    fn prepare(options: &O) -> Result<Self, Error> {
        let shown = Shown::new(&options.common())?;
        let is_picture = matches!(shown.image, Image::Rgb | Image::RgbPartial);
        let count = if is_picture { Tile::COUNT } else { 0 };
        Ok(Self { size: shown.tile, painted: (0..count).map(|_| OnceLock::new()).collect() })
    }
}
