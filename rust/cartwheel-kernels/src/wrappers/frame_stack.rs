//! The last frames of each environment, side by side.

use std::ops::Range;

use super::bits::each_set;
use super::places::{EndedPlaces, FAILED, Places, RESET, is_stepped};
use super::slot::Slot;
use crate::threads::{compute_rows, threads_for};

/// The contents of an episode's stack before its first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// The first frame again.
    Reset,
    /// These bytes, a frame.
    Frame(Vec<u8>),
}

/// Computes the first expression for frames whose size is known here, with a constant of that name: a
/// few instructions copy them. The second one is for the others; frames of no bytes need nothing.
macro_rules! by_size {
    ($bytes:expr, $name:ident => $known:expr, _ => $other:expr) => {
        by_size!($bytes, $name => $known, _ => $other,
            [1 2 4 8 12 16 20 24 28 32 40 44 48 64 68 96 128])
    };
    ($bytes:expr, $name:ident => $known:expr, _ => $other:expr, [$($size:literal)*]) => {
        match $bytes {
            0 => {}
            $($size => {
                const $name: usize = $size;
                $known
            })*
            _ => $other,
        }
    };
}

#[inline]
fn write<B: Slot<u8>>(bytes: &[u8], room: &mut [B]) {
    assert_eq!(bytes.len(), room.len(), "room for a frame");
    for (room, &byte) in room.iter_mut().zip(bytes) {
        *room = B::of(byte);
    }
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
    /// The frames of a batch of which some rows do not go on.
    frames: Vec<u8>,
}

