//! The caller's actions: checked, and ready to be copied to shared memory. `worker/actions.rs`
//! describes what environments get.

use cartwheel_engine::space::{ActionTag, DType, Leaf};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyFrozenSet, PyInt, PyList, PyMapping, PySequence, PySet, PyString, PyTuple,
};

use crate::array::dtype::{self, descr};
use crate::array::{as_array, as_flags, copy_bytes, filled, from_numbers, is_like};
use crate::error::noted;
use crate::space::{End, Misfit, Tree};

/// The rows for which actions are: all of them, or those of `env_index`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExpectedRows {
    All(usize),
    Named(usize),
}

impl ExpectedRows {
    fn number(self) -> usize {
        let (Self::All(number) | Self::Named(number)) = self;
        number
    }

    /// The actions that these rows need, in words.
    fn wanted(self) -> String {
        match self {
            Self::All(number) => format!("expected {number} actions (one per environment)"),
            Self::Named(number) => {
                format!("expected {number} actions (one per row of `env_index`)")
            }
        }
    }
}

/// Actions that are cast to the dtype of their space.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cast<'a> {
    /// None: environments get the caller's dtype.
    None,
    /// All, except `float32` and `float64` of the leaves for which this is true; leaves behind its
    /// end are cast.
    Except(&'a [bool]),
}

/// Checked actions of a batch, one part for each leaf, not yet copied. The usual single leaf is
/// stored inline, so that a step allocates nothing for it.
#[derive(Debug, Default)]
pub(crate) struct Checked<'py> {
    first: Option<Part<'py>>,
    rest: Vec<Part<'py>>,
}

