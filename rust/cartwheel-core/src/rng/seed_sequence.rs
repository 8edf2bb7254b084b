//! Turns a seed of any size into well-mixed words: NumPy's `SeedSequence`.

const POOL: usize = 4;
const INIT_A: u32 = 0x43b0_d7e5;
const MULTIPLIER_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULTIPLIER_B: u32 = 0x58f3_8ded;
const MIX_LEFT: u32 = 0xca01_f9dd;
const MIX_RIGHT: u32 = 0x4973_f715;

/// The mixed pool of a seed: `numpy.random.SeedSequence(seed)` without children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedSequence {
    pool: [u32; POOL],
}

impl SeedSequence {
    /// Mixes the little-endian 32-bit words of a seed. No words are the seed 0.
    pub fn new(words: &[u32]) -> Self {
        let mut hash = Hash(INIT_A);
        let mut pool = [0; POOL];
        for (at, place) in pool.iter_mut().enumerate() {
            *place = hash.mix(words.get(at).copied().unwrap_or(0));
        }
        for source in 0..POOL {
            for target in (0..POOL).filter(|&target| target != source) {
                pool[target] = combine(pool[target], hash.mix(pool[source]));
            }
        }
        for &word in words.get(POOL..).unwrap_or_default() {
            for place in &mut pool {
                *place = combine(*place, hash.mix(word));
            }
        }
        Self { pool }
    }

    /// Mixes a seed of up to 128 bits.
    #[expect(clippy::cast_possible_truncation, reason = "a word is 32 of the bits")]
    pub fn from_wide_seed(seed: u128) -> Self {
        let words = [0, 32, 64, 96].map(|shift| (seed >> shift) as u32);
        // Words of zeros have the same effect as missing words while the seed fits into the pool.
        Self::new(&words)
    }

    /// `N` words of 64 bits: `generate_state(N, np.uint64)`.
    pub fn generate<const N: usize>(&self) -> [u64; N] {
        let mut constant = INIT_B;
        let mut next = |at: usize| {
            let mut value = self.pool[at % POOL] ^ constant;
            constant = constant.wrapping_mul(MULTIPLIER_B);
            value = value.wrapping_mul(constant);
            u64::from(value ^ (value >> 16))
        };
        std::array::from_fn(|at| next(2 * at) | next(2 * at + 1) << 32)
    }
}

/// The running constant of the first hash.
struct Hash(u32);

impl Hash {
    fn mix(&mut self, word: u32) -> u32 {
        let mut value = word ^ self.0;
        self.0 = self.0.wrapping_mul(MULTIPLIER_A);
        value = value.wrapping_mul(self.0);
        value ^ (value >> 16)
    }
}

fn combine(left: u32, right: u32) -> u32 {
    let mixed = MIX_LEFT.wrapping_mul(left).wrapping_sub(MIX_RIGHT.wrapping_mul(right));
    mixed ^ (mixed >> 16)
}
