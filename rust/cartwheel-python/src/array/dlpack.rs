//! Tensors of other packages over the memory of NumPy's arrays, and arrays over that of tensors, by the
//! functions of `DLPack`'s exchange interface. A call of them takes a fraction of `torch.from_numpy` or
//! `Tensor.numpy`. The structures are those of `dlpack.h`, version 1.3.
//!
//! # Invariants
//!
//! 1. **The table.** A capsule of this name, the attribute of a type, has the address of a table that
//!    begins with its version. A table of major version 1 and minor version 3 or later begins with the
//!    fields below. Its functions stay as long as the process, and are called while attached.
//! 2. **Tensors that are read.** The function fills its structure unless it fails. The shape, the strides
//!    and the memory stay while the tensor does and is not resized: the shape is read at once, and the
//!    memory is that of an array whose base is the tensor. Its tensor is one of the type that has the
//!    table.
//! 3. **Tensors that are made.** The memory, the shape and the strides stay until the deleter is called,
//!    once, by any thread: the structure has them, or an array that it keeps. A call that fails does
//!    not say whether it has called the deleter, so what it was given stays forever.
#![expect(unsafe_code, reason = "calls the functions of a table, see the invariants")]

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::slice::from_raw_parts;
use std::sync::Arc;

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyString, PyType};

use super::made::make_over;
use super::{base, dtype, first_byte, is_writable};
use crate::interpreter::drop_attached;
use crate::known::intern;

/// The name of the capsule.
const NAME: &CStr = c"dlpack_exchange_api";
/// The first version of the table, as far as it is used here.
const MAJOR: u32 = 1;
const MINOR: u32 = 3;
/// The number of the processor's own memory among devices.
const CPU: i32 = 1;
/// The maximum number of dimensions; tensors with more take the way through Python.
const MAX_DIMENSIONS: usize = 8;
/// The maximum number of tensors that are made at once: those of a step.
const MAX_TENSORS: usize = 4;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct Table {
    version: Version,
    previous: *mut c_void,
    allocate: *mut c_void,
    owned_of: *mut c_void,
    make: Option<MakeTensor>,
    read: Option<ReadTensor>,
}

type MakeTensor = unsafe extern "C" fn(*mut Owned, *mut *mut PyObject) -> c_int;
type ReadTensor = unsafe extern "C" fn(*mut PyObject, *mut View) -> c_int;

/// The memory of a tensor.
#[repr(C)]
struct View {
    data: *mut u8,
    device: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// A tensor with a function that frees it.
#[repr(C)]
struct Owned {
    version: Version,
    context: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Owned)>,
    flags: u64,
    view: View,
}

/// Arrays that the last tensor over one of them lets go. A thread that frees a tensor of `torch` is detached,
/// and to attach it takes a good part of the time that a tensor takes.
type Arrays = [Option<Py<PyUntypedArray>>; MAX_TENSORS];

/// A tensor, and what it needs: an address of the one is an address of the other.
#[repr(C)]
struct Kept {
    owned: Owned,
    /// Whose memory it is, and others over the same allocation.
    arrays: Arc<Arrays>,
    shape: [i64; MAX_DIMENSIONS],
    strides: [i64; MAX_DIMENSIONS],
}

/// `DLPack`'s code and number of bits; `None` for a dtype that is left to Python.
fn code_of(dtype: DType) -> Option<(u8, u8)> {
    Some(match dtype {
        DType::I8 => (0, 8),
        DType::I16 => (0, 16),
        DType::I32 => (0, 32),
        DType::I64 => (0, 64),
        DType::U8 => (1, 8),
        DType::F32 => (2, 32),
        DType::F64 => (2, 64),
        DType::Bool => (6, 8),
        _ => return None,
    })
}

#[pyclass(frozen, name = "TensorExchange", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyTensorExchange {
    kind: Py<PyType>,
    make: MakeTensor,
    read: ReadTensor,
    /// Where a name says whether a mode is active that the functions pass by.
    modes: (Py<PyDict>, Py<PyString>),
}

