//! The last frames of each environment, side by side.

use super::kind::{FAILED, RESET};
use super::place_kinds::{EndedPlaces, PlaceKinds, is_stepped};

/// What an episode's stack has before its first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// The first frame again.
    Reset,
    /// These bytes, a frame.
    Frame(Vec<u8>),
}

/// The last `depth` frames of each environment. A frame is an observation of any dtype, as bytes.
///
/// A plane has one frame of each environment. When all environments go on, the oldest plane becomes
/// the newest one, and nothing else moves; otherwise the frames of single rows are moved.
#[derive(Debug, Clone)]
pub struct FrameStack {
    frame_bytes: usize,
    padding: Padding,
    num_envs: usize,
    /// From the oldest to the newest.
    planes: Vec<Vec<u8>>,
}

impl FrameStack {
    /// Stacks of zeros, before any frame.
    ///
    /// # Panics
    ///
    /// When `depth` is 0, or a padding is no frame.
    pub fn new(num_envs: usize, depth: usize, frame_bytes: usize, padding: Padding) -> Self {
        assert!(depth > 0, "a stack has at least one frame");
        if let Padding::Frame(frame) = &padding {
            assert_eq!(frame.len(), frame_bytes, "bytes of the padding");
        }
        let planes = vec![vec![0; num_envs * frame_bytes]; depth];
        Self { frame_bytes, padding, num_envs, planes }
    }

    /// The bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// The bytes of a stack.
    pub fn stack_bytes(&self) -> usize {
        self.planes.len() * self.frame_bytes
    }

    /// Advances the stacks of a batch and writes them, from the oldest frame to the newest.
    ///
    /// A stepped row gets its frame; a row that was reset is filled; others stay. A place that ended
    /// an episode gets its final frame first, if that is known and the environment did not fail;
    /// this stack is written into `final_stacks`; then the row is filled.
    ///
    /// # Panics
    ///
    /// When the slices do not have an entry for each place, or each final frame.
    pub fn advance(
        &mut self,
        places: PlaceKinds<'_>,
        frames: &[u8],
        ended: EndedPlaces<'_>,
        finals: &[u8],
        stacks: &mut [u8],
        final_stacks: &mut [u8],
    ) {
        let (bytes, stack) = (self.frame_bytes, self.stack_bytes());
        assert_eq!(frames.len(), places.len() * bytes, "frames");
        assert_eq!(stacks.len(), places.len() * stack, "room for stacks");
        assert_eq!(finals.len(), ended.num_finals() * bytes, "final frames");
        assert_eq!(final_stacks.len(), ended.num_finals() * stack, "room for final stacks");
        if bytes == 0 {
            return;
        }
        for (number, place) in ended.finals().enumerate() {
            let room = &mut final_stacks[number * stack..][..stack];
            self.write_stack(places.env(place), room);
            if places.kinds()[place] != FAILED {
                room.copy_within(bytes.., 0);
                room[stack - bytes..].copy_from_slice(&finals[number * bytes..][..bytes]);
            }
        }
        let all_go_on =
            places.are_all() && places.all_are(|kind| is_stepped(kind) || kind == RESET);
        if all_go_on {
            self.planes.rotate_left(1);
            self.planes.last_mut().expect("not empty").copy_from_slice(frames);
        }
        let mut walk = ended.walk();
        for (place, &kind) in places.kinds().iter().enumerate() {
            let frame = place * bytes..(place + 1) * bytes;
            if walk.at(place) || kind == RESET {
                self.fill(places.env(place), &frames[frame]);
            } else if !all_go_on && is_stepped(kind) {
                self.push(places.env(place), &frames[frame]);
            }
        }
        if places.are_all() {
            self.write_all(stacks);
        } else {
            for (place, room) in stacks.chunks_exact_mut(stack).enumerate() {
                self.write_stack(places.env(place), room);
            }
        }
    }

