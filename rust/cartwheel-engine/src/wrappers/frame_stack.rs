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
#[derive(Debug, Clone)]
pub struct FrameStack {
    depth: usize,
    frame_bytes: usize,
    padding: Padding,
    /// A ring of `depth` frames for each environment.
    rings: Vec<u8>,
    /// The place of each ring's oldest frame.
    oldest: Vec<usize>,
}

/// Copies frames, of which the size may be known when this is compiled.
trait Copier {
    /// Copies frames that lie one after the other.
    fn copy(self, from: &[u8], to: &mut [u8]);
}

/// Frames of `BYTES` bytes: a copy is a few instructions.
#[derive(Clone, Copy)]
struct Small<const BYTES: usize>;

impl<const BYTES: usize> Copier for Small<BYTES> {
    #[inline]
    fn copy(self, from: &[u8], to: &mut [u8]) {
        let (frames, _) = from.as_chunks::<BYTES>();
        let (rooms, _) = to.as_chunks_mut::<BYTES>();
        for (frame, room) in frames.iter().zip(rooms) {
            *room = *frame;
        }
    }
}

/// Frames of any size.
#[derive(Clone, Copy)]
struct Any;

impl Copier for Any {
    #[inline]
    fn copy(self, from: &[u8], to: &mut [u8]) {
        to.copy_from_slice(from);
    }
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
        let (rings, oldest) = (vec![0; num_envs * depth * frame_bytes], vec![0; num_envs]);
        Self { depth, frame_bytes, padding, rings, oldest }
    }

    /// The bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// The bytes of a stack.
    pub fn stack_bytes(&self) -> usize {
        self.depth * self.frame_bytes
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
        ends: EndedPlaces<'_>,
        finals: &[u8],
        stacks: &mut [u8],
        final_stacks: &mut [u8],
    ) {
        let (bytes, stack) = (self.frame_bytes, self.stack_bytes());
        assert_eq!(frames.len(), places.len() * bytes, "frames");
        assert_eq!(stacks.len(), places.len() * stack, "room for stacks");
        assert_eq!(finals.len(), ends.num_finals() * bytes, "final frames");
        assert_eq!(final_stacks.len(), ends.num_finals() * stack, "room for final stacks");
        if bytes == 0 {
            return;
        }
        for (number, place) in ends.finals().enumerate() {
            let env = places.env(place);
            if places.kinds()[place] != FAILED {
                self.push(env, &finals[number * bytes..][..bytes], Any);
            }
            self.write(env, &mut final_stacks[number * stack..][..stack], Any);
        }
        macro_rules! by_size {
            ($($size:literal)*) => {
                match bytes {
                    $($size => self.advance_rows(places, frames, ends, stacks, Small::<$size>),)*
                    _ => self.advance_rows(places, frames, ends, stacks, Any),
                }
            };
        }
        by_size!(1 2 4 8 12 16 20 24 28 32 40 44 48 64 68 96 128);
    }

    fn advance_rows(
        &mut self,
        places: PlaceKinds<'_>,
        frames: &[u8],
        ends: EndedPlaces<'_>,
        stacks: &mut [u8],
        copier: impl Copier + Copy,
    ) {
        let mut walk = ends.walk();
        let rows = frames.chunks_exact(self.frame_bytes);
        let rows = rows.zip(stacks.chunks_exact_mut(self.stack_bytes()));
        for (place, (frame, stack)) in rows.enumerate() {
            let (env, kind) = (places.env(place), places.kinds()[place]);
            if walk.at(place).is_some() || kind == RESET {
                self.fill(env, frame, copier);
            } else if is_stepped(kind) {
                self.push(env, frame, copier);
            }
            self.write(env, stack, copier);
        }
    }

    /// The stack of one environment.
    ///
    /// # Panics
    ///
    /// When the room does not have the size of a stack.
    pub fn write_stack(&self, env: usize, stack: &mut [u8]) {
        assert_eq!(stack.len(), self.stack_bytes(), "room for a stack");
        if self.frame_bytes > 0 {
            self.write(env, stack, Any);
        }
    }

    /// Replaces the stack of one environment.
    ///
    /// # Panics
    ///
    /// When the stack has another size.
    pub fn set_stack(&mut self, env: usize, stack: &[u8]) {
        let at = env * stack.len();
        assert_eq!(stack.len(), self.stack_bytes(), "bytes of the stack");
        self.rings[at..at + stack.len()].copy_from_slice(stack);
        self.oldest[env] = 0;
    }

    #[inline]
    fn push(&mut self, env: usize, frame: &[u8], copier: impl Copier) {
        let oldest = self.oldest[env];
        let at = (env * self.depth + oldest) * self.frame_bytes;
        copier.copy(frame, &mut self.rings[at..at + self.frame_bytes]);
        self.oldest[env] = if oldest + 1 == self.depth { 0 } else { oldest + 1 };
    }

    fn fill(&mut self, env: usize, frame: &[u8], copier: impl Copier + Copy) {
        let at = env * self.stack_bytes();
        self.oldest[env] = 0;
        let ring = self.rings[at..at + self.depth * self.frame_bytes].chunks_exact_mut(frame.len());
        for (number, room) in ring.enumerate() {
            match &self.padding {
                Padding::Frame(padding) if number + 1 < self.depth => copier.copy(padding, room),
                _ => copier.copy(frame, room),
            }
        }
    }

    #[inline]
    fn write(&self, env: usize, stack: &mut [u8], copier: impl Copier + Copy) {
        let at = env * stack.len();
        let ring = &self.rings[at..at + stack.len()];
        let (newer, older) = ring.split_at(self.oldest[env] * self.frame_bytes);
        let (first, then) = stack.split_at_mut(older.len());
        copier.copy(older, first);
        copier.copy(newer, then);
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
