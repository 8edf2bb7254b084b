//! Spaces as the nodes of the ABI.

use std::ffi::{CString, c_char, c_void};

use cartwheel_abi as abi;
use cartwheel_core::space::{Bounds, Space};
use cartwheel_core::{DType, Error};

/// The nodes of a space in preorder, and what they point at. The addresses are stable: a vector that
/// is moved does not move its elements, and these are never changed.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    spaces: Vec<abi::Space>,
    /// Ended by zero bytes.
    keys: Vec<Vec<u8>>,
    shapes: Vec<Vec<usize>>,
    bounds: Vec<Vec<u64>>,
}

impl Nodes {
    /// The nodes of a space that was checked.
    pub(super) fn new(space: &Space) -> Result<Self, Error> {
        let mut nodes = Self::default();
        nodes.add(space, std::ptr::null())?;
        Ok(nodes)
    }

    /// The nodes.
    pub(super) fn as_slice(&self) -> &[abi::Space] {
        &self.spaces
    }

    fn add(&mut self, space: &Space, key: *const c_char) -> Result<(), Error> {
        match space {
            Space::Tuple(parts) => {
                self.branch(abi::TUPLE, key, parts.len());
                parts.iter().try_for_each(|part| self.add(part, std::ptr::null()))
            }
            Space::Dict(parts) => {
                self.branch(abi::DICT, key, parts.len());
                parts.iter().try_for_each(|(name, part)| {
                    let refused =
                        |_| Error::bad_options(format!("the key {name:?} has a zero byte"));
                    let name = CString::new(name.as_str()).map_err(refused)?.into_bytes_with_nul();
                    let key = name.as_ptr().cast();
                    self.keys.push(name);
                    self.add(part, key)
                })
            }
            Space::Box { dtype, shape, low, high } => {
                let shared = low.is_shared() && high.is_shared();
                let len = if shared { 1 } else { shape.iter().product() };
                let [low, high] =
                    [low, high].map(|bounds| Ok(repeated(bounds.elements(*dtype)?, len, *dtype)));
                self.leaf(abi::BOX, key, *dtype, shape, Some((low?, high?)));
                Ok(())
            }
            Space::Discrete { n, start } => {
                self.discrete(abi::DISCRETE, key, &[], (&[*n], &[*start]))
            }
            Space::MultiDiscrete { shape, counts, starts } => {
                self.discrete(abi::MULTI_DISCRETE, key, shape, (counts, starts))
            }
            Space::MultiBinary(shape) => {
                self.leaf(abi::MULTI_BINARY, key, DType::I8, shape, None);
                Ok(())
            }
            Space::Text(text) => {
                self.leaf(abi::TEXT, key, DType::U8, &[text.row_bytes()], None);
                let [charset, lengths] = [
                    self.keep(text.charset.as_bytes()),
                    self.keep(
                        [text.min_length, text.max_length].map(usize::to_ne_bytes).as_flattened(),
                    ),
                ];
                let node = self.spaces.last_mut().expect("the leaf");
                (node.bounds, node.low, node.high) = (text.charset.len(), charset, lengths);
                Ok(())
            }
            other => Err(Error::bad_options(format!("plugins cannot have the space {other}"))),
        }
    }

    fn branch(&mut self, kind: u32, key: *const c_char, children: usize) {
        self.spaces.push(abi::Space { children, ..node(kind, key) });
    }

    fn discrete(
        &mut self,
        kind: u32,
        key: *const c_char,
        shape: &[usize],
        (counts, starts): (&[i64], &[i64]),
    ) -> Result<(), Error> {
        let ends = counts.iter().zip(starts).map(|(n, start)| i128::from(start + (n - 1)));
        let low = Bounds::Integers(starts.iter().map(|&start| start.into()).collect());
        let (low, high) =
            (low.elements(DType::I64)?, Bounds::Integers(ends.collect()).elements(DType::I64)?);
        self.leaf(kind, key, DType::I64, shape, Some((low, high)));
        Ok(())
    }

    fn leaf(
        &mut self,
        kind: u32,
        key: *const c_char,
        dtype: DType,
        shape: &[usize],
        bounds: Option<(Vec<u8>, Vec<u8>)>,
    ) {
        let shape = shape.to_vec();
        let mut node = node(kind, key);
        (node.dtype, node.dimensions, node.shape) =
            (dtype.tag().into(), shape.len(), shape.as_ptr());
        self.shapes.push(shape);
        if let Some((low, high)) = bounds {
            node.bounds = low.len() / dtype.size();
            (node.low, node.high) = (self.keep(&low), self.keep(&high));
        }
        self.spaces.push(node);
    }

    /// Keeps bytes at an address that is aligned to every element.
    fn keep(&mut self, bytes: &[u8]) -> *const c_void {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let words: Vec<u64> = words.collect();
        let first = words.as_ptr().cast();
        self.bounds.push(words);
        first
    }
}

/// One bound for each of `len` elements, repeated if there is one for all.
fn repeated(bounds: Vec<u8>, len: usize, dtype: DType) -> Vec<u8> {
    if bounds.len() == dtype.size() { bounds.repeat(len) } else { bounds }
}

fn node(kind: u32, key: *const c_char) -> abi::Space {
    abi::Space {
        kind,
        dtype: 0,
        key,
        children: 0,
        dimensions: 0,
        shape: std::ptr::null(),
        bounds: 0,
        low: std::ptr::null(),
        high: std::ptr::null(),
    }
}