/// The actions of one leaf.
#[derive(Debug)]
pub(crate) enum Part<'py> {
    Array(DType, Bound<'py, PyUntypedArray>),
    /// Integers of this dtype, which become `int64` when they are copied: `astype` would cost a step of
    /// few rows a tenth of its time.
    Widened(DType, Bound<'py, PyUntypedArray>),
    Integers(Vec<i64>),
}

impl<'py> Part<'py> {
    /// The type of its elements.
    pub(crate) fn tag(&self) -> ActionTag {
        match self {
            Self::Array(dtype, _) => ActionTag::Array(*dtype),
            Self::Widened(..) => ActionTag::Array(DType::I64),
            Self::Integers(_) => ActionTag::Integers,
        }
    }

    /// The dtype and the shape of its elements.
    fn form(&self) -> (DType, Vec<usize>) {
        match self {
            Self::Array(dtype, array) => (*dtype, array.shape().to_vec()),
            Self::Widened(_, array) => (DType::I64, array.shape().to_vec()),
            Self::Integers(integers) => (DType::I64, vec![integers.len()]),
        }
    }

    fn is_float(&self) -> bool {
        matches!(self, Self::Array(DType::F32 | DType::F64, _))
    }

    /// Copies its bytes from `offset`, the beginning of an element, until `buffer` is full. Only the
    /// copy can be checked: other threads of the caller may write the array.
    pub(crate) fn copy_to(&self, offset: usize, buffer: &mut [u8]) {
        match self {
            Self::Array(dtype, array) => {
                copy_bytes(array, offset, buffer);
                if *dtype == DType::Bool {
                    as_flags(buffer); // environments in Rust refuse other bytes
                }
            }
            Self::Widened(from, array) => copy_widened(*from, array, offset, buffer),
            Self::Integers(integers) => {
                let (places, _) = buffer.as_chunks_mut();
                for (place, integer) in places.iter_mut().zip(&integers[offset / 8..]) {
                    *place = integer.to_ne_bytes();
                }
            }
        }
    }

    /// Casts it to an array of `dtype`, which must be of the same kind.
    fn cast(&mut self, dtype: DType, py: Python<'py>) -> PyResult<()> {
        let (found, array) = match self {
            Self::Array(found, _) if *found == dtype => return Ok(()),
            Self::Array(found, array) if dtype == DType::I64 && is_narrow(*found) => {
                *self = Self::Widened(*found, array.clone());
                return Ok(());
            }
            Self::Array(found, array) | Self::Widened(found, array) => {
                (*found, array.clone().into_any())
            }
            Self::Integers(integers) => {
                (DType::I64, from_numbers(py, integers.len(), &[], integers)?)
            }
        };
        let array = array.cast_into::<PyUntypedArray>()?;
        check_integers(&array, found, dtype)?;
        let cast = array.call_method1("astype", (descr(py, dtype)?,))?;
        *self = Self::Array(dtype, cast.cast_into::<PyUntypedArray>()?);
        Ok(())
    }
}

/// Refuses integers that the dtype of the space cannot represent: a cast would turn them into other
/// actions.
fn check_integers(array: &Bound<'_, PyUntypedArray>, from: DType, to: DType) -> PyResult<()> {
    let (Some((min, max)), Some((low, high))) = (from.integer_range(), to.integer_range()) else {
        return Ok(());
    };
    if low <= min && max <= high {
        return Ok(());
    }
    let below = array.rich_compare(low, CompareOp::Lt)?;
    let wrong = below.bitor(array.rich_compare(high, CompareOp::Gt)?)?;
    if !wrong.call_method0("any")?.is_truthy()? {
        return Ok(());
    }
    let at: usize = wrong.call_method0("argmax")?.extract()?;
    let value = array.call_method1("item", (at,))?;
    let position = at * array.shape()[0] / array.len();
    let name = to.name();
    Err(PyValueError::new_err(format!(
        "action {value} at position {position} is not from {low} to {high}, as the action space's \
         {name} are"
    )))
}

fn cannot_cast(array: &Bound<'_, PyUntypedArray>, to: DType) -> PyErr {
    let to = to.name();
    PyTypeError::new_err(format!(
        "cannot cast actions of dtype {} to the action space's {to} according to the rule \
         'same_kind': pass {to} actions",
        array.dtype(),
    ))
}

impl<'py> Checked<'py> {
    /// Checks `actions` against the space: number, shape and dtype of every leaf; casts them, and takes
    /// them up. A result would be moved, which waits for the stores before it.
    pub(crate) fn check(
        &mut self,
        tree: &Tree,
        actions: &Bound<'py, PyAny>,
        rows: ExpectedRows,
        cast: Cast<'_>,
    ) -> PyResult<()> {
        let add = |end: End<'_>, actions: &Bound<'py, PyAny>| {
            let End::Leaf(leaf) = end else { unreachable!("opaque actions go over the socket") };
            let part = check(&tree.leaves[leaf], actions, rows)?;
            match self.first {
                None => self.first = Some(part),
                Some(_) => self.rest.push(part),
            }
            Ok(())
        };
        tree.root
            .take_apart(actions, &mut { add })
            .map_err(|misfit| misplaced(actions.py(), *misfit))?;
        if !self.rest.is_empty() {
            self.check_again(tree, rows)?;
        }
        if let Cast::Except(floats) = cast {
            let parts = self.first.iter_mut().chain(&mut self.rest);
            for (at, (part, leaf)) in parts.zip(&tree.leaves).enumerate() {
                if !(floats.get(at) == Some(&true) && part.is_float()) {
                    part.cast(leaf.dtype, actions.py())?;
                }
            }
        }
        Ok(())
    }

    /// Checks arrays once more: `__array__` of another part may have changed them since.
    fn check_again(&self, tree: &Tree, rows: ExpectedRows) -> PyResult<()> {
        for (at, part) in self.parts() {
            let Part::Array(dtype, array) = part else { continue };
            let expected = (&rows.number(), &*tree.leaves[at].shape);
            let shape = array.shape();
            if shape.split_first() != Some(expected) || !is_like(array, shape, *dtype) {
                return Err(PyValueError::new_err(
                    "an array of actions changed while another part of the actions was converted: \
                     `__array__` must not change them",
                ));
            }
        }
        Ok(())
    }

    /// The batch, reassembled in the structure of the space.
    pub(crate) fn batch(&self, tree: &Tree, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tree.root.assemble(py, &|end| match self.part(end) {
            Part::Array(_, array) => Ok(array.clone().into_any()),
            Part::Widened(_, array) => array.call_method1("astype", (descr(py, DType::I64)?,)),
            Part::Integers(integers) => Ok(PyList::new(py, integers)?.into_any()),
        })
    }

    /// The batch in new arrays, which the caller's threads do not write.
    pub(crate) fn copies(&self, tree: &Tree, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tree.root.assemble(py, &|end| {
            let part = self.part(end);
            let (dtype, shape) = part.form();
            filled(py, dtype, Some(shape[0]), &shape[1..], |buffer| part.copy_to(0, buffer))
        })
    }

    fn part(&self, end: End<'_>) -> &Part<'py> {
        let End::Leaf(leaf) = end else { unreachable!("opaque actions go over the socket") };
        self.first.iter().chain(&self.rest).nth(leaf).expect("there is a part for each leaf")
    }

    /// The actions of every leaf, with its number.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &Part<'py>)> {
        self.first.iter().chain(&self.rest).enumerate()
    }
}

/// The error about a part of actions, with a note that names the part and the form of actions.
#[cold]
fn misplaced(py: Python<'_>, misfit: Misfit) -> PyErr {
    let Some(path) = misfit.path() else { return misfit.error };
    let form = "a batch has the form of `envs.action_space.sample()`, with an entry for each row in \
                each part";
    noted(py, misfit.error, &format!("at actions{path}: {form}"))
}

fn check<'py>(leaf: &Leaf, actions: &Bound<'py, PyAny>, rows: ExpectedRows) -> PyResult<Part<'py>> {
    let array = if let Ok(array) = actions.cast_exact::<PyUntypedArray>() {
        array.clone()
    } else {
        if let Some(integers) = integers(leaf, actions, rows)? {
            return Ok(Part::Integers(integers));
        }
        as_array(actions).map_err(|error| {
            if !error.is_instance_of::<PyValueError>(actions.py()) {
                return error;
            }
            let wanted = rows.wanted();
            PyValueError::new_err(format!("{wanted}, got a list that is not an array: {error}"))
        })?
    };
    if array.ndim() == 0 {
        return check(leaf, listed(actions, rows)?.as_any(), rows);
    }
    let number = rows.number();
    // Compared one by one: shapes are short, and a call of `memcmp` took 6 % of the step of a row.
    if array.shape()[0] != number || !array.shape()[1..].iter().eq(&leaf.shape) {
        let expected: Vec<_> = std::iter::once(number).chain(leaf.shape.iter().copied()).collect();
        let (got, name) = (array.shape(), leaf.dtype.name());
        let (expected, shape) = (shown(&expected), shown(got));
        return Err(PyValueError::new_err(if got[0] == number {
            format!("expected actions of shape {expected} ({name}), got shape {shape}")
        } else {
            format!("{}, got {}: shape {shape}", rows.wanted(), got[0])
        }));
    }
    let array = native(array)?;
    let found = dtype::from_descr(&array.dtype());
    let Some(dtype) = found.filter(|&dtype| is_same_kind(dtype, leaf.dtype)) else {
        return Err(cannot_cast(&array, leaf.dtype));
    };
    if array.is_c_contiguous() {
        return Ok(Part::Array(dtype, array));
    }
    let contiguous = array.call_method1("copy", ("C",))?;
    Ok(Part::Array(dtype, contiguous.cast_into::<PyUntypedArray>()?))
}

