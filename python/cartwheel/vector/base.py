"""The methods that all vector environments of cartwheel share: step, reset, send, recv, close.

This file is above 500 lines because it has the documentation of every public method.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium import logger
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from typing_extensions import TypeVar

from cartwheel._internal.arguments import (
    FOREVER_S,
    as_integer,
    as_reset_mask,
    as_reset_of_all,
    as_reset_rows,
    as_rows,
    as_seeds,
    as_timeout,
    by_row,
    check_options,
    check_row_options,
    copied,
    names_rows,
    row_options_in,
    without_rows,
)
from cartwheel._internal.literals import RecvOrder, check_choice
from cartwheel._internal.process import Finalizer
from cartwheel._internal.versions import keep_open
from cartwheel.errors import add_note
from cartwheel.vector.idle import nothing_in_flight
from cartwheel.vector.rollout_arrays import RolloutArrays
from cartwheel.vector.state_dict import (
    as_entries,
    check_equal,
    check_header,
    check_keys,
    check_list,
    check_wrappers,
    from_entries,
    new_state,
)
from cartwheel.vector.states import loaded, restored, saved
from cartwheel.vector.stats import Stats
from cartwheel.workers.channels import pickled
from cartwheel.workers.inheritance import free_in_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gymnasium.spaces import Box
    from typing_extensions import Self

    from cartwheel._cartwheel import Pool
    from cartwheel._internal.arguments import ResetOptions, Seeds
    from cartwheel._internal.literals import Executor, FinalObs
    from cartwheel.vector.state_dict import NextReset

#: Observations: an array, unless the space is nested: ``VectorEnv[dict[str, NDArray[Any]]]``.
ObsType = TypeVar("ObsType", default=NDArray[Any])
ActType = TypeVar("ActType", default=Any)

#: Seconds that environments get to close before their workers are killed.
CLOSE_GRACE = 5.0
#: Seconds that environments get to close while an abandoned call is still pending: the wait for it
#: has timed out, or Ctrl-C ended it.
ABANDONED_GRACE = 0.1
#: Minimum seconds that workers get to close after a pending call has used up the time to close.
LAST_GRACE = 1.0


class PoolVectorEnv(gym.vector.VectorEnv[ObsType, ActType, Any]):
    """A vector environment over a native pool; its subclasses make the pool.

    Some trainers, such as skrl, recognize an environment by the direct bases of its class and of
    ``unwrapped``. So every vector environment of cartwheel has ``gymnasium.vector.VectorEnv`` as a
    direct base, too. Your own subclass is recognized if it also names that base.
    """

    autoreset_mode: AutoresetMode
    #: Whether some of the rows can be stepped. Wrappers that preserve this have the attribute, too.
    steps_rows = True
    #: Whether rows can be sent and received. Wrappers that preserve this have the attribute, too.
    sends_rows = True
    #: How the workers run; never ``"auto"``.
    executor: Executor
    #: Rows of a batch; if fewer than ``num_envs``, a batch has the rows that finish first.
    batch_size: int
    #: Whether a reset with row numbers returns the full batch of all rows.
    full_batch: bool = False
    #: The form of final observations.
    final_obs: FinalObs
    #: The space of the rewards of one environment, if they are arrays, as in MO-Gymnasium. It is a
    #: ``Box`` of shape ``(k,)``; rewards are then ``float64`` of shape ``(num_envs, k)``. ``None``
    #: if rewards are numbers. Rewards of native environments are numbers.
    reward_space: Box | None = None
    #: A ``WorkerCallbacks`` or a ``NativeCallbacks``.
    _callbacks: Any
    #: Whether no reset staggers rows, see :func:`cartwheel.vector.episode_rules.whole_episodes`.
    _begins_whole = False
    #: Whether resets load states, see ``cartwheel.wrappers.CachedReset``.
    _caches_resets = False
    #: The sources of wrappers, which get the arguments of :meth:`next_reset`.
    _sources: weakref.WeakSet[Any]
    #: What :meth:`next_reset` gave rows last; the workers know for which of them it is pending.
    _next_resets: dict[int, NextReset]
    #: What uses the memory of batches and ends before that memory does, by the name of its device.
    _attached: dict[str, Any]
    _pool: Pool
    _finalizer: Finalizer
    __del__ = keep_open

    def _opened(self, shut_down: Callable[..., None], *args: Any) -> None:
        """Registers the function that ends the workers.

        It runs at :meth:`close`, when this object is collected, or when this process ends.

        Args:
            shut_down: Called with the pool, ``args`` and the seconds that workers get to close.
            *args: Must not refer to this object; otherwise only a garbage collection ends the
                workers.
        """
        free_in_workers(self._pool)
        self._sources = weakref.WeakSet()
        self._next_resets = {}
        self._attached = {}
        self._finalizer = Finalizer(self, _end, shut_down, self._pool, args, self._attached)

    def __repr__(self) -> str:
        """Class, id if it is known, number of environments, mode and executor, in one line."""
        parts = [] if self._shown_id is None else [repr(self._shown_id)]
        parts.append(f"num_envs={self.num_envs}")
        if self.batch_size < self.num_envs:
            parts.append(f"batch_size={self.batch_size}")
        parts.append(f"autoreset_mode={self.autoreset_mode.name.lower()!r}")
        parts.append(f"executor={self.executor!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> NoReturn:
        """Raises ``TypeError``: environments and their workers are not copied."""
        raise TypeError(
            f"{self!r} cannot be pickled or copied: pass a function that makes one, such as "
            "`lambda: cartwheel.make_vec(id, num_envs)`."
        )

    @property
    def _shown_id(self) -> str | None:
        """The id in ``repr`` and errors."""
        return None if self.spec is None else self.spec.id

    # Stepping

    def reset(
        self,
        *,
        seed: Seeds = None,
        options: ResetOptions = None,
    ) -> tuple[ObsType, dict[str, Any]]:
        """Resets every environment, or the rows that ``options`` select.

        Args:
            seed: ``None``: every environment continues its random numbers (at the first reset, it
                chooses a seed itself). An integer ``s``: row ``i`` gets the seed ``s + i``. A list:
                one seed or ``None`` for each row.
            options: Every environment's ``reset`` gets its own copy of this dictionary and of the
                dictionaries, lists, tuples and arrays in it; other objects are shared within one
                process. A list or tuple has one dictionary or ``None`` for each row; it resets all
                rows, and selects none. In a dictionary for all rows, two entries select rows and
                are not passed on. ``"reset_mask"``, a ``bool`` array of shape ``(num_envs,)`` with
                at least one true value: these rows are reset, the others keep their state and
                repeat their last observation (zeros before their first reset). ``"env_index"`` (or
                ManiSkill's name ``"env_idx"``), an array of row numbers: only these rows are reset,
                and only they are returned, in this order; with ``full_batch`` all rows are
                returned, as with a ``"reset_mask"``, and a list of seeds may have an entry for each
                reset row, in this order, or for each of all rows. Entries that resemble these names
                (``"env_ids"``) are refused if their value could select rows; others go to the
                environments. Native environments refuse options that no native environment has.

        Returns:
            Observations and infos. A reset row is no longer frozen, and its autoreset is no longer
            pending. With a ``batch_size`` below ``num_envs``, the batch has the rows that finish
            first; :meth:`recv` returns the others.

        Raises:
            ValueError: A list of seeds or options or a mask has the wrong length, a mask has no
                true value, several entries select rows, or an entry is refused.
            TypeError: ``options`` are neither a dictionary nor a list of dictionaries and ``None``,
                the mask is not a ``bool`` array, or the seeds are not a list.
            gymnasium.error.Error: A seed is negative or not an integer.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
                :meth:`recv` them first, because a reset does not return their rewards, or use
                :meth:`send_reset`. If some of these rows are in flight after a wait that timed out
                or was interrupted, this error is not raised: the reset waits for all rows in flight
                and drops their results.
            RuntimeError: ``"env_index"`` selects rows before the first step of a :meth:`rollout`. A
                ``"reset_mask"`` is allowed there, and row numbers with ``full_batch``.
        """
        prepared = self._prepared("reset", seed, options)
        result: tuple[ObsType, dict[str, Any]]
        if prepared is None:
            rows = self._prepared_rows("reset", seed, options, alone=True)
            result = self._pool.reset_rows(*rows, "reset", self._callbacks.timeout)
        else:
            result = self._pool.reset(*prepared, "reset", self._callbacks.timeout)
        return result

    def reset_async(
        self,
        seed: Seeds = None,
        options: ResetOptions = None,
    ) -> None:
        """Begins a reset, with the arguments of :meth:`reset`; :meth:`reset_wait` returns it.

        If an earlier call timed out or was interrupted, this method waits for that call first and
        drops its result.

        Raises:
            Exception: As :meth:`reset`.
        """
        prepared = self._prepared("reset_async", seed, options)
        if prepared is None:
            self._send_resets("reset_async", seed, options, alone=True)
        else:
            self._pool.reset_async(*prepared, "reset_async")

    def _prepared(
        self, calling: str, seed: Any, options: ResetOptions
    ) -> tuple[list[Any], NDArray[np.bool_] | None] | None:
        """Prepares a reset for the method ``calling``, which errors name.

        Returns:
            Messages and the mask of the rows; ``None`` if the reset returns a batch of some rows,
            as ``recv`` does.
        """
        self._pool.check(calling, idle=False)
        check_options(options, self.num_envs)
        if self._in_parts(options):
            return None
        mask: NDArray[np.bool_] | None
        if names_rows(options):
            seeds, mask = as_reset_of_all(seed, options, self.num_envs)
        else:
            seeds = as_seeds(seed, range(self.num_envs), self.num_envs)
            mask = as_reset_mask(options, self.num_envs)
        if mask is None and self._begins_whole:
            mask = np.ones(self.num_envs, np.bool_)  # a reset of some rows does not stagger them
        self._pool.discard_abandoned(self._callbacks.timeout, calling)
        self._pool.check(calling, idle=True)
        return self._callbacks.pack_reset(seeds, mask, without_rows(options)), mask

    def next_reset(
        self,
        *,
        seed: Seeds = None,
        options: ResetOptions = None,
        env_index: Any = None,
    ) -> None:
        """Gives seeds and options to the next automatic reset of each row.

        They are used once, by the next reset that the autoreset mode makes: in ``NEXT_STEP`` by the
        step after the last one of an episode, in ``SAME_STEP`` by the last step itself. The resets
        after that continue the row's random numbers as usual. Another call replaces seeds and
        options of the same rows; a call without arguments removes them. An explicit :meth:`reset`
        of a row, or a state that is restored into it, discards them.

        With ``on_error="restart"`` they stay with the row: if the environment fails in the reset
        itself, the replacement is reset in the same way. With ``on_worker_death="restart"``, rows
        of a worker process that died lose those that it had received with an earlier step.

        Example:
            >>> import cartwheel
            >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode="same_step")
            >>> observations, _ = envs.reset(seed=7)
            >>> envs.next_reset(seed=[70, 71])
            >>> for _ in range(60):
            ...     _ = envs.step([1, 1])
            >>> envs.np_random_seed
            (70, 71)

        Args:
            seed: ``None``: the reset continues the random numbers. An integer ``s``: row ``i`` gets
                the seed ``s + i``. A list: one seed or ``None`` for each of the rows.
            options: A dictionary for each of the rows, or a list with one dictionary or ``None``
                for each. They are copied as by :meth:`reset`.
            env_index: The rows, an array or list of integers; by default all rows. None of them may
                be in flight. Other rows may be.

        Raises:
            RuntimeError: The autoreset mode is ``DISABLED``, which makes no automatic resets.
            ValueError: A row does not exist or is named twice, a list has the wrong length, options
                select rows (``"reset_mask"``, ``"env_index"``), or a native environment does not
                have an option.
            TypeError: Row numbers are not integers, or options are not dictionaries.
            gymnasium.error.Error: A seed is negative or not an integer.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or a row is in flight.
            Exception: Options cannot be sent to a worker process.
        """
        self._pool.check("next_reset", idle=False)
        if self.autoreset_mode == AutoresetMode.DISABLED:
            raise RuntimeError(
                "`next_reset` is for automatic resets, and autoreset_mode='disabled' makes none: "
                "pass `seed` and `options` to `reset`."
            )
        rows = self._numbers(env_index)
        if self._pool.pending() is not None or not set(rows).isdisjoint(self._pool.in_flight()):
            self._pool.check("next_reset", idle=True)
        seeds = as_seeds(seed, rows, self.num_envs)
        how = "pass row numbers as `env_index` of `next_reset`"
        check_row_options(options, len(rows), self.num_envs, how)
        self._keep_next_resets(
            dict(zip(rows, zip(seeds, by_row(options, len(rows)), strict=True), strict=True))
        )
        for source in self._sources:
            source.keep_next_resets(rows, seeds, options)

    def _keep_next_resets(self, given: dict[int, NextReset]) -> None:
        """Gives seeds and options to the next automatic resets of rows."""
        if given:
            seeds = [seed for seed, _ in given.values()]
            options = [own for _, own in given.values()]
            self._callbacks.keep_next_resets(self._pool, list(given), seeds, options)
            self._next_resets.update(
                {row: (seed, copied(own)) for row, (seed, own) in given.items()}
            )

    def _pending_next_resets(self, calling: str) -> dict[int, NextReset]:
        """Returns seeds and options that :meth:`next_reset` gave rows and that were not used."""
        if not self._next_resets:
            return {}
        pending = set(self._callbacks.next_reset_rows(self._pool, calling))
        known = self._next_resets
        self._next_resets = {
            row: known[row] for row in pending.intersection(known) if known[row] != (None, None)
        }
        return dict(self._next_resets)

    def reset_wait(self, timeout: float | None = None) -> tuple[ObsType, dict[str, Any]]:
        """Waits for a reset.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`reset_async`.
            gymnasium.error.AlreadyPendingCallError: Steps are in flight: :meth:`recv` them, because
                a reset does not return their rewards.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset again.
        """
        in_parts = self._pool.pending() is None and self._pool.in_flight()
        wait = self._pool.recv_resets if in_parts else self._pool.reset_wait
        result: tuple[ObsType, dict[str, Any]] = wait(as_timeout(timeout))
        return result

    def _in_parts(self, options: ResetOptions) -> bool:
        """Whether a reset with these options returns a batch of some rows, as ``recv`` does."""
        by_number = names_rows(options) and not self.full_batch
        return self.batch_size < self.num_envs or by_number

    def step(
        self, actions: ActType, env_index: Any = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment, or the rows of ``env_index``.

        Args:
            actions: One action for each environment, in the form of :attr:`action_space`: an array,
                a list, or dictionaries and tuples of them. Each environment receives a copy of its
                action with the dtype of ``actions``; Python integers if ``actions`` is a list of
                them.
            env_index: One row number for each action. Only these rows are stepped, as by
                ``send(actions, env_index)`` and then ``recv()``. Required with a ``batch_size``
                below ``num_envs``: pass ``infos["env_index"]`` of the batch that the actions
                answer.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``), infos. With
            ``env_index`` they are a batch of these rows, as from :meth:`recv`.

        Raises:
            ValueError: The number or the shape of the actions is wrong, or ``env_index`` is
                required and missing. Nothing was stepped.
            TypeError: The actions are not a batch, or the kind of their dtype differs from their
                space's.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset
                since then, or are native and were never reset.
            Exception: The environment of the lowest failing row raised it. The other rows were
                stepped; the rows that raised must be reset.
        """
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.step(actions, env_index)
        return result

    def step_async(self, actions: ActType, env_index: Any = None) -> None:
        """Begins a step with the arguments of :meth:`step`; :meth:`step_wait` returns its result.

        Raises:
            ValueError: As for :meth:`step`.
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        self._pool.step_async(actions, env_index)

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
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.step_wait(seconds)
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
        """Sends actions to environments and returns at once; :meth:`recv` returns the results.

        Several sends may be in flight if their rows differ. A row is in flight until it is
        received, and cannot be sent again before. Actions without a fixed shape go through a
        channel, which holds a few hundred kilobytes; with more, this method waits until the worker
        process has taken some of them.

        Args:
            actions: One action for each row, as for :meth:`step`. Actions go through shared memory
                as long as their dtype is the same as that of the actions in flight; another dtype
                takes longer.
            env_index: The rows, an array or list of integers, in any order. By default all rows,
                even if :attr:`action_space` has fewer. For a batch of some rows, pass its
                ``infos["env_index"]``.

        Raises:
            ValueError: A row does not exist or is named twice, or the number of actions is wrong.
            TypeError: Row numbers are not integers, or actions have another kind of dtype.
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
        self,
        timeout: float | None = None,
        *,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Receives the next batch: the first ``batch_size`` rows in flight that are done.

        If fewer rows are in flight, the batch has all of them. :attr:`recv_order` is their order.
        With ``min_rows`` the batch has all rows that are done as soon as that many are. It may
        have fewer, because each ``batch_size`` rows in flight share memory, and a batch does not
        cross its end. Rows that :meth:`send` sent without ``env_index``
        are one batch in any case, if ``batch_size`` is ``num_envs``.

        Args:
            timeout: Seconds to wait; by default the ``timeout`` of this object. With ``min_rows``,
                the batch then has the rows that are done, if any are.
            min_rows: The minimum number of rows, at least 1; by default ``max_rows``.
            max_rows: The maximum number of rows, at most ``batch_size``, which is the default.

        Returns:
            The same five values as :meth:`step`, with one entry for each received row;
            ``infos["env_index"]`` (``int64``) has the row numbers. A row that was reset has reward
            0 and false flags. An environment's own info with the name ``env_index`` is replaced.

        Raises:
            ValueError: ``min_rows`` or ``max_rows`` is out of range.
            gymnasium.error.NoAsyncCallError: Nothing is in flight.
            multiprocessing.TimeoutError: Environments are still busy; nothing is lost.
            Exception: The environment of the lowest failing row of the batch raised it. The other
                rows of the batch were stepped and can be sent again; the rows that raised must be
                reset. A note names the rows of the batch.
        """
        seconds = self._callbacks.timeout if timeout is None else as_timeout(timeout)
        if min_rows is None and max_rows is None:
            result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.recv(seconds)
            return result
        size = self.batch_size
        limit = as_integer("max_rows", size if max_rows is None else max_rows, 1)
        if limit > size:
            raise ValueError(f"`max_rows` must be at most batch_size={size}, got {limit}.")
        minimum = as_integer("min_rows", limit if min_rows is None else min_rows, 1, limit)
        try:
            result = self._pool.recv(seconds, (minimum, limit))
        except multiprocessing.TimeoutError:
            if min_rows is None or minimum == 1:
                raise
            result = self._pool.recv(0.0, (1, limit))
        return result

    @property
    def recv_order(self) -> RecvOrder:
        """The order in which :meth:`recv` returns rows: ``"sent"`` or ``"done"``.

        ``"sent"``: the order of the sends. So after two sends, ``recv(min_rows=n, max_rows=n)``
        with the number of rows of the first one returns exactly its rows, in their order.
        ``"done"``: the order in which rows are done. At first it is ``"sent"`` if ``batch_size`` is
        ``num_envs``, otherwise ``"done"``. It may be set while nothing is in flight.

        Raises:
            ValueError: The new value is neither.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight, in the present order.
        """
        return "sent" if self._pool.receives_in_order() else "done"

    @recv_order.setter
    def recv_order(self, order: RecvOrder) -> None:
        check_choice("recv_order", order, RecvOrder)
        self._pool.receive_in_order(order == "sent")

    def send_reset(
        self,
        seed: Seeds = None,
        options: ResetOptions = None,
    ) -> None:
        """Begins a reset and returns at once; :meth:`recv` returns the results.

        If some of the rows are still in flight after a wait that timed out or was interrupted, this
        method first waits for all rows in flight and drops their results.

        Args:
            seed: As for :meth:`reset`; a list has one seed or ``None`` for each row that is reset.
            options: As for :meth:`reset`: ``"reset_mask"`` or ``"env_index"`` (or ``"env_idx"``)
                selects rows; by default all rows are reset. Some rows that need different options
                are reset by several calls.

        Raises:
            ValueError: A row does not exist or is named twice, several entries select rows, or the
                number of seeds or options is wrong.
            gymnasium.error.AlreadyPendingCallError: Some of the rows are in flight, or another call
                is pending.
            RuntimeError: A :meth:`rollout` has no step yet: use :meth:`reset`.
        """
        self._pool.check("send_reset", idle=False)
        check_options(options, self.num_envs)
        self._send_resets("send_reset", seed, options, alone=False)

    def _send_resets(self, calling: str, seed: Any, options: ResetOptions, *, alone: bool) -> None:
        """Sends resets for the method ``calling``; ``alone``: no other row may be in flight."""
        self._pool.send_reset(*self._prepared_rows(calling, seed, options, alone=alone), calling)

    def _prepared_rows(
        self, calling: str, seed: Any, options: ResetOptions, *, alone: bool
    ) -> tuple[list[int], list[Any], bool]:
        """Prepares resets: their rows, the messages, and whether no rows are named."""
        rows = as_reset_rows(options, self.num_envs)
        full = not row_options_in(options) and not self._begins_whole
        seeds = as_seeds(seed, rows, self.num_envs)
        flying = self._pool.in_flight()
        if not flying or not set(rows).isdisjoint(flying):
            self._pool.discard_abandoned(self._callbacks.timeout, calling)
        if alone:
            self._pool.check(calling, idle=True)
        return rows, self._callbacks.pack_row_resets(rows, seeds, without_rows(options)), full

    @property
    def timeout(self) -> float | None:
        """Seconds that a reset, a step or a control call may take; ``None``: no limit."""
        seconds: float | None = self._callbacks.timeout
        return seconds

    @property
    def in_flight(self) -> list[int]:
        """The rows that were sent and have not been received, in ascending order.

        A pending :meth:`step_async` or :meth:`reset_async` of all rows does not count.
        """
        return self._pool.in_flight()

    # Rollouts

    @property
    def fills_rollouts(self) -> bool:
        """Whether the arrays of :meth:`rollout` have the results of :meth:`step`, without a copy.

        False if a subclass overrides ``step`` or ``reset``, and in wrappers that change results.
        """
        kind = type(self)
        return kind.step is PoolVectorEnv.step and kind.reset is PoolVectorEnv.reset

    def rollout(self, num_steps: int) -> RolloutArrays[ObsType]:
        """Records the next ``num_steps`` steps into contiguous arrays, without a copy.

        The first observation of the rollout is the present batch, so the last batch of one rollout
        is the first of the next. A reset before the first step replaces that batch. A reset between
        later steps is not recorded; in the mode ``DISABLED``, copy the reset rows yourself. An
        exception of an environment ends the rollout. :meth:`step` returns the same values as
        without a rollout; large observations are views of the rollout's arrays.

        Every batch of a rollout has all rows. So while a rollout is recorded, steps of some rows
        are refused, and before its first step also resets of some rows by ``"env_index"``. A
        rollout ends after its last step, by :meth:`end_rollout`, or by another rollout.

        Args:
            num_steps: The number of steps, from 1 to 65534.

        Returns:
            The arrays. When no reference to them is left, the next rollout uses their memory.

        Raises:
            ValueError: ``num_steps`` is out of range, observations have no fixed shape, or
                ``batch_size`` is less than ``num_envs``.
            MemoryError: There is not enough memory; nothing was allocated.
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight.
        """
        slab = self._pool.new_rollout(as_integer("num_steps", num_steps, 1, limit=65534))
        self._callbacks.attach_rollout(self._pool, slab)
        arrays = self._pool.record(slab)
        # A reset without rows repeats every row's observation, which is the present batch.
        no_rows = np.zeros(self.num_envs, dtype=np.bool_)
        messages = self._callbacks.pack_reset([None] * self.num_envs, no_rows, None)
        self._pool.reset(messages, no_rows, "rollout", self._callbacks.timeout)
        return RolloutArrays(*arrays)

    def end_rollout(self) -> None:
        """Ends the present rollout, if there is one; it keeps the recorded steps.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another thread is in a call.
        """
        self._pool.stop_recording()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Self]:
        """Keeps statistics of wrappers as they are; a vector environment itself has none.

        See :meth:`cartwheel.wrappers.VectorWrapper.frozen`, so that a loop works with wrappers and
        without.

        Raises:
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight, at the
                beginning or at the end.
        """
        with nothing_in_flight(self, "frozen"):
            yield self

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row and worker, waits and memory, so far.

        This method copies some numbers and delays no call. It may be called while calls are pending
        or rows are in flight, and from another thread while this thread waits.

        Raises:
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`, which frees the counters.
            cartwheel.ForkedProcessError: In a forked child.
        """
        return Stats(**self._pool.stats())

    # States

    def get_state(self, env_index: Any = None) -> list[bytes]:
        """Saves rows: environments, progress of their episodes, and the observations of the rows.

        A native environment's state includes its random numbers, and is valid for the environment's
        id and keywords. A Python environment can be saved if it has methods ``get_state()``, which
        returns anything that can be pickled, and ``set_state(state)``, which restores everything
        that later steps depend on, including random numbers; or if the vector environment was made
        with ``states="pickle"``. Wrappers around it, Gymnasium's and others, are saved by their
        attributes, except spaces and functions. A wrapper with the two methods saves itself and
        everything inside it. Rows of MuJoCo whose own model was changed by ``set_attr`` are
        refused here; :meth:`state_dict` saves them.

        A state outlives the process. The autoreset mode, the step limit and the number of
        environments may differ where it is restored. States of Python environments are pickles: do
        not restore states that you do not trust.

        Args:
            env_index: Row numbers, in any order; ``None`` for all rows.

        Returns:
            One state for each row.

        Raises:
            ValueError: A row does not exist, a row is named twice, or an environment cannot be
                saved; the error names the row, the reason and the remedy.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        self._pool.check("get_state", idle=True)
        numbers = self._numbers(env_index)
        self._check_states("get_state", numbers)
        return saved(self._pool, self._callbacks, numbers)

    def set_state(self, env_index: Any, states: Sequence[bytes]) -> tuple[ObsType, dict[str, Any]]:
        """Continues rows from states that :meth:`get_state` returned.

        Each row continues like the saved row: the same actions give the same results, bit for bit.
        A row may be over, or wait for its autoreset, like the saved one. A state may be restored
        into any row, any number of times. If a state is refused, no row changes.

        Args:
            env_index: Row numbers, in any order; ``None`` for all rows.
            states: One state for each of these rows.

        Returns:
            Observations and infos of these rows, in their order, as from a reset with row numbers.
            They are the last observations of the saved rows (zeros for rows that were never reset),
            and ``infos["env_index"]``.

        Raises:
            ValueError: A row does not exist, a row is named twice, or the number of states is
                wrong. A state was changed, or is of another environment or of other keywords.
            TypeError: A state is not ``bytes``.
            RuntimeError: A :meth:`rollout` has no step yet.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it, for its old state or the
                new one.
        """
        self._pool.check("set_state", idle=True)
        numbers = self._numbers(env_index)
        if isinstance(states, bytes):
            raise TypeError("`states` must be a list with one state for each row, got one state.")
        if len(states) != len(numbers):
            raise ValueError(f"{len(states)} states for {len(numbers)} rows")
        for state in states:
            self._callbacks.check_state(state)
        self._check_states("set_state", numbers)
        space = self.single_observation_space
        return restored(self._pool, self._callbacks, numbers, list(states), space)

    def state_dict(self, *, envs: bool = True) -> dict[str, Any]:
        """Saves the vector environment, to continue it here or in another process.

        The state has all that the next steps depend on: the rows (see :meth:`get_state`), where
        they are in their episodes, whether their reset is pending, and what :meth:`next_reset` gave
        them. Rows that were never reset are saved as such. The docs have a page about it,
        "Checkpoints and resuming".

        Args:
            envs: Whether to save the environments, too. If not, the state has the wrappers around
                them alone, and of these the numbers that are about all rows, such as moments.

        Returns:
            Dictionaries with text as keys, lists, arrays, numbers, text and bytes, for ``pickle``
            or ``torch.save``.

        Raises:
            ValueError: An environment cannot be saved; the error names the row, the reason and the
                remedy.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        self._pool.check("state_dict", idle=True)
        return new_state(
            "vector_env", **self._description(), wrappers=[], envs=self._rows(envs=envs)
        )

    def load_state_dict(self, state: dict[str, Any]) -> ObsType | None:
        """Continues from a state of :meth:`state_dict`.

        The next calls return what they would have returned there, bit for bit. The executor, the
        number of workers and the sizes of queues may differ; the number of environments, the
        environments and the autoreset mode may not. If any part of the state is refused, nothing
        changes. A :meth:`rollout` ends.

        Args:
            state: The state. It has pickles: do not load states that you do not trust.

        Returns:
            What the rows last showed, all of them in their order; zeros for rows that were never
            reset. ``None`` for a state without environments.

        Raises:
            TypeError: ``state`` is not a dictionary.
            ValueError: It is of another version or of another vector environment.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            Exception: The environment of the lowest failing row raised it.
        """
        self._pool.check("load_state_dict", idle=True)
        check_header(state, "vector_env", (*self._description(), "wrappers", "envs"))
        check_wrappers(state["wrappers"], [])
        self._check_description(state)
        return self._load_rows(state)

    def _description(self) -> dict[str, Any]:
        """Returns what must be equal where a state is loaded."""
        return {"num_envs": self.num_envs, "autoreset_mode": self.autoreset_mode.name.lower()}

    def _check_description(self, state: dict[str, Any]) -> None:
        """Raises ``ValueError`` if the rows of a state are those of other environments."""
        if state["envs"] is None:
            return
        for name, present in self._description().items():
            check_equal(name, state[name], present)

    def _rows(self, *, envs: bool) -> dict[str, Any] | None:
        """Returns the part of a state that has the rows."""
        if not envs:
            return None
        next_resets = self._pending_next_resets("state_dict")
        return {
            "states": saved(self._pool, self._callbacks, list(range(self.num_envs)), "state_dict"),
            "next_resets": as_entries(next_resets, pickled),
            "models": self._models(),
        }

    def _load_rows(self, state: dict[str, Any]) -> ObsType | None:
        """Checks and loads the rows of a state, all of them or none; returns what they show."""
        rows = state["envs"]
        if rows is None:
            return None
        check_keys("state['envs']", rows, {"states", "next_resets", "models"})
        check_list("state['envs']['states']", rows["states"], self.num_envs)
        for row_state in rows["states"]:
            self._callbacks.check_state(row_state)
        coming = from_entries(rows["next_resets"], self.num_envs, "state['envs']['next_resets']")
        before, models = self._pending_next_resets("load_state_dict"), self._models()
        self._keep_next_resets(coming)  # refuses them before anything changes
        try:
            self._set_models(rows["models"])
            self._pool.stop_recording()
            space = self.single_observation_space
            observations: ObsType = loaded(
                self._pool, self._callbacks, rows["states"], space, "load_state_dict"
            )
        except BaseException:
            with contextlib.suppress(Exception):  # closed, or broken
                self._set_models(models)
                self._keep_next_resets({**dict.fromkeys(coming, (None, None)), **before})
            raise
        self._keep_next_resets(coming)  # loading discards them
        return observations

    def _models(self) -> list[dict[str, Any]]:
        """Returns what was set in the model of each row, if rows have models of their own."""
        return []

    def _set_models(self, models: Any) -> None:
        """Sets all of that, and sets back what was set otherwise.

        Raises:
            ValueError: Rows have no models of their own, or a value does not fit.
        """
        check_list("state['envs']['models']", models, 0)

    def _check_states(self, calling: str, rows: list[int]) -> None:
        """Raises ``ValueError`` if states of a row would be incomplete."""

    def _named(self, env_index: Any) -> list[int] | None:
        """Returns the rows of ``env_index`` as a list; ``None`` stands for all rows."""
        return None if env_index is None else as_rows(env_index, self.num_envs)

    def _numbers(self, env_index: Any) -> list[int]:
        """Returns row numbers as a list; ``None`` stands for all rows."""
        return (
            list(range(self.num_envs)) if env_index is None else as_rows(env_index, self.num_envs)
        )

    # Closing

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:  # noqa: FBT001
        """Closes the environments and ends the workers, in any state.

        Args:
            timeout: Seconds that environments get to finish a pending call and to close; 5 by
                default. If a pending call uses up this time, workers get one more second to close,
                or ``timeout`` seconds if that is less. Worker processes that take longer are
                killed.
            terminate: Do not wait at all.

        Raises:
            TypeError: ``timeout`` is not a number; nothing was closed.
            ValueError: ``timeout`` is negative; nothing was closed.
        """
        if not self._finalizer.alive:
            return
        seconds = CLOSE_GRACE if timeout is None else as_timeout(timeout)
        grace = 0.0 if terminate else FOREVER_S if seconds is None else seconds
        began = time.monotonic()
        pending = self._pool.pending()
        if pending is not None:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{pending}` to complete."
            )
            self._await_pending(pending, grace)
        left = grace - (time.monotonic() - began)
        self._finalizer(max(left, min(grace, LAST_GRACE)))

    def _await_pending(self, pending: str, grace: float) -> None:
        with contextlib.suppress(Exception):  # closing continues in any case
            getattr(self, f"{pending}_wait")(grace)


def _end(
    shut_down: Callable[..., None],
    pool: Any,
    args: tuple[Any, ...],
    attached: dict[str, Any],
    grace: float | None = None,
) -> None:
    """Ends a pool; without ``grace`` at the end of the process, or of the last reference."""
    for each in attached.values():
        each.end()
    if grace is None:
        grace = ABANDONED_GRACE if pool.has_abandoned() else CLOSE_GRACE
    shut_down(pool, *args, grace)


def drop_in_flight(envs: Any) -> None:
    """Receives and drops all rows in flight, including batches that are lost to an exception.

    Args:
        envs: A vector environment with ``recv``, whose ``unwrapped`` has ``in_flight``.

    Raises:
        Exception: A ``recv`` raised it and received nothing, because a worker died or timed out.
    """
    pool = envs.unwrapped
    while flying := pool.in_flight:
        try:
            envs.recv()
        except Exception:  # noqa: PERF203 - the batch is lost, the next one may not be
            if pool.in_flight == flying:
                raise
