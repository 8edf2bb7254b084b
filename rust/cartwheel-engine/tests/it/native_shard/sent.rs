//! Rows that are sent and received in parts have the same episodes as in full batches.

use std::collections::HashMap;
use std::time::Duration;

use cartwheel::{ParameterValue, Rng};
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::episodes::Episodes;
use cartwheel_engine::native::RowReset;
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::{Call, Error};

use super::{MODES, recipe, set_all, value};
use crate::support::{Envs, bytes_of, limited};

const ROWS: usize = 13;
const STEPS: usize = 40;

/// Observation, reward and flags of one row.
pub(super) type RowStep = (i64, u64, bool, bool);

/// The action of step number `step` of a row; never the one that panics.
fn action(row: usize, step: usize) -> i64 {
    Rng::from_seed((row * 1000 + step) as u64).integers(0..9)
}

/// The row steps of every row when all rows are stepped together.
fn expected(mode: AutoresetMode) -> Vec<Vec<RowStep>> {
    let mut envs = Envs::new(&recipe(), ROWS, 0, limited(mode, 5));
    let mut row_steps = vec![Vec::new(); ROWS];
    let mut batch = envs.seed(7);
    for step in 0..=STEPS {
        let (observations, rewards) = (batch.integers(0), batch.rewards());
        let (terminations, truncations) = (batch.terminations(), batch.truncations());
        for (row, row_steps) in row_steps.iter_mut().enumerate() {
            let flags = (terminations[row], truncations[row]);
            row_steps.push((observations[row], rewards[row].to_bits(), flags.0, flags.1));
        }
        let actions: Vec<i64> = (0..ROWS).map(|row| action(row, step)).collect();
        batch = envs.step(&actions).unwrap();
    }
    row_steps
}

fn receive(envs: &mut Envs) -> Received {
    envs.pool.receive(Some(Duration::from_secs(30)), &mut || false).unwrap()
}

pub(super) fn row_steps(received: &Received) -> Vec<(usize, RowStep)> {
    let lease = received.lease.as_ref().unwrap();
    let layout = lease.layout();
    let read = |offset: usize, size: usize, place: usize| {
        let mut bytes = [0; 8];
        lease.read(offset + size * place, &mut bytes[..size]);
        bytes
    };
    let frame = |(place, row): (usize, usize)| {
        let observation = i64::from_ne_bytes(read(layout.leaf_offset(0), 8, place));
        let reward = u64::from_ne_bytes(read(layout.rewards_offset(), 8, place));
        let terminated = read(layout.terminations_offset(), 1, place)[0] != 0;
        let truncated = read(layout.truncations_offset(), 1, place)[0] != 0;
        (row, (observation, reward, terminated, truncated))
    };
    (lease.first()..).zip(received.rows.iter()).map(frame).collect()
}

pub(super) fn send_steps(envs: &mut Envs, rows: &[usize], actions: &[i64]) -> Result<(), Error> {
    let mut sending = envs.pool.sending(Call::Step, Some(rows))?;
    sending.fill_actions(0, ActionTag::Array(DType::I64), |sent, room| {
        room.copy_from_slice(&bytes_of(&actions[sent]));
        Ok(())
    })?;
    sending.send(0)
}

pub(super) fn send_resets(envs: &mut Envs, rows: &[usize]) {
    envs.pool.sending(Call::Reset, Some(rows)).unwrap().send(0).unwrap();
}

/// Gives each row a seed and sends all rows for a reset.
pub(super) fn begin(envs: &mut Envs) {
    let mut rows = Vec::new();
    for (shard, mailbox) in envs.pool.shards().iter().zip(&envs.mailboxes) {
        for row in shard.clone() {
            mailbox.post_row_reset(row, RowReset::Seed(7 + row as u128), None);
            rows.push(row);
        }
    }
    send_resets(envs, &rows);
}