/// The actions of an iterable that is not an array, such as a generator, in a list.
#[cold]
fn listed<'py>(actions: &Bound<'py, PyAny>, rows: ExpectedRows) -> PyResult<Bound<'py, PyList>> {
    let has_no_order = actions.is_instance_of::<PySet>()
        || actions.is_instance_of::<PyFrozenSet>()
        || actions.cast::<PyMapping>().is_ok();
    let is_text = actions.is_instance_of::<PyString>() || actions.is_instance_of::<PyBytes>();
    let Some(iterator) = actions.try_iter().ok().filter(|_| !has_no_order && !is_text) else {
        return Err(PyTypeError::new_err(format!(
            "Unable to iterate over the following elements: {actions}: {}",
            rows.wanted()
        )));
    };
    // One more than is wanted, because it may not end.
    let taken: Vec<_> = iterator.take(rows.number() + 1).collect::<PyResult<_>>()?;
    if taken.len() > rows.number() {
        return Err(PyValueError::new_err(format!("{}, got more", rows.wanted())));
    }
    PyList::new(actions.py(), taken)
}

/// A shape as Python writes it.
pub(crate) fn shown(shape: &[usize]) -> String {
    match shape {
        [side] => format!("({side},)"),
        sides => format!("({})", sides.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// `array` itself, or its copy in the machine's byte order.
fn native(array: Bound<'_, PyUntypedArray>) -> PyResult<Bound<'_, PyUntypedArray>> {
    if array.dtype().is_native_byteorder() != Some(false) {
        return Ok(array);
    }
    let swapped = array.dtype().call_method1("newbyteorder", ("=",))?;
    Ok(array.call_method1("astype", (swapped,))?.cast_into::<PyUntypedArray>()?)
}

/// Python integers for a leaf of integer scalars: such a batch keeps Python integers.
fn integers(
    leaf: &Leaf,
    actions: &Bound<'_, PyAny>,
    rows: ExpectedRows,
) -> PyResult<Option<Vec<i64>>> {
    let is_list =
        actions.is_exact_instance_of::<PyList>() || actions.is_exact_instance_of::<PyTuple>();
    if !is_list {
        return Ok(None);
    }
    let actions = actions.cast::<PySequence>()?;
    let got = actions.len()?;
    if got != rows.number() {
        return Err(PyValueError::new_err(format!("{}, got {got}", rows.wanted())));
    }
    if !leaf.shape.is_empty() || kind(leaf.dtype) > DTypeKind::Signed {
        return Ok(None);
    }
    let mut integers = Vec::with_capacity(got);
    for (at, action) in actions.try_iter()?.enumerate() {
        match action?.cast_exact::<PyInt>() {
            Ok(integer) => integers.push(integer.extract().map_err(|_| {
                let text = format!("action {integer} at position {at} does not fit into int64");
                PyOverflowError::new_err(text)
            })?),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(integers))
}

/// NumPy's kinds, in the order in which `same_kind` casts are allowed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DTypeKind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

fn kind(dtype: DType) -> DTypeKind {
    match dtype {
        DType::Bool => DTypeKind::Bool,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DTypeKind::Unsigned,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => DTypeKind::Signed,
        DType::F16 | DType::F32 | DType::F64 => DTypeKind::Float,
        DType::C64 | DType::C128 => DTypeKind::Complex,
    }
}

/// Whether actions of one dtype are accepted for a space of another dtype: `same_kind`, and also
/// signed integers for unsigned spaces, because sampling libraries return `int64` everywhere.
fn is_same_kind(from: DType, to: DType) -> bool {
    kind(from) <= kind(to) || (kind(from) <= DTypeKind::Signed && kind(to) == DTypeKind::Unsigned)
}

/// Integers that are widened at once, in a buffer on the stack.
const AT_ONCE: usize = 64;

/// Whether a dtype has integers of at most four bytes, or truth values.
pub(super) fn is_narrow(dtype: DType) -> bool {
    use DType::{Bool, I8, I16, I32, U8, U16, U32};
    matches!(dtype, Bool | I8 | I16 | I32 | U8 | U16 | U32)
}

/// Copies integers of dtype `from`, one of those that [are narrow](is_narrow), as `int64`, from byte
/// `offset` of the wide ones on, until `buffer` is full.
pub(super) fn copy_widened(
    from: DType,
    array: &Bound<'_, PyUntypedArray>,
    offset: usize,
    buffer: &mut [u8],
) {
    let mut narrow = [0_u8; AT_ONCE * 4];
    let mut at = offset / 8 * from.size();
    for buffer in buffer.chunks_mut(AT_ONCE * 8) {
        let narrow = &mut narrow[..buffer.len() / 8 * from.size()];
        copy_bytes(array, at, narrow);
        at += narrow.len();
        let (places, _) = buffer.as_chunks_mut();
        match from {
            DType::I8 => widen(places, narrow, i8::from_ne_bytes),
            DType::I16 => widen(places, narrow, i16::from_ne_bytes),
            DType::I32 => widen(places, narrow, i32::from_ne_bytes),
            DType::Bool => widen(places, narrow, |[flag]: [u8; 1]| u8::from(flag != 0)),
            DType::U8 => widen(places, narrow, u8::from_ne_bytes),
            DType::U16 => widen(places, narrow, u16::from_ne_bytes),
            DType::U32 => widen(places, narrow, u32::from_ne_bytes),
            _ => unreachable!("{from:?} is not narrow"),
        }
    }
}

fn widen<const N: usize, T: Into<i64>>(
    places: &mut [[u8; 8]],
    narrow: &[u8],
    number: fn([u8; N]) -> T,
) {
    let (numbers, _) = narrow.as_chunks();
    for (place, bytes) in places.iter_mut().zip(numbers) {
        *place = number(*bytes).into().to_ne_bytes();
    }
}
