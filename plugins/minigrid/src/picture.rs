//! Frames, pixel for pixel (`render_tile` of `core/grid.py`, `utils/rendering.py`): a tile is drawn three
//! times as large, and shrunk by two means, over columns and then over rows.

use cartwheel::Frame;

use crate::cell::{Cell, Door, Kind};
use crate::options::Common;
use crate::view::Scene;
use crate::world::Direction;

/// Pixels that are drawn for each pixel of a tile, along a side.
const FINER: usize = 3;
const BLACK: [u8; 3] = [0; 3];
const AGENT: [u8; 3] = [255, 0, 0];

/// Draws the grid, or what the agent sees.
pub fn draw(scene: Scene<'_>, common: &Common, frame: &mut Frame) {
    let (world, tile) = (scene.world, common.tile_size);
    let [rows, columns] = if common.agent_pov {
        [scene.view.size(); 2]
    } else {
        [world.height, world.width].map(|cells| cells.unsigned_abs() as usize)
    };
    let width = columns * tile;
    let pixels = frame.pixels(rows * tile, width);
    let put = |place: [usize; 2], of: Tile| put(pixels, width, tile, place, &of.painted(tile));
    if common.agent_pov { tiles_of_view(scene, put) } else { tiles_of_grid(scene, put) }
}

/// Calls `put` with the column, the row and the tile of each cell that the agent sees.
pub fn tiles_of_view(scene: Scene<'_>, mut put: impl FnMut([usize; 2], Tile)) {
    let Scene { world, view, through_walls, .. } = scene;
    let (seen, size) = (view.visible(world, through_walls), view.size());
    for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
        let is_lit = seen[row] >> column & 1 == 1;
        // A cell that is not seen is drawn as a free one.
        let cell = if is_lit { view.cell(world, column, row) } else { Cell::EMPTY };
        let agent = ((column, row) == (size / 2, size - 1)).then_some(Direction::UP);
        put([column, row], Tile { cell, agent, is_lit });
    }
}

/// Calls `put` with the column, the row and the tile of each cell of the grid.
pub fn tiles_of_grid(scene: Scene<'_>, mut put: impl FnMut([usize; 2], Tile)) {
    let Scene { world, view, through_walls, highlight } = scene;
    let seen = view.visible(world, through_walls);
    let is_lit = |place| {
        let shown = highlight.then(|| view.shows(place)).flatten();
        shown.is_some_and(|[column, row]| seen[row] >> column & 1 == 1)
    };
    for (y, x) in (0..world.height).flat_map(|y| (0..world.width).map(move |x| (y, x))) {
        let agent = ([x, y] == world.agent).then_some(world.direction);
        let tile = Tile { cell: world.get([x, y]), agent, is_lit: is_lit([x, y]) };
        put([x, y].map(|at| at.unsigned_abs() as usize), tile);
    }
}

/// Copies a tile into its place.
pub fn put(
    pixels: &mut [[u8; 3]],
    width: usize,
    tile: usize,
    [column, row]: [usize; 2],
    of: &[[u8; 3]],
) {
    for (at, line) in of.chunks(tile).enumerate() {
        let first = (row * tile + at) * width + column * tile;
        pixels[first..first + tile].copy_from_slice(line);
    }
}

/// A cell in a picture.
#[derive(Debug, Clone, Copy)]
pub struct Tile {
    cell: Cell,
    /// Where the agent looks, if it is here.
    agent: Option<Direction>,
    /// Whether the agent sees it.
    is_lit: bool,
}

impl Tile {
    /// Number of different tiles.
    pub const COUNT: usize = Cell::LOOKS * 5 * 2;

    /// A number below [`Tile::COUNT`], the same for tiles that look the same.
    pub fn number(self) -> usize {
        let agent = self.agent.map_or(0, |direction| usize::from(direction.number()) + 1);
        (self.cell.look() * 5 + agent) * 2 + usize::from(self.is_lit)
    }

    /// Its pixels, so many along a side.
    pub fn painted(self, size: usize) -> Vec<[u8; 3]> {
        let side = size * FINER;
        let mut canvas = Canvas { side, pixels: vec![BLACK; side.pow(2)] };
        canvas.rectangle([0.0, 0.031, 0.0, 1.0], [100; 3]);
        canvas.rectangle([0.0, 1.0, 0.0, 0.031], [100; 3]);
        canvas.object(self.cell);
        if let Some(direction) = self.agent {
            canvas.fill(|x, y| is_agent(x, y, direction), AGENT);
        }
        if self.is_lit {
            canvas.pixels.iter_mut().flatten().for_each(|part| *part = lit(*part));
        }
        canvas.shrunk(size)
    }
}

