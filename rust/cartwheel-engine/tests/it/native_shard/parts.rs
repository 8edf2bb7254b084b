//! Parts of a batch: every row once, in the order that was promised, in a slab that stays.

use std::time::Duration;

use cartwheel::Rng;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::pool::{Received, RecvOrder};
use cartwheel_engine::{Call, Error};

use super::PLUGIN;
use super::gate::{GATES, State};
use super::recipe;
use super::sent::{RowStep, begin, row_steps, send_steps};
use crate::support::{Envs, kind, limited, settings};

const ROWS: usize = 7;
const STEPS: usize = 30;
const ORDERS: [RecvOrder; 2] = [RecvOrder::Sent, RecvOrder::Done];

/// The threads that step the rows.
#[derive(Debug, Clone, Copy)]
enum By {
    Inline,
    /// A thread pool of so many threads, the calling one included.
    ThreadPool(usize),
    Threads(usize),
}

const EVERYONE: [By; 6] = [
    By::Inline,
    By::ThreadPool(1),
    By::ThreadPool(2),
    By::ThreadPool(7),
    By::Threads(2),
    By::Threads(7),
];

fn build(by: By, batch_size: usize, order: RecvOrder) -> Envs {
    let settings = limited(AutoresetMode::NextStep, 5);
    let mut envs = match by {
        By::Inline => Envs::with_batches(&recipe(), ROWS, 0, settings, batch_size),
        By::Threads(threads) => Envs::with_batches(&recipe(), ROWS, threads, settings, batch_size),
        By::ThreadPool(threads) => {
            Envs::of_thread_pool(&recipe(), ROWS, threads, settings, batch_size)
        }
    };
    envs.pool.set_recv_order(order);
    envs
}

fn receive(envs: &mut Envs, min: usize, max: usize) -> Received {
    envs.pool.receive_some(min, max, Some(Duration::from_secs(30)), &mut || false).unwrap()
}

fn rows(received: &Received) -> Vec<usize> {
    received.rows.iter().collect()
}

/// The action of step number `step` of a row; never the one that panics.
fn action(row: usize, step: usize) -> i64 {
    i64::try_from((row * 31 + step * 7) % 8).unwrap()
}

fn step(envs: &mut Envs, seen: &[Vec<RowStep>], rows: &[usize]) {
    let actions: Vec<i64> = rows.iter().map(|&row| action(row, seen[row].len())).collect();
    send_steps(envs, rows, &actions).unwrap();
}

/// The row steps of every row when all rows are stepped together.
fn expected() -> Vec<Vec<RowStep>> {
    let mut envs = build(By::Inline, ROWS, RecvOrder::Sent);
    begin(&mut envs);
    let mut seen = vec![Vec::new(); ROWS];
    loop {
        for (row, frame) in row_steps(&receive(&mut envs, ROWS, ROWS)) {
            seen[row].push(frame);
        }
        if seen[0].len() > STEPS {
            return seen;
        }
        step(&mut envs, &seen, &(0..ROWS).collect::<Vec<_>>());
    }
}

/// Receives parts of random sizes, keeps some of them for a while, and sends received rows again.
fn play(by: By, batch_size: usize, order: RecvOrder) -> Vec<Vec<RowStep>> {
    let mut envs = build(by, batch_size, order);
    let (mut rng, mut seen) = (Rng::from_seed(batch_size as u64), vec![Vec::new(); ROWS]);
    let (mut sent, mut idle, mut kept) = ((0..ROWS).collect::<Vec<_>>(), Vec::new(), Vec::new());
    let mut place = 0; // of the slab, where the next part begins
    begin(&mut envs);
    while !sent.is_empty() || !idle.is_empty() {
        let upto = |rng: &mut Rng, max: usize| {
            usize::try_from(rng.integers(1..=i64::try_from(max).unwrap())).unwrap()
        };
        if !sent.is_empty() {
            let max = upto(&mut rng, batch_size);
            let min = upto(&mut rng, max);
            let part = receive(&mut envs, min, max);
            let (came, left) = (rows(&part), batch_size - place);
            let bounds = min.min(sent.len()).min(left)..=max.min(left);
            assert!(bounds.contains(&came.len()), "{} of {bounds:?}", came.len());
            assert_eq!(part.lease.as_ref().unwrap().first(), place, "{by:?} {order:?}");
            if order == RecvOrder::Sent {
                assert_eq!(came, sent[..came.len()], "{by:?}, batches of {batch_size}");
            }
            sent.retain(|row| !came.contains(row));
            place = if sent.is_empty() { 0 } else { (place + came.len()) % batch_size };
            for (row, frame) in row_steps(&part) {
                seen[row].push(frame);
                idle.extend((seen[row].len() <= STEPS).then_some(row));
            }
            kept.push((row_steps(&part), part));
            if kept.len() > 4 {
                let at = upto(&mut rng, kept.len()) - 1;
                let (before, part) = kept.swap_remove(at);
                assert_eq!(row_steps(&part), before, "what is kept does not change");
            }
        }
        if !idle.is_empty() && (sent.is_empty() || rng.random() < 0.7) {
            let count = upto(&mut rng, idle.len());
            let again: Vec<usize> = idle.drain(..count).rev().collect();
            step(&mut envs, &seen, &again);
            sent.extend(again);
        }
    }
    drop(kept);
    assert_eq!(envs.pool.slabs().leased(), 0, "every slab is free again");
    seen
}

