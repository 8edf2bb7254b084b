//! A reset that takes long holds up the rows of no other worker.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cartwheel::{Env, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_engine::Call;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::space::{ActionTag, DType};

use super::PLUGIN;
use crate::support::{Envs, bytes_of, kind, settings};

/// A gate at which resets wait.
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    Open,
    Closed,
    /// Closed, and a reset waits.
    Occupied,
}

/// One for each test.
pub(super) static GATES: [Gate; 8] =
    [const { Gate { state: Mutex::new(State::Open), changed: Condvar::new() } }; 8];

impl Gate {
    pub(super) fn set(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.changed.notify_all();
    }

    /// Waits until a reset waits.
    pub(super) fn await_reset(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| *state != State::Occupied).unwrap());
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if *state == State::Closed {
            *state = State::Occupied;
            self.changed.notify_all();
        }
        drop(self.changed.wait_while(state, |state| *state != State::Open).unwrap());
    }
}

/// Ends with the action 1; its resets pass a gate.
pub(crate) struct Gated<const BLOCK: usize> {
    gate: usize,
    steps: i64,
}

cartwheel::options! {
    pub(crate) struct Options {
        gate: usize,
    }
}

impl<const BLOCK: usize> Env for Gated<BLOCK> {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    const BLOCK: usize = BLOCK;

    fn spaces(_: &Options, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(1000), action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self { gate: options.gate, steps: 0 })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        GATES[self.gate].pass();
        self.steps = 0;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.steps += 1;
        Ok(Transition { reward: 1.0, terminated: action == 1, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.steps;
    }

    fn info(&self) {}
}

fn send(envs: &mut Envs, rows: &[usize], action: i64) {
    let mut sending = envs.pool.sending(Call::Step, Some(rows)).unwrap();
    let fill = |sent: std::ops::Range<usize>, room: &mut [u8]| {
        room.copy_from_slice(&bytes_of(&vec![action; sent.len()]));
        Ok(())
    };
    sending.fill_actions(0, ActionTag::Array(DType::I64), fill).unwrap();
    sending.send(0).unwrap();
}

fn receive(envs: &mut Envs) -> Vec<usize> {
    envs.pool.receive(Some(Duration::from_secs(60)), &mut || false).unwrap().rows.iter().collect()
}

/// Rows 0 and 1 belong to one worker, rows 2 and 3 to another one; batches have two rows.
fn others_arrive(id: &str, gate: usize, mode: AutoresetMode) {
    let kind = kind(&PLUGIN, id, &format!("{{\"gate\": {gate}}}")).unwrap();
    let gate = &GATES[gate];
    let mut envs = Envs::with_batches(&kind, 4, 2, settings(mode), 2);
    envs.pool.sending(Call::Reset, Some(&[0, 1, 2, 3])).unwrap().send(0).unwrap();
    (0..2).for_each(|_| drop(receive(&mut envs)));
    // Many quick rows first: then rows are stepped together.
    for _ in 0..50 {
        send(&mut envs, &[0, 1, 2, 3], 0);
        (0..2).for_each(|_| drop(receive(&mut envs)));
    }
    if mode != AutoresetMode::SameStep {
        send(&mut envs, &[0, 1], 1);
        receive(&mut envs);
    }
    gate.set(State::Closed);
    if mode == AutoresetMode::Disabled {
        envs.pool.sending(Call::Reset, Some(&[0])).unwrap().send(0).unwrap();
    } else {
        send(&mut envs, &[0], i64::from(mode == AutoresetMode::SameStep));
    }
    gate.await_reset();
    for _ in 0..3 {
        send(&mut envs, &[3, 2], 0);
        let mut rows = receive(&mut envs);
        rows.sort_unstable();
        assert_eq!(rows, [2, 3], "{mode:?}: row 0 has no place yet");
    }
    gate.set(State::Open);
    send(&mut envs, &[2], 0);
    let mut rows = receive(&mut envs);
    rows.sort_unstable();
    assert_eq!(rows, [0, 2]);
}

#[test]
fn a_slow_reset_of_rows_that_are_stepped_singly_holds_up_no_other_worker() {
    others_arrive("test/Gated-v1", 0, AutoresetMode::SameStep);
    others_arrive("test/Gated-v1", 1, AutoresetMode::NextStep);
    others_arrive("test/Gated-v1", 2, AutoresetMode::Disabled);
}

#[test]
fn a_slow_reset_of_rows_that_are_stepped_in_blocks_holds_up_no_other_worker() {
    others_arrive("test/Gated-v4", 3, AutoresetMode::SameStep);
    others_arrive("test/Gated-v4", 4, AutoresetMode::NextStep);
    others_arrive("test/Gated-v4", 5, AutoresetMode::Disabled);
}
