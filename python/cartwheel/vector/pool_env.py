"""What every vector environment of cartwheel does: step, reset, send, receive, wait, close.

Above 400 lines because every public method carries its documentation here.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import logger
from typing_extensions import TypeVar

from cartwheel.arguments import (
    NUMBERING_OPTIONS,
    as_integer,
    as_reset_mask,
    as_reset_rows,
    as_seeds,
    as_timeout,
    without_rows,
)
from cartwheel.errors import add_note
from cartwheel.vector.interruptible import Interruptible
from cartwheel.vector.rollout_arrays import RolloutArrays
from cartwheel.vector.stats import Stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import AutoresetMode
    from numpy.typing import NDArray

    from cartwheel._cartwheel import Pool

ObsType = TypeVar("ObsType", default=Any)
ActType = TypeVar("ActType", default=Any)

#: Seconds that environments get to close before their workers are ended.
CLOSE_GRACE = 5.0
#: Seconds that workers get to close, at least, when a pending call has used up what it was given.
LAST_GRACE = 1.0


class ResetLink(Protocol):
    """The part of a link that resets need."""

    timeout: float | None

    def pack_reset(
        self,
        seeds: list[int | None],
        mask: NDArray[np.bool_] | None,
        options: dict[str, Any] | None,
    ) -> list[Any]:
        """Makes one message a shard."""

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> list[Any]:
        """Makes the messages for resets of rows that are sent."""


class PoolVectorEnv(gym.vector.VectorEnv[ObsType, ActType, Any]):
    """A vector environment over a native pool, which its subclasses make."""

    autoreset_mode: AutoresetMode
    #: Rows of a batch; fewer than ``num_envs`` where the first to be done are received first.
    batch_size: int
    #: A ``ResetLink``, with more methods that the subclass needs.
    _link: Any
    #: Whether the last :meth:`step_async` was of rows that it named.
    _steps_rows = False
    _pool: Pool
    _owner: int
    _finalizer: weakref.finalize[..., Any]

    def _opened(self, shut_down: Callable[..., None], *args: Any) -> None:
        """Registers what ends the workers: at close, when collected, or at the interpreter's end.

        Args:
            shut_down: Called with the pool, ``args`` and the seconds of grace.
            *args: Must not refer to this object, or it would never be collected.
        """
        self._owner = os.getpid()
        end = _Ending(shut_down, self._pool, args)
        self._finalizer = weakref.finalize(self, end)

    # Stepping

    def reset(
        self,
        *,
        seed: int | list[int | None] | tuple[int | None, ...] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[ObsType, dict[str, Any]]:
        """Resets every environment, or those of a mask.

        Args:
            seed: ``None`` lets every environment go on with its random numbers (or choose them, the
                first time); an integer ``s`` seeds row ``i`` by ``s + i``; a list holds one seed or
                ``None`` a row.
            options: Handed to every environment's ``reset``, as a copy, with the dictionaries,
                lists, tuples and arrays in it; other objects are shared within one process. The
                entry ``"reset_mask"``, a ``bool`` array of shape ``(num_envs,)`` with at least one
                true value, is not handed on: it says which rows are reset. The others keep their
                state and repeat their last observation (zeros before their first reset). Neither is
                the entry ``"env_index"``, or ManiSkill's ``"env_idx"`` in its place, an array of
                row numbers: only these rows are reset, and only they are returned, in this order.
                The dictionary itself is not changed.

        Returns:
            Observations and infos. Pending autoresets and frozen rows end with an explicit reset.
            With a ``batch_size`` below ``num_envs``, the first rows to be done, as from
            :meth:`recv`; the others come from :meth:`recv`.

        Raises:
            ValueError: A list of seeds or a mask of the wrong length, a mask without a true value,
                or several entries that choose the rows.
            TypeError: A mask that is no ``bool`` array, or seeds that are no list.
            gymnasium.error.Error: A seed that is no integer, or negative.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight, whose
                rewards a reset does not return: :meth:`recv` them first, or use
                :meth:`async_reset`. Where a wait timed out or was interrupted and some of these
                rows are in flight, everything in flight is waited for and dropped instead.
            RuntimeError: Only some rows, before the first step of a :meth:`rollout`. A
                ``"reset_mask"`` is in order.
        """
        with Interruptible(self._pool):
            if self._in_parts(options):
                self._send_resets("reset", seed, options, alone=True)
                result: tuple[ObsType, dict[str, Any]] = self._pool.recv_resets(self._link.timeout)
                return result
            self.reset_async(seed=seed, options=options)
            return self.reset_wait(timeout=self._link.timeout)

    def reset_async(
        self,
        seed: int | list[int | None] | tuple[int | None, ...] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Begins a reset; :meth:`reset_wait` gives its result. Arguments as for :meth:`reset`.

        A call that timed out or was interrupted is waited for and dropped first.

        Raises:
            Exception: As :meth:`reset`.
        """
        if self._in_parts(options):
            self._send_resets("reset_async", seed, options, alone=True)
            return
        self._pool.check("reset_async", idle=False)
        seeds = as_seeds(seed, range(self.num_envs))
        self._pool.discard_late(self._link.timeout)
        self._pool.check("reset_async", idle=True)
        mask = as_reset_mask(options, self.num_envs)
        if mask is not None:
            options = without_rows(options)
        self._pool.reset_async(self._link.pack_reset(seeds, mask, options))

    def reset_wait(self, timeout: float | None = None) -> tuple[ObsType, dict[str, Any]]:
        """Waits for a reset.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`reset_async`.
            gymnasium.error.AlreadyPendingCallError: Steps are in flight, whose rewards a reset does
                not return: :meth:`recv` them.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset again.
        """
        in_parts = self._pool.pending() is None and self._pool.in_flight()
        wait = self._pool.recv_resets if in_parts else self._pool.reset_wait
        result: tuple[ObsType, dict[str, Any]] = wait(as_timeout(timeout))
        return result

    def _in_parts(self, options: dict[str, Any] | None) -> bool:
        """Whether a reset with these options goes row by row."""
        return self.batch_size < self.num_envs or (
            options is not None and any(name in options for name in NUMBERING_OPTIONS)
        )

    def step(
        self, actions: ActType, env_index: Any = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment, or those of some rows.

        Args:
            actions: One action per environment, as :attr:`action_space` has them: an array, a list,
                or dictionaries and tuples of those. An environment receives a copy of its row, of
                the batch's own dtype; Python integers where the batch is a list of them.
            env_index: Row numbers, one an action: only these rows are stepped, which is
                ``send(actions, env_index)`` followed by ``recv()``. Required with a ``batch_size``
                below ``num_envs``, where :attr:`action_space` is that of a batch: pass
                ``infos["env_index"]`` of the batch that the actions are for.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``), infos. With
            ``env_index``, or a ``batch_size`` below ``num_envs``, as from :meth:`recv`.

        Raises:
            ValueError: Not one action per environment, or actions of the wrong shape; no
                ``env_index`` although batches have not all rows. Nothing was stepped.
            TypeError: Actions that are no batch, or of another kind of dtype than their space.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset
                since, or are native and were never reset.
            Exception: What the environment of the lowest failing row raised. The other rows have
                been stepped; those that raised must be reset.
        """
        result: tuple[Any, Any, Any, Any, dict[str, Any]]
        if env_index is not None:
            result = self._pool.step_rows(actions, env_index)
        elif self.batch_size < self.num_envs:
            raise self._rows_missing("step")
        else:
            result = self._pool.step(actions)
        return result

    def step_async(self, actions: ActType, env_index: Any = None) -> None:
        """Begins a step, with the arguments of :meth:`step`; :meth:`step_wait` gives its result.

        Raises:
            ValueError: As for :meth:`step`.
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        if env_index is not None:
            self._pool.send(actions, env_index)
            self._steps_rows = True
        elif self.batch_size < self.num_envs:
            raise self._rows_missing("step_async")
        else:
            self._pool.step_async(actions)
            self._steps_rows = False

    def _rows_missing(self, calling: str) -> ValueError:
        """What is wrong with stepping some of the rows without naming them."""
        self._pool.check(calling, idle=False)  # that it is closed matters more
        return ValueError(
            f"`env_index` is required, because batch_size={self.batch_size} of "
            f'num_envs={self.num_envs}: pass `infos["env_index"]` of the last batch'
        )

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Waits for a step.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`step_async`.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset.
        """
        seconds = as_timeout(timeout)
        in_parts = self._steps_rows or self.batch_size < self.num_envs
        wait = self._pool.recv if in_parts else self._pool.step_wait
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = wait(seconds)
        return result

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a call.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no ``call_async``.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset.
        """
        results: tuple[Any, ...] = self._pool.call_wait(as_timeout(timeout))
        return results

    # Sending and receiving

    def send(self, actions: ActType, env_index: Any = None) -> None:
        """Sends actions to environments and returns at once; :meth:`recv` brings the results.

        Several sends may be in flight, of different rows. A row is in flight until it is received
        and cannot be sent again before. (Where actions go by a channel, as those of a space without
        a fixed shape do, a worker process has to take what is more than the channel holds, a few
        hundred kilobytes, before this returns.)

        Args:
            actions: One action a row, as for :meth:`step`: an environment receives a copy of its
                row, of the batch's own dtype. (Batches of one dtype after the other go through
                shared memory; one that differs from those in flight takes longer.)
            env_index: The rows, an array or list of integers, in any order. By default all of them,
                which takes ``num_envs`` actions, also where batches and :attr:`action_space` are of
                fewer rows: name the rows there, by ``infos["env_index"]`` of their batch.

        Raises:
            ValueError: Rows that do not exist or are named twice, or not one action a row.
            TypeError: Row numbers that are no integers, or actions of another kind of dtype.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight, or another call is pending.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset.
            RuntimeError: Only some rows, while a :meth:`rollout` is recorded.
        """
        try:
            self._pool.send(actions, env_index)
        except ValueError as error:
            if env_index is None and self.batch_size < self.num_envs:
                add_note(
                    error,
                    f"without `env_index` all {self.num_envs} rows are sent; for a batch of "
                    f'batch_size={self.batch_size} pass its `infos["env_index"]`',
                )
            raise

    def recv(
        self, timeout: float | None = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Receives the next batch: the first ``batch_size`` rows to be done of those in flight.

        If fewer are in flight, it is all of them. With ``batch_size`` equal to ``num_envs`` the
        rows are in the order of the sends, otherwise in the order of completion.

        Args:
            timeout: Seconds to wait; by default the ``timeout`` of this object.

        Returns:
            What :meth:`step` returns, each array with one entry a received row;
            ``infos["env_index"]`` (``int64``) says which rows. A row that was reset has reward 0
            and false flags. ``env_index`` is a reserved word: an environment's own info of this
            name is replaced.

        Raises:
            gymnasium.error.NoAsyncCallError: Nothing is in flight.
            multiprocessing.TimeoutError: Environments are still busy; nothing is lost.
            Exception: What the environment of the lowest failing row of the batch raised. The other
                rows of the batch have been stepped and can be sent again; those that raised must
                be reset. A note names the rows of the batch.
        """
        seconds = self._link.timeout if timeout is None else as_timeout(timeout)
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.recv(seconds)
        return result

    def async_reset(
        self,
        seed: int | list[int | None] | tuple[int | None, ...] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Begins the reset of every row and returns at once; :meth:`recv` brings the results.

        If a wait timed out or was interrupted and some of the rows are still in flight, everything
        in flight is waited for and dropped first.

        Args:
            seed: As for :meth:`reset`; a list holds one seed or ``None`` a row that is reset.
            options: As for :meth:`reset`. ``"reset_mask"`` or ``"env_index"`` (or ``"env_idx"``)
                chooses the rows.

        Raises:
            ValueError: Rows that do not exist, are named twice or in both ways, or not one seed a
                row.
            gymnasium.error.AlreadyPendingCallError: Some of the rows are in flight, or another call
                is pending.
            RuntimeError: A :meth:`rollout` has begun and no step of it was made: use :meth:`reset`.
        """
        self._send_resets("async_reset", seed, options, alone=False)

    def _send_resets(
        self, calling: str, seed: Any, options: dict[str, Any] | None, *, alone: bool
    ) -> None:
        """Sends resets for ``calling``; ``alone`` if nothing else may be in flight then."""
        self._pool.check(calling, idle=False)
        rows = as_reset_rows(options, self.num_envs)
        options = without_rows(options)
        seeds = as_seeds(seed, rows)
        flying = self._pool.in_flight()
        if not flying or not set(rows).isdisjoint(flying):
            self._pool.discard_late(self._link.timeout)
        if alone:
            self._pool.check(calling, idle=True)
        self._pool.send_reset(rows, self._link.pack_row_resets(rows, seeds, options))

    @property
    def in_flight(self) -> list[int]:
        """The rows that were sent and have not been received, in the order of their numbers."""
        return self._pool.in_flight()

    # Rollouts

    def rollout(self, num_steps: int) -> RolloutArrays[ObsType]:
        """Makes the batches of the next ``num_steps`` steps land in contiguous arrays.

        The first observation of the rollout is the batch of now, so the last batch of one rollout
        is the first of the next. A reset before the first step replaces it; one between later steps
        is no part of the rollout (in the mode ``DISABLED`` copy the rows that it reset yourself).
        An exception of an environment ends the rollout. :meth:`step` returns what it always does;
        large observations are views of the rollout then.

        Batches of a rollout are of all rows. So until it has its steps, or :meth:`end_rollout` or
        another rollout ends it, steps of some rows are refused, and so is a reset of some by
        ``"env_index"`` before the first step.

        Args:
            num_steps: Steps, from 1 to 65534.

        Returns:
            The arrays. When no reference to them is left, their memory serves the next rollout.

        Raises:
            ValueError: ``num_steps`` is no such number, observations have no fixed shape, or
                ``batch_size`` is less than ``num_envs``.
            MemoryError: There is not enough memory; nothing was taken.
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight.
        """
        slab = self._pool.new_rollout(as_integer("num_steps", num_steps, 1))
        with Interruptible(self._pool):
            self._link.attach_rollout(self._pool, slab)
            arrays = self._pool.record(slab)
            # Every row shows its observation again: the batch of now.
            no_rows = np.zeros(self.num_envs, dtype=np.bool_)
            self._pool.reset_async(self._link.pack_reset([None] * self.num_envs, no_rows, None))
            self._pool.reset_wait(self._link.timeout)
        return RolloutArrays(*arrays)

    def end_rollout(self) -> None:
        """Ends the rollout that is being recorded, if one is: it keeps the steps that it has.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another thread is in a call.
        """
        self._pool.stop_recording()

    def stats(self) -> Stats:
        """What was done so far: steps, resets and times of each row and worker, waits and memory.

        Reading copies some numbers and delays no call. It works while calls are pending or rows in
        flight, and from another thread while this one waits; what has been handed out is counted.

        Raises:
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`, which frees the counters.
            cartwheel.ForkedProcessError: In a forked child.
        """
        return Stats(**self._pool.stats())

    # The end

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:  # noqa: FBT001
        """Closes the environments and ends the workers, whatever state they are in.

        Args:
            timeout: Seconds that environments get to finish a pending call and to close; 5 by
                default. When a pending call has used them up, one second more, or as long again
                where that is less, for the other workers to close. Worker processes that take
                longer are killed.
            terminate: Do not wait at all.
        """
        if not self._finalizer.alive:
            return
        grace = 0.0 if terminate else CLOSE_GRACE if timeout is None else timeout
        began = time.monotonic()
        pending = self._pool.pending()
        if pending is not None and os.getpid() == self._owner:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{pending}` to complete."
            )
            self._await_pending(pending, grace)
        detached = self._finalizer.detach()
        if detached is not None:
            _, end, _, _ = detached
            left = grace - (time.monotonic() - began)
            end(max(left, min(grace, LAST_GRACE)))

    def _await_pending(self, pending: str, grace: float) -> None:
        with contextlib.suppress(Exception):  # closing is what was asked for
            getattr(self, f"{pending}_wait")(grace)


class _Ending:
    """Ends a pool, in the process that made it."""

    def __init__(self, shut_down: Callable[..., None], pool: Any, args: tuple[Any, ...]) -> None:
        self.shut_down = shut_down
        self.pool = pool
        self.args = args
        self.owner = os.getpid()

    def __call__(self, grace: float = CLOSE_GRACE) -> None:
        if os.getpid() == self.owner:
            self.shut_down(self.pool, *self.args, grace)
