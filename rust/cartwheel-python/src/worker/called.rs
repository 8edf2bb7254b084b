//! The work of a task on one row, in two parts: the calls of its environment, which need no place in
//! a batch, and the writing of what they returned.
//!
//! Everything that may take long is in the first part, also the reset that follows the last step of
//! an episode in `SAME_STEP` and the replacement of a failed environment: a row that was sent has no
//! place yet, so it holds up no batch. Only the second part can find that an observation does not
//! fit its space; that counts as a failure of the call that returned it, and the row goes on as
//! after any failed call.

use cartwheel_engine::Transition;
use cartwheel_engine::autoreset::{Refusal, RowCommand};
use cartwheel_engine::native::Seed;
use cartwheel_engine::rng::entropy;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::to_py_err;
use crate::known::intern;
use crate::native::stream::to_seed;
use crate::worker::rows::PyRows;

#[derive(Debug)]
pub(super) enum RowRequest<'py> {
    /// One step, with the reset that the mode requires.
    Step,
    /// An explicit reset, with these keywords.
    Reset(Bound<'py, PyDict>),
    /// The row continues from this saved state.
    Restore(Bound<'py, PyAny>),
    /// The row shows its last observation again.
    Leave,
}

impl<'py> RowRequest<'py> {
    /// The request of a reset task: the keywords of `reset`, a saved state, or `None` to leave the row
    /// as it is.
    pub(super) fn from_reset(how: &Bound<'py, PyAny>) -> Self {
        match how.cast::<PyDict>() {
            Ok(keywords) => Self::Reset(keywords.clone()),
            Err(_) if how.is_none() => Self::Leave,
            Err(_) => Self::Restore(how.clone()),
        }
    }
}

/// A row whose environment was called, and whose observation and info are held.
#[derive(Debug)]
pub(super) enum Called {
    /// The row shows what its environment returned.
    Returned(Transition, Retry),
    /// The row shows its last observation again.
    Left(Transition),
    /// The row has nothing to show.
    Failed(PyErr),
}

/// The continuation of a row whose environment failed, once the environment has been replaced.
#[derive(Debug)]
pub(super) enum Retry {
    /// It has failed once already, and fails now.
    Never,
    /// Its episode was cut.
    Step,
    /// It is reset with these keywords.
    Reset(Option<Py<PyDict>>),
}

impl<'py> PyRows<'_, '_, 'py> {
    /// Makes the calls that `request` requires.
    pub(super) fn call(&mut self, row: usize, request: RowRequest<'py>) -> Called {
        self.forget_final(row);
        let called = match request {
            RowRequest::Leave => self.call_left(row),
            RowRequest::Reset(keywords) => self.retire(row, None).and_then(|()| {
                self.report_loss(row);
                self.restart(row, Some(keywords.unbind()))
            }),
            RowRequest::Restore(state) => self.call_restored(row, &state),
            RowRequest::Step => match self.autoreset.refusal(row) {
                Some(refusal) => return Called::Failed(refused(refusal)),
                None => self.call_stepped(row),
            },
        };
        self.or_failed(row, called)
    }

    /// Writes the results of calls to the row's place; returns the reason if the row failed.
    pub(super) fn show(&mut self, row: usize, mut called: Called) -> Option<PyErr> {
        loop {
            let (transition, written, retry) = match called {
                Called::Returned(transition, retry) => (transition, self.publish(row), retry),
                Called::Left(transition) => (transition, self.repeat(row), Retry::Never),
                Called::Failed(failure) => {
                    self.show_nothing(row);
                    return Some(failure);
                }
            };
            let Err(failure) = written else {
                self.write_final(row);
                self.write_transition(row, &transition);
                return None;
            };
            let next = self.go_on(row, transition, retry, failure);
            called = self.or_failed(row, next);
        }
    }

    /// Writes the phase of a row that has no results to its place.
    pub(super) fn show_nothing(&mut self, row: usize) {
        self.forget_rewards(row);
        self.write_transition(row, &self.autoreset.last_transition(row));
    }

    fn or_failed(&mut self, row: usize, called: PyResult<Called>) -> Called {
        called.unwrap_or_else(|failure| {
            self.autoreset.fail(row);
            Called::Failed(failure)
        })
    }

    /// A row that lost its environment has no observation to show again, so it shows the first one
    /// of its new environment, without an info; its next step reports the loss.
    fn call_left(&mut self, row: usize) -> PyResult<Called> {
        let transition = self.autoreset.last_transition(row);
        if !self.lost[row] {
            return Ok(Called::Left(transition));
        }
        self.call_reset(row, None)?;
        self.forget_info(row);
        Ok(Called::Returned(transition, Retry::Never))
    }

    /// The row shows the observation that was saved, and what it was doing then.
    fn call_restored(&mut self, row: usize, state: &Bound<'py, PyAny>) -> PyResult<Called> {
        self.report_loss(row);
        let saved = self.call_restore(row, state)?;
        self.autoreset.restore(row, saved);
        let transition = self.autoreset.last_transition(row);
        Ok(if self.has_fresh(row) {
            Called::Returned(transition, Retry::Never)
        } else {
            Called::Left(transition)
        })
    }

    fn call_stepped(&mut self, row: usize) -> PyResult<Called> {
        match self.autoreset.command(row) {
            RowCommand::Step => {
                let stepped = if self.report_loss(row) {
                    if let Some(ended) = self.take_left_end(row) {
                        return self.end_step(row, ended, Retry::Step);
                    }
                    self.call_reset(row, None).map(|()| Transition::CUT)
                } else {
                    self.call_steps(row)
                };
                match stepped {
                    Ok(transition) => self.end_step(row, transition, Retry::Step),
                    Err(failure) => self.go_on(row, Transition::RESET, Retry::Step, failure),
                }
            }
            RowCommand::Reset => {
                self.retire(row, None)?;
                self.report_loss(row);
                let keywords = self.automatic(row)?;
                self.restart(row, keywords)
            }
            RowCommand::Leave | RowCommand::Show => {
                let left = self.autoreset.settle_row(row, RowCommand::Show, Transition::RESET);
                Ok(Called::Left(left))
            }
        }
    }

    /// Settles a step, and resets the row if the mode requires that now.
    fn end_step(&mut self, row: usize, outcome: Transition, retry: Retry) -> PyResult<Called> {
        let transition = self.autoreset.settle_row(row, RowCommand::Step, outcome);
        if !self.autoreset.resets_now(row) {
            return Ok(Called::Returned(transition, retry));
        }
        // A new environment that replaces one that failed has no state yet that could be drawn.
        let draws = !matches!(retry, Retry::Never);
        if let Err(failure) = self.keep_final(row, draws) {
            return self.go_on(row, transition, retry, failure);
        }
        if draws {
            self.retire(row, Some(&transition))?;
        }
        let keywords = self.automatic(row)?;
        let retry = self.reset(row, keywords)?;
        self.autoreset.begin_episode(row);
        Ok(Called::Returned(transition, retry))
    }

    /// Begins an episode, and settles that as the command of the task.
    fn restart(&mut self, row: usize, keywords: Option<Py<PyDict>>) -> PyResult<Called> {
        let staggers = self.staggers.then(|| self.draw(keywords.as_ref())).transpose()?;
        let retry = self.reset(row, keywords)?;
        let transition = self.autoreset.settle_row(row, RowCommand::Reset, Transition::RESET);
        if let Some(draw) = staggers {
            self.autoreset.stagger(row, draw);
        }
        Ok(Called::Returned(transition, retry))
    }

    /// A number for [`Autoreset::stagger`](cartwheel_engine::autoreset::Autoreset::stagger): from
    /// the row's seed, or from the system if it gets none, because an environment's own seed is not
    /// known.
    fn draw(&self, keywords: Option<&Py<PyDict>>) -> PyResult<u64> {
        let seed = keywords.map(|given| given.bind(self.py).get_item(intern!(self.py, "seed")));
        let seed = match seed.transpose()?.flatten().filter(|seed| !seed.is_none()) {
            Some(seed) => to_seed(&seed)?,
            None => Seed::Number(entropy().map_err(to_py_err)?),
        };
        Ok(seed.mixed().unwrap_or_default()) // it is known
    }

    /// Resets an environment; once more if it failed and was replaced.
    fn reset(&mut self, row: usize, keywords: Option<Py<PyDict>>) -> PyResult<Retry> {
        let given = keywords.as_ref().map(|keywords| keywords.bind(self.py));
        match self.call_reset(row, given) {
            Ok(()) => Ok(Retry::Reset(keywords)),
            Err(failure) => self.reset_again(row, given, failure),
        }
    }

    fn reset_again(
        &mut self,
        row: usize,
        keywords: Option<&Bound<'py, PyDict>>,
        failure: PyErr,
    ) -> PyResult<Retry> {
        self.replace(row, failure)?;
        self.call_reset(row, keywords)?;
        Ok(Retry::Never)
    }

    /// Goes on after a call that failed, or whose observation does not fit. `transition` is the
    /// outcome of the row so far.
    fn go_on(
        &mut self,
        row: usize,
        transition: Transition,
        retry: Retry,
        failure: PyErr,
    ) -> PyResult<Called> {
        match retry {
            Retry::Never => Err(failure),
            Retry::Step => {
                self.replace(row, failure)?;
                self.forget_rewards(row);
                self.end_step(row, Transition::CUT, Retry::Never)
            }
            Retry::Reset(keywords) => {
                let keywords = keywords.as_ref().map(|keywords| keywords.bind(self.py));
                let retry = self.reset_again(row, keywords, failure)?;
                Ok(Called::Returned(transition, retry))
            }
        }
    }
}

/// The pool refuses such steps before they are published, so only a bug of this package shows
/// these.
fn refused(refusal: Refusal) -> PyErr {
    PyRuntimeError::new_err(match refusal {
        Refusal::Over => "the row's episode is over",
        Refusal::Failed => "the row failed and has not been reset",
        Refusal::Unstarted => "the row was never reset",
    })
}
