//! Final observations of `SAME_STEP` on their way through a stack of wrappers.
//!
//! An operation that changes observations takes the final ones out of the infos: an array with a row
//! for each place that has one. They are put back after the last operation, in the form in which they
//! came: an array of all places, or one of objects. Those of nested observations are taken and put back
//! by `Finals` of `cartwheel.wrappers.batch`, which methods of Python get as well.

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{EndedPlaces, num_kept, set_places};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyList};

use super::batch::{Batch, Columns, Finals, Form, Keys};
use crate::array::{Objects, Rows, from_bytes, from_numbers, index};
use crate::known::intern;
use crate::wrappers::column::{Column, no_such_row, numbers};
use crate::wrappers::places::{Ended, WithFinals};

impl<'py> Batch<'_, 'py> {
    /// Takes the final observations out of the infos, unless there are none, or they were taken.
    pub(super) fn take_finals(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        if self.finals.is_some() || self.final_keys.is_empty() {
            return Ok(());
        }
        let Ok(infos) = self.infos.cast::<PyDict>() else { return Ok(()) };
        let mut found = Vec::new();
        for keys in self.final_keys {
            if infos.contains(&keys[0])? {
                found.push(keys);
            }
        }
        let Some(&[key, mask_key]) = found.first() else { return Ok(()) };
        let pair = infos.get_item(key)?.zip(infos.get_item(mask_key)?);
        if let Some((values, mask)) = pair
            && let Some((rows, mut objects)) = self.taken_rows(&values, &mask)?
        {
            let mut mask = mask;
            let Columns { known, flags, .. } = &mut *self.columns;
            if num_kept(flags, |flag| flag != 0) != known.len() {
                flags.fill(0);
                for &place in &*known {
                    flags[index(place)] = 1;
                }
                mask = from_bytes(self.py, DType::Bool, Some(self.num_envs), &[], flags)?;
                if let Some(objects) = &mut objects {
                    *objects = Objects::new(self.py, self.num_envs)?;
                }
            }
            let infos = self.own_infos()?;
            for [key, mask_key] in &found {
                infos.del_item(key)?;
                infos.del_item(mask_key)?;
            }
            self.finals = Some(Finals { rows, form: Form::Array { objects, keys: found, mask } });
            return Ok(());
        }
        self.take_others(wrapper)
    }

    /// The rows of final observations, if they are an array of all places or of objects, which are returned,
    /// too, and their rows as those of the observations. Finds the known places.
    fn taken_rows(
        &mut self,
        values: &Bound<'py, PyAny>,
        mask: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Option<Objects<'py>>)>> {
        self.find_ends()?;
        let Columns { known, flags, ended, .. } = &mut *self.columns;
        let Some(all) = Rows::of(&self.observations) else { return Ok(None) };
        Column::flags("mask of final observations", mask, self.num_envs)?.copy_to(flags);
        set_places(flags, flags, known);
        if known != ended {
            known.retain(|place| ended.binary_search(place).is_ok());
        }
        if let Some(dense) = Rows::of(values) {
            let fits = dense.are_like(&all) && dense.len() == self.num_envs;
            if !fits {
                return Ok(None);
            }
            let rows = if known.is_empty() { values.clone() } else { dense.at(known)? };
            return Ok(Some((rows, None)));
        }
        let objects = Objects::of(values, self.num_envs).filter(|_| !known.is_empty());
        let Some(objects) = objects else { return Ok(None) };
        let rows = all.joined(known.iter().map(|&place| objects.at(index(place))))?;
        Ok(rows.map(|rows| (rows, Some(objects))))
    }

    /// Takes final observations in another form.
    fn take_others(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let arrays = (&self.kinds_array()?, &self.observations, self.rewards.array(self.py));
        let (kinds, observations, rewards) = arrays;
        let parts =
            (kinds, observations, rewards, &self.terminations, &self.truncations, &self.infos);
        let taken = wrapper.call_method1(intern!(self.py, "_taken"), parts)?;
        let (finals, infos): (Bound<'py, PyAny>, Bound<'py, PyAny>) = taken.extract()?;
        if !infos.is(&self.infos) {
            (self.infos, self.are_infos_shown, self.has_changed) = (infos, false, true);
        }
        self.set_finals(finals)
    }

    /// Sets the final observations that an object of Python has; `None`: none were taken.
    pub(super) fn set_finals(&mut self, object: Bound<'py, PyAny>) -> PyResult<()> {
        self.finals = None;
        if !object.is_none() {
            self.columns.known = numbers(&object.getattr(intern!(self.py, "places"))?)?;
            let rows = object.getattr(intern!(self.py, "observations"))?;
            self.finals = Some(Finals { rows, form: Form::Other(object) });
        }
        Ok(())
    }

    /// The final observations that were taken, as an object of Python; `None` if there are none. `space`
    /// is that of the observations of one environment.
    pub(super) fn finals_object(
        &mut self,
        wrapper: &Bound<'py, PyAny>,
        space: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Finals { rows, form }) = self.finals.take() else { return Ok(None) };
        let (object, names, is_dense) = match form {
            Form::Array { objects, keys, .. } => {
                (None, keys.iter().map(|[key, _]| key).collect(), objects.is_none())
            }
            Form::Other(object) => (Some(object), Vec::new(), false),
        };
        let known = &self.columns.known;
        let places = from_numbers(self.py, known.len(), &[], known)?;
        let form = (PyList::new(self.py, names)?, is_dense);
        let parts = (object, form, places, rows, &self.observations, space);
        wrapper.call_method1(intern!(self.py, "_as_finals"), parts).map(Some)
    }

    /// Puts final observations that were taken into the infos again. `wrapper` has their space.
    pub(super) fn put_finals_back(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let Some(Finals { rows, form }) = self.finals.take() else { return Ok(()) };
        if let Form::Array { objects, keys, mask } = &form {
            let values = match (objects, Rows::of(&rows)) {
                (None, _) => self.dense(&rows)?,
                (Some(_), None) => None,
                (Some(given), Some(rows)) => rows.as_objects(&self.columns.known, given)?,
            };
            if let Some(values) = values {
                let infos = self.own_infos()?;
                for [key, mask_key] in keys {
                    infos.set_item(key, &values)?;
                    infos.set_item(mask_key, mask)?;
                }
                return Ok(());
            }
        }
        self.finals = Some(Finals { rows, form });
        let space = wrapper.getattr(intern!(self.py, "single_observation_space"))?;
        let Some(object) = self.finals_object(wrapper, &space)? else { return Ok(()) };
        let parts = (&self.infos, &self.observations, self.num_envs);
        self.infos = object.call_method1(intern!(self.py, "into"), parts)?;
        (self.are_infos_shown, self.has_changed) = (false, true);
        Ok(())
    }

    /// A copy of the observations with these rows at the known places, if both are arrays of such rows.
    fn dense(&mut self, rows: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Columns { known, with_finals, .. } = &mut *self.columns;
        let all = Rows::of(&self.observations).filter(|all| all.len() == self.num_envs);
        let Some(all) = all else { return Ok(None) };
        let rows = if known.is_empty() { Some(all) } else { Rows::of(rows) };
        let fits = |rows: &Rows<'_, '_>| {
            rows.are_like(&all) && (known.is_empty() || rows.len() == known.len())
        };
        rows.filter(fits).map(|rows| all.with(known, &rows, with_finals)).transpose()
    }

    /// Sets the observations, and the final ones, of places that ended.
    pub(super) fn set_observations(
        &mut self,
        (observations, finals): WithFinals<'py>,
    ) -> PyResult<()> {
        (self.observations, self.has_changed) = (observations, true);
        if finals.is_none() { Ok(()) } else { self.change_finals(|_| Ok(finals)) }
    }

    /// Whether there are other infos than final observations and the key of final infos, without any.
    pub(super) fn has_other_infos(&self) -> PyResult<bool> {
        let py = self.py;
        let Ok(infos) = self.infos.cast::<PyDict>() else { return Ok(true) };
        let (mut known, mut have_finals) = (0, self.finals.is_some());
        for keys in self.final_keys {
            for key in keys {
                if infos.contains(key)? {
                    (known, have_finals) = (known + 1, true);
                }
            }
        }
        if have_finals && let Some(values) = infos.get_item(intern!(py, "final_info"))? {
            if !values.cast::<PyDict>().is_ok_and(PyDictMethods::is_empty) {
                return Ok(true);
            }
            known += 1 + usize::from(infos.contains(intern!(py, "_final_info"))?);
        }
        Ok(infos.len() != known)
    }

    /// Adds final infos, of which there are none yet.
    pub(super) fn set_final_infos(
        &mut self,
        keys: &Keys,
        values: Bound<'py, PyDict>,
        mask: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = self.py;
        let (key, mask_key) = (intern!(py, "final_info"), intern!(py, "_final_info"));
        let (infos, last) = (self.own_infos()?, PyDict::new(py));
        if !infos.contains(mask_key)? {
            infos.set_item(mask_key, mask.call_method0(intern!(py, "copy"))?)?;
        }
        last.set_item(&keys[0], values)?;
        last.set_item(&keys[1], mask)?;
        infos.set_item(key, last)
    }

    /// Changes the final observations that were taken, if there are some.
    pub(super) fn change_finals(
        &mut self,
        change: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        if !self.columns.known.is_empty()
            && let Some(finals) = &mut self.finals
        {
            finals.rows = change(&finals.rows)?;
        }
        Ok(())
    }

    /// Whether the final observations that were taken, or are still as they came, fulfill a condition on
    /// their number and rows.
    pub(super) fn finals_are(&self, is: impl FnOnce(usize, &Bound<'py, PyAny>) -> bool) -> bool {
        let count = self.columns.known.len();
        match &self.finals {
            None => !self.are_infos_shown,
            Some(finals) => count == 0 || is(count, &finals.rows),
        }
    }

    /// Finds the places at which episodes ended in `SAME_STEP`, unless they were found.
    pub(super) fn find_ends(&mut self) -> PyResult<()> {
        if self.final_keys.is_empty() {
            return Ok(());
        }
        self.read_flags()?;
        let Columns { terminations, truncations, ended, are_ends_found, .. } = &mut *self.columns;
        if !*are_ends_found {
            set_places(terminations, truncations, ended);
            *are_ends_found = true;
        }
        Ok(())
    }

    /// The places that show the first observation of the next episode in `SAME_STEP`, which were
    /// [found](Self::find_ends), and the final observations that were taken.
    pub(super) fn ended(&self) -> PyResult<Ended<'_, 'py>> {
        let Columns { known, ended, .. } = &*self.columns;
        let is_told = self.finals.is_some() || self.has_infos()?;
        if self.final_keys.is_empty() || ended.is_empty() || !is_told {
            return Ok(Ended::default());
        }
        let finals = self.finals.as_ref().filter(|_| !known.is_empty());
        let known = if finals.is_some() { &known[..] } else { &[] };
        let places = EndedPlaces::new(ended, known, self.num_envs).map_err(no_such_row)?;
        Ok(Ended { places, finals: finals.map(|finals| &finals.rows) })
    }
}
