//! Keywords that several tasks share.

use super::Layout;
use crate::options::level_options;

level_options! {
    /// Keywords of tasks in one room with distractors.
    pub struct DistractorOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Number of distractors.
        num_dists: usize = 7,
    }
}

level_options! {
    /// Keywords of tasks with one object in one room.
    pub struct RoomOptions {
        /// Columns and rows of the room, walls included.
        room_size: i32 = 8,
    }
}

level_options! {
    /// Keywords of tasks in rooms of any number.
    pub struct RoomsOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Rows of rooms.
        num_rows: i32 = 3,
        /// Columns of rooms.
        num_cols: i32 = 3,
    }
}

impl RoomsOptions {
    /// The rooms.
    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.room_size, [self.num_cols, self.num_rows])
    }
}

level_options! {
    /// Keywords of tasks in rooms of any number with distractors.
    pub struct RoomsDistractorOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Rows of rooms.
        num_rows: i32 = 3,
        /// Columns of rooms.
        num_cols: i32 = 3,
        /// Number of distractors.
        num_dists: usize = 18,
    }
}

impl RoomsDistractorOptions {
    /// The rooms.
    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.room_size, [self.num_cols, self.num_rows])
    }
}
