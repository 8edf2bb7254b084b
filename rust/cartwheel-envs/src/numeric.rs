//! Small pieces of NumPy's and Python's arithmetic.

/// `np.clip(x, low, high)`.
#[inline]
pub fn clip(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// A small integer as a float.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "actions are small")]
pub fn integer(value: i64) -> f64 {
    value as f64
}

/// A float rounded to `float32`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
pub fn round(value: f64) -> f32 {
    value as f32
}

/// `x % y` of NumPy floats, for a positive `y`: the sign is that of `y`.
#[inline]
pub fn floor_mod(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest < 0.0 {
        rest + y
    } else if rest == 0.0 {
        0.0
    } else {
        rest
    }
}
