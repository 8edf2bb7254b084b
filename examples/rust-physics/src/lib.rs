//! Push a parcel to a goal, in a room with walls: bodies of rapier2d, seen from above.
//!
//! Lengths are in meters, times in seconds, masses in kilograms. A step is 1/15 of a second, four
//! steps of the simulation.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, Frame, RenderMode, Rng, Shared, Space, Spaces, Transition};
use rapier2d::prelude::*;

/// Half of the room's side.
const ROOM: f32 = 3.0;
/// Radius of the robot.
const ROBOT: f32 = 0.25;
/// Half of the parcel's side.
const PARCEL: f32 = 0.35;
/// The episode ends when the middle of the parcel is this near to the goal.
const NEAR: f32 = 0.3;
/// Newtons, for an action of length 1.
const FORCE: f32 = 12.0;
/// Steps of the simulation in a step of the environment, and how long each is.
const SUBSTEPS: usize = 4;
const SECONDS: f32 = 1.0 / 60.0;

cartwheel::options! {
    /// Keywords of `make_vec`.
    struct Options {
        /// Pillars in the room, at most 12.
        pillars: usize = 3,
    }
}

/// The room: what does not move is made once, and shared by all rows.
struct Room {
    pillars: Vec<Vector>,
    shape: SharedShape,
}

impl Shared<Options> for Room {
    fn prepare(options: &Options) -> Result<Self, Error> {
        if options.pillars > 12 {
            let got = options.pillars;
            return Err(Error::bad_options(format!("`pillars` must be from 0 to 12, got {got}")));
        }
        let angles = (0..options.pillars).map(|at| at as f32 * 2.4);
        let pillars: Vec<Vector> = angles.map(|a| 1.5 * Vector::new(a.cos(), a.sin())).collect();
        let walls = [Vector::X, -Vector::X, Vector::Y, -Vector::Y].map(|side| {
            let half = side.abs() * 0.5 + (Vector::ONE - side.abs()) * (ROOM + 1.0);
            (Pose::from_translation(side * (ROOM + 0.5)), SharedShape::cuboid(half.x, half.y))
        });
        let posts = pillars.iter().map(|&at| (Pose::from_translation(at), SharedShape::ball(0.15)));
        let shape = SharedShape::compound(walls.into_iter().chain(posts).collect());
        Ok(Self { pillars, shape })
    }
}

cartwheel::info! {
    /// An info: a dictionary with these keys.
    struct Report {
        /// From the middle of the parcel to the goal.
        distance: f64,
    }
}

/// A room with a robot and a parcel.
struct Push {
    room: Arc<Room>,
    world: PhysicsWorld,
    robot: RigidBodyHandle,
    parcel: RigidBodyHandle,
    goal: Vector,
    /// Newtons, for an action of length 1: `envs.set_attr("force", 8)` changes it.
    force: f32,
}

impl Push {
    /// A new world. Positions alone would not do: contacts and islands remember the last episode.
    fn build(&mut self, robot: Vector, parcel: Vector, turn: f32) {
        let mut world = PhysicsWorld { gravity: Vector::ZERO, ..PhysicsWorld::default() };
        world.integration_parameters.dt = SECONDS;
        world.insert(RigidBodyBuilder::fixed(), ColliderBuilder::new(self.room.shape.clone()));
        let body = |at| RigidBodyBuilder::dynamic().translation(at).can_sleep(false);
        let ball = ColliderBuilder::ball(ROBOT).density(5.0);
        (self.robot, _) = world.insert(body(robot).linear_damping(4.0), ball);
        let cuboid = ColliderBuilder::cuboid(PARCEL, PARCEL).density(1.0);
        let slow = body(parcel).rotation(turn).linear_damping(6.0).angular_damping(6.0);
        (self.parcel, _) = world.insert(slow, cuboid);
        self.world = world;
    }

    /// A place in the room that is `free` meters from the walls, the pillars, and `others`.
    fn place(&self, rng: &mut Rng, free: f32, others: &[Vector]) -> Result<Vector, Failure> {
        for _ in 0..1000 {
            let end = f64::from(ROOM - free);
            let [x, y] = rng.uniform_array(-end, end).map(|at| at as f32);
            let place = Vector::new(x, y);
            let mut taken = self.room.pillars.iter().chain(others);
            if taken.all(|other| other.distance(place) > free + 0.5) {
                return Ok(place);
            }
        }
        Err(Failure::new("there is no free place in the room: use fewer pillars"))
    }

    fn distance(&self) -> f32 {
        self.world.bodies[self.parcel].translation().distance(self.goal)
    }
}

impl Env for Push {
    type Options = Options;
    type ResetOptions = cartwheel::NoOptions;
    type Shared = Room;
    type Action = [f32; 2];
    type Observation = [f32; 12];
    type Info = Report;

