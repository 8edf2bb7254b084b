//! Spaces as memory sees them: leaves, and where each leaf of a batch lies.
//!
//! A space flattens into *leaves*, arrays of one dtype and one shape. A batch of `rows` rows holds
//! each leaf as one contiguous array `[rows, *shape]` (structure of arrays), so that a leaf can be
//! handed to the caller as it is.

use std::fmt;

use crate::error::Error;

/// Alignment of every leaf of a batch, in bytes: a cache line, and enough for any vector load.
pub const LEAF_ALIGN: usize = 64;

/// Slabs start on pages, so that memory can be reserved for each on its own.
pub(crate) const PAGE: usize = 4096;

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])* $name:ident = $size:literal, $numpy:literal;)*) => {
        /// The element types of arrays that cross a process border as plain bytes.
        ///
        /// The discriminant is the tag used in shared memory.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DType { $($(#[doc = $doc])* $name,)* }

        impl DType {
            /// Every dtype, in the order of their tags.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(Self::$name => $size,)* }
            }

            /// NumPy's name for it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $numpy,)* }
            }
        }
    };
}

dtypes! {
    /// One byte, zero or one.
    Bool = 1, "bool";
    /// Signed 8 bits.
    I8 = 1, "int8";
    /// Signed 16 bits.
    I16 = 2, "int16";
    /// Signed 32 bits.
    I32 = 4, "int32";
    /// Signed 64 bits.
    I64 = 8, "int64";
    /// Unsigned 8 bits.
    U8 = 1, "uint8";
    /// Unsigned 16 bits.
    U16 = 2, "uint16";
    /// Unsigned 32 bits.
    U32 = 4, "uint32";
    /// Unsigned 64 bits.
    U64 = 8, "uint64";
    /// IEEE half precision.
    F16 = 2, "float16";
    /// IEEE single precision.
    F32 = 4, "float32";
    /// IEEE double precision.
    F64 = 8, "float64";
    /// Two single-precision floats.
    C64 = 8, "complex64";
    /// Two double-precision floats.
    C128 = 16, "complex128";
}

impl DType {
    /// The tag used in shared memory and in info streams.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The dtype with this tag, if there is one.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// The dtype with this NumPy name, if cartwheel carries it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

/// A stretch of memory whose places are given out one after the other, in checked arithmetic: every offset and
/// every size of shared memory comes from here.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    end: usize,
}

impl Extent {
    /// Most bytes of a stretch: no pointer into it is further from its start, and two of them can be added.
    const MOST: usize = isize::MAX as usize / 2;

    /// Gives the next place, for `count` things of `bytes` bytes each, and where it starts: a multiple of
    /// `align`. `None` when it does not fit into the address space.
    pub(crate) fn take(&mut self, count: usize, bytes: usize, align: usize) -> Option<usize> {
        let start = self.end.checked_next_multiple_of(align)?;
        self.end = count.checked_mul(bytes)?.checked_add(start).filter(|&end| end <= Self::MOST)?;
        Some(start)
    }

    /// [`Extent::take`] for `count` values of type `T`.
    pub(crate) fn take_array<T>(&mut self, count: usize) -> Option<usize> {
        self.take(count, size_of::<T>(), align_of::<T>())
    }

    /// Bytes that were given out, rounded up to a multiple of `align`.
    pub(crate) fn bytes(&self, align: usize) -> usize {
        self.end.next_multiple_of(align)
    }
}

/// One array of a flattened space: the shape and dtype of a single row's part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Element type.
    pub dtype: DType,
    /// Shape of one row; empty for a scalar.
    pub shape: Vec<usize>,
}

impl Leaf {
    /// Elements of one row.
    pub fn row_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_len() * self.dtype.size()
    }

    /// Elements of one row of a leaf that no plan has yet; `None` when they are more than can be counted.
    pub(crate) fn checked_row_len(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length))
    }
}

impl fmt::Display for Leaf {
    /// As NumPy names them: `float32[84, 84]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype.name(), self.shape)
    }
}

/// The [`Error::BadPlan`] for `what`, so many rows of these leaves, when it does not fit into the address space.
pub(crate) fn too_large(what: &str, rows: usize, leaves: &[Leaf]) -> Error {
    let leaves: Vec<String> = leaves.iter().map(Leaf::to_string).collect();
    let plural = if rows == 1 { "" } else { "s" };
    let of = if leaves.is_empty() { "" } else { " of " };
    let leaves = leaves.join(", ");
    Error::BadPlan(format!(
        "the memory for {what} exceeds the address space: {rows} row{plural}{of}{leaves}"
    ))
}

/// Where everything lies within one slab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    leaves: Vec<(Leaf, usize)>,
    rows: usize,
    rewards: usize,
    terminations: usize,
    truncations: usize,
    phases: usize,
    row_numbers: usize,
    info_lengths: usize,
    bytes: usize,
}