/// Steps every row `STEPS` times; sends received rows again, some at once and some later.
fn play(mode: AutoresetMode, workers: usize, batch_size: usize) -> Vec<Vec<RowStep>> {
    let mut envs = Envs::with_batches(&recipe(), ROWS, workers, limited(mode, 5), batch_size);
    begin(&mut envs);
    let (mut seen, mut held) = (vec![Vec::new(); ROWS], Vec::new());
    let mut rng = Rng::from_seed(workers as u64);
    while envs.pool.in_flight().len() + held.len() > 0 {
        if !envs.pool.in_flight().is_empty() {
            let received = receive(&mut envs);
            assert!(received.rows.iter().len() <= batch_size, "no more than a batch");
            for (row, frame) in row_steps(&received) {
                seen[row].push(frame);
                held.push(row);
            }
        }
        held.retain(|&row| seen[row].len() <= STEPS);
        // Two sends, of rows in any order.
        for _ in 0..2 {
            let mut rows: Vec<usize> = Vec::new();
            while !held.is_empty() && rng.random() < 0.8 {
                let last = i64::try_from(held.len()).unwrap();
                let at = usize::try_from(rng.integers(0..last)).unwrap();
                rows.push(held.swap_remove(at));
            }
            let actions: Vec<i64> =
                rows.iter().map(|&row| action(row, seen[row].len() - 1)).collect();
            send_steps(&mut envs, &rows, &actions).unwrap();
        }
    }
    seen
}

#[test]
fn rows_sent_in_parts_have_the_same_episodes_in_every_mode_and_executor() {
    for mode in MODES {
        let expected = expected(mode);
        for (workers, batch_size) in [(0, 13), (0, 4), (1, 1), (3, 5), (3, 13), (7, 12)] {
            let seen = play(mode, workers, batch_size);
            for (row, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
                assert_eq!(
                    seen, expected,
                    "row {row}, {mode:?}, {workers} workers, batches of {batch_size}"
                );
            }
        }
    }
}

#[test]
fn actions_that_are_refused_while_they_are_stored_are_not_sent() {
    let mut envs = Envs::with_batches(&recipe(), 5, 0, limited(AutoresetMode::NextStep, 100), 5);
    let start = envs.seed(3).integers(0);
    let (rows, actions) = ([4, 1, 2], [1_i64, 1, 7]);
    let mut sending = envs.pool.sending(Call::Step, Some(&rows)).unwrap();
    let mut filled = Vec::new();
    let refused = sending.fill_actions(0, ActionTag::Array(DType::I64), |sent, room| {
        filled.push(sent.clone());
        room.copy_from_slice(&bytes_of(&actions[sent]));
        if room.contains(&7) { Err(Error::BadPlan("a seven".to_owned())) } else { Ok(()) }
    });
    assert_eq!(refused.unwrap_err().to_string(), "a seven");
    assert_eq!(filled, [0..1, 1..3], "neighbors together");
    assert!(envs.pool.in_flight().is_empty());
    send_steps(&mut envs, &rows, &[1; 3]).unwrap();
    let received: Vec<_> = row_steps(&receive(&mut envs)).into_iter().map(|row| row.1.0).collect();
    let mut undisturbed = Envs::new(&recipe(), 5, 0, limited(AutoresetMode::NextStep, 100));
    assert_eq!(undisturbed.seed(3).integers(0), start);
    let expected = undisturbed.step(&[1; 5]).unwrap().integers(0);
    assert_eq!(received, rows.map(|row| expected[row]));
}

/// Where the elements of an earlier step are, others may be stored while these rows are in flight.
#[test]
fn rows_that_are_sent_without_actions_do_not_step_with_those_of_an_earlier_step() {
    for workers in [0, 2] {
        let settings = limited(AutoresetMode::NextStep, 9);
        let mut envs = Envs::with_batches(&recipe(), 4, workers, settings, 2);
        send_resets(&mut envs, &[0, 1, 2, 3]);
        (0..2).for_each(|_| drop(receive(&mut envs)));
        send_steps(&mut envs, &[0, 1, 2, 3], &[1; 4]).unwrap();
        (0..2).for_each(|_| drop(receive(&mut envs)));
        envs.pool.sending(Call::Step, Some(&[1, 2])).unwrap().send(0).unwrap();
        receive(&mut envs);
        for row in [1, 2] {
            let fault = envs.mailboxes[envs.pool.shard_of(row)].take_fault(row).unwrap().error;
            assert!(matches!(fault, Error::WrongActionDType { got: None, .. }), "{fault}");
        }
    }
}

