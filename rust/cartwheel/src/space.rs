//! Spaces as memory sees them: leaves, and where each leaf of a batch lies.
//!
//! A space flattens into *leaves*, arrays of one dtype and one shape. A batch of `rows` rows holds
//! each leaf as one contiguous array `[rows, *shape]` (structure of arrays), so that a leaf can be
//! handed to the caller as it is.

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
        let mut end = 0_usize;
        let mut place = |row_bytes: Option<usize>| {
            let start = end;
            end = row_bytes?
                .checked_mul(rows)?
                .checked_next_multiple_of(LEAF_ALIGN)?
                .checked_add(start)?;
            (end < isize::MAX as usize / 2).then_some(start)
        };
        let too_large = || Error::BadPlan(format!("a batch of {rows} rows is too large"));
        let placed = leaves
            .iter()
            .map(|leaf| {
                let elements =
                    leaf.shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
                let row_bytes = elements.and_then(|n| n.checked_mul(leaf.dtype.size()));
                Some((leaf.clone(), place(row_bytes)?))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(too_large)?;
        let rewards = place(Some(size_of::<f64>())).ok_or_else(too_large)?;
        let terminations = place(Some(1)).ok_or_else(too_large)?;
        let truncations = place(Some(1)).ok_or_else(too_large)?;
        let phases = place(Some(1)).ok_or_else(too_large)?;
        let row_numbers = place(Some(size_of::<u32>())).ok_or_else(too_large)?;
        let info_lengths = place(Some(size_of::<u32>())).ok_or_else(too_large)?;
        let bytes = end.next_multiple_of(PAGE);
        Ok(Self {
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
        let too_large =
            || Error::BadPlan(format!("a rollout of {steps} steps of {rows} rows is too large"));
        let all = steps.checked_add(1).and_then(|frames| frames.checked_mul(rows));
        let whole = Self::new(leaves, all.ok_or_else(too_large)?)?;
        let rest = Self::new(&[], rows)?;
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
