//! The test kit of cartwheel plays a level of each kind in every way.

use cartwheel::testing::{CheckError, check_env};
use cartwheel_minigrid::MiniGrid;
use cartwheel_minigrid::babyai::{BabyAi, go_to, put_next, synth};
use cartwheel_minigrid::levels::{fetching, goals, hazards, mazes, open_rooms, unlocking};

macro_rules! checked {
    ($($name:ident: $level:ty),+ $(,)?) => {$(
        #[test]
        fn $name() -> Result<(), CheckError> {
            check_env::<MiniGrid<$level>>(Default::default())
        }
    )+};
}

checked! {
    empty: goals::Empty,
    door_key: goals::DoorKey,
    multi_room: goals::MultiRoom,
    dynamic_obstacles: hazards::DynamicObstacles,
    put_near: fetching::PutNear,
    full_maze: mazes::FullMaze<1>,
    memory: open_rooms::Memory,
    unlock: unlocking::Unlock,
    go_to_obj: BabyAi<go_to::GoToObj>,
    put_next_to: BabyAi<put_next::PutNext>,
    boss: BabyAi<synth::Synthesized<3>>,
}
