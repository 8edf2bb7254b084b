//! Reads trajectories of Gymnasium and plays them again on the native environments of a pool.
//!
//! `fixtures/trajectories.py` describes the format.

use cartwheel_engine::Call;
use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
use cartwheel_engine::env::ParameterValue;
use cartwheel_engine::info::InfoReader;
use cartwheel_engine::memory::{Lease, Plan};
use cartwheel_engine::native::{Mailbox, Request, RowReset, ShardSettings};
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::space::{ActionTag, Leaf};
use cartwheel_engine::wake::Scope;
use serde::Deserialize;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// The environments, seeds and size of a trajectory.
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    id: String,
    keywords: serde_json::Value,
    parameters: serde_json::Map<String, serde_json::Value>,
    reset_options: Option<serde_json::Value>,
    seed: u64,
    rows: usize,
    steps: usize,
}

/// The result of a comparison.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Frames that were compared: one for each row and step.
    pub(crate) frames: usize,
    /// Episodes that ended among them.
    pub(crate) episodes: usize,
    /// Bits of observations, rewards, flags and infos that differ.
    pub(crate) differing_bits: [usize; 4],
}

impl Comparison {
    /// Adds the counts of another comparison.
    pub(crate) fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.episodes += other.episodes;
        for (sum, more) in self.differing_bits.iter_mut().zip(other.differing_bits) {
            *sum += more;
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        for (part, name) in [(&self.keywords, ""), (&self.parameters.clone().into(), "set ")] {
            if part.as_object().is_some_and(|part| !part.is_empty()) {
                write!(f, " {name}{part}")?;
            }
        }
        match &self.reset_options {
            Some(options) => write!(f, " reset {options}"),
            None => Ok(()),
        }
    }
}

/// Takes bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    bytes.split_off(..count).expect("a trajectory is complete")
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    take(bytes, N).try_into().expect("N bytes were taken")
}

fn differing(left: &[u8], right: &[u8]) -> usize {
    let common = left.iter().zip(right).map(|(left, right)| (left ^ right).count_ones() as usize);
    common.sum::<usize>() + 8 * left.len().abs_diff(right.len())
}

/// A pool of one inline worker, and its mailbox.
fn pool(header: &Header, observations: Vec<Leaf>, actions: Vec<Leaf>) -> (Pool, Arc<Mailbox>) {
    let entry = cartwheel_envs::find(&header.id).expect("a known environment");
    let recipe = entry.recipe(&header.keywords.to_string()).expect("valid keywords");
    let settings = ShardSettings {
        autoreset: AutoresetMode::NextStep,
        on_done: OnDone::Raise,
        max_episode_steps: entry.max_episode_steps,
        replacements: 0,
    };
    let (shard, mailbox) = recipe.shard(header.rows, settings).expect("a shard");
    let (max_slabs, info_bytes) = (3, 1 << 16);
    let shards = vec![0..header.rows; 1];
    let batch_size = header.rows;
    let plan = Plan { observations, actions, shards, batch_size, max_slabs, info_bytes };
    let memory = Memory::new(plan, Scope::Private).expect("memory");
    let policy = Policy {
        refuse_over: false,
        refuse_unstarted: true,
        on_death: OnDeath::Break,
        spin: false,
    };
    let mut pool = Pool::new(memory, Workers::Inline(shard), policy).expect("a pool");
    for (name, value) in &header.parameters {
        let value = match value {
            serde_json::Value::Number(number) => {
                ParameterValue::Float(number.as_f64().expect("a float"))
            }
            serde_json::Value::String(text) => ParameterValue::Text(text.clone()),
            other => panic!("a parameter is {other}"),
        };
        mailbox.post_request(Request::Set(name.clone(), vec![value; header.rows]));
        pool.begin(Call::Call, 0).expect("nothing is pending");
        pool.finish(Call::Call, None, &mut || false).expect("an answer");
        mailbox.take_answer().expect("an answer").expect("a parameter of the environment");
    }
    let seeds = (0..header.rows as u64).map(|row| RowReset::Seed((header.seed + row).into()));
    let options = header
        .reset_options
        .as_ref()
        .map(|options| recipe.reset_options(&options.to_string()).expect("valid reset options"));
    mailbox.post_reset(seeds.collect(), options);
    (pool, mailbox)
}

