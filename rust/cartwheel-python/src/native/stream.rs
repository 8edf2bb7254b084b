//! Random streams of native rows, as seeds and states of NumPy's generators; draws of cached states.

use cartwheel_engine::native::{Draw, Seed, Stream};
use cartwheel_engine::rng::Pcg64State;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt};

/// A seed as a Python integer of any length; `-1`, as in Gymnasium, when it is unknown.
fn from_seed(py: Python<'_>, seed: Seed) -> PyResult<Bound<'_, PyAny>> {
    match seed {
        Seed::Number(number) => number.into_bound_py_any(py),
        Seed::Words(words) => {
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            let bytes = PyBytes::new(py, &bytes);
            py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "little"))
        }
        Seed::Unknown => (-1).into_bound_py_any(py),
    }
}

/// The seed from a Python integer of any length; a negative one means unknown.
pub(crate) fn to_seed(seed: &Bound<'_, PyAny>) -> PyResult<Seed> {
    if let Ok(number) = seed.extract::<u128>() {
        return Ok(Seed::Number(number));
    }
    if seed.lt(0)? {
        return Ok(Seed::Unknown);
    }
    let words = seed.call_method0("bit_length")?.extract::<usize>()?.div_ceil(32);
    let bytes: Vec<u8> = seed.call_method1("to_bytes", (4 * words, "little"))?.extract()?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(Seed::Words(words.iter().map(|word| u32::from_le_bytes(*word)).collect()))
}

/// The seed of a stream, and its state in the form of `PCG64.state`.
pub(crate) fn from_stream(py: Python<'_>, stream: Stream) -> PyResult<Bound<'_, PyAny>> {
    let Pcg64State { state, increment, has_half, half } = stream.at;
    let (inner, outer) = (PyDict::new(py), PyDict::new(py));
    inner.set_item("state", state)?;
    inner.set_item("inc", increment)?;
    outer.set_item("bit_generator", "PCG64")?;
    outer.set_item("state", inner)?;
    outer.set_item("has_uint32", i32::from(has_half))?;
    outer.set_item("uinteger", half)?;
    (from_seed(py, stream.seed)?, outer).into_bound_py_any(py)
}

/// The stream with this seed and this `PCG64.state`.
pub(crate) fn to_stream(stream: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let (seed, outer) = stream.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
    let inner = outer.get_item("state")?;
    let at = Pcg64State {
        state: inner.get_item("state")?.extract()?,
        increment: inner.get_item("inc")?.extract()?,
        has_half: outer.get_item("has_uint32")?.extract::<i32>()? != 0,
        half: outer.get_item("uinteger")?.extract()?,
    };
    Ok(Stream { seed: to_seed(&seed)?, at })
}

#[pyfunction]
pub(crate) fn cache_draws(key: u64, seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(Draw::seeded(key, &to_seed(seed)?).key)
}

#[pyfunction]
pub(crate) fn draw_cached(key: u64, count: u64, states: usize) -> usize {
    Draw { key, count }.next(states)
}
