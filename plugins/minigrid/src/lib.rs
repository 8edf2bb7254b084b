//! The environments of MiniGrid 3.2.0, natively: 76 ids of MiniGrid and 96 of BabyAI, with the values, random numbers and pictures of
//! the package, bit for bit.
//!
//! MiniGrid is under the Apache-2.0 license; the files below name the modules whose rules they follow.

pub mod babyai;
mod cell;
mod env;
pub mod levels;
mod observation;
mod picture;
mod rooms;
mod view;
mod world;

use babyai::{BabyAi, go_to, open, other, pickup, put_next, synth, unlock};
pub use cell::{Cell, Color, Door, Kind};
pub use env::{Common, Level, LevelOptions, MiniGrid, Setup};
use levels::{fetching, goals, hazards, mazes, open_rooms, unlocking};
pub use observation::{Observation, Scene, Shown, Sight, SightMut, SightRef, Tiles, Wrappers};
pub use rooms::{AddedDoor, Rooms};
pub use world::{Action, Area, Direction, Outcome, Place, Unmade, World};

cartwheel::plugin! { _minigrid {
    "cartwheel_minigrid/MiniGrid-BlockedUnlockPickup-v0" => MiniGrid<unlocking::UnlockPickup<true>>,
    "cartwheel_minigrid/MiniGrid-LavaCrossingS9N1-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 1}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaCrossingS9N2-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaCrossingS9N3-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaCrossingS11N5-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 11, "num_crossings": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-SimpleCrossingS9N1-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 1, "obstacle_type": "wall"}"#,
    },
    "cartwheel_minigrid/MiniGrid-SimpleCrossingS9N2-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 2, "obstacle_type": "wall"}"#,
    },
    "cartwheel_minigrid/MiniGrid-SimpleCrossingS9N3-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 9, "num_crossings": 3, "obstacle_type": "wall"}"#,
    },
    "cartwheel_minigrid/MiniGrid-SimpleCrossingS11N5-v0" => MiniGrid<hazards::Crossing> {
        default_options: r#"{"size": 11, "num_crossings": 5, "obstacle_type": "wall"}"#,
    },
    "cartwheel_minigrid/MiniGrid-DistShift1-v0" => MiniGrid<hazards::DistShift> {
        default_options: r#"{"strip2_row": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-DistShift2-v0" => MiniGrid<hazards::DistShift> {
        default_options: r#"{"strip2_row": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-DoorKey-5x5-v0" => MiniGrid<goals::DoorKey> {
        default_options: r#"{"size": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-DoorKey-6x6-v0" => MiniGrid<goals::DoorKey> {
        default_options: r#"{"size": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-DoorKey-8x8-v0" => MiniGrid<goals::DoorKey> {
        default_options: r#"{"size": 8}"#,
    },
    "cartwheel_minigrid/MiniGrid-DoorKey-16x16-v0" => MiniGrid<goals::DoorKey> {
        default_options: r#"{"size": 16}"#,
    },
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-5x5-v0" => MiniGrid<hazards::DynamicObstacles> {
        default_options: r#"{"size": 5, "n_obstacles": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-Random-5x5-v0" => MiniGrid<hazards::DynamicObstacles> {
        default_options: r#"{"size": 5, "agent_start_pos": null, "n_obstacles": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-6x6-v0" => MiniGrid<hazards::DynamicObstacles> {
        default_options: r#"{"size": 6, "n_obstacles": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-Random-6x6-v0" => MiniGrid<hazards::DynamicObstacles> {
        default_options: r#"{"size": 6, "agent_start_pos": null, "n_obstacles": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-8x8-v0" => MiniGrid<hazards::DynamicObstacles>,
    "cartwheel_minigrid/MiniGrid-Dynamic-Obstacles-16x16-v0" => MiniGrid<hazards::DynamicObstacles> {
        default_options: r#"{"size": 16, "n_obstacles": 8}"#,
    },
    "cartwheel_minigrid/MiniGrid-Empty-5x5-v0" => MiniGrid<goals::Empty> {
        default_options: r#"{"size": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-Empty-Random-5x5-v0" => MiniGrid<goals::Empty> {
        default_options: r#"{"size": 5, "agent_start_pos": null}"#,
    },
    "cartwheel_minigrid/MiniGrid-Empty-6x6-v0" => MiniGrid<goals::Empty> {
        default_options: r#"{"size": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-Empty-Random-6x6-v0" => MiniGrid<goals::Empty> {
        default_options: r#"{"size": 6, "agent_start_pos": null}"#,
    },
    "cartwheel_minigrid/MiniGrid-Empty-8x8-v0" => MiniGrid<goals::Empty>,
    "cartwheel_minigrid/MiniGrid-Empty-16x16-v0" => MiniGrid<goals::Empty> {
        default_options: r#"{"size": 16}"#,
    },
    "cartwheel_minigrid/MiniGrid-Fetch-5x5-N2-v0" => MiniGrid<fetching::Fetch> {
        default_options: r#"{"size": 5, "numObjs": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-Fetch-6x6-N2-v0" => MiniGrid<fetching::Fetch> {
        default_options: r#"{"size": 6, "numObjs": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-Fetch-8x8-N3-v0" => MiniGrid<fetching::Fetch>,
    "cartwheel_minigrid/MiniGrid-FourRooms-v0" => MiniGrid<goals::FourRooms>,
    "cartwheel_minigrid/MiniGrid-GoToDoor-5x5-v0" => MiniGrid<fetching::GoToDoor>,
    "cartwheel_minigrid/MiniGrid-GoToDoor-6x6-v0" => MiniGrid<fetching::GoToDoor> {
        default_options: r#"{"size": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-GoToDoor-8x8-v0" => MiniGrid<fetching::GoToDoor> {
        default_options: r#"{"size": 8}"#,
    },
    "cartwheel_minigrid/MiniGrid-GoToObject-6x6-N2-v0" => MiniGrid<fetching::GoToObject>,
    "cartwheel_minigrid/MiniGrid-GoToObject-8x8-N2-v0" => MiniGrid<fetching::GoToObject> {
        default_options: r#"{"size": 8, "numObjs": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS3R1-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 3, "num_rows": 1}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS3R2-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 3, "num_rows": 2}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS3R3-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 3, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS4R3-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 4, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS5R3-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 5, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-KeyCorridorS6R3-v0" => MiniGrid<mazes::KeyCorridor> {
        default_options: r#"{"room_size": 6, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaGapS5-v0" => MiniGrid<hazards::LavaGap> {
        default_options: r#"{"size": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaGapS6-v0" => MiniGrid<hazards::LavaGap> {
        default_options: r#"{"size": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-LavaGapS7-v0" => MiniGrid<hazards::LavaGap> {
        default_options: r#"{"size": 7}"#,
    },
    "cartwheel_minigrid/MiniGrid-LockedRoom-v0" => MiniGrid<goals::LockedRoom>,
    "cartwheel_minigrid/MiniGrid-MemoryS17Random-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 17, "random_length": true}"#,
    },
    "cartwheel_minigrid/MiniGrid-MemoryS13Random-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 13, "random_length": true}"#,
    },
    "cartwheel_minigrid/MiniGrid-MemoryS13-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 13}"#,
    },
    "cartwheel_minigrid/MiniGrid-MemoryS11-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 11}"#,
    },
    "cartwheel_minigrid/MiniGrid-MemoryS9-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 9}"#,
    },
    "cartwheel_minigrid/MiniGrid-MemoryS7-v0" => MiniGrid<open_rooms::Memory> {
        default_options: r#"{"size": 7}"#,
    },
    "cartwheel_minigrid/MiniGrid-MultiRoom-N2-S4-v0" => MiniGrid<goals::MultiRoom> {
        default_options: r#"{"minNumRooms": 2, "maxNumRooms": 2, "maxRoomSize": 4}"#,
    },
    "cartwheel_minigrid/MiniGrid-MultiRoom-N4-S5-v0" => MiniGrid<goals::MultiRoom> {
        default_options: r#"{"minNumRooms": 6, "maxNumRooms": 6, "maxRoomSize": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-MultiRoom-N4-S5-v1" => MiniGrid<goals::MultiRoom> {
        default_options: r#"{"minNumRooms": 4, "maxNumRooms": 4, "maxRoomSize": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-MultiRoom-N6-v0" => MiniGrid<goals::MultiRoom> {
        default_options: r#"{"minNumRooms": 6, "maxNumRooms": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-1Dl-v0" => MiniGrid<mazes::OneDoor> {
        default_options: r#"{"key_in_box": false, "blocked": false}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-1Dlh-v0" => MiniGrid<mazes::OneDoor> {
        default_options: r#"{"key_in_box": true, "blocked": false}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-1Dlhb-v0" => MiniGrid<mazes::OneDoor>,
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Dl-v0" => MiniGrid<mazes::FullMaze<0>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": false, "blocked": false, "num_quarters": 1, "num_rooms_visited": 4}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Dlh-v0" => MiniGrid<mazes::FullMaze<0>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": false, "num_quarters": 1, "num_rooms_visited": 4}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Dlhb-v0" => MiniGrid<mazes::FullMaze<0>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 4}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-1Q-v0" => MiniGrid<mazes::FullMaze<0>> {
        default_options: r#"{"agent_room": [1, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Q-v0" => MiniGrid<mazes::FullMaze<0>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 2, "num_rooms_visited": 11}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-Full-v0" => MiniGrid<mazes::FullMaze<0>>,
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Dlhb-v1" => MiniGrid<mazes::FullMaze<1>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 4}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-1Q-v1" => MiniGrid<mazes::FullMaze<1>> {
        default_options: r#"{"agent_room": [1, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 5}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-2Q-v1" => MiniGrid<mazes::FullMaze<1>> {
        default_options: r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 2, "num_rooms_visited": 11}"#,
    },
    "cartwheel_minigrid/MiniGrid-ObstructedMaze-Full-v1" => MiniGrid<mazes::FullMaze<1>>,
    "cartwheel_minigrid/MiniGrid-Playground-v0" => MiniGrid<open_rooms::Playground>,
    "cartwheel_minigrid/MiniGrid-PutNear-6x6-N2-v0" => MiniGrid<fetching::PutNear>,
    "cartwheel_minigrid/MiniGrid-PutNear-8x8-N3-v0" => MiniGrid<fetching::PutNear> {
        default_options: r#"{"size": 8, "numObjs": 3}"#,
    },
    "cartwheel_minigrid/MiniGrid-RedBlueDoors-6x6-v0" => MiniGrid<unlocking::RedBlueDoors> {
        default_options: r#"{"size": 6}"#,
    },
    "cartwheel_minigrid/MiniGrid-RedBlueDoors-8x8-v0" => MiniGrid<unlocking::RedBlueDoors>,
    "cartwheel_minigrid/MiniGrid-Unlock-v0" => MiniGrid<unlocking::Unlock>,
    "cartwheel_minigrid/MiniGrid-UnlockPickup-v0" => MiniGrid<unlocking::UnlockPickup<false>>,
    "cartwheel_minigrid/BabyAI-GoToRedBallGrey-v0" => MiniGrid<BabyAi<go_to::GoToRedBall<true>>>,
    "cartwheel_minigrid/BabyAI-GoToRedBall-v0" => MiniGrid<BabyAi<go_to::GoToRedBall<false>>>,
    "cartwheel_minigrid/BabyAI-GoToRedBallNoDists-v0" => MiniGrid<BabyAi<go_to::GoToRedBallAlone>>,
    "cartwheel_minigrid/BabyAI-GoToObj-v0" => MiniGrid<BabyAi<go_to::GoToObj>>,
    "cartwheel_minigrid/BabyAI-GoToObjS4-v0" => MiniGrid<BabyAi<go_to::GoToObj>> {
        default_options: r#"{"room_size": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjS6-v1" => MiniGrid<BabyAi<go_to::GoToObj>> {
        default_options: r#"{"room_size": 6}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocal-v0" => MiniGrid<BabyAi<go_to::GoToLocal>>,
    "cartwheel_minigrid/BabyAI-GoToLocalS5N2-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 5, "num_dists": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS6N2-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 6, "num_dists": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS6N3-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 6, "num_dists": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS6N4-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 6, "num_dists": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS7N4-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 7, "num_dists": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS7N5-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 7, "num_dists": 5}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N2-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N3-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N4-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N5-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 5}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N6-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 6}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToLocalS8N7-v0" => MiniGrid<BabyAi<go_to::GoToLocal>> {
        default_options: r#"{"room_size": 8, "num_dists": 7}"#,
    },
    "cartwheel_minigrid/BabyAI-GoTo-v0" => MiniGrid<BabyAi<go_to::GoTo>>,
    "cartwheel_minigrid/BabyAI-GoToOpen-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"doors_open": true}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMaze-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "doors_open": false}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeOpen-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "doors_open": true}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeS4R2-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "room_size": 4, "num_rows": 2, "num_cols": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeS4-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "room_size": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeS5-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "room_size": 5}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeS6-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "room_size": 6}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToObjMazeS7-v0" => MiniGrid<BabyAi<go_to::GoTo>> {
        default_options: r#"{"num_dists": 1, "room_size": 7}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToImpUnlock-v0" => MiniGrid<BabyAi<go_to::GoToImpUnlock>>,
    "cartwheel_minigrid/BabyAI-GoToSeq-v0" => MiniGrid<BabyAi<go_to::GoToSeq>>,
    "cartwheel_minigrid/BabyAI-GoToSeqS5R2-v0" => MiniGrid<BabyAi<go_to::GoToSeq>> {
        default_options: r#"{"room_size": 5, "num_rows": 2, "num_cols": 2, "num_dists": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-GoToRedBlueBall-v0" => MiniGrid<BabyAi<go_to::GoToRedBlueBall>>,
    "cartwheel_minigrid/BabyAI-GoToDoor-v0" => MiniGrid<BabyAi<go_to::GoToDoor<false>>>,
    "cartwheel_minigrid/BabyAI-GoToObjDoor-v0" => MiniGrid<BabyAi<go_to::GoToDoor<true>>>,
    "cartwheel_minigrid/BabyAI-Open-v0" => MiniGrid<BabyAi<open::Open>>,
    "cartwheel_minigrid/BabyAI-OpenRedDoor-v0" => MiniGrid<BabyAi<open::OpenRedDoor>>,
    "cartwheel_minigrid/BabyAI-OpenDoor-v0" => MiniGrid<BabyAi<open::OpenDoor>>,
    "cartwheel_minigrid/BabyAI-OpenDoorDebug-v0" => MiniGrid<BabyAi<open::OpenDoor>> {
        default_options: r#"{"debug": true, "select_by": null}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorColor-v0" => MiniGrid<BabyAi<open::OpenDoor>> {
        default_options: r#"{"select_by": "color"}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorLoc-v0" => MiniGrid<BabyAi<open::OpenDoor>> {
        default_options: r#"{"select_by": "loc"}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenTwoDoors-v0" => MiniGrid<BabyAi<open::OpenTwoDoors>>,
    "cartwheel_minigrid/BabyAI-OpenRedBlueDoors-v0" => MiniGrid<BabyAi<open::OpenTwoDoors>> {
        default_options: r#"{"first_color": "red", "second_color": "blue"}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenRedBlueDoorsDebug-v0" => MiniGrid<BabyAi<open::OpenTwoDoors>> {
        default_options: r#"{"first_color": "red", "second_color": "blue", "strict": true}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorsOrderN2-v0" => MiniGrid<BabyAi<open::OpenDoorsOrder>> {
        default_options: r#"{"num_doors": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorsOrderN4-v0" => MiniGrid<BabyAi<open::OpenDoorsOrder>> {
        default_options: r#"{"num_doors": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorsOrderN2Debug-v0" => MiniGrid<BabyAi<open::OpenDoorsOrder>> {
        default_options: r#"{"debug": true, "num_doors": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-OpenDoorsOrderN4Debug-v0" => MiniGrid<BabyAi<open::OpenDoorsOrder>> {
        default_options: r#"{"debug": true, "num_doors": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-Pickup-v0" => MiniGrid<BabyAi<pickup::Pickup<false>>>,
    "cartwheel_minigrid/BabyAI-UnblockPickup-v0" => MiniGrid<BabyAi<pickup::Pickup<true>>>,
    "cartwheel_minigrid/BabyAI-PickupLoc-v0" => MiniGrid<BabyAi<pickup::PickupLoc>>,
    "cartwheel_minigrid/BabyAI-PickupDist-v0" => MiniGrid<BabyAi<pickup::PickupDist>>,
    "cartwheel_minigrid/BabyAI-PickupDistDebug-v0" => MiniGrid<BabyAi<pickup::PickupDist>> {
        default_options: r#"{"debug": true}"#,
    },
    "cartwheel_minigrid/BabyAI-PickupAbove-v0" => MiniGrid<BabyAi<pickup::PickupAbove>>,
    "cartwheel_minigrid/BabyAI-PutNextLocal-v0" => MiniGrid<BabyAi<put_next::PutNextLocal>>,
    "cartwheel_minigrid/BabyAI-PutNextLocalS5N3-v0" => MiniGrid<BabyAi<put_next::PutNextLocal>> {
        default_options: r#"{"room_size": 5, "num_objs": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextLocalS6N4-v0" => MiniGrid<BabyAi<put_next::PutNextLocal>> {
        default_options: r#"{"room_size": 6, "num_objs": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS4N1-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 4, "objs_per_room": 1}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS5N2-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 5, "objs_per_room": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS5N1-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 5, "objs_per_room": 1}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS6N3-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 6, "objs_per_room": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS7N4-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 7, "objs_per_room": 4}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS5N2Carrying-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 5, "objs_per_room": 2, "start_carrying": true}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS6N3Carrying-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 6, "objs_per_room": 3, "start_carrying": true}"#,
    },
    "cartwheel_minigrid/BabyAI-PutNextS7N4Carrying-v0" => MiniGrid<BabyAi<put_next::PutNext>> {
        default_options: r#"{"room_size": 7, "objs_per_room": 4, "start_carrying": true}"#,
    },
    "cartwheel_minigrid/BabyAI-Unlock-v0" => MiniGrid<BabyAi<unlock::Unlock>>,
    "cartwheel_minigrid/BabyAI-UnlockLocal-v0" => MiniGrid<BabyAi<unlock::UnlockLocal>>,
    "cartwheel_minigrid/BabyAI-UnlockLocalDist-v0" => MiniGrid<BabyAi<unlock::UnlockLocal>> {
        default_options: r#"{"distractors": true}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyInBox-v0" => MiniGrid<BabyAi<unlock::KeyInBox>>,
    "cartwheel_minigrid/BabyAI-UnlockPickup-v0" => MiniGrid<BabyAi<unlock::UnlockPickup>>,
    "cartwheel_minigrid/BabyAI-UnlockPickupDist-v0" => MiniGrid<BabyAi<unlock::UnlockPickup>> {
        default_options: r#"{"distractors": true}"#,
    },
    "cartwheel_minigrid/BabyAI-BlockedUnlockPickup-v0" => MiniGrid<BabyAi<unlock::BlockedUnlockPickup>>,
    "cartwheel_minigrid/BabyAI-UnlockToUnlock-v0" => MiniGrid<BabyAi<unlock::UnlockToUnlock>>,
    "cartwheel_minigrid/BabyAI-ActionObjDoor-v0" => MiniGrid<BabyAi<other::ActionObjDoor>>,
    "cartwheel_minigrid/BabyAI-FindObjS5-v0" => MiniGrid<BabyAi<other::FindObj>>,
    "cartwheel_minigrid/BabyAI-FindObjS6-v0" => MiniGrid<BabyAi<other::FindObj>> {
        default_options: r#"{"room_size": 6}"#,
    },
    "cartwheel_minigrid/BabyAI-FindObjS7-v0" => MiniGrid<BabyAi<other::FindObj>> {
        default_options: r#"{"room_size": 7}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridor-v0" => MiniGrid<BabyAi<other::KeyCorridor>>,
    "cartwheel_minigrid/BabyAI-KeyCorridorS3R1-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 3, "num_rows": 1}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridorS3R2-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 3, "num_rows": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridorS3R3-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 3, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridorS4R3-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 4, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridorS5R3-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 5, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-KeyCorridorS6R3-v0" => MiniGrid<BabyAi<other::KeyCorridor>> {
        default_options: r#"{"room_size": 6, "num_rows": 3}"#,
    },
    "cartwheel_minigrid/BabyAI-OneRoomS8-v0" => MiniGrid<BabyAi<other::OneRoom>>,
    "cartwheel_minigrid/BabyAI-OneRoomS12-v0" => MiniGrid<BabyAi<other::OneRoom>> {
        default_options: r#"{"room_size": 12}"#,
    },
    "cartwheel_minigrid/BabyAI-OneRoomS16-v0" => MiniGrid<BabyAi<other::OneRoom>> {
        default_options: r#"{"room_size": 16}"#,
    },
    "cartwheel_minigrid/BabyAI-OneRoomS20-v0" => MiniGrid<BabyAi<other::OneRoom>> {
        default_options: r#"{"room_size": 20}"#,
    },
    "cartwheel_minigrid/BabyAI-MoveTwoAcrossS5N2-v0" => MiniGrid<BabyAi<other::MoveTwoAcross>> {
        default_options: r#"{"room_size": 5, "objs_per_room": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-MoveTwoAcrossS8N9-v0" => MiniGrid<BabyAi<other::MoveTwoAcross>> {
        default_options: r#"{"room_size": 8, "objs_per_room": 9}"#,
    },
    "cartwheel_minigrid/BabyAI-Synth-v0" => MiniGrid<BabyAi<synth::Synth>>,
    "cartwheel_minigrid/BabyAI-SynthS5R2-v0" => MiniGrid<BabyAi<synth::Synth>> {
        default_options: r#"{"room_size": 5, "num_rows": 2}"#,
    },
    "cartwheel_minigrid/BabyAI-SynthLoc-v0" => MiniGrid<BabyAi<synth::Synthesized<0>>>,
    "cartwheel_minigrid/BabyAI-SynthSeq-v0" => MiniGrid<BabyAi<synth::Synthesized<1>>>,
    "cartwheel_minigrid/BabyAI-MiniBossLevel-v0" => MiniGrid<BabyAi<synth::Synthesized<2>>>,
    "cartwheel_minigrid/BabyAI-BossLevel-v0" => MiniGrid<BabyAi<synth::Synthesized<3>>>,
    "cartwheel_minigrid/BabyAI-BossLevelNoUnlock-v0" => MiniGrid<BabyAi<synth::Synthesized<4>>>,
} }