/// A part of a color, three tenths of the way to white.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 255, and truncated as NumPy does"
)]
fn lit(part: u8) -> u8 {
    (f64::from(part) + 0.30 * f64::from(255 - part)) as u8
}

/// Half of a color, truncated.
fn pale(color: [u8; 3]) -> [u8; 3] {
    color.map(|part| part / 2)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 255, and truncated as NumPy does"
)]
fn dark(color: [u8; 3]) -> [u8; 3] {
    color.map(|part| (0.45 * f64::from(part)) as u8)
}

/// Whether a point is in the triangle of an agent that looks in this direction.
fn is_agent(x: f64, y: f64, direction: Direction) -> bool {
    // The point turns against the agent, around the middle.
    let angle = -0.5 * std::f64::consts::PI * f64::from(direction.number());
    let (x, y) = (x - 0.5, y - 0.5);
    let (sin, cos) = angle.sin_cos();
    let (x, y) = (0.5 + x * cos - y * sin, 0.5 + y * cos + x * sin);
    // Its corners are `float32`, and so are the products of its sides.
    let [a, b, c] = [[0.12_f32, 0.19], [0.87, 0.50], [0.12, 0.81]];
    let side = |to: [f32; 2]| [to[0] - a[0], to[1] - a[1]];
    let (v0, v1) = (side(c), side(b));
    let v2 = [x - f64::from(a[0]), y - f64::from(a[1])];
    let single = |one: [f32; 2], other: [f32; 2]| one[0] * other[0] + one[1] * other[1];
    let double = |one: [f32; 2]| f64::from(one[0]) * v2[0] + f64::from(one[1]) * v2[1];
    let (dot00, dot01, dot11) = (single(v0, v0), single(v0, v1), single(v1, v1));
    let (dot02, dot12) = (double(v0), double(v1));
    let inverse = f64::from(1.0 / (dot00 * dot11 - dot01 * dot01));
    let u = (f64::from(dot11) * dot02 - f64::from(dot01) * dot12) * inverse;
    let v = (f64::from(dot00) * dot12 - f64::from(dot01) * dot02) * inverse;
    u >= 0.0 && v >= 0.0 && u + v < 1.0
}

