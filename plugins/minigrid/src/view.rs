//! The view of the agent (`gen_obs_grid` of `minigrid/minigrid_env.py`, `process_vis` of `core/grid.py`).

use crate::cell::Cell;
use crate::world::{Place, World};

/// The largest `agent_view_size`: a row of the view is a word of bits.
pub const MAX_VIEW_SIZE: usize = 63;

/// Kinds of objects, colors and states of the package (`core/constants.py`).
pub const KINDS: usize = 11;
const COLORS: usize = 6;
const STATES: usize = 3;
/// Zeros and ones for a cell.
pub const ONE_HOT: usize = KINDS + COLORS + STATES;

/// The square in front of the agent, which stands in the middle of its last row.
#[derive(Debug, Clone, Copy)]
pub struct View {
    size: usize,
    corner: Place,
    /// The steps to the next column and to the next row of the view.
    right: Place,
    down: Place,
}

/// The agent and its world.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub world: &'a World,
    pub view: View,
    pub through_walls: bool,
    pub highlight: bool,
}

impl View {
    /// The view of the agent.
    pub fn new(world: &World, size: usize) -> Self {
        let ahead = world.direction.ahead();
        let right = [-ahead[1], ahead[0]];
        let [far, half] =
            [size - 1, size / 2].map(|cells| i32::try_from(cells).unwrap_or_default());
        let corner = [0, 1].map(|at| world.agent[at] + ahead[at] * far - right[at] * half);
        Self { size, corner, right, down: ahead.map(|step| -step) }
    }

    /// Columns and rows.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The column and the row of the view that show a place in the world.
    pub fn shows(&self, place: Place) -> Option<[usize; 2]> {
        let [x, y] = [0, 1].map(|at| place[at] - self.corner[at]);
        let along = |step: Place| usize::try_from(x * step[0] + y * step[1]).ok();
        let [column, row] = [along(self.right)?, along(self.down)?];
        (column < self.size && row < self.size).then_some([column, row])
    }

    /// The place in the world of a column and a row of the view.
    pub fn place(&self, column: usize, row: usize) -> Place {
        let [column, row] = [column, row].map(|cells| i32::try_from(cells).unwrap_or_default());
        [0, 1].map(|at| self.corner[at] + self.right[at] * column + self.down[at] * row)
    }

    /// The cell that the agent sees in a column and a row: what it carries is where it stands.
    pub fn cell(&self, world: &World, column: usize, row: usize) -> Cell {
        if (column, row) == (self.size / 2, self.size - 1) {
            return world.carrying;
        }
        world.get(self.place(column, row))
    }

    /// The same for an observation, which may be older than the state.
    fn observed(&self, world: &World, column: usize, row: usize) -> Cell {
        match world.seen_at {
            Some(place) if place == self.place(column, row) => world.carrying,
            Some(_) if (column, row) == (self.size / 2, self.size - 1) => Cell::EMPTY,
            _ => self.cell(world, column, row),
        }
    }

    /// Which cells are visible: a bit for each column, a word for each row.
    pub fn visible(&self, world: &World, through_walls: bool) -> [u64; MAX_VIEW_SIZE] {
        if through_walls {
            return [u64::MAX; MAX_VIEW_SIZE];
        }
        let mut seen = [0; MAX_VIEW_SIZE];
        seen[self.size - 1] = 1 << (self.size / 2);
        for row in (0..self.size).rev() {
            let mut above = 0;
            let lit = |column: usize, own: u64| {
                own >> column & 1 == 1 && !world.get(self.place(column, row)).is_opaque()
            };
            let mut own = seen[row];
            for column in 0..self.size - 1 {
                if lit(column, own) {
                    own |= 1 << (column + 1);
                    above |= 0b11 << column;
                }
            }
            for column in (1..self.size).rev() {
                if lit(column, own) {
                    own |= 1 << (column - 1);
                    above |= 0b11 << (column - 1);
                }
            }
            seen[row] = own;
            if row > 0 {
                seen[row - 1] |= above;
            }
        }
        seen
    }

    /// Writes the image: three numbers for each cell, column by column, zeros where it is not seen.
    pub fn encode(&self, world: &World, through_walls: bool, image: &mut [u8]) {
        self.write(world, through_walls, image, |cell, code| *cell = code);
    }

    /// Writes a one for each of these numbers, among zeros for the others.
    pub fn encode_one_hot(&self, world: &World, through_walls: bool, image: &mut [u8]) {
        self.write(world, through_walls, image, |cell, code| {
            let [kind, color, state] = code.map(usize::from);
            *cell = [0; ONE_HOT];
            cell[kind] = 1;
            cell[KINDS + color] = 1;
            cell[KINDS + COLORS + state] = 1;
        });
    }

    /// Calls `put` with the numbers of each cell and with its bytes in the image.
    fn write<const BYTES: usize>(
        &self,
        world: &World,
        through_walls: bool,
        image: &mut [u8],
        put: impl Fn(&mut [u8; BYTES], [u8; 3]),
    ) {
        let seen = self.visible(world, through_walls);
        let (cells, _) = image.as_chunks_mut::<BYTES>();
        for (column, cells) in cells.chunks_mut(self.size).enumerate() {
            for (row, cell) in cells.iter_mut().enumerate() {
                let is_seen = seen[row] >> column & 1 == 1;
                let code =
                    if is_seen { self.observed(world, column, row).encode() } else { [0; 3] };
                put(cell, code);
            }
        }
    }
}