    fn spaces(_: &Options, _: &Room) -> Spaces {
        let (place, speed, turn) = (f64::from(ROOM), f64::INFINITY, 1.0);
        // x and y of goal, robot, its speed, parcel, its speed; cosine and sine of the parcel's turn
        let high =
            [place, place, place, place, speed, speed, place, place, speed, speed, turn, turn];
        Spaces { observation: Space::symmetric_box(&high), action: Space::symmetric_box(&[1.0; 2]) }
    }

    fn new(_: &Options, room: &Arc<Room>) -> Result<Self, Error> {
        let (robot, parcel) = (RigidBodyHandle::invalid(), RigidBodyHandle::invalid());
        let (world, goal) = (PhysicsWorld::default(), Vector::ZERO);
        let mut env = Self { room: room.clone(), world, robot, parcel, goal, force: FORCE };
        env.build(Vector::new(-2.0, 0.0), Vector::new(2.0, 0.0), 0.0);
        Ok(env)
    }

    fn reset(&mut self, rng: &mut Rng, _: &cartwheel::NoOptions) -> Result<(), Failure> {
        let goal = self.place(rng, PARCEL, &[])?;
        let parcel = self.place(rng, 2.0 * PARCEL, &[goal])?;
        let robot = self.place(rng, ROBOT, &[parcel])?;
        self.goal = goal;
        self.build(robot, parcel, rng.uniform(-3.0, 3.0) as f32);
        Ok(())
    }

    fn step(&mut self, &[x, y]: &[f32; 2], _: &mut Rng) -> Result<Transition, Failure> {
        let before = self.distance();
        let force = Vector::new(x, y).clamp_length_max(1.0) * self.force;
        let robot = &mut self.world.bodies[self.robot];
        robot.reset_forces(true);
        robot.add_force(force, true);
        for _ in 0..SUBSTEPS {
            self.world.step();
            if !self.world.quarantine().bodies().is_empty() {
                let force = self.force;
                return Err(Failure::new(format!(
                    "the simulation diverged, with a force of {force} N"
                )));
            }
        }
        let distance = self.distance();
        let terminated = distance < NEAR;
        let reward = f64::from(before - distance) + if terminated { 1.0 } else { -0.01 };
        Ok(Transition { reward, terminated, truncated: false })
    }

    fn observe(&self, observation: &mut [f32; 12]) {
        let [robot, parcel] = [self.robot, self.parcel].map(|body| &self.world.bodies[body]);
        let (turn, bodies) = (parcel.rotation(), [robot, parcel]);
        let [(at, speed), (to, slide)] = bodies.map(|body| (body.translation(), body.linvel()));
        *observation = [
            self.goal.x,
            self.goal.y,
            at.x,
            at.y,
            speed.x,
            speed.y,
            to.x,
            to.y,
            slide.x,
            slide.y,
            turn.cos(),
            turn.sin(),
        ];
    }

    fn info(&self) -> Report {
        Report { distance: self.distance().into() }
    }

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray, RenderMode::Ansi];

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        let cells = if frame.mode() == RenderMode::Ansi { 24 } else { 192 };
        let meter = cells as f32 / (2.0 * ROOM);
        let [robot, parcel] =
            [self.robot, self.parcel].map(|body| self.world.bodies[body].position());
        frame.grid((cells, cells), 2, |cell| {
            let (row, column) = (cell / cells, cell % cells);
            let at =
                Vector::new(column as f32 + 0.5, cells as f32 - row as f32 - 0.5) / meter - ROOM;
            let inside = parcel.inverse_transform_point(at).abs();
            match at {
                _ if at.distance(robot.translation) < ROBOT => ('@', [220, 60, 40]),
                _ if inside.max_element() < PARCEL => ('#', [170, 120, 60]),
                _ if at.distance(self.goal) < NEAR => ('X', [40, 160, 80]),
                _ if self.room.pillars.iter().any(|post| at.distance(*post) < 0.15) => {
                    ('o', [40; 3])
                }
                _ => (' ', [255; 3]),
            }
        });
        Ok(())
    }

    cartwheel::parameters! { force: force }
}

cartwheel::plugin! { _my_physics {
    "my_physics/Push-v0" => Push { max_episode_steps: 300 },
} }

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays an episode of 50 steps with the robot and the parcel.
    fn play(seed: u64) -> Result<Vec<[f32; 12]>, Failure> {
        let options = Options { pillars: 5 };
        let room = Arc::new(Room::prepare(&options)?);
        let (mut env, mut rng) = (Push::new(&options, &room)?, Rng::from_seed(seed));
        env.reset(&mut rng, &cartwheel::NoOptions {})?;
        let mut seen = vec![[0.0; 12]; 50];
        for observation in &mut seen {
            env.step(&[0.6, -0.8], &mut rng)?;
            env.observe(observation);
        }
        Ok(seen)
    }

    #[test]
    fn the_same_seed_gives_the_same_episode() -> Result<(), Failure> {
        assert_eq!(play(1)?, play(1)?);
        assert_ne!(play(1)?, play(2)?);
        Ok(())
    }
}