#[test]
fn parts_have_every_row_once_and_in_the_promised_order_for_every_kind_of_worker() {
    let expected = expected();
    for by in EVERYONE {
        for (batch_size, order) in [1, 3, 6, ROWS].into_iter().flat_map(|n| ORDERS.map(|o| (n, o)))
        {
            assert_eq!(play(by, batch_size, order), expected, "{by:?} {batch_size} {order:?}");
        }
    }
}

#[test]
fn rows_are_waited_for_in_the_order_of_sends_even_if_later_ones_are_done() {
    // The calling thread steps row 0 first, which was sent last. It must not stop there.
    for by in [By::Inline, By::ThreadPool(1), By::ThreadPool(2)] {
        let mut envs = build(by, ROWS, RecvOrder::Sent);
        begin(&mut envs);
        receive(&mut envs, ROWS, ROWS);
        for _ in 0..20 {
            send_steps(&mut envs, &[6, 3, 0], &[0; 3]).unwrap();
            for row in [6, 3, 0] {
                assert_eq!(rows(&receive(&mut envs, 1, 1)), [row], "{by:?}");
            }
        }
    }
}

#[test]
fn the_first_send_is_received_alone_after_two_sends() {
    for by in EVERYONE {
        let mut envs = build(by, ROWS, RecvOrder::Sent);
        begin(&mut envs);
        receive(&mut envs, ROWS, ROWS);
        send_steps(&mut envs, &[5, 2, 4], &[0; 3]).unwrap();
        send_steps(&mut envs, &[0, 6, 3], &[0; 3]).unwrap();
        for _ in 0..10 {
            // Every seven rows a slab ends, so a send may need two receipts.
            for sent in [[5, 2, 4], [0, 6, 3]] {
                let mut came = Vec::new();
                while came.len() < 3 {
                    let left = 3 - came.len();
                    came.extend(rows(&receive(&mut envs, left, left)));
                }
                assert_eq!(came, sent, "{by:?}");
                send_steps(&mut envs, &sent, &[0; 3]).unwrap();
            }
        }
    }
}

#[test]
fn another_order_is_for_rows_that_are_sent_while_none_fly() {
    let mut envs = build(By::Threads(2), 3, RecvOrder::Sent);
    begin(&mut envs);
    envs.pool.set_recv_order(RecvOrder::Done);
    assert_eq!(envs.pool.recv_order(), RecvOrder::Done);
    let mut came = Vec::new();
    while envs.pool.is_flying() {
        came.extend(rows(&receive(&mut envs, 1, 3)));
    }
    assert_eq!(came, [0, 1, 2, 3, 4, 5, 6]);
    envs.pool.set_recv_order(RecvOrder::Sent);
    send_steps(&mut envs, &[6, 1, 5], &[0; 3]).unwrap();
    assert_eq!(rows(&receive(&mut envs, 3, 3)), [6, 1, 5]);
}

#[test]
fn polling_without_waiting_loses_nothing_and_ends() {
    for (by, order) in EVERYONE.into_iter().flat_map(|by| ORDERS.map(|order| (by, order))) {
        let mut envs = build(by, ROWS, order);
        begin(&mut envs);
        let mut came = Vec::new();
        while envs.pool.is_flying() {
            match envs.pool.receive_some(2, 3, Some(Duration::ZERO), &mut || false) {
                Ok(part) => came.extend(rows(&part)),
                Err(error) => assert!(matches!(error, Error::Timeout { .. }), "{error}"),
            }
        }
        came.sort_unstable();
        assert_eq!(came, [0, 1, 2, 3, 4, 5, 6], "{by:?} {order:?}");
    }
}

#[test]
fn a_slab_is_used_again_after_the_last_lease_on_its_parts() {
    let mut envs = build(By::Inline, ROWS, RecvOrder::Sent);
    begin(&mut envs);
    let mut parts: Vec<Received> = [2, 3, 2].map(|n| receive(&mut envs, n, n)).into();
    let first = parts[0].lease.as_ref().unwrap().at(0..1);
    while let Some(part) = parts.pop() {
        // In this order the last part of the slab is dropped first.
        assert_eq!(part.lease.as_ref().unwrap().at(0..1), first, "one slab");
        assert_eq!(envs.pool.slabs().leased(), 1);
        drop(part);
    }
    assert_eq!(envs.pool.slabs().leased(), 0);
    let all: Vec<usize> = (0..ROWS).collect();
    send_steps(&mut envs, &all, &[0; ROWS]).unwrap();
    assert_eq!(receive(&mut envs, ROWS, ROWS).lease.unwrap().at(0..1), first, "the same slab");
}

