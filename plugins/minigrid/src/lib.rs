//! The environments of MiniGrid 3.2.0, natively: 76 ids of MiniGrid and 96 of BabyAI, with the
//! values, random numbers and pictures of the package, bit for bit.
//!
//! MiniGrid is under the Apache-2.0 license; the files below name the modules whose rules they
//! follow.

pub mod babyai;
mod cell;
mod env;
pub mod levels;
mod observation;
mod options;
mod picture;
mod rooms;
mod view;
mod world;

use babyai::{BabyAi, go_to, open, other, pickup, put_next, synth, unlock};
pub use cell::{Cell, Color, Door, Kind};
pub use env::{Level, MiniGrid, Setup};
use levels::{fetching, goals, hazards, mazes, open_rooms, unlocking};
pub use observation::{Observation, Shown, Sight, SightMut, SightRef, Tiles};
pub use options::{Common, LevelOptions, Wrappers};
pub use rooms::{AddedDoor, Rooms};
pub use view::Scene;
pub use world::{Action, Area, Direction, Outcome, Place, Unmade, World};

/// The plugin: ids of levels, with the options that are not their defaults.
macro_rules! levels {
    ($($id:literal => $level:ty $(, $options:literal)?;)+) => {
        cartwheel::plugin! { _minigrid {
            $(concat!("cartwheel_minigrid/", $id) => MiniGrid<$level>
                $({ default_options: $options })?),+
        } }
    };
}