/// Whether a point is near a line from `[x, y]` to `[x, y]`.
fn is_near(x: f64, y: f64, [from, to]: [[f64; 2]; 2], distance: f64) -> bool {
    let bounds =
        [0, 1].map(|at| (from[at].min(to[at]) - distance, from[at].max(to[at]) + distance));
    if x < bounds[0].0 || x > bounds[0].1 || y < bounds[1].0 || y > bounds[1].1 {
        return false;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the ends are `float32`")]
    let [start, end] = [from, to].map(|point| point.map(|part| part as f32));
    let way = [end[0] - start[0], end[1] - start[1]];
    let length = (way[0] * way[0] + way[1] * way[1]).sqrt();
    let way = way.map(|part| part / length);
    let point = [x - f64::from(start[0]), y - f64::from(start[1])];
    let along = point[0] * f64::from(way[0]) + point[1] * f64::from(way[1]);
    let along = along.clamp(0.0, f64::from(length));
    let nearest = [0, 1].map(|at| f64::from(start[at]) + along * f64::from(way[at]));
    let away = [x - nearest[0], y - nearest[1]];
    (away[0] * away[0] + away[1] * away[1]).sqrt() <= distance
}

/// A tile that is being drawn. Points are from 0 to 1.
struct Canvas {
    side: usize,
    pixels: Vec<[u8; 3]>,
}

impl Canvas {
    /// Colors the pixels whose middle is in a shape.
    #[expect(clippy::cast_precision_loss, reason = "a tile is small")]
    fn fill(&mut self, is_in: impl Fn(f64, f64) -> bool, color: [u8; 3]) {
        let middle = |at: usize| (at as f64 + 0.5) / self.side as f64;
        for (at, pixel) in self.pixels.iter_mut().enumerate() {
            if is_in(middle(at % self.side), middle(at / self.side)) {
                *pixel = color;
            }
        }
    }

    /// A rectangle: left, right, top, bottom.
    fn rectangle(&mut self, [left, right, top, bottom]: [f64; 4], color: [u8; 3]) {
        self.fill(|x, y| x >= left && x <= right && y >= top && y <= bottom, color);
    }

    fn circle(&mut self, [x, y]: [f64; 2], radius: f64, color: [u8; 3]) {
        let is_in = |px: f64, py: f64| (px - x) * (px - x) + (py - y) * (py - y) <= radius * radius;
        self.fill(is_in, color);
    }

    fn object(&mut self, cell: Cell) {
        const ALL: [f64; 4] = [0.0, 1.0, 0.0, 1.0];
        let color = cell.color.rgb();
        let inside = |margin: f64| [margin, 1.0 - margin, margin, 1.0 - margin];
        match cell.kind {
            Kind::Empty => {}
            Kind::Wall | Kind::Goal => self.rectangle(ALL, color),
            Kind::Floor => self.rectangle([0.031, 1.0, 0.031, 1.0], pale(color)),
            Kind::Lava => {
                self.rectangle(ALL, [255, 128, 0]);
                for wave in 0..3 {
                    let high = 0.3 + 0.2 * f64::from(wave);
                    let low = 0.4 + 0.2 * f64::from(wave);
                    let points = [[0.1, high], [0.3, low], [0.5, high], [0.7, low], [0.9, high]];
                    for line in points.windows(2) {
                        self.fill(|x, y| is_near(x, y, [line[0], line[1]], 0.03), BLACK);
                    }
                }
            }
            Kind::Door => match cell.door {
                Door::Open => {
                    self.rectangle([0.88, 1.0, 0.0, 1.0], color);
                    self.rectangle([0.92, 0.96, 0.04, 0.96], BLACK);
                }
                Door::Locked => {
                    self.rectangle(ALL, color);
                    self.rectangle([0.06, 0.94, 0.06, 0.94], dark(color));
                    self.rectangle([0.52, 0.75, 0.50, 0.56], color);
                }
                Door::Closed => {
                    self.rectangle(ALL, color);
                    self.rectangle([0.04, 0.96, 0.04, 0.96], BLACK);
                    self.rectangle([0.08, 0.92, 0.08, 0.92], color);
                    self.rectangle([0.12, 0.88, 0.12, 0.88], BLACK);
                    self.circle([0.75, 0.50], 0.08, color);
                }
            },
            Kind::Key => {
                self.rectangle([0.50, 0.63, 0.31, 0.88], color);
                self.rectangle([0.38, 0.50, 0.59, 0.66], color);
                self.rectangle([0.38, 0.50, 0.81, 0.88], color);
                self.circle([0.56, 0.28], 0.190, color);
                self.circle([0.56, 0.28], 0.064, BLACK);
            }
            Kind::Ball => self.circle([0.5, 0.5], 0.31, color),
            Kind::Box => {
                self.rectangle(inside(0.12), color);
                self.rectangle(inside(0.18), BLACK);
                self.rectangle([0.16, 0.84, 0.47, 0.53], color);
            }
        }
    }

    /// The mean of each square of pixels, truncated.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 255, and truncated as NumPy does"
    )]
    fn shrunk(&self, size: usize) -> Vec<[u8; 3]> {
        let mean = |values: [f64; FINER]| values.iter().fold(0.0, |sum, value| sum + value) / 3.0;
        let pixel = |row: usize, column: usize| {
            [0, 1, 2].map(|part| {
                let line = |y: usize| {
                    let first = (row * FINER + y) * self.side + column * FINER;
                    mean([0, 1, 2].map(|x| f64::from(self.pixels[first + x][part])))
                };
                mean([line(0), line(1), line(2)]) as u8
            })
        };
        (0..size).flat_map(|row| (0..size).map(move |column| pixel(row, column))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{dark, lit, pale};
    use crate::cell::Color;

    #[test]
    fn parts_of_colors_are_truncated() {
        assert_eq!((lit(0), lit(100), lit(255)), (76, 146, 255));
        assert_eq!(pale(Color::Purple.rgb()), [56, 19, 97]);
        assert_eq!(dark(Color::Yellow.rgb()), [114, 114, 0]);
    }
}
