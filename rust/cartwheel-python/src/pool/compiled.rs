//! Calls from compiled functions: steps, resets, sends and receipts whose arguments and results are
//! XLA's buffers. They run on any thread, without the interpreter.
//!
//! Everything about a call is checked before anything is changed: code in a cache of compiled functions
//! may have been made for another pool.

use std::time::Instant;

use cartwheel_engine::memory::Lease;
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::{Call, Error};

use crate::channel::as_duration;
use crate::native::PyNativeEnvs;
use crate::pool::buffers::{Refused, check_dims, fixed, other_pool, put, tag_of, words};
use crate::pool::elements::{can_write, read, write};
use crate::pool::{State, check_values, reset_flags};
use crate::xla::{ErrorCode, Frame};

/// Words in a seed: its low and its high half.
const SEED_WORDS: i64 = 2;
/// The bit of the high word that only negative seeds have.
const SIGN: u32 = 1 << 31;
/// Bytes of the token that orders sends and receipts.
const TOKEN: usize = 8;
/// The first result that belongs to the batch: a state or a token is before it.
const FIRST_OUTPUT: usize = 1;

/// Seeds: argument 0 of a reset of all rows; none if the random numbers continue.
fn seeds(frame: &Frame<'_>) -> Result<Vec<u128>, Refused> {
    let mut halves = words(fixed(frame, 0, DType::U32, &[None, Some(SEED_WORDS)])?.bytes);
    let mut seeds = Vec::new();
    while let (Some(low), Some(high)) = (halves.next(), halves.next()) {
        if high & SIGN != 0 {
            let text = "a seed is negative: seeds are from 0 to 2**63 - 1";
            return Err(Refused::new(ErrorCode::InvalidArgument, text));
        }
        seeds.push(u128::from(u64::from(high) << 32 | u64::from(low)));
    }
    Ok(seeds)
}

/// The token: argument 0 of sends and receipts.
fn token(frame: &Frame<'_>) -> Result<[u8; TOKEN], Refused> {
    let token = fixed(frame, 0, DType::U8, &[i64::try_from(TOKEN).ok()])?;
    Ok(token.bytes.try_into().expect("as many bytes as elements"))
}

impl State {
    /// The number of the pool's last call: the state that the next one needs.
    #[expect(clippy::cast_possible_truncation, reason = "a state is the low half of the number")]
    fn number(&self) -> u32 {
        self.pool.meter().begun() as u32
    }

    /// Refuses a call that does not have the newest state.
    fn check_number(&self, frame: &Frame<'_>) -> Result<(), Refused> {
        let state = words(fixed(frame, 0, DType::U32, &[])?.bytes).next().unwrap_or_default();
        let newest = self.number();
        if state == newest {
            return Ok(());
        }
        let text = format!(
            "the state is old: it is number {state}, and the environments are at {newest}; each call \
             needs the state of the call before, and `init()` returns a new one"
        );
        Err(Refused::new(ErrorCode::FailedPrecondition, text))
    }

    /// Refuses pools whose results a compiled function cannot have.
    fn check_compiled(&self) -> Result<(), Refused> {
        let text = if self.pool.recorded_steps().is_some() {
            "a rollout is being recorded: end it by `end_rollout()`, or step outside of compiled \
             functions"
        } else if self.reward_function.is_some() || self.reset_function.is_some() {
            "rewards or initial states are computed in Python"
        } else {
            return Ok(());
        };
        Err(Refused::new(ErrorCode::FailedPrecondition, text))
    }

    fn native(&self) -> &PyNativeEnvs {
        self.native.as_ref().expect("only pools of native rows are registered").get()
    }

    /// Number of arrays of a batch: observations, rewards and two flags, and where there are final
    /// observations, a flag and these.
    fn num_outputs(&self) -> usize {
        let leaves = self.batches.observations.leaves.len();
        leaves + 3 + if self.batches.has_dense_finals() { leaves + 1 } else { 0 }
    }

    /// Refuses results that do not fit a batch of `rows` rows, which is written from [`FIRST_OUTPUT`] on,
    /// with so many others behind it.
    fn check_outputs(
        &self,
        frame: &mut Frame<'_>,
        rows: usize,
        others: usize,
    ) -> Result<(), Refused> {
        let (got, wanted) = (frame.num_results(), FIRST_OUTPUT + self.num_outputs() + others);
        if got != wanted {
            return Err(other_pool(&format!("there are {got} results, expected {wanted}")));
        }
        let leaves = &self.batches.observations.leaves;
        let mut at = FIRST_OUTPUT;
        let mut check = |dtype: DType, shape: &[usize]| {
            let result = frame.result(at);
            if !can_write(dtype, result.dtype) {
                let (got, wanted) = (result.dtype.name(), dtype.name());
                return Err(other_pool(&format!("result {at} is {got}, expected {wanted}")));
            }
            check_dims(format_args!("result {at}"), result.dims, rows, shape)?;
            at += 1;
            Ok::<(), Refused>(())
        };
        leaves.iter().try_for_each(|leaf| check(leaf.dtype, &leaf.shape))?;
        check(DType::F64, &[])?;
        check(DType::Bool, &[])?;
        check(DType::Bool, &[])?;
        if self.batches.has_dense_finals() {
            check(DType::Bool, &[])?;
            leaves.iter().try_for_each(|leaf| check(leaf.dtype, &leaf.shape))?;
        }
        Ok(())
    }