#[pymethods]
impl PyTensorExchange {
    #[staticmethod]
    #[pyo3(signature = (kind, modes, name, /))]
    fn of(
        kind: &Bound<'_, PyType>,
        modes: &Bound<'_, PyDict>,
        name: &Bound<'_, PyString>,
    ) -> Option<Self> {
        let capsule = kind.getattr("__dlpack_c_exchange_api__").ok()?;
        let table = capsule.cast::<PyCapsule>().ok()?.pointer_checked(Some(NAME)).ok()?;
        let table = table.cast::<Table>();
        // SAFETY: the table begins with its version (invariant 1).
        let version = unsafe { table.cast::<Version>().read() };
        if version.major != MAJOR || version.minor < MINOR {
            return None;
        }
        // SAFETY: a table of such a version begins with these fields (invariant 1).
        let Table { make, read, .. } = unsafe { table.read() };
        let modes = (modes.clone().unbind(), name.clone().unbind());
        Some(Self { kind: kind.clone().unbind(), make: make?, read: read?, modes })
    }

    #[pyo3(signature = (tensor, /))]
    fn array<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !tensor.get_type().is(&self.kind) {
            return Ok(None);
        }
        let mut view = MaybeUninit::uninit();
        // SAFETY: attached, with a tensor of the type (invariants 1 and 2).
        if unsafe { (self.read)(tensor.as_ptr(), view.as_mut_ptr()) } != 0 {
            drop(PyErr::take(tensor.py())); // Python's way has an error of its own, or none
            return Ok(None);
        }
        // SAFETY: filled, because the call did not fail (invariant 2).
        let view: View = unsafe { view.assume_init() };
        let dtypes = DType::ALL.iter().copied();
        let (mut of_code, code) = (dtypes, Some((view.code, view.bits)));
        let dtype = of_code.find(|dtype| code_of(*dtype) == code && view.lanes == 1);
        let Some(dtype) = dtype.filter(|_| view.device == CPU) else { return Ok(None) };
        let ndim = usize::try_from(view.ndim)?;
        if !(1..=MAX_DIMENSIONS).contains(&ndim) || view.shape.is_null() || view.strides.is_null() {
            return Ok(None);
        }
        // SAFETY: the tensor has as many entries of the shape (invariant 2).
        let sizes = unsafe { from_raw_parts(view.shape, ndim) };
        // SAFETY: and of the strides.
        let strides = unsafe { from_raw_parts(view.strides, ndim) };
        let mut shape = [0; MAX_DIMENSIONS];
        for (size, given) in shape.iter_mut().zip(sizes) {
            *size = usize::try_from(*given)?;
        }
        let shape = &shape[..ndim];
        let in_one_piece = contiguous(shape).zip(strides).zip(shape);
        let mut in_one_piece =
            in_one_piece.map(|((expected, stride), &size)| size == 1 || expected == *stride);
        let Some(first) = NonNull::new(view.data.wrapping_add(usize::try_from(view.byte_offset)?))
        else {
            return Ok(None);
        };
        if shape.contains(&0) || !in_one_piece.all(|is| is) {
            return Ok(None);
        }
        // A view may have a sign to be changed, of which DLPack knows nothing.
        let is_float = matches!(dtype, DType::F32 | DType::F64);
        if is_float && tensor.call_method0(intern!(tensor.py(), "is_neg"))?.is_truthy()? {
            return Ok(None);
        }
        // SAFETY: the memory has the elements of the shape, row-major, and stays while the tensor does,
        // which becomes the base (invariant 2); no Rust code has a reference to it.
        unsafe { make_over(tensor, dtype, shape[0], &shape[1..], first) }.map(Some)
    }

    #[pyo3(signature = (wrapper, actions, /))]
    fn actions<'py>(
        &self,
        wrapper: &Bound<'py, PyAny>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if actions.cast_exact::<PyUntypedArray>().is_ok() {
            return Ok(actions.clone());
        }
        let through_python =
            || wrapper.call_method1(intern!(wrapper.py(), "_as_arrays"), (actions,));
        self.array(actions)?.map_or_else(through_python, Ok)
    }

    #[pyo3(signature = (array, /))]
    fn tensor<'py>(&self, array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_passed_by(array.py())? {
            return Ok(None);
        }
        let [tensor] = self.tensors_of([array])?;
        Ok(tensor)
    }
}

impl PyTensorExchange {
    /// Whether a mode is active, to which Python's way shows each new tensor, and this one does not; true
    /// where that cannot be told.
    pub(crate) fn is_passed_by(&self, py: Python<'_>) -> PyResult<bool> {
        let (modes, name) = &self.modes;
        let flag = modes.bind(py).get_item(name)?;
        flag.map_or(Ok(true), |flag| flag.is_truthy())
    }