#[test]
fn rows_that_are_sent_actions_of_another_dtype_fail_alone() {
    for workers in [0, 2] {
        let settings = limited(AutoresetMode::NextStep, 9);
        let mut envs = Envs::with_batches(&recipe(), 4, workers, settings, 2);
        send_resets(&mut envs, &[0, 1, 2, 3]);
        (0..2).for_each(|_| drop(receive(&mut envs)));
        let mut sending = envs.pool.sending(Call::Step, Some(&[1, 2])).unwrap();
        let zeros = |_, room: &mut [u8]| {
            room.fill(0);
            Ok(())
        };
        sending.fill_actions(0, ActionTag::Array(DType::F64), zeros).unwrap();
        sending.send(0).unwrap();
        receive(&mut envs);
        send_steps(&mut envs, &[0, 3], &[1; 2]).unwrap();
        receive(&mut envs);
        let faults = (0..4).map(|row| {
            let fault = envs.mailboxes[envs.pool.shard_of(row)].take_fault(row);
            fault.map(|fault| fault.error.to_string())
        });
        let wrong = Some("actions of leaf 0 must be int64, got float64".to_owned());
        assert_eq!(faults.collect::<Vec<_>>(), [None, wrong.clone(), wrong, None]);
    }
}

#[test]
fn rows_are_in_the_order_of_their_sends_if_a_batch_has_room_for_all() {
    let mut envs = Envs::new(&recipe(), 6, 3, limited(AutoresetMode::NextStep, 100));
    envs.seed(1);
    send_steps(&mut envs, &[5, 0, 1], &[1; 3]).unwrap();
    send_steps(&mut envs, &[3], &[1]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [5, 0, 1, 3]);
    send_steps(&mut envs, &[2, 4], &[1; 2]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [2, 4]);
}

#[test]
fn invalid_sends_are_refused_and_change_nothing() {
    let mut envs = Envs::with_batches(&recipe(), 4, 0, limited(AutoresetMode::NextStep, 9), 2);
    send_resets(&mut envs, &[0, 1, 2, 3]);
    let flying = envs.pool.sending(Call::Step, Some(&[2]));
    assert!(matches!(flying, Err(Error::InFlight { rows }) if rows == [2]));
    assert!(matches!(envs.pool.begin(Call::Step, 0), Err(Error::InFlight { .. })));
    receive(&mut envs);
    receive(&mut envs);
    let nothing = envs.pool.receive(None, &mut || false);
    assert!(matches!(nothing, Err(Error::NothingInFlight)));
    let missing = envs.pool.sending(Call::Step, Some(&[4]));
    assert!(matches!(missing, Err(Error::NoSuchRow { row: 4, rows: 4 })));
    let twice = envs.pool.sending(Call::Step, Some(&[1, 0, 1]));
    assert!(matches!(twice, Err(Error::NamedTwice(1))));
    assert!(envs.pool.in_flight().is_empty());
    send_steps(&mut envs, &[1, 0], &[1, 1]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [1, 0]);
}

#[test]
fn a_row_that_panics_is_named_and_the_others_arrive() {
    let mut envs = Envs::with_batches(&recipe(), 4, 2, limited(AutoresetMode::NextStep, 9), 2);
    send_resets(&mut envs, &[0, 1, 2, 3]);
    receive(&mut envs);
    receive(&mut envs);
    send_steps(&mut envs, &[0, 1, 2, 3], &[1, 9, 1, 1]).unwrap();
    let mut failed = HashMap::new();
    for _ in 0..2 {
        let received = receive(&mut envs);
        for (place, row) in received.rows.iter().enumerate() {
            failed.insert(row, received.failed.contains(&place));
        }
    }
    assert_eq!(failed, HashMap::from([(0, false), (1, true), (2, false), (3, false)]));
    let fault = envs.mailboxes[0].take_fault(1).unwrap();
    assert!(matches!(fault.error, Error::Panicked { row: 1, .. }));
    assert!(matches!(send_steps(&mut envs, &[1], &[0]), Err(Error::NeedsReset { .. })));
    send_resets(&mut envs, &[1]);
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [1]);
}

#[test]
fn a_batch_keeps_its_slab_while_further_ones_are_received() {
    let mut envs = Envs::with_batches(&recipe(), 6, 2, limited(AutoresetMode::NextStep, 9), 2);
    send_resets(&mut envs, &[0, 1, 2, 3, 4, 5]);
    let kept: Vec<_> = (0..3).map(|_| receive(&mut envs)).collect();
    let before: Vec<_> = kept.iter().map(row_steps).collect();
    for _ in 0..50 {
        let rows: Vec<usize> = (0..6).collect();
        send_steps(&mut envs, &rows, &[0; 6]).unwrap();
        (0..3).for_each(|_| drop(receive(&mut envs)));
    }
    assert_eq!(kept.iter().map(row_steps).collect::<Vec<_>>(), before);
    assert!(
        envs.pool.slabs().reserved() <= 3 + 3 + 3,
        "three kept, three open, three to copy from"
    );
}