    /// Refuses actions that do not fit `rows` rows, from argument `first` on.
    fn check_actions(&self, frame: &Frame<'_>, first: usize, rows: usize) -> Result<(), Refused> {
        let leaves = &self.actions.leaves;
        let (got, wanted) = (frame.num_arguments(), first + leaves.len());
        if got != wanted {
            return Err(other_pool(&format!("there are {got} arguments, expected {wanted}")));
        }
        for (number, leaf) in leaves.iter().enumerate() {
            let at = first + number;
            let argument = frame.argument(at);
            if tag_of(self.native(), number, leaf, argument.dtype).is_none() {
                let (got, wanted) = (argument.dtype.name(), leaf.dtype.name());
                return Err(other_pool(&format!("argument {at} is {got}, expected {wanted}")));
            }
            check_dims(format_args!("argument {at}"), argument.dims, rows, &leaf.shape)?;
        }
        Ok(())
    }

    /// Sends actions, from argument `first` on, to rows; `None` means all of them.
    fn send_compiled(
        &mut self,
        frame: &Frame<'_>,
        first: usize,
        rows: Option<&[usize]>,
    ) -> Result<(), Refused> {
        let count = rows.map_or(self.rows, <[usize]>::len);
        self.check_actions(frame, first, count)?;
        let each = (0..count).map(|at| rows.map_or(at, |rows| rows[at]));
        if rows.is_none() && self.episodes.is_some() {
            self.pool.check(Call::Call)?; // a pool that cannot begin a call says so first
        }
        self.check_episodes(each)?;
        let Self { pool, actions, native, .. } = self;
        let (native, leaves) = (native.as_ref(), &actions.leaves);
        let envs = native.expect("only pools of native rows are registered").get();
        let mut sending = pool.sending(Call::Step, rows)?;
        for (number, leaf) in leaves.iter().enumerate() {
            let argument = frame.argument(first + number);
            let tag = tag_of(envs, number, leaf, argument.dtype).expect("the dtype was checked");
            // If another leaf has stored its actions before, they have no effect: nothing is sent.
            if !sending.fits(number, tag) {
                let text = "the dtype of the actions differs from that of the actions in flight";
                return Err(Refused::new(ErrorCode::FailedPrecondition, text));
            }
            let ActionTag::Array(to) = tag else { unreachable!("buffers are arrays") };
            let row_bytes = argument.bytes.len() / count;
            sending.fill_actions(number, tag, |sent, room| {
                let bytes = &argument.bytes[sent.start * row_bytes..sent.end * row_bytes];
                read((argument.dtype, to), bytes, room, sent.len())?;
                check_values(native, number, tag, room)
            })?;
        }
        sending.send(0).map_err(Refused::from)
    }

    /// Waits for the pending call; `None`: for the next batch of rows that were sent. If rows failed,
    /// no caller sees the batch. The result is in `received`, as of
    /// [`finish_into`](cartwheel_engine::pool::Pool::finish_into).
    fn finish_compiled(
        &mut self,
        received: &mut Received,
        call: Option<Call>,
    ) -> Result<(), Refused> {
        let timeout = as_duration(self.timeout);
        let began = timeout.map(|_| Instant::now());
        loop {
            let waited = began.map(|began| began.elapsed()).unwrap_or_default();
            let left = timeout.map(|timeout| timeout.saturating_sub(waited));
            let Self { pool, closing, .. } = self;
            let mut interrupted = || closing.has_begun();
            let outcome = match call {
                Some(call) => pool.finish_into(received, call, left, &mut interrupted),
                None => pool.receive(left, &mut interrupted).map(|batch| *received = batch),
            };
            match outcome {
                Err(Error::StillWaiting { .. }) => {}
                Err(Error::Timeout { rows, .. }) => {
                    self.callbacks.has_abandoned = true;
                    let timeout = timeout.unwrap_or_default();
                    return Err(Error::Timeout { timeout, rows }.into());
                }
                Err(Error::Interrupted) => {
                    self.callbacks.has_abandoned = true;
                    return Err(Error::Closed.into());
                }
                outcome => break outcome?,
            }
        }
        self.callbacks.has_abandoned = false;
        self.note_episodes(call, received);
        if let Some(masks) = &mut self.masks {
            masks.after_compiled(&self.infos, received);
        }
        self.check_faults(call, received)
    }

