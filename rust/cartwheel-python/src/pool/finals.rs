//! What infos say of terminal states: dense final observations, `ManiSkill`'s names, and frames.

use cartwheel_engine::info::TERMINAL;
use cartwheel_engine::memory::Lease;
use cartwheel_engine::space::DType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::filled;
use crate::known::intern;
use crate::pool::infos::{Infos, empty_objects};

/// How infos show final observations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinalsForm {
    /// Whether every step has those of all rows, in arrays.
    pub(crate) dense: bool,
    /// Whether they have `ManiSkill`'s names, too.
    pub(crate) maniskill: bool,
}

impl FinalsForm {
    /// Two masks of the rows whose episode ended, where final observations are dense; `mask` makes one
    /// of the flags at an offset.
    pub(super) fn ended<'py>(
        self,
        lease: &Lease,
        mask: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<[Bound<'py, PyAny>; 2]>> {
        let offset = lease.layout().ended_offset().filter(|_| self.dense);
        offset.map(|offset| Ok([mask(offset)?, mask(offset)?])).transpose()
    }
}

/// What infos of a step get beside those of environments.
#[derive(Debug)]
pub(crate) struct Finals<'py> {
    pub(super) form: FinalsForm,
    /// The true next observations of all rows, where they are dense.
    pub(super) observations: Option<Bound<'py, PyAny>>,
    /// Masks of the rows whose episode ended, where final observations are dense.
    pub(super) ended: Option<[Bound<'py, PyAny>; 2]>,
    /// Frames of terminal states, and their mask, if there are some.
    pub(super) frames: Option<[Bound<'py, PyAny>; 2]>,
}

impl<'py> Finals<'py> {
    /// Adds all of them to the infos of a step.
    pub(super) fn add_to(self, infos: &Bound<'py, PyDict>) -> PyResult<()> {
        let py = infos.py();
        let (key, mask_key) = (intern!(py, "final_obs"), intern!(py, "_final_obs"));
        if let (Some(observations), Some([mask, info_mask])) = (self.observations, self.ended) {
            infos.set_item(key, observations)?;
            infos.set_item(mask_key, mask)?;
            let info_key = intern!(py, "final_info");
            if !infos.contains(info_key)? {
                infos.set_item(info_key, PyDict::new(py))?;
            }
            infos.set_item(intern!(py, "_final_info"), info_mask)?;
        }
        if self.form.maniskill
            && let (Some(observations), Some(mask)) =
                (infos.get_item(key)?, infos.get_item(mask_key)?)
        {
            infos.set_item(intern!(py, "final_observation"), observations)?;
            infos.set_item(intern!(py, "_final_observation"), mask)?;
        }
        if let Some([frames, mask]) = self.frames {
            infos.set_item(intern!(py, "final_frame"), frames)?;
            infos.set_item(intern!(py, "_final_frame"), mask)?;
        }
        Ok(())
    }
}

/// The frames of terminal states that a batch has, as an array of objects, and their mask. Native
/// environments may have kept their parameters instead, from which `link` draws.
pub(super) fn terminal_frames<'py>(
    link: &Bound<'py, PyAny>,
    infos: &Infos,
) -> PyResult<Option<[Bound<'py, PyAny>; 2]>> {
    let py = link.py();
    let kept: Vec<_> = infos.opaque.iter().filter(|opaque| opaque.part == TERMINAL).collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let values = kept.iter().map(|opaque| infos.value(py, opaque.at));
    let mut frames = PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
    if infos.is_native {
        let rows: Vec<_> = kept.iter().map(|opaque| opaque.at.row).collect();
        let drawn = link.call_method1(intern!(py, "draw_terminal"), (rows, frames))?;
        frames = drawn.cast_into::<PyList>()?;
    }
    let array = empty_objects(py, infos.rows)?;
    for (opaque, frame) in kept.iter().zip(&frames) {
        array.set_item(opaque.at.place, frame)?;
    }
    let mask = filled(py, DType::Bool, Some(infos.rows), &[], |room| {
        for opaque in &kept {
            room[opaque.at.place] = 1;
        }
    })?;
    Ok(Some([array, mask]))
}