/// One batch that was stepped or reset.
struct Batch {
    lease: Lease,
    infos: Vec<Vec<u8>>,
}

fn call(pool: &mut Pool, call: Call, rows: usize) -> Batch {
    pool.begin(call, 0).expect("nothing is pending");
    let finished = pool.finish(call, None, &mut || false).expect("rows never fail");
    assert!(pool.reports().all(|report| !report.failed), "no row fails");
    let mut stream = Vec::new();
    pool.load_infos(0, &mut stream);
    let mut infos = vec![Vec::new(); rows];
    let mut reader = InfoReader::new(&stream, 0);
    while let Some(record) = reader.record().expect("a well-formed stream") {
        infos[record.row] = stream[reader.at()..record.end].to_vec();
        reader = InfoReader::new(&stream, record.end);
    }
    Batch { lease: finished.lease.expect("a batch"), infos }
}

/// Replays the next trajectory of `source`; `None` at the end of `source`.
pub(crate) fn play(source: &mut impl Read) -> Option<(Header, Comparison)> {
    let mut length = [0; 4];
    source.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    source.read_exact(&mut bytes).expect("a trajectory is whole");
    let bytes = &mut bytes.as_slice();
    let length = u32::from_le_bytes(take_array(bytes)) as usize;
    let header: Header = serde_json::from_slice(take(bytes, length)).expect("a header");
    let entry = cartwheel_envs::find(&header.id).expect("a known environment");
    let recipe = entry.recipe(&header.keywords.to_string()).expect("valid keywords");
    let observations = recipe.spaces().observation.leaves();
    let actions = recipe.spaces().action.leaves();
    let [action] = actions.as_slice() else { panic!("one action leaf") };
    let (action_bytes, tag) = (action.row_bytes(), ActionTag::Array(action.dtype));
    let (mut pool, _mailbox) = pool(&header, observations.clone(), actions);

    let mut comparison = Comparison::default();
    for step in 0..=header.steps {
        let mut stored = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..header.rows {
            if step > 0 {
                stored.extend_from_slice(take(bytes, action_bytes));
            }
            let leaves: Vec<_> =
                observations.iter().map(|leaf| take(bytes, leaf.row_bytes())).collect();
            let (reward, [flags]) = (take(bytes, 8), take_array(bytes));
            let info = u16::from_le_bytes(take_array(bytes));
            expected.push((leaves, reward, flags, take(bytes, info.into())));
        }
        let batch = if step == 0 {
            call(&mut pool, Call::Reset, header.rows)
        } else {
            recipe.spaces().action.check_actions(0, &stored).expect("proper actions");
            pool.store_actions(0, tag, &stored).expect("nothing is pending");
            call(&mut pool, Call::Step, header.rows)
        };
        for (row, (leaves, reward, flags, info)) in expected.into_iter().enumerate() {
            let layout = batch.lease.layout();
            let read = |offset: usize, count: usize| {
                let mut bytes = vec![0; count];
                batch.lease.read(offset + row * count, &mut bytes);
                bytes
            };
            let [observed, rewarded, flagged, informed] = &mut comparison.differing_bits;
            for (at, leaf) in leaves.into_iter().enumerate() {
                *observed += differing(leaf, &read(layout.leaf_offset(at), leaf.len()));
            }
            *rewarded += differing(reward, &read(layout.rewards_offset(), 8));
            let terminated = read(layout.terminations_offset(), 1)[0];
            let truncated = read(layout.truncations_offset(), 1)[0];
            *flagged += differing(&[flags], &[terminated + 2 * truncated]);
            *informed += differing(info, &batch.infos[row]);
            comparison.frames += 1;
            comparison.episodes += usize::from(flags != 0);
        }
    }
    assert!(bytes.is_empty(), "a trajectory is read to its end");
    Some((header, comparison))
}