    /// Drops infos that are not shown, and refuses the batch if rows failed.
    fn check_faults(&mut self, call: Option<Call>, received: &Received) -> Result<(), Refused> {
        if received.infos.is_empty() && received.failed.is_empty() {
            self.message_counts.forget(received.rows.sent().unwrap_or_default());
            return Ok(());
        }
        let messages = self.message_counts.announced(&self.pool, received);
        let native = self.native();
        for &(shard, row, _) in &messages.rests {
            native.drop_rest(shard, row.unwrap_or_default());
        }
        if messages.faults.is_empty() {
            return Ok(());
        }
        let faults = messages.faults.iter();
        let faults = faults.filter_map(|&(shard, row, _)| native.first_fault(shard, row));
        let first = faults.min_by_key(|(row, _)| *row);
        self.drop_results(call, received);
        self.lose(received.rows.iter());
        let text = first.map_or_else(|| "an environment failed".to_owned(), |(_, text)| text);
        let text = format!("{text}; a reset begins again: `init()`");
        Err(Refused::new(ErrorCode::Internal, text))
    }

    /// Writes a batch of `rows` rows from [`FIRST_OUTPUT`] on. A reset has no final observations.
    fn write_outputs(&self, frame: &mut Frame<'_>, lease: &Lease, rows: usize, is_step: bool) {
        let (layout, leaves) = (lease.layout(), &self.batches.observations.leaves);
        let mut at = FIRST_OUTPUT;
        let mut copy = |offset: usize, dtype: DType, row_bytes: usize| {
            write(lease, offset + lease.first() * row_bytes, dtype, frame.result(at));
            at += 1;
        };
        for (number, leaf) in leaves.iter().enumerate() {
            copy(layout.leaf_offset(number), leaf.dtype, layout.row_bytes(number));
        }
        copy(layout.rewards_offset(), DType::F64, layout.reward_bytes());
        copy(layout.terminations_offset(), DType::Bool, 1);
        copy(layout.truncations_offset(), DType::Bool, 1);
        let Some(ended) = layout.ended_offset().filter(|_| self.batches.has_dense_finals()) else {
            return;
        };
        if is_step {
            copy(ended, DType::Bool, 1);
        } else {
            put(frame.result(at), std::iter::repeat_n(0, rows));
            at += 1;
        }
        for (number, leaf) in leaves.iter().enumerate() {
            let from = if is_step { leaves.len() + number } else { number };
            let offset = layout.leaf_offset(from) + lease.first() * layout.row_bytes(from);
            write(lease, offset, leaf.dtype, frame.result(at));
            at += 1;
        }
    }

    /// Waits for a call, and writes the state after it and its batch of all rows.
    fn show(&mut self, frame: &mut Frame<'_>, call: Call) -> Result<(), Refused> {
        let mut received = Received::default();
        self.finish_compiled(&mut received, Some(call))?;
        let lease = received.lease.as_ref().expect("steps and resets have a batch");
        put(frame.result(0), self.number().to_ne_bytes());
        self.write_outputs(frame, lease, self.rows, call == Call::Step);
        self.end_copied(&mut received);
        Ok(())
    }

    /// A step of all rows. Arguments: the state, and the actions of each leaf. Results: the next state,
    /// and the batch.
    pub(crate) fn step_compiled(&mut self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        self.check_number(frame)?;
        self.check_compiled()?;
        self.check_state_and_outputs(frame)?;
        self.send_compiled(frame, 1, None)?;
        self.callbacks.all_sent = false;
        self.show(frame, Call::Step)
    }

    /// A reset of rows. Arguments: the state, and a mask. Results as of a step.
    pub(crate) fn reset_compiled(&mut self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        self.check_number(frame)?;
        self.check_compiled()?;
        self.check_state_and_outputs(frame)?;
        let mask = fixed(frame, 1, DType::Bool, &[i64::try_from(self.rows).ok()])?;
        self.begin_reset_compiled(Some(mask.bytes), None)?;
        self.show(frame, Call::Reset)
    }

    /// A reset of all rows, whatever happened before. Arguments: seeds, or none. Results as of a step.
    pub(crate) fn init_compiled(&mut self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        self.check_compiled()?;
        self.check_state_and_outputs(frame)?;
        let seeds = seeds(frame)?;
        if !seeds.is_empty() && seeds.len() != self.rows {
            return Err(other_pool(&format!("{} seeds for {} rows", seeds.len(), self.rows)));
        }
        self.discard_compiled()?;
        self.begin_reset_compiled(None, (!seeds.is_empty()).then_some(&seeds))?;
        self.show(frame, Call::Reset)
    }