    /// Tensors over the memory of arrays, at most [`MAX_TENSORS`]; `None` where Python has to make one.
    pub(crate) fn tensors_of<'py, const N: usize>(
        &self,
        arrays: [&Bound<'py, PyAny>; N],
    ) -> PyResult<[Option<Bound<'py, PyAny>>; N]> {
        const { assert!(N <= MAX_TENSORS, "room for the arrays") };
        let arrays = arrays.map(|array| array.cast_exact::<PyUntypedArray>().ok());
        // An array with memory of another owner does not stay with them: it may be large.
        let owner = arrays.last().copied().flatten().map_or(null_mut(), base);
        let is_together =
            |array: &Bound<'py, PyUntypedArray>| !owner.is_null() && base(array) == owner;
        let mut together = Arrays::default();
        for (room, array) in together.iter_mut().zip(arrays) {
            *room = array.filter(|&array| is_together(array)).map(|array| array.clone().unbind());
        }
        let together = Arc::new(together);
        let mut tensors = [const { None }; N];
        for (tensor, array) in tensors.iter_mut().zip(arrays) {
            let Some(array) = array else { continue };
            let kept = if is_together(array) {
                Arc::clone(&together)
            } else {
                Arc::new([Some(array.clone().unbind()), None, None, None])
            };
            *tensor = self.tensor_of(array, kept)?;
        }
        Ok(tensors)
    }

    /// A tensor over the memory of an array, which is one of `arrays`; `None` where Python has to make it.
    fn tensor_of<'py>(
        &self,
        array: &Bound<'py, PyUntypedArray>,
        arrays: Arc<Arrays>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = array.py();
        let code = dtype::from_descr(&array.dtype()).and_then(code_of);
        let (shape, is_whole) = (array.shape(), array.is_c_contiguous() && is_writable(array));
        let fits = is_whole && (1..=MAX_DIMENSIONS).contains(&shape.len()) && !array.is_empty();
        let Some((code, bits)) = code.filter(|_| fits) else { return Ok(None) };
        let [mut sizes, mut strides] = [[0; MAX_DIMENSIONS]; 2];
        for ((size, stride), (&given, expected)) in
            sizes.iter_mut().zip(&mut strides).zip(shape.iter().zip(contiguous(shape)))
        {
            (*size, *stride) = (i64::try_from(given)?, expected);
        }
        let view = View {
            data: first_byte(array),
            device: CPU,
            device_id: 0,
            ndim: i32::try_from(shape.len())?,
            code,
            bits,
            lanes: 1,
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let version = Version { major: MAJOR, minor: MINOR };
        let owned = Owned { version, context: null_mut(), delete: Some(delete), flags: 0, view };
        let kept = Kept { owned, arrays, shape: sizes, strides };
        let kept = Box::into_raw(Box::new(kept));
        // SAFETY: just allocated, and no one else has its address.
        let fields = unsafe { &mut *kept };
        fields.owned.view.shape = fields.shape.as_mut_ptr();
        fields.owned.view.strides = fields.strides.as_mut_ptr();
        let mut tensor = null_mut();
        // SAFETY: attached, with a structure that stays until the deleter is called (invariants 1 and 3).
        if unsafe { (self.make)(kept.cast(), &raw mut tensor) } != 0 {
            return Err(PyErr::fetch(py)); // the structure stays (invariant 3)
        }
        // SAFETY: a new reference, since the call did not fail (invariant 1).
        unsafe { Bound::from_owned_ptr_or_err(py, tensor) }.map(Some)
    }
}

/// The strides of a row-major shape, in elements.
fn contiguous(shape: &[usize]) -> impl Iterator<Item = i64> {
    (1..=shape.len()).map(|from| {
        let elements: usize = shape[from..].iter().product();
        i64::try_from(elements).unwrap_or(i64::MAX)
    })
}

/// Frees what [`PyTensorExchange::tensor_of`] made; leaves the arrays after the end of the interpreter.
unsafe extern "C" fn delete(owned: *mut Owned) {
    // SAFETY: the first field of the structure, which is freed once, by this call (invariant 3).
    let kept = unsafe { Box::from_raw(owned.cast::<Kept>()) };
    if let Some(arrays) = Arc::into_inner(kept.arrays) {
        drop_attached(arrays);
    }
}