    /// Writes the stack of one environment.
    ///
    /// # Panics
    ///
    /// When the room does not have the size of a stack.
    pub fn write_stack(&self, env: usize, stack: &mut [u8]) {
        assert_eq!(stack.len(), self.stack_bytes(), "room for a stack");
        let bytes = self.frame_bytes;
        for (number, plane) in self.planes.iter().enumerate() {
            let room = &mut stack[number * bytes..][..bytes];
            room.copy_from_slice(&plane[env * bytes..][..bytes]);
        }
    }

    /// Writes the stacks of all environments, one after the other.
    ///
    /// # Panics
    ///
    /// When the room does not have the size of all stacks.
    pub fn write_all(&self, stacks: &mut [u8]) {
        assert_eq!(stacks.len(), self.num_envs * self.stack_bytes(), "room for all stacks");
        // Frames whose size is known here are copied by a few instructions.
        macro_rules! by_size {
            ($($size:literal)*) => {
                match self.frame_bytes {
                    0 => {}
                    $($size => self.write_small::<$size>(stacks),)*
                    _ => {
                        let rooms = stacks.chunks_exact_mut(self.stack_bytes());
                        rooms.enumerate().for_each(|(env, room)| self.write_stack(env, room));
                    }
                }
            };
        }
        by_size!(1 2 4 8 12 16 20 24 28 32 40 44 48 64 68 96 128);
    }

    /// [`write_all`](Self::write_all) for frames of `BYTES` bytes.
    fn write_small<const BYTES: usize>(&self, stacks: &mut [u8]) {
        let frames = |plane: usize| self.planes[plane].as_chunks::<BYTES>().0;
        let (rooms, _) = stacks.as_chunks_mut::<BYTES>();
        match self.planes.len() {
            2 => interleave([frames(0), frames(1)], rooms),
            3 => interleave([frames(0), frames(1), frames(2)], rooms),
            4 => interleave([frames(0), frames(1), frames(2), frames(3)], rooms),
            depth => {
                for plane in 0..depth {
                    let rooms = rooms.iter_mut().skip(plane).step_by(depth);
                    frames(plane).iter().zip(rooms).for_each(|(frame, room)| *room = *frame);
                }
            }
        }
    }

    /// Replaces the stack of one environment.
    ///
    /// # Panics
    ///
    /// When the stack has another size.
    pub fn set_stack(&mut self, env: usize, stack: &[u8]) {
        assert_eq!(stack.len(), self.stack_bytes(), "bytes of the stack");
        let bytes = self.frame_bytes;
        for (number, plane) in self.planes.iter_mut().enumerate() {
            plane[env * bytes..][..bytes].copy_from_slice(&stack[number * bytes..][..bytes]);
        }
    }

    /// Moves the frames of one row by one.
    fn push(&mut self, env: usize, frame: &[u8]) {
        let at = env * frame.len()..(env + 1) * frame.len();
        for newer in 1..self.planes.len() {
            let (before, after) = self.planes.split_at_mut(newer);
            before[newer - 1][at.clone()].copy_from_slice(&after[0][at.clone()]);
        }
        self.planes.last_mut().expect("not empty")[at].copy_from_slice(frame);
    }

    /// Begins an episode in one row.
    fn fill(&mut self, env: usize, frame: &[u8]) {
        let at = env * frame.len()..(env + 1) * frame.len();
        let (newest, others) = self.planes.split_last_mut().expect("not empty");
        newest[at.clone()].copy_from_slice(frame);
        let padding = match &self.padding {
            Padding::Reset => frame,
            Padding::Frame(padding) => padding,
        };
        for plane in others {
            plane[at.clone()].copy_from_slice(padding);
        }
    }
}