    /// Refuses results that are not a state and a batch of all rows.
    fn check_state_and_outputs(&self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        self.check_outputs(frame, self.rows, 0)?;
        let state = frame.result(0);
        if state.dtype == DType::U32 && state.dims.is_empty() {
            return Ok(());
        }
        Err(other_pool("result 0 is not a state"))
    }

    fn begin_reset_compiled(
        &mut self,
        mask: Option<&[u8]>,
        seeds: Option<&Vec<u128>>,
    ) -> Result<(), Refused> {
        self.pool.check(Call::Reset)?; // a pending call may not have read its messages
        self.native().post_compiled_reset(mask, seeds.map(Vec::as_slice));
        self.pool.begin(Call::Reset, reset_flags(mask.is_none()))?;
        self.reset_mask = mask.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Waits for a call that was abandoned, and drops its results.
    fn discard_compiled(&mut self) -> Result<(), Refused> {
        if !self.callbacks.has_abandoned {
            return Ok(());
        }
        while self.pool.pending().is_some() || self.pool.is_flying() {
            let call = self.pool.pending();
            match self.finish_compiled(&mut Received::default(), call) {
                Err(Refused { code: ErrorCode::Internal, .. }) | Ok(()) => {} // rows failed
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }

    /// Sends actions. Arguments: the token, the rows or none for all of them, and the actions of each
    /// leaf. Result: the token.
    pub(crate) fn sends_compiled(&mut self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        self.check_compiled()?;
        let token = token(frame)?;
        if frame.num_results() != 1 || frame.result(0).bytes.len() != token.len() {
            return Err(other_pool("the results are not a token"));
        }
        let ids = fixed(frame, 1, DType::I32, &[None])?;
        let rows: Result<Vec<_>, _> =
            words(ids.bytes).map(|id| usize::try_from(id.cast_signed())).collect();
        let rows = rows.map_err(|_| {
            Refused::new(ErrorCode::InvalidArgument, "an entry of `env_id` is negative")
        })?;
        if rows.is_empty() && self.pool.batch_size() < self.rows {
            let text = format!(
                "`env_id` is required in asynchronous mode (batch_size={} of num_envs={})",
                self.pool.batch_size(),
                self.rows
            );
            return Err(Refused::new(ErrorCode::InvalidArgument, text));
        }
        self.send_compiled(frame, 2, (!rows.is_empty()).then_some(&rows))?;
        self.callbacks.all_sent = rows.is_empty();
        put(frame.result(0), token);
        Ok(())
    }

    /// Receives a batch. Argument: the token. Results: the token, the batch, the rows, and the steps
    /// of their episodes.
    pub(crate) fn receives_compiled(&mut self, frame: &mut Frame<'_>) -> Result<(), Refused> {
        let size = self.pool.batch_size();
        self.check_compiled()?;
        let token = token(frame)?;
        self.check_outputs(frame, size, 2)?;
        let ids = FIRST_OUTPUT + self.num_outputs();
        for at in [ids, ids + 1] {
            let numbers = frame.result(at);
            check_dims(format_args!("result {at}"), numbers.dims, size, &[])?;
            if numbers.dtype != DType::I32 {
                return Err(other_pool(&format!("result {at} is not int32")));
            }
        }
        if frame.result(0).bytes.len() != token.len() {
            return Err(other_pool("result 0 is not a token"));
        }
        let call = self.pool.pending().filter(|call| *call == Call::Step);
        let flying = if call.is_some() { self.rows } else { self.pool.in_flight().len() };
        if flying < size {
            let text = format!(
                "recv needs batch_size={size} environments whose results are outstanding, and there are \
                 {flying}: send their actions first"
            );
            return Err(Refused::new(ErrorCode::FailedPrecondition, text));
        }
        let mut received = Received::default();
        self.finish_compiled(&mut received, call)?;
        let rows: Vec<usize> = received.rows.iter().collect();
        if rows.len() != size {
            self.drop_results(None, &received);
            self.lose(rows.iter().copied());
            let text =
                format!("a part of the batch was received before: {} rows are left", rows.len());
            return Err(Refused::new(ErrorCode::FailedPrecondition, text));
        }
        let lease = received.lease.as_ref().expect("a receipt has a batch");
        put(frame.result(0), token);
        self.write_outputs(frame, lease, size, true);
        self.end_copied(&mut received);
        #[expect(clippy::cast_possible_truncation, reason = "a pool has fewer than 2^32 rows")]
        put(frame.result(ids), rows.iter().flat_map(|&row| (row as u32).to_ne_bytes()));
        let elapsed = |&row: &usize| {
            self.episodes.as_ref().map_or(0, |episodes| episodes.elapsed()[row]).to_ne_bytes()
        };
        put(frame.result(ids + 1), rows.iter().flat_map(elapsed));
        Ok(())
    }
}
