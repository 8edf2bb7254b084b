//! Arrays of the host.
#![expect(unsafe_code, reason = "plugins get addresses of rows")]

use std::ffi::c_void;

use cartwheel_core::Leaf;
use cartwheel_core::space::Space;

/// Arrays of the leaves of a space.
pub struct Arrays {
    pub leaves: Vec<Leaf>,
    words: Vec<Vec<u64>>,
    rows: usize,
}

impl Arrays {
    pub fn new(space: &Space, rows: usize) -> Self {
        let leaves = space.leaves();
        let words = |leaf: &Leaf| vec![0; (rows * leaf.row_bytes()).div_ceil(8)];
        Self { words: leaves.iter().map(words).collect(), leaves, rows }
    }

    pub fn fill(&mut self, byte: u8) {
        self.words.iter_mut().for_each(|words| words.fill(u64::from_ne_bytes([byte; 8])));
    }

    pub fn leaf(&self, leaf: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.words[leaf].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes[..self.rows * self.leaves[leaf].row_bytes()].to_vec()
    }

    pub fn row(&self, leaf: usize, row: usize) -> Vec<u8> {
        let len = self.leaves[leaf].row_bytes();
        self.leaf(leaf)[row * len..(row + 1) * len].to_vec()
    }

    pub fn store(&mut self, leaf: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.rows * self.leaves[leaf].row_bytes());
        for (word, bytes) in self.words[leaf].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }

    /// Stores a leaf whose elements have another size than before.
    pub fn replace(&mut self, leaf: usize, bytes: &[u8]) {
        self.words[leaf] = vec![0; bytes.len().div_ceil(8)];
        self.store(leaf, bytes);
    }

    /// Pointers to row `row` of each leaf.
    pub fn pointers(&mut self, row: usize) -> Vec<*mut c_void> {
        let leaves = self.leaves.iter().zip(&mut self.words);
        // SAFETY: the row is in the array.
        let at = |(leaf, words): (&Leaf, &mut Vec<u64>)| unsafe {
            words.as_mut_ptr().cast::<u8>().add(row * leaf.row_bytes()).cast()
        };
        leaves.map(at).collect()
    }
}
