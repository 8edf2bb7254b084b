//! Rows that are sent and received in parts: any rows, at any time, several sends in flight.

use std::sync::Arc;

use cartwheel_engine::Call;
use cartwheel_engine::memory::InfosAt;
use cartwheel_engine::pool::{Event, Received};

use super::actions::SentActions;
use super::batch::Batch;
use super::error::VectorError;
use super::ffi;
use super::reset::Reset;
use super::vector_env::VectorEnv;
use crate::env::{Env, View};

impl<E: Env> VectorEnv<E> {
    /// Sends actions to rows, and returns at once: row `rows[i]` gets `actions[i]`. A row is in
    /// flight until [`VectorEnv::recv`] returns it, and cannot be sent meanwhile.
    ///
    /// # Errors
    ///
    /// As [`VectorEnv::step`]; also when a row does not exist, is named twice, or is in flight. Then
    /// nothing was sent.
    pub fn send(
        &mut self,
        rows: &[usize],
        actions: &[<E::Action as View>::Owned],
    ) -> Result<(), VectorError> {
        if rows.len() != actions.len() {
            let (actions, rows) = (actions.len(), rows.len());
            return Err(VectorError::refused(format!("{actions} actions for {rows} rows")));
        }
        self.send_steps(Some(rows), actions)
    }

    /// Sends actions to `rows`; `None` means all of them.
    pub(super) fn send_steps(
        &mut self,
        rows: Option<&[usize]>,
        actions: &[<E::Action as View>::Owned],
    ) -> Result<(), VectorError> {
        let mut sending = self.pool.sending(Call::Step, rows)?;
        let space = &self.kind.spaces().action;
        E::Action::store(
            actions.iter(),
            &mut SentActions { sending: &mut sending, space, leaf: 0 },
        )?;
        Ok(sending.send(0)?)
    }

    /// Sends resets to rows, and returns at once; [`VectorEnv::recv`] returns them.
    ///
    /// # Errors
    ///
    /// As [`VectorEnv::send`].
    pub fn send_reset(
        &mut self,
        reset: impl Into<Reset<E::ResetOptions>>,
    ) -> Result<(), VectorError> {
        let reset = reset.into();
        let (plan, flags) = (reset.plan(self.len())?, reset.flags());
        let options = reset.options.map(|options| ffi::reset_options::<E>(&self.kind, options));
        let rows: Vec<usize> = plan.iter().map(|(row, _)| *row).collect();
        self.pool.sending(Call::Reset, Some(&rows))?; // refuses what cannot be sent before it is posted
        for (row, how) in plan {
            let mailbox = &self.mailboxes[self.pool.shard_of(row)];
            mailbox.post_row_reset(row, how, options.clone());
        }
        Ok(self.pool.sending(Call::Reset, Some(&rows))?.send(flags)?)
    }

    /// The next batch of rows that were sent: the first `batch_size` rows that are done, or all rows
    /// in flight if these are fewer.
    ///
    /// # Errors
    ///
    /// [`VectorError::Faults`]; [`VectorError::Timeout`], after which `recv` can be called again;
    /// [`VectorError::Engine`] when nothing is in flight.
    pub fn recv(&mut self) -> Result<Batch<E>, VectorError> {
        let received = self.pool.receive(self.timeout, &mut || false)?;
        self.batch_of(received)
    }

    /// The batch that a call returned, or the faults of its rows.
    pub(super) fn batch_of(&mut self, received: Received) -> Result<Batch<E>, VectorError> {
        let (mut faults, mut infos) = (Vec::new(), Vec::new());
        let mut stream = Vec::new();
        for event in received.events() {
            let (Event::Failed(row) | Event::Infos(row, _)) = event;
            let mailbox = &self.mailboxes[self.pool.shard_of(row)];
            match event {
                Event::Failed(row) if received.rows.sent().is_some() => {
                    faults.extend(mailbox.take_fault(row));
                }
                Event::Failed(_) => faults.extend(mailbox.take_faults()),
                Event::Infos(_, InfosAt::Memory(bytes)) => {
                    self.pool.load_infos(row, bytes, &mut stream);
                    infos.extend_from_slice(&stream);
                }
                Event::Infos(_, InfosAt::Channel) => {
                    infos.extend(mailbox.take_spilled(row).unwrap_or_default());
                }
            }
        }
        let lease = received.lease.expect("a step or a reset fills a batch");
        let rows = received.rows.sent().map_or_else(|| Arc::clone(&self.all), Arc::from);
        self.finish(lease, rows, infos, faults)
    }

    /// The rows that are in flight.
    pub fn in_flight(&self) -> Vec<usize> {
        self.pool.in_flight()
    }
}