impl Layout {
    /// Lays out `rows` rows of `leaves`, then rewards (`f64`), the two flags and the phases (one
    /// byte each), and for rows that were sent on their own their numbers and info lengths (`u32`).
    ///
    /// The result depends on the arguments alone, so a worker computes the same offsets as the
    /// pool and no offset has to be sent or trusted.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when the batch does not fit the address space.
    pub fn new(leaves: &[Leaf], rows: usize) -> Result<Self, Error> {
        Self::checked(leaves, rows).ok_or_else(|| too_large("a batch", rows, leaves))
    }

    fn checked(leaves: &[Leaf], rows: usize) -> Option<Self> {
        let mut extent = Extent::default();
        let mut place = |row_bytes| extent.take(rows, row_bytes, LEAF_ALIGN);
        let mut placed = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let row_bytes = leaf.checked_row_len()?.checked_mul(leaf.dtype.size())?;
            placed.push((leaf.clone(), place(row_bytes)?));
        }
        let rewards = place(size_of::<f64>())?;
        let [terminations, truncations, phases] = [place(1)?, place(1)?, place(1)?];
        let [row_numbers, info_lengths] = [place(size_of::<u32>())?, place(size_of::<u32>())?];
        let bytes = extent.bytes(PAGE);
        Some(Self {
            leaves: placed,
            rows,
            rewards,
            terminations,
            truncations,
            phases,
            row_numbers,
            info_lengths,
            bytes,
        })
    }

    /// Lays out a rollout: the batches that follow a first one for `steps` steps, so that each leaf is one
    /// array `[steps + 1, rows, *shape]`, and rewards and flags `[steps, rows]` each. Gives the layout of
    /// every batch, the first one's first; all have the bytes of the whole.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when it does not fit the address space.
    pub fn rollout(leaves: &[Leaf], rows: usize, steps: usize) -> Result<Vec<Self>, Error> {
        // As one batch of all rows of all steps, and one of a single step for what the first batch has
        // no room for, and what nobody looks at later.
        let too_large = || too_large(&format!("a rollout of {steps} steps"), rows, leaves);
        let all = steps.checked_add(1).and_then(|frames| frames.checked_mul(rows));
        let whole = all.and_then(|all| Self::checked(leaves, all)).ok_or_else(too_large)?;
        let rest = Self::checked(&[], rows).ok_or_else(too_large)?;
        let (rest_start, bytes) = (whole.bytes, whole.bytes + rest.bytes);
        let frame = |number: usize| {
            let row = number * rows;
            let leaves = whole.leaves.iter();
            // Rewards and flags of a step stand one further to the front than its observation; those of
            // the first batch, which no step led to, stand with the rest.
            let outcome = |whole: usize, rest: usize, size: usize| match number {
                0 => rest_start + rest,
                _ => whole + (row - rows) * size,
            };
            Self {
                leaves: leaves
                    .map(|(leaf, start)| (leaf.clone(), start + row * leaf.row_bytes()))
                    .collect(),
                rows,
                rewards: outcome(whole.rewards, rest.rewards, size_of::<f64>()),
                terminations: outcome(whole.terminations, rest.terminations, 1),
                truncations: outcome(whole.truncations, rest.truncations, 1),
                phases: rest_start + rest.phases,
                row_numbers: rest_start + rest.row_numbers,
                info_lengths: rest_start + rest.info_lengths,
                bytes,
            }
        };
        Ok((0..=steps).map(frame).collect())
    }

    /// Rows of a batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a slab, whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of leaves.
    pub fn num_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Shape and dtype of leaf `leaf`.
    pub fn leaf(&self, leaf: usize) -> &Leaf {
        &self.leaves[leaf].0
    }

    /// Offset of leaf `leaf` in the slab, a multiple of [`LEAF_ALIGN`].
    pub fn leaf_offset(&self, leaf: usize) -> usize {
        self.leaves[leaf].1
    }

    /// Offset of the rewards, `[rows]` `f64`.
    pub fn rewards_offset(&self) -> usize {
        self.rewards
    }

    /// Offset of the terminations, `[rows]`, one byte each.
    pub fn terminations_offset(&self) -> usize {
        self.terminations
    }

    /// Offset of the truncations, `[rows]`, one byte each.
    pub fn truncations_offset(&self) -> usize {
        self.truncations
    }

    /// Offset of the phases after the task, `[rows]`, one [`crate::autoreset::PhaseTag`] each.
    pub fn phases_offset(&self) -> usize {
        self.phases
    }

    /// Offset of the numbers of the rows in a batch of rows that were sent, `[rows]` `u32`.
    pub fn row_numbers_offset(&self) -> usize {
        self.row_numbers
    }

    /// Offset of what such rows say of their infos, `[rows]` `u32`, see [`crate::memory::Told`].
    pub fn info_lengths_offset(&self) -> usize {
        self.info_lengths
    }
}
