//! Reads trajectories of Gymnasium and plays them again through the table of the native environments.
//!
//! `fixtures/trajectories.py` describes the format.

use std::fmt;
use std::io::Read;

use cartwheel::{InfoWriter, ParameterValue, Rng};
use cartwheel_abi as abi;
use serde::Deserialize;

use crate::support::{HostKind, HostRows, find};

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

/// Sets the parameters of a header in every row.
fn set_parameters(header: &Header, rows: &mut HostRows<'_>) {
    for (name, value) in &header.parameters {
        let value = match value {
            serde_json::Value::Number(number) => {
                ParameterValue::Float(number.as_f64().expect("a float"))
            }
            serde_json::Value::String(text) => ParameterValue::Text(text.clone()),
            other => panic!("a parameter is {other}"),
        };
        let mut bytes = InfoWriter::new();
        value.write(&mut bytes);
        for row in 0..header.rows {
            rows.set(row, name, bytes.stream()).expect("a parameter of the environment");
        }
    }
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
    let table = find(&cartwheel_envs::PLUGIN, &header.id);
    let kind =
        HostKind::with_defaults(table, &header.keywords.to_string()).expect("valid keywords");
    let mut rows = HostRows::new(&kind, header.rows).expect("environments");
    set_parameters(&header, &mut rows);
    rows.rngs = (0..header.rows as u64).map(|row| Rng::from_seed(header.seed + row)).collect();
    let options = header
        .reset_options
        .as_ref()
        .map(|options| kind.reset_options(&options.to_string()).expect("valid reset options"));
    let leaves = rows.observations.leaves.clone();
    let [action] = rows.actions.leaves.as_slice() else { panic!("one action leaf") };
    let action_bytes = action.row_bytes();

    let mut comparison = Comparison::default();
    let mut elapsed = vec![0; header.rows];
    for step in 0..=header.steps {
        let mut stored = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..header.rows {
            if step > 0 {
                stored.extend_from_slice(take(bytes, action_bytes));
            }
            let leaves: Vec<_> = leaves.iter().map(|leaf| take(bytes, leaf.row_bytes())).collect();
            let (reward, [flags]) = (take(bytes, 8), take_array(bytes));
            let info = u16::from_le_bytes(take_array(bytes));
            expected.push((leaves, reward, flags, take(bytes, info.into())));
        }
        if step == 0 {
            rows.commands.fill(abi::RESET);
            let reset = rows.run_some((0, header.rows), 0, options.as_ref());
            assert_eq!(reset.0, abi::OK, "no row fails");
        } else {
            kind.spaces.action.check_actions(0, &stored).expect("proper actions");
            rows.actions.store(0, &stored);
            rows.next_step(&mut elapsed, table.max_episode_steps);
        }
        let mut infos = vec![Vec::new(); header.rows];
        rows.take_infos().into_iter().for_each(|(row, info)| infos[row] = info);
        for (row, (leaves, reward, flags, info)) in expected.into_iter().enumerate() {
            let [observed, rewarded, flagged, informed] = &mut comparison.differing_bits;
            for (at, leaf) in leaves.into_iter().enumerate() {
                *observed += differing(leaf, &rows.observations.row(at, row));
            }
            *rewarded += differing(reward, &rows.rewards[row].to_ne_bytes());
            let (terminated, truncated) = (rows.terminations[row], rows.truncations[row]);
            *flagged += differing(&[flags], &[terminated + 2 * truncated]);
            *informed += differing(info, &infos[row]);
            comparison.frames += 1;
            comparison.episodes += usize::from(flags != 0);
        }
    }
    assert!(bytes.is_empty(), "a trajectory is read to its end");
    Some((header, comparison))
}