levels! {
    "MiniGrid-BlockedUnlockPickup-v0" => unlocking::UnlockPickup<true>;
    "MiniGrid-LavaCrossingS9N1-v0" => hazards::Crossing, r#"{"size": 9, "num_crossings": 1}"#;
    "MiniGrid-LavaCrossingS9N2-v0" => hazards::Crossing, r#"{"size": 9, "num_crossings": 2}"#;
    "MiniGrid-LavaCrossingS9N3-v0" => hazards::Crossing, r#"{"size": 9, "num_crossings": 3}"#;
    "MiniGrid-LavaCrossingS11N5-v0" => hazards::Crossing, r#"{"size": 11, "num_crossings": 5}"#;
    "MiniGrid-SimpleCrossingS9N1-v0" => hazards::Crossing,
        r#"{"size": 9, "num_crossings": 1, "obstacle_type": "wall"}"#;
    "MiniGrid-SimpleCrossingS9N2-v0" => hazards::Crossing,
        r#"{"size": 9, "num_crossings": 2, "obstacle_type": "wall"}"#;
    "MiniGrid-SimpleCrossingS9N3-v0" => hazards::Crossing,
        r#"{"size": 9, "num_crossings": 3, "obstacle_type": "wall"}"#;
    "MiniGrid-SimpleCrossingS11N5-v0" => hazards::Crossing,
        r#"{"size": 11, "num_crossings": 5, "obstacle_type": "wall"}"#;
    "MiniGrid-DistShift1-v0" => hazards::DistShift, r#"{"strip2_row": 2}"#;
    "MiniGrid-DistShift2-v0" => hazards::DistShift, r#"{"strip2_row": 5}"#;
    "MiniGrid-DoorKey-5x5-v0" => goals::DoorKey, r#"{"size": 5}"#;
    "MiniGrid-DoorKey-6x6-v0" => goals::DoorKey, r#"{"size": 6}"#;
    "MiniGrid-DoorKey-8x8-v0" => goals::DoorKey, r#"{"size": 8}"#;
    "MiniGrid-DoorKey-16x16-v0" => goals::DoorKey, r#"{"size": 16}"#;
    "MiniGrid-Dynamic-Obstacles-5x5-v0" => hazards::DynamicObstacles,
        r#"{"size": 5, "n_obstacles": 2}"#;
    "MiniGrid-Dynamic-Obstacles-Random-5x5-v0" => hazards::DynamicObstacles,
        r#"{"size": 5, "agent_start_pos": null, "n_obstacles": 2}"#;
    "MiniGrid-Dynamic-Obstacles-6x6-v0" => hazards::DynamicObstacles,
        r#"{"size": 6, "n_obstacles": 3}"#;
    "MiniGrid-Dynamic-Obstacles-Random-6x6-v0" => hazards::DynamicObstacles,
        r#"{"size": 6, "agent_start_pos": null, "n_obstacles": 3}"#;
    "MiniGrid-Dynamic-Obstacles-8x8-v0" => hazards::DynamicObstacles;
    "MiniGrid-Dynamic-Obstacles-16x16-v0" => hazards::DynamicObstacles,
        r#"{"size": 16, "n_obstacles": 8}"#;
    "MiniGrid-Empty-5x5-v0" => goals::Empty, r#"{"size": 5}"#;
    "MiniGrid-Empty-Random-5x5-v0" => goals::Empty, r#"{"size": 5, "agent_start_pos": null}"#;
    "MiniGrid-Empty-6x6-v0" => goals::Empty, r#"{"size": 6}"#;
    "MiniGrid-Empty-Random-6x6-v0" => goals::Empty, r#"{"size": 6, "agent_start_pos": null}"#;
    "MiniGrid-Empty-8x8-v0" => goals::Empty;
    "MiniGrid-Empty-16x16-v0" => goals::Empty, r#"{"size": 16}"#;
    "MiniGrid-Fetch-5x5-N2-v0" => fetching::Fetch, r#"{"size": 5, "numObjs": 2}"#;
    "MiniGrid-Fetch-6x6-N2-v0" => fetching::Fetch, r#"{"size": 6, "numObjs": 2}"#;
    "MiniGrid-Fetch-8x8-N3-v0" => fetching::Fetch;
    "MiniGrid-FourRooms-v0" => goals::FourRooms;
    "MiniGrid-GoToDoor-5x5-v0" => fetching::GoToDoor;
    "MiniGrid-GoToDoor-6x6-v0" => fetching::GoToDoor, r#"{"size": 6}"#;
    "MiniGrid-GoToDoor-8x8-v0" => fetching::GoToDoor, r#"{"size": 8}"#;
    "MiniGrid-GoToObject-6x6-N2-v0" => fetching::GoToObject;
    "MiniGrid-GoToObject-8x8-N2-v0" => fetching::GoToObject, r#"{"size": 8, "numObjs": 2}"#;
    "MiniGrid-KeyCorridorS3R1-v0" => mazes::KeyCorridor, r#"{"room_size": 3, "num_rows": 1}"#;
    "MiniGrid-KeyCorridorS3R2-v0" => mazes::KeyCorridor, r#"{"room_size": 3, "num_rows": 2}"#;
    "MiniGrid-KeyCorridorS3R3-v0" => mazes::KeyCorridor, r#"{"room_size": 3, "num_rows": 3}"#;
    "MiniGrid-KeyCorridorS4R3-v0" => mazes::KeyCorridor, r#"{"room_size": 4, "num_rows": 3}"#;
    "MiniGrid-KeyCorridorS5R3-v0" => mazes::KeyCorridor, r#"{"room_size": 5, "num_rows": 3}"#;
    "MiniGrid-KeyCorridorS6R3-v0" => mazes::KeyCorridor, r#"{"room_size": 6, "num_rows": 3}"#;
    "MiniGrid-LavaGapS5-v0" => hazards::LavaGap, r#"{"size": 5}"#;
    "MiniGrid-LavaGapS6-v0" => hazards::LavaGap, r#"{"size": 6}"#;
    "MiniGrid-LavaGapS7-v0" => hazards::LavaGap, r#"{"size": 7}"#;
    "MiniGrid-LockedRoom-v0" => goals::LockedRoom;
    "MiniGrid-MemoryS17Random-v0" => open_rooms::Memory, r#"{"size": 17, "random_length": true}"#;
    "MiniGrid-MemoryS13Random-v0" => open_rooms::Memory, r#"{"size": 13, "random_length": true}"#;
    "MiniGrid-MemoryS13-v0" => open_rooms::Memory, r#"{"size": 13}"#;
    "MiniGrid-MemoryS11-v0" => open_rooms::Memory, r#"{"size": 11}"#;
    "MiniGrid-MemoryS9-v0" => open_rooms::Memory, r#"{"size": 9}"#;
    "MiniGrid-MemoryS7-v0" => open_rooms::Memory, r#"{"size": 7}"#;
    "MiniGrid-MultiRoom-N2-S4-v0" => goals::MultiRoom,
        r#"{"minNumRooms": 2, "maxNumRooms": 2, "maxRoomSize": 4}"#;
    "MiniGrid-MultiRoom-N4-S5-v0" => goals::MultiRoom,
        r#"{"minNumRooms": 6, "maxNumRooms": 6, "maxRoomSize": 5}"#;
    "MiniGrid-MultiRoom-N4-S5-v1" => goals::MultiRoom,
        r#"{"minNumRooms": 4, "maxNumRooms": 4, "maxRoomSize": 5}"#;
    "MiniGrid-MultiRoom-N6-v0" => goals::MultiRoom, r#"{"minNumRooms": 6, "maxNumRooms": 6}"#;
    "MiniGrid-ObstructedMaze-1Dl-v0" => mazes::OneDoor,
        r#"{"key_in_box": false, "blocked": false}"#;
    "MiniGrid-ObstructedMaze-1Dlh-v0" => mazes::OneDoor,
        r#"{"key_in_box": true, "blocked": false}"#;
    "MiniGrid-ObstructedMaze-1Dlhb-v0" => mazes::OneDoor;
    "MiniGrid-ObstructedMaze-2Dl-v0" => mazes::FullMaze<0>,
        r#"{"agent_room": [2, 1], "key_in_box": false, "blocked": false, "num_quarters": 1, "num_rooms_visited": 4}"#;
    "MiniGrid-ObstructedMaze-2Dlh-v0" => mazes::FullMaze<0>,
        r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": false, "num_quarters": 1, "num_rooms_visited": 4}"#;
    "MiniGrid-ObstructedMaze-2Dlhb-v0" => mazes::FullMaze<0>,
        r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 4}"#;
    "MiniGrid-ObstructedMaze-1Q-v0" => mazes::FullMaze<0>,
        r#"{"agent_room": [1, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 5}"#;
    "MiniGrid-ObstructedMaze-2Q-v0" => mazes::FullMaze<0>,
        r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 2, "num_rooms_visited": 11}"#;
    "MiniGrid-ObstructedMaze-Full-v0" => mazes::FullMaze<0>;
    "MiniGrid-ObstructedMaze-2Dlhb-v1" => mazes::FullMaze<1>,
        r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 4}"#;
    "MiniGrid-ObstructedMaze-1Q-v1" => mazes::FullMaze<1>,
        r#"{"agent_room": [1, 1], "key_in_box": true, "blocked": true, "num_quarters": 1, "num_rooms_visited": 5}"#;
    "MiniGrid-ObstructedMaze-2Q-v1" => mazes::FullMaze<1>,
        r#"{"agent_room": [2, 1], "key_in_box": true, "blocked": true, "num_quarters": 2, "num_rooms_visited": 11}"#;
    "MiniGrid-ObstructedMaze-Full-v1" => mazes::FullMaze<1>;
    "MiniGrid-Playground-v0" => open_rooms::Playground;
    "MiniGrid-PutNear-6x6-N2-v0" => fetching::PutNear;
    "MiniGrid-PutNear-8x8-N3-v0" => fetching::PutNear, r#"{"size": 8, "numObjs": 3}"#;
    "MiniGrid-RedBlueDoors-6x6-v0" => unlocking::RedBlueDoors, r#"{"size": 6}"#;
    "MiniGrid-RedBlueDoors-8x8-v0" => unlocking::RedBlueDoors;
    "MiniGrid-Unlock-v0" => unlocking::Unlock;
    "MiniGrid-UnlockPickup-v0" => unlocking::UnlockPickup<false>;
    "BabyAI-GoToRedBallGrey-v0" => BabyAi<go_to::GoToRedBall<true>>;
    "BabyAI-GoToRedBall-v0" => BabyAi<go_to::GoToRedBall<false>>;
    "BabyAI-GoToRedBallNoDists-v0" => BabyAi<go_to::GoToRedBallAlone>;
    "BabyAI-GoToObj-v0" => BabyAi<go_to::GoToObj>;
    "BabyAI-GoToObjS4-v0" => BabyAi<go_to::GoToObj>, r#"{"room_size": 4}"#;
    "BabyAI-GoToObjS6-v1" => BabyAi<go_to::GoToObj>, r#"{"room_size": 6}"#;
    "BabyAI-GoToLocal-v0" => BabyAi<go_to::GoToLocal>;
    "BabyAI-GoToLocalS5N2-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 5, "num_dists": 2}"#;
    "BabyAI-GoToLocalS6N2-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 6, "num_dists": 2}"#;
    "BabyAI-GoToLocalS6N3-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 6, "num_dists": 3}"#;
    "BabyAI-GoToLocalS6N4-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 6, "num_dists": 4}"#;
    "BabyAI-GoToLocalS7N4-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 7, "num_dists": 4}"#;
    "BabyAI-GoToLocalS7N5-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 7, "num_dists": 5}"#;
    "BabyAI-GoToLocalS8N2-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 2}"#;
    "BabyAI-GoToLocalS8N3-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 3}"#;
    "BabyAI-GoToLocalS8N4-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 4}"#;
    "BabyAI-GoToLocalS8N5-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 5}"#;
    "BabyAI-GoToLocalS8N6-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 6}"#;
    "BabyAI-GoToLocalS8N7-v0" => BabyAi<go_to::GoToLocal>, r#"{"room_size": 8, "num_dists": 7}"#;
    "BabyAI-GoTo-v0" => BabyAi<go_to::GoTo>;
    "BabyAI-GoToOpen-v0" => BabyAi<go_to::GoTo>, r#"{"doors_open": true}"#;
    "BabyAI-GoToObjMaze-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "doors_open": false}"#;
    "BabyAI-GoToObjMazeOpen-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "doors_open": true}"#;
    "BabyAI-GoToObjMazeS4R2-v0" => BabyAi<go_to::GoTo>,
        r#"{"num_dists": 1, "room_size": 4, "num_rows": 2, "num_cols": 2}"#;
    "BabyAI-GoToObjMazeS4-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "room_size": 4}"#;
    "BabyAI-GoToObjMazeS5-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "room_size": 5}"#;
    "BabyAI-GoToObjMazeS6-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "room_size": 6}"#;
    "BabyAI-GoToObjMazeS7-v0" => BabyAi<go_to::GoTo>, r#"{"num_dists": 1, "room_size": 7}"#;
    "BabyAI-GoToImpUnlock-v0" => BabyAi<go_to::GoToImpUnlock>;
    "BabyAI-GoToSeq-v0" => BabyAi<go_to::GoToSeq>;
    "BabyAI-GoToSeqS5R2-v0" => BabyAi<go_to::GoToSeq>,
        r#"{"room_size": 5, "num_rows": 2, "num_cols": 2, "num_dists": 4}"#;
    "BabyAI-GoToRedBlueBall-v0" => BabyAi<go_to::GoToRedBlueBall>;
    "BabyAI-GoToDoor-v0" => BabyAi<go_to::GoToDoor<false>>;
    "BabyAI-GoToObjDoor-v0" => BabyAi<go_to::GoToDoor<true>>;
    "BabyAI-Open-v0" => BabyAi<open::Open>;
    "BabyAI-OpenRedDoor-v0" => BabyAi<open::OpenRedDoor>;
    "BabyAI-OpenDoor-v0" => BabyAi<open::OpenDoor>;
    "BabyAI-OpenDoorDebug-v0" => BabyAi<open::OpenDoor>, r#"{"debug": true, "select_by": null}"#;
    "BabyAI-OpenDoorColor-v0" => BabyAi<open::OpenDoor>, r#"{"select_by": "color"}"#;
    "BabyAI-OpenDoorLoc-v0" => BabyAi<open::OpenDoor>, r#"{"select_by": "loc"}"#;
    "BabyAI-OpenTwoDoors-v0" => BabyAi<open::OpenTwoDoors>;
    "BabyAI-OpenRedBlueDoors-v0" => BabyAi<open::OpenTwoDoors>,
        r#"{"first_color": "red", "second_color": "blue"}"#;
    "BabyAI-OpenRedBlueDoorsDebug-v0" => BabyAi<open::OpenTwoDoors>,
        r#"{"first_color": "red", "second_color": "blue", "strict": true}"#;
    "BabyAI-OpenDoorsOrderN2-v0" => BabyAi<open::OpenDoorsOrder>, r#"{"num_doors": 2}"#;
    "BabyAI-OpenDoorsOrderN4-v0" => BabyAi<open::OpenDoorsOrder>, r#"{"num_doors": 4}"#;
    "BabyAI-OpenDoorsOrderN2Debug-v0" => BabyAi<open::OpenDoorsOrder>,
        r#"{"debug": true, "num_doors": 2}"#;
    "BabyAI-OpenDoorsOrderN4Debug-v0" => BabyAi<open::OpenDoorsOrder>,
        r#"{"debug": true, "num_doors": 4}"#;
    "BabyAI-Pickup-v0" => BabyAi<pickup::Pickup<false>>;
    "BabyAI-UnblockPickup-v0" => BabyAi<pickup::Pickup<true>>;
    "BabyAI-PickupLoc-v0" => BabyAi<pickup::PickupLoc>;
    "BabyAI-PickupDist-v0" => BabyAi<pickup::PickupDist>;
    "BabyAI-PickupDistDebug-v0" => BabyAi<pickup::PickupDist>, r#"{"debug": true}"#;
    "BabyAI-PickupAbove-v0" => BabyAi<pickup::PickupAbove>;
    "BabyAI-PutNextLocal-v0" => BabyAi<put_next::PutNextLocal>;
    "BabyAI-PutNextLocalS5N3-v0" => BabyAi<put_next::PutNextLocal>,
        r#"{"room_size": 5, "num_objs": 3}"#;
    "BabyAI-PutNextLocalS6N4-v0" => BabyAi<put_next::PutNextLocal>,
        r#"{"room_size": 6, "num_objs": 4}"#;
    "BabyAI-PutNextS4N1-v0" => BabyAi<put_next::PutNext>, r#"{"room_size": 4, "objs_per_room": 1}"#;
    "BabyAI-PutNextS5N2-v0" => BabyAi<put_next::PutNext>, r#"{"room_size": 5, "objs_per_room": 2}"#;
    "BabyAI-PutNextS5N1-v0" => BabyAi<put_next::PutNext>, r#"{"room_size": 5, "objs_per_room": 1}"#;
    "BabyAI-PutNextS6N3-v0" => BabyAi<put_next::PutNext>, r#"{"room_size": 6, "objs_per_room": 3}"#;
    "BabyAI-PutNextS7N4-v0" => BabyAi<put_next::PutNext>, r#"{"room_size": 7, "objs_per_room": 4}"#;
    "BabyAI-PutNextS5N2Carrying-v0" => BabyAi<put_next::PutNext>,
        r#"{"room_size": 5, "objs_per_room": 2, "start_carrying": true}"#;
    "BabyAI-PutNextS6N3Carrying-v0" => BabyAi<put_next::PutNext>,
        r#"{"room_size": 6, "objs_per_room": 3, "start_carrying": true}"#;
    "BabyAI-PutNextS7N4Carrying-v0" => BabyAi<put_next::PutNext>,
        r#"{"room_size": 7, "objs_per_room": 4, "start_carrying": true}"#;
    "BabyAI-Unlock-v0" => BabyAi<unlock::Unlock>;
    "BabyAI-UnlockLocal-v0" => BabyAi<unlock::UnlockLocal>;
    "BabyAI-UnlockLocalDist-v0" => BabyAi<unlock::UnlockLocal>, r#"{"distractors": true}"#;
    "BabyAI-KeyInBox-v0" => BabyAi<unlock::KeyInBox>;
    "BabyAI-UnlockPickup-v0" => BabyAi<unlock::UnlockPickup>;
    "BabyAI-UnlockPickupDist-v0" => BabyAi<unlock::UnlockPickup>, r#"{"distractors": true}"#;
    "BabyAI-BlockedUnlockPickup-v0" => BabyAi<unlock::BlockedUnlockPickup>;
    "BabyAI-UnlockToUnlock-v0" => BabyAi<unlock::UnlockToUnlock>;
    "BabyAI-ActionObjDoor-v0" => BabyAi<other::ActionObjDoor>;
    "BabyAI-FindObjS5-v0" => BabyAi<other::FindObj>;
    "BabyAI-FindObjS6-v0" => BabyAi<other::FindObj>, r#"{"room_size": 6}"#;
    "BabyAI-FindObjS7-v0" => BabyAi<other::FindObj>, r#"{"room_size": 7}"#;
    "BabyAI-KeyCorridor-v0" => BabyAi<other::KeyCorridor>;
    "BabyAI-KeyCorridorS3R1-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 3, "num_rows": 1}"#;
    "BabyAI-KeyCorridorS3R2-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 3, "num_rows": 2}"#;
    "BabyAI-KeyCorridorS3R3-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 3, "num_rows": 3}"#;
    "BabyAI-KeyCorridorS4R3-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 4, "num_rows": 3}"#;
    "BabyAI-KeyCorridorS5R3-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 5, "num_rows": 3}"#;
    "BabyAI-KeyCorridorS6R3-v0" => BabyAi<other::KeyCorridor>, r#"{"room_size": 6, "num_rows": 3}"#;
    "BabyAI-OneRoomS8-v0" => BabyAi<other::OneRoom>;
    "BabyAI-OneRoomS12-v0" => BabyAi<other::OneRoom>, r#"{"room_size": 12}"#;
    "BabyAI-OneRoomS16-v0" => BabyAi<other::OneRoom>, r#"{"room_size": 16}"#;
    "BabyAI-OneRoomS20-v0" => BabyAi<other::OneRoom>, r#"{"room_size": 20}"#;
    "BabyAI-MoveTwoAcrossS5N2-v0" => BabyAi<other::MoveTwoAcross>,
        r#"{"room_size": 5, "objs_per_room": 2}"#;
    "BabyAI-MoveTwoAcrossS8N9-v0" => BabyAi<other::MoveTwoAcross>,
        r#"{"room_size": 8, "objs_per_room": 9}"#;
    "BabyAI-Synth-v0" => BabyAi<synth::Synth>;
    "BabyAI-SynthS5R2-v0" => BabyAi<synth::Synth>, r#"{"room_size": 5, "num_rows": 2}"#;
    "BabyAI-SynthLoc-v0" => BabyAi<synth::Synthesized<0>>;
    "BabyAI-SynthSeq-v0" => BabyAi<synth::Synthesized<1>>;
    "BabyAI-MiniBossLevel-v0" => BabyAi<synth::Synthesized<2>>;
    "BabyAI-BossLevel-v0" => BabyAi<synth::Synthesized<3>>;
    "BabyAI-BossLevelNoUnlock-v0" => BabyAi<synth::Synthesized<4>>;
}