#[test]
fn a_row_that_was_never_reset_is_not_sent() {
    let mut envs = Envs::new(&recipe(), 3, 0, limited(AutoresetMode::NextStep, 5));
    let how = vec![RowReset::Leave, RowReset::Seed(3), RowReset::Leave];
    envs.reset(how, None);
    let refused = send_steps(&mut envs, &[1, 2], &[0; 2]).unwrap_err();
    assert!(matches!(refused, Error::NeverReset { rows } if rows == [2]));
    send_steps(&mut envs, &[1], &[0]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [1]);
    send_resets(&mut envs, &[2]);
    receive(&mut envs);
    send_steps(&mut envs, &[2, 1], &[0; 2]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [2, 1]);
}

#[test]
fn rows_that_were_not_sent_show_their_last_observation_whatever_was_set() {
    let mut envs = Envs::new(&recipe(), 4, 0, limited(AutoresetMode::NextStep, 9));
    let start = envs.seed(5).integers(0);
    let values = [500, 600, 700, 800].map(|left| value(ParameterValue::Int(left)));
    envs.ask(set_all("left", values)).unwrap();
    send_steps(&mut envs, &[2], &[0]).unwrap();
    assert_eq!(row_steps(&receive(&mut envs))[0].1.0, 699);
    send_resets(&mut envs, &[1]);
    let fresh = row_steps(&receive(&mut envs))[0].1.0;
    let how = vec![RowReset::Leave, RowReset::Leave, RowReset::Leave, RowReset::Seed(1)];
    assert_eq!(envs.reset(how, None).integers(0)[..3], [start[0], fresh, 699]);
}

#[test]
fn a_frozen_row_that_is_sent_shows_its_last_frame_whatever_was_set() {
    let mut envs = Envs::new(&recipe(), 4, 0, limited(AutoresetMode::Disabled, 99));
    envs.seed(5);
    envs.step(&[0, 0, 8, 0]).unwrap();
    let values = [500, 600, 700, 800].map(|left| value(ParameterValue::Int(left)));
    envs.ask(set_all("left", values)).unwrap();
    send_steps(&mut envs, &[3, 2], &[0; 2]).unwrap();
    let received = row_steps(&receive(&mut envs));
    assert_eq!(
        received.iter().map(|(row, frame)| (*row, frame.0)).collect::<Vec<_>>(),
        [(3, 799), (2, 0)]
    );
}

/// Steps of the episode, counted from the flags of its row steps.
fn counted(mode: AutoresetMode, row_steps: &[RowStep]) -> Vec<i32> {
    let (mut elapsed, mut ended) = (0, false);
    let mut counted = vec![0];
    for frame in &row_steps[1..] {
        elapsed = match (ended, mode) {
            (false, _) => elapsed + 1,
            (true, AutoresetMode::NextStep) => 0,
            (true, AutoresetMode::SameStep) => 1,
            (true, AutoresetMode::Disabled) => elapsed, // frozen
        };
        ended = frame.2 || frame.3;
        counted.push(elapsed);
    }
    counted
}

#[test]
fn the_steps_of_each_episode_are_counted_as_they_are_received() {
    for mode in MODES {
        let row_steps = expected(mode);
        let counts: Vec<_> = row_steps.iter().map(|row_steps| counted(mode, row_steps)).collect();
        let at = |step: usize| counts.iter().map(|counts| counts[step]).collect::<Vec<_>>();
        let mut envs = Envs::new(&recipe(), ROWS, 0, limited(mode, 5));
        let mut episodes = Episodes::new(mode, ROWS);
        envs.seed(7);
        let all: Vec<usize> = (0..ROWS).collect();
        episodes.reset(&all);
        for step in 0..STEPS {
            let actions: Vec<i64> = all.iter().map(|&row| action(row, step)).collect();
            if step % 3 == 0 {
                // In two parts, the second one first.
                let (first, second) = all.split_at(5);
                send_steps(&mut envs, second, &actions[5..]).unwrap();
                send_steps(&mut envs, first, &actions[..5]).unwrap();
                let received = receive(&mut envs);
                episodes.received(received.lease.as_ref().unwrap(), received.rows.sent().unwrap());
            } else {
                episodes.stepped(&envs.step(&actions).unwrap().lease);
            }
            assert_eq!(episodes.elapsed(), at(step + 1), "{mode:?}, step {step}");
        }
    }
}