impl FrameStack {
    /// Stacks of zeros, before any frame.
    ///
    /// # Panics
    ///
    /// When `depth` is 0, or a padding is not a frame.
    pub fn new(num_envs: usize, depth: usize, frame_bytes: usize, padding: Padding) -> Self {
        assert!(depth > 0, "a stack has at least one frame");
        if let Padding::Frame(frame) = &padding {
            assert_eq!(frame.len(), frame_bytes, "bytes of the padding");
        }
        let planes = vec![vec![0; num_envs * frame_bytes]; depth];
        Self { frame_bytes, padding, num_envs, planes, frames: Vec::new() }
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
    /// `read_frames` writes the frames of all places into the room that it is given. Every byte of
    /// `stacks` and `final_stacks` is written.
    ///
    /// # Panics
    ///
    /// When the slices do not have an entry for each place, or each final frame.
    pub fn advance<B: Slot<u8> + Send>(
        &mut self,
        places: Places<'_>,
        read_frames: impl FnOnce(&mut [u8]),
        ended: EndedPlaces<'_>,
        finals: &[u8],
        stacks: &mut [B],
        final_stacks: &mut [B],
    ) {
        let (bytes, stack) = (self.frame_bytes, self.stack_bytes());
        assert_eq!(stacks.len(), places.len() * stack, "room for stacks");
        assert_eq!(finals.len(), ended.num_finals() * bytes, "final frames");
        assert_eq!(final_stacks.len(), ended.num_finals() * stack, "room for final stacks");
        if bytes == 0 {
            return;
        }
        for (number, place) in ended.finals().enumerate() {
            let (env, room) = (places.row(place), &mut final_stacks[number * stack..][..stack]);
            if places.kinds()[place] == FAILED {
                self.write_stack(env, room);
                continue;
            }
            let (older, newest) = room.split_at_mut(stack - bytes);
            self.write_frames(&self.planes[1..], env, older);
            write(&finals[number * bytes..][..bytes], newest);
        }
        if places.are_all() && places.all_are(|kind| is_stepped(kind) || kind == RESET) {
            self.planes.rotate_left(1);
            read_frames(self.planes.last_mut().expect("not empty"));
            self.begin_all(places.kinds(), ended);
        } else {
            let mut frames = std::mem::take(&mut self.frames);
            frames.resize(places.len() * bytes, 0);
            read_frames(&mut frames);
            let mut walk = ended.walk();
            let rows = frames.chunks_exact(bytes).zip(places.kinds());
            for (place, (frame, &kind)) in rows.enumerate() {
                let (env, begins) = (places.row(place), walk.at(place) || kind == RESET);
                if begins || is_stepped(kind) {
                    self.push(env, frame);
                }
                if begins {
                    self.begin(env);
                }
            }
            self.frames = frames;
        }
        if places.are_all() {
            self.write_all(stacks);
        } else {
            for (place, room) in stacks.chunks_exact_mut(stack).enumerate() {
                self.write_stack(places.row(place), room);
            }
        }
    }

    /// Writes the stack of one environment: every byte of the room.
    ///
    /// # Panics
    ///
    /// When the room does not have the size of a stack.
    fn write_stack<B: Slot<u8>>(&self, env: usize, stack: &mut [B]) {
        self.write_frames(&self.planes, env, stack);
    }

    /// Writes the frames of one environment in some planes.
    fn write_frames<B: Slot<u8>>(&self, planes: &[Vec<u8>], env: usize, rooms: &mut [B]) {
        let bytes = self.frame_bytes;
        assert_eq!(rooms.len(), planes.len() * bytes, "room for frames");
        for (plane, room) in planes.iter().zip(rooms.chunks_exact_mut(bytes)) {
            write(&plane[env * bytes..][..bytes], room);
        }
    }

    /// Writes the stacks of all environments, one after the other: every byte of the room.
    ///
    /// # Panics
    ///
    /// When the room does not have the size of all stacks.
    pub fn write_all<B: Slot<u8> + Send>(&self, stacks: &mut [B]) {
        assert_eq!(stacks.len(), self.num_envs * self.stack_bytes(), "room for all stacks");
        match threads_for(stacks.len()) {
            1 => self.write_some(0..self.num_envs, stacks),
            threads => compute_rows(threads, self.num_envs, stacks, |envs, rooms| {
                self.write_some(envs, rooms);
            }),
        }
    }

    /// Writes the stacks of some environments, one after the other.
    fn write_some<B: Slot<u8>>(&self, envs: Range<usize>, stacks: &mut [B]) {
        by_size!(self.frame_bytes, BYTES => self.write_small::<B, BYTES>(envs, stacks), _ => {
            for (env, room) in envs.zip(stacks.chunks_exact_mut(self.stack_bytes())) {
                self.write_stack(env, room);
            }
        });
    }

    /// [`write_some`](Self::write_some) for frames of `BYTES` bytes.
    fn write_small<B: Slot<u8>, const BYTES: usize>(&self, envs: Range<usize>, stacks: &mut [B]) {
        let frames = |plane: usize| &self.planes[plane].as_chunks::<BYTES>().0[envs.clone()];
        let (rooms, _) = stacks.as_chunks_mut::<BYTES>();
        match self.planes.len() {
            2 => interleave([frames(0), frames(1)], rooms),
            3 => interleave([frames(0), frames(1), frames(2)], rooms),
            4 => interleave([frames(0), frames(1), frames(2), frames(3)], rooms),
            depth => {
                for plane in 0..depth {
                    let rooms = rooms.iter_mut().skip(plane).step_by(depth);
                    for (frame, room) in frames(plane).iter().zip(rooms) {
                        write(frame, room);
                    }
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

    /// Begins an episode in each row that was reset, or ended one, of a batch of all rows.
    fn begin_all(&mut self, kinds: &[u8], ended: EndedPlaces<'_>) {
        by_size!(
            self.frame_bytes,
            BYTES => self.begin_each(kinds, ended, Self::begin_small::<BYTES>),
            _ => self.begin_each(kinds, ended, Self::begin)
        );
    }

    #[inline(always)]
    fn begin_each(
        &mut self,
        kinds: &[u8],
        ended: EndedPlaces<'_>,
        begin: impl Fn(&mut Self, usize),
    ) {
        each_set(kinds, kinds, |env| {
            if kinds[env] == RESET {
                begin(self, env);
            }
        });
        ended.places().for_each(|env| begin(self, env));
    }

    /// [`begin`](Self::begin) for frames of `BYTES` bytes.
    fn begin_small<const BYTES: usize>(&mut self, env: usize) {
        let (newest, others) = self.planes.split_last_mut().expect("not empty");
        let first = match &self.padding {
            Padding::Reset => newest.as_chunks::<BYTES>().0[env],
            Padding::Frame(padding) => *padding.first_chunk().expect("a frame"),
        };
        for plane in others {
            plane.as_chunks_mut().0[env] = first;
        }
    }

    /// Begins an episode in one row, whose newest frame is the first one.
    fn begin(&mut self, env: usize) {
        let at = env * self.frame_bytes..(env + 1) * self.frame_bytes;
        let (newest, others) = self.planes.split_last_mut().expect("not empty");
        let padding = match &self.padding {
            Padding::Reset => &newest[at.clone()],
            Padding::Frame(padding) => padding,
        };
        for plane in others {
            plane[at.clone()].copy_from_slice(padding);
        }
    }
}

/// Writes the first frame of each plane, then the second of each, and so on.
fn interleave<B: Slot<u8>, const BYTES: usize, const DEPTH: usize>(
    planes: [&[[u8; BYTES]]; DEPTH],
    stacks: &mut [[B; BYTES]],
) {
    let (stacks, _) = stacks.as_chunks_mut::<DEPTH>();
    let planes = planes.map(|plane| &plane[..stacks.len()]);
    // Not an iterator of stacks, with which the check of `env` would stay.
    for env in 0..stacks.len() {
        for (room, plane) in stacks[env].iter_mut().zip(planes) {
            write(&plane[env], room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::{SHOWN, TRANSITION};
    use super::*;

    /// The value of a byte that is never written.
    const UNWRITTEN: u8 = 255;

    /// The byte that a frame repeats.
    fn every_byte(frame: &[u8]) -> u8 {
        assert!(frame.iter().all(|&byte| byte == frame[0] && byte != UNWRITTEN), "{frame:?}");
        frame[0]
    }

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
        let places = Places::new(None, kinds, kinds.len());
        let ended = EndedPlaces::new(ends.0, ends.1, kinds.len()).expect("places");
        let mut out = vec![UNWRITTEN; kinds.len() * stacks.stack_bytes()];
        let mut finals = vec![UNWRITTEN; ends.2.len() * stacks.stack_bytes()];
        let (frames, last) = (wide(frames), wide(ends.2));
        let read = |room: &mut [u8]| room.copy_from_slice(&frames);
        stacks.advance(places, read, ended, &last, &mut out, &mut finals);
        let narrow = |wide: &[u8]| wide.chunks(stacks.frame_bytes).map(every_byte).collect();
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
    fn threads_that_share_many_bytes_write_each_stack() {
        for (num_envs, bytes) in [(5, 300_000), (300_001, 4)] {
            let mut stacks = FrameStack::new(num_envs, 2, bytes, Padding::Reset);
            for (plane, name) in stacks.planes.iter_mut().zip([1, 101]) {
                for (env, frame) in plane.chunks_exact_mut(bytes).enumerate() {
                    frame.fill(name + u8::try_from(env % 97).expect("small"));
                }
            }
            let mut all = vec![UNWRITTEN; num_envs * stacks.stack_bytes()];
            stacks.write_all(&mut all);
            let mut one = vec![UNWRITTEN; stacks.stack_bytes()];
            for (env, stack) in all.chunks_exact(one.len()).enumerate() {
                stacks.write_stack(env, &mut one);
                assert!(stack == one, "{env} of {num_envs}");
            }
        }
    }

    #[test]
    fn the_final_stack_is_that_of_the_old_episode() {
        for bytes in [3, 16] {
            let zero = Padding::Frame(vec![0; bytes]);
            let mut stacks = FrameStack::new(4, 2, bytes, zero);
            step(&mut stacks, &[RESET; 4], &[1, 2, 3, 4], (&[], &[], &[]));
            let kinds = [TRANSITION, TRANSITION, FAILED, TRANSITION];
            let ends = (&[1, 2, 3][..], &[1, 2][..], &[20, 30][..]);
            let (shown, finals) = step(&mut stacks, &kinds, &[10, 21, 31, 41], ends);
            assert_eq!(shown, [1, 10, 0, 21, 0, 31, 0, 41]);
            assert_eq!(finals, [2, 20, 0, 3]);
            let ends = (&[0, 3][..], &[0][..], &[50][..]);
            let (shown, finals) = step(&mut stacks, &[TRANSITION; 4], &[11, 22, 32, 42], ends);
            assert_eq!(shown, [0, 11, 21, 22, 31, 32, 0, 42]);
            assert_eq!(finals, [10, 50]);
        }
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
        let mut state = [UNWRITTEN; 3];
        stacks.write_all(&mut state);
        let mut other = FrameStack::new(1, 3, 1, Padding::Reset);
        other.set_stack(0, &state);
        assert_eq!(step(&mut other, &[TRANSITION], &[3], (&[], &[], &[])).0, [1, 2, 3]);
    }
}