/// Writes the first frame of each plane, then the second of each, and so on.
fn interleave<const BYTES: usize, const DEPTH: usize>(
    planes: [&[[u8; BYTES]]; DEPTH],
    stacks: &mut [[u8; BYTES]],
) {
    let (stacks, _) = stacks.as_chunks_mut::<DEPTH>();
    let planes = planes.map(|plane| &plane[..stacks.len()]);
    for (env, stack) in stacks.iter_mut().enumerate() {
        for (room, plane) in stack.iter_mut().zip(planes) {
            *room = plane[env];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{SHOWN, TRANSITION};
    use super::*;

    /// Advances all rows; each frame repeats one byte.
    fn step(
        stacks: &mut FrameStack,
        kinds: &[u8],
        frames: &[u8],
        ends: (&[i64], &[i64], &[u8]),
    ) -> (Vec<u8>, Vec<u8>) {
        let wide = |numbers: &[u8]| -> Vec<u8> {
            numbers.iter().flat_map(|&number| vec![number; stacks.frame_bytes]).collect()
        };
        let places = PlaceKinds::new(None, kinds, kinds.len()).expect("all rows");
        let ended = EndedPlaces::new(ends.0, ends.1, kinds.len()).expect("places");
        let mut out = vec![9; kinds.len() * stacks.stack_bytes()];
        let mut finals = vec![9; ends.2.len() * stacks.stack_bytes()];
        let (frames, last) = (wide(frames), wide(ends.2));
        stacks.advance(places, &frames, ended, &last, &mut out, &mut finals);
        let narrow = |wide: &[u8]| wide.iter().step_by(stacks.frame_bytes).copied().collect();
        (narrow(&out), narrow(&finals))
    }

    #[test]
    fn stacks_advance_are_filled_and_stay() {
        for bytes in [1, 3, 16, 200] {
            let mut stacks = FrameStack::new(2, 3, bytes, Padding::Reset);
            let none = (&[][..], &[][..], &[][..]);
            let mut show =
                |kinds: [u8; 2], frames: [u8; 2]| step(&mut stacks, &kinds, &frames, none).0;
            assert_eq!(show([RESET, RESET], [1, 11]), [1, 1, 1, 11, 11, 11]);
            assert_eq!(show([TRANSITION, SHOWN], [2, 90]), [1, 1, 2, 11, 11, 11]);
            assert_eq!(show([TRANSITION, TRANSITION], [3, 12]), [1, 2, 3, 11, 11, 12]);
            assert_eq!(show([TRANSITION, FAILED], [4, 90]), [2, 3, 4, 11, 11, 12]);
            assert_eq!(show([TRANSITION, RESET], [5, 13]), [3, 4, 5, 13, 13, 13]);
        }
    }

    #[test]
    fn the_final_stack_is_that_of_the_old_episode() {
        let zero = Padding::Frame(vec![0; 16]);
        let mut stacks = FrameStack::new(4, 2, 16, zero);
        step(&mut stacks, &[RESET; 4], &[1, 2, 3, 4], (&[], &[], &[]));
        let kinds = [TRANSITION, TRANSITION, FAILED, TRANSITION];
        let ends = (&[1, 2, 3][..], &[1, 2][..], &[20, 30][..]);
        let (shown, finals) = step(&mut stacks, &kinds, &[10, 21, 31, 41], ends);
        assert_eq!(shown, [1, 10, 0, 21, 0, 31, 0, 41]);
        assert_eq!(finals, [2, 20, 0, 3]);
    }

    #[test]
    fn a_stack_of_one_frame_is_the_frame_and_states_are_in_order() {
        let mut stacks = FrameStack::new(1, 1, 2, Padding::Reset);
        for kind in [RESET, TRANSITION, TRANSITION] {
            assert_eq!(step(&mut stacks, &[kind], &[7 + kind], (&[], &[], &[])).0, [7 + kind]);
        }
        let mut stacks = FrameStack::new(1, 3, 1, Padding::Reset);
        step(&mut stacks, &[RESET], &[1], (&[], &[], &[]));
        step(&mut stacks, &[TRANSITION], &[2], (&[], &[], &[]));
        let mut state = [0; 3];
        stacks.write_stack(0, &mut state);
        let mut other = FrameStack::new(1, 3, 1, Padding::Reset);
        other.set_stack(0, &state);
        assert_eq!(step(&mut other, &[TRANSITION], &[3], (&[], &[], &[])).0, [1, 2, 3]);
    }
}