#[test]
fn rows_without_an_episode_are_refused_until_they_are_reset() {
    let mut envs = Envs::new(&recipe(), 4, 0, limited(AutoresetMode::NextStep, 5));
    let mut episodes = Episodes::new(AutoresetMode::NextStep, 4);
    let reset = |envs: &mut Envs, episodes: &mut Episodes, rows: &[usize]| {
        send_resets(envs, rows);
        episodes.resets_sent(rows);
        let received = receive(envs);
        episodes.received(received.lease.as_ref().unwrap(), received.rows.sent().unwrap());
    };
    let refused = |episodes: &Episodes, rows: &[usize]| match episodes.check(rows.iter().copied()) {
        Err(Error::NoEpisode { rows }) => rows,
        Err(error) => panic!("{error}"),
        Ok(()) => Vec::new(),
    };
    reset(&mut envs, &mut episodes, &[1, 3]);
    assert_eq!(episodes.without_episode(), [0, 2]);
    assert_eq!(refused(&episodes, &[0, 1]), [0]);
    assert!(refused(&episodes, &[1, 3, 4]).is_empty(), "the pool refuses row 4, not `check`");
    send_steps(&mut envs, &[1, 3], &[0, 0]).unwrap();
    let received = receive(&mut envs);
    episodes.received(received.lease.as_ref().unwrap(), received.rows.sent().unwrap());
    assert_eq!(episodes.elapsed(), [0, 1, 0, 1]);
    episodes.lose(received.rows.iter());
    assert_eq!(refused(&episodes, &[0, 1, 2, 3]), [0, 1, 2, 3]);
    reset(&mut envs, &mut episodes, &[0, 1, 2, 3]);
    assert_eq!(episodes.elapsed(), [0; 4]);
    episodes.stepped(&envs.step(&[0; 4]).unwrap().lease);
    assert_eq!(episodes.elapsed(), [1; 4]);
}

#[test]
fn sends_that_would_be_missing_in_a_rollout_are_refused() {
    let mut envs = Envs::new(&recipe(), 3, 2, limited(AutoresetMode::NextStep, 5));
    let first = envs.seed(7);
    let rollout = envs.pool.new_rollout(2).unwrap().rollout;
    envs.pool.record(rollout).unwrap();
    let refused = |envs: &mut Envs, call: Call| match envs.pool.sending(call, Some(&[1])) {
        Err(Error::Recording { call: named, done, steps: 2 }) if named == call => Some(done),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    let calls = [Call::Step, Call::Reset];
    assert_eq!(calls.map(|call| refused(&mut envs, call)), [Some(0); 2]);
    let shown = envs.seed(7);
    assert_eq!(shown.integers(0), first.integers(0));
    assert_eq!(calls.map(|call| refused(&mut envs, call)), [Some(0); 2]);
    envs.step(&[0; 3]).unwrap();
    // A reset between steps is not part of a rollout, so some rows may be reset.
    assert_eq!(calls.map(|call| refused(&mut envs, call)), [Some(1), None]);
    envs.step(&[0; 3]).unwrap();
    assert_eq!(calls.map(|call| refused(&mut envs, call)), [None; 2]);
}

#[test]
fn rows_are_not_sent_if_their_batch_needs_a_slab_that_is_held() {
    let settings = limited(AutoresetMode::NextStep, 5);
    let mut envs = Envs::with_slabs(&recipe(), 4, 0, settings, 2, 3);
    send_resets(&mut envs, &[0, 1, 2, 3]);
    (0..2).for_each(|_| drop(receive(&mut envs)));
    let mut held = Vec::new();
    for _ in 0..3 {
        send_steps(&mut envs, &[0, 1], &[0, 0]).unwrap();
        held.push(receive(&mut envs));
    }
    // One slab is left, and four rows need two.
    assert_eq!(
        held.iter().filter(|received| received.lease.as_ref().unwrap().must_copy()).count(),
        2
    );
    held.pop();
    let refused = send_steps(&mut envs, &[0, 1, 2, 3], &[0; 4]).unwrap_err();
    assert!(matches!(refused, Error::SlabsHeld { slabs: 3 }), "{refused}");
    assert!(envs.pool.in_flight().is_empty());
    send_steps(&mut envs, &[2, 3], &[0; 2]).unwrap();
    assert_eq!(receive(&mut envs).rows.sent().unwrap(), [2, 3]);
    held.clear();
    send_steps(&mut envs, &[0, 1, 2, 3], &[0; 4]).unwrap();
    let rows: Vec<usize> =
        (0..2).flat_map(|_| receive(&mut envs).rows.sent().unwrap().to_vec()).collect();
    assert_eq!(rows, [0, 1, 2, 3]);
}
