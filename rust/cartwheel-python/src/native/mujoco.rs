//! Models of MuJoCo: what Python has prepared for the environments of `cartwheel-mujoco`.
//!
//! # Invariants
//!
//! 1. **Addresses.** `cartwheel.native.mujoco`, the only caller, passes addresses that `ctypes` resolved in the
//!    loaded MuJoCo, and addresses of models, data and arrays that `mujoco` made and that the row's
//!    Python object, `keep_alive`, owns. It does not step or change them while a call to the
//!    environments runs.
//! 2. **Fields.** `cartwheel.mujoco.resets`, the only caller of [`copy_fields`], passes addresses of arrays of
//!    rows that it keeps alive (`SimulationArrays._kept`), of as many bytes as its own array has for
//!    each row, between two rounds of the environments. It writes fields that may have any numbers.
#![expect(unsafe_code, reason = "takes addresses from Python, see the invariants")]

use std::collections::BTreeMap;
use std::ptr::with_exposed_provenance_mut;

use cartwheel_core::Error;
use cartwheel_engine::platform::hang;
use cartwheel_mujoco::{Library, Model, Registered, RowParts, Sizes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{Borrowed, BorrowedMut};
use crate::error::to_py_err;
use crate::interpreter::attach_again;

#[pyclass(frozen, name = "MujocoModel", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyMujocoModel {
    registered: Registered,
}

#[pymethods]
impl PyMujocoModel {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    #[pyo3(signature = (
        *, functions, sizes, frame_skip, timestep, init_qpos, init_qvel, action_low, action_high,
        bodies, state_spec, fused_norms, scene, make_row
    ))]
    fn new(
        functions: BTreeMap<String, usize>,
        sizes: BTreeMap<String, usize>,
        frame_skip: u32,
        timestep: f64,
        init_qpos: Vec<f64>,
        init_qvel: Vec<f64>,
        action_low: Vec<f64>,
        action_high: Vec<f64>,
        bodies: BTreeMap<String, usize>,
        state_spec: i32,
        fused_norms: bool,
        scene: Vec<String>,
        make_row: Py<PyAny>,
    ) -> PyResult<Self> {
        // SAFETY: the addresses are those of MuJoCo's functions (invariant 1).
        let library = unsafe { Library::new(&functions) };
        let model = Model {
            library: library.map_err(to_py_err)?,
            sizes: Sizes::new(&sizes).map_err(to_py_err)?,
            frame_skip,
            timestep,
            init_qpos,
            init_qvel,
            action_bounds: (action_low, action_high),
            bodies,
            state_spec,
            fused_norms,
            scene,
            make_row: Box::new(move || row_parts(&make_row)),
        };
        Ok(Self { registered: Registered::new(model).map_err(to_py_err)? })
    }

    #[getter]
    fn number(&self) -> u64 {
        self.registered.number()
    }
}

type Fields = BTreeMap<String, (usize, usize)>;
type Integers = BTreeMap<String, usize>;

/// The simulation of a row that a callable of Python makes.
fn row_parts(make_row: &Py<PyAny>) -> Result<RowParts, Error> {
    let made = attach_again(|py| {
        let row = make_row.call0(py)?;
        let (number, addresses, fields, integers, memory, keep_alive) =
            row.extract::<(u64, (usize, usize), Fields, Integers, Vec<(usize, usize)>, Py<PyAny>)>(
                py,
            )?;
        // SAFETY: addresses of a row that `cartwheel.native.mujoco` made (invariant 1).
        Ok(unsafe {
            RowParts::new(number, addresses, fields, integers, &memory, Box::new(keep_alive))
        })
    });
    made.unwrap_or_else(|| hang())
        .map_err(|error: PyErr| Error::bad_options(format!("the simulation of a row: {error}")))
}

#[pyfunction]
#[pyo3(signature = (addresses, values, *, write))]
pub(crate) fn copy_fields(
    addresses: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    write: bool,
) -> PyResult<()> {
    let (addresses, mut values) = (
        Borrowed::<i64>::new("addresses", addresses, 1)?,
        BorrowedMut::<u8>::new("values", values, 2)?,
    );
    let (addresses, cells) = (addresses.cells()?, values.cells()?);
    for (&address, cells) in addresses.iter().zip(rows_of(cells, addresses.len())?) {
        let field: *mut u8 =
            with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default());
        let values = cells.as_mut_ptr();
        let (from, into) = if write { (values, field) } else { (field, values) };
        // SAFETY: the address of an array of a row, of as many bytes, which nothing else accesses
        // meanwhile and which takes any numbers (invariant 2). NumPy's array does not overlap it.
        unsafe { into.copy_from_nonoverlapping(from, cells.len()) }
    }
    Ok(())
}

fn rows_of(cells: &mut [u8], rows: usize) -> PyResult<std::slice::ChunksMut<'_, u8>> {
    let each = cells.len().checked_div(rows).unwrap_or(0);
    if each * rows != cells.len() || (each == 0 && !cells.is_empty()) {
        let text = format!("{} bytes for {rows} rows", cells.len());
        return Err(PyValueError::new_err(text));
    }
    Ok(cells.chunks_mut(each.max(1)))
}
