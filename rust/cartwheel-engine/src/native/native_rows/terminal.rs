//! Terminal states that are kept before rows are reset in the same step.

use std::sync::Arc;

use cartwheel_core::DType;

use crate::info::{InfoWriter, RecordKind, TERMINAL};
use crate::native::mailbox::TerminalState;
use crate::plugin::{EnvRows, RenderFrame};

/// Of which rows terminal states are kept, and what.
#[derive(Debug, Default)]
pub(in crate::native) struct Terminal {
    /// For each row whether its states are kept; empty when none is.
    rows: Vec<bool>,
    what: Option<TerminalState>,
}

impl Terminal {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(in crate::native) fn choose(
        &mut self,
        rows: Vec<usize>,
        what: TerminalState,
        count: usize,
    ) {
        self.rows.clear();
        self.what = Some(what);
        if !rows.is_empty() {
            self.rows.resize(count, false);
            for row in rows {
                self.rows[row] = true;
            }
        }
    }

    /// Writes the present state of row `row`, which has the number `number` in infos, as a record,
    /// if the row was chosen.
    ///
    /// # Errors
    ///
    /// The reason why the environment cannot be drawn, or has no such parameter; nothing was
    /// written.
    pub(super) fn write(
        &self,
        envs: &mut EnvRows,
        row: usize,
        number: usize,
        infos: &mut InfoWriter,
    ) -> Result<(), String> {
        let (Some(true), Some(what)) = (self.rows.get(row), self.what) else { return Ok(()) };
        let record = infos.begin(RecordKind::Opaque, number, TERMINAL);
        let written = match what {
            TerminalState::Drawing(mode) => draw(envs, row, mode, infos),
            TerminalState::Parameters => write_parameters(envs, row, infos),
        };
        infos.end_if(record, written)
    }
}

fn draw(envs: &mut EnvRows, row: usize, mode: usize, infos: &mut InfoWriter) -> Result<(), String> {
    match envs.render(row, mode)? {
        RenderFrame::Pixels { height, width, bytes } => {
            infos.array(DType::U8, &[height, width, 3], &bytes);
        }
        RenderFrame::Text(text) => infos.text(&text),
    }
    Ok(())
}

fn write_parameters(envs: &mut EnvRows, row: usize, infos: &mut InfoWriter) -> Result<(), String> {
    let kind = Arc::clone(envs.kind());
    infos.dict(kind.parameters().len());
    for (number, name) in kind.parameters().iter().enumerate() {
        infos.key(name);
        infos.append(&envs.parameter(row, number)?);
    }
    Ok(())
}