#[test]
fn the_slab_of_a_copied_batch_is_filled_next_and_counts_as_free() {
    let all: Vec<usize> = (0..ROWS).collect();
    let [mut envs, mut others] = [(); 2].map(|()| build(By::Inline, ROWS, RecvOrder::Sent));
    let whole = |envs: &mut Envs| {
        send_steps(envs, &all, &[0; ROWS]).unwrap();
        receive(envs, ROWS, ROWS).lease.unwrap()
    };
    for envs in [&mut envs, &mut others] {
        begin(envs);
        drop(receive(envs, ROWS, ROWS));
    }
    let copied = whole(&mut envs);
    let place = copied.at(0..1);
    envs.pool.end_copied(copied);
    assert_eq!(envs.pool.slabs().leased(), 0);
    let kept = whole(&mut envs);
    assert_eq!(kept.at(0..1), place, "the same slab");
    let second = whole(&mut envs);
    assert_ne!(second.at(0..1), place, "a lease keeps its slab");
    envs.pool.end_copied(second);
    envs.pool.end_copied(kept); // the pool keeps one; the other is free as after any lease
    assert_eq!(envs.pool.slabs().leased(), 0);
    envs.pool.end_copied(whole(&mut others));
    assert_eq!(others.pool.slabs().leased(), 0, "a slab goes back to its own pool");
    let both = [whole(&mut envs), whole(&mut envs)];
    assert_ne!(both[0].at(0..1), both[1].at(0..1));
    drop(both);
    assert_eq!(envs.pool.slabs().leased(), 0);
}

#[test]
fn a_copied_part_leaves_its_slab_to_the_other_parts() {
    let mut envs = build(By::Inline, ROWS, RecvOrder::Sent);
    begin(&mut envs);
    let [first, second, third] =
        [2, 3, 2].map(|count| receive(&mut envs, count, count).lease.unwrap());
    let place = first.at(0..1);
    envs.pool.end_copied(second);
    envs.pool.end_copied(third);
    assert_eq!(envs.pool.slabs().leased(), 1, "the first part has the slab");
    let all: Vec<usize> = (0..ROWS).collect();
    send_steps(&mut envs, &all, &[0; ROWS]).unwrap();
    assert_ne!(receive(&mut envs, ROWS, ROWS).lease.unwrap().at(0..1), place);
    drop(first);
    assert_eq!(envs.pool.slabs().leased(), 0);
}

/// Row 0 stays at a gate; rows 2 and 3 have another worker.
fn with_a_slow_row(gate: usize, order: RecvOrder) -> Envs {
    let kind = kind(&PLUGIN, "test/Gated-v1", &format!("{{\"gate\": {gate}}}")).unwrap();
    let mut envs = Envs::new(&kind, 4, 2, settings(AutoresetMode::SameStep));
    envs.seed(0);
    envs.pool.set_recv_order(order);
    GATES[gate].set(State::Closed);
    send_steps(&mut envs, &[0], &[1]).unwrap();
    GATES[gate].await_reset();
    envs
}

#[test]
fn rows_that_are_done_are_received_and_sent_again_next_to_a_row_that_is_not() {
    let mut envs = with_a_slow_row(6, RecvOrder::Done);
    for _ in 0..10 {
        send_steps(&mut envs, &[2, 3], &[0; 2]).unwrap();
        let mut came = Vec::new();
        while came.len() < 2 {
            came.extend(rows(&receive(&mut envs, 1, 4)));
        }
        came.sort_unstable();
        assert_eq!(came, [2, 3]);
    }
    GATES[6].set(State::Open);
    assert_eq!(rows(&receive(&mut envs, 4, 4)), [0]);
}

#[test]
fn rows_that_are_done_wait_for_one_that_was_sent_earlier() {
    let mut envs = with_a_slow_row(7, RecvOrder::Sent);
    send_steps(&mut envs, &[2, 3], &[0; 2]).unwrap();
    let late = envs.pool.receive_some(1, 4, Some(Duration::from_millis(20)), &mut || false);
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    GATES[7].set(State::Open);
    assert_eq!(rows(&receive(&mut envs, 3, 3)), [0, 2, 3]);
    let nothing = envs.pool.receive_some(1, 1, None, &mut || false);
    assert!(matches!(nothing, Err(Error::NothingInFlight)));
    envs.pool.sending(Call::Step, None).unwrap();
}
