"""Resets of a vector environment: of all rows, of some, sent ones and the next automatic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal.arguments import as_timeout
from cartwheel._internal.reset_arguments import (
    as_reset_mask,
    as_reset_of_all,
    as_reset_rows,
    as_seeds,
    by_row,
    check_options,
    check_row_options,
    copied,
    names_rows,
    row_options_in,
    without_rows,
)
from cartwheel.vector.pool_owner import ActType, ObsType, PoolOwner
from cartwheel.workers.channels import Deadline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel._internal.weak_set import ConcurrentWeakSet
    from cartwheel.vector.state_dict import NextReset


class Resets(PoolOwner[ObsType, ActType]):
    """The methods of a vector environment that reset rows."""

    #: Whether no reset staggers rows, see :func:`cartwheel.vector.episode_rules.whole_episodes`.
    _begins_whole = False
    #: Whether resets load states, see ``cartwheel.wrappers.CachedReset``.
    _caches_resets = False
    #: The sources of wrappers, which get the arguments of :meth:`next_reset`.
    _sources: ConcurrentWeakSet[Any]
    #: What :meth:`next_reset` gave rows last; the workers know for which of them it is pending.
    _next_resets: dict[int, NextReset]

    def reset(
        self, *, seed: Seeds = None, options: ResetOptions = None
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
                reset row, in this order, or for each of all rows. Without further entries the
                environments get ``None``; with a mask alone ``{}``, as in Gymnasium. Entries that
                resemble these names (``"env_ids"``) are refused if their value could select rows;
                others go to the environments. Native environments refuse options that no native
                environment has.

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
        deadline = Deadline(self._callbacks.timeout)  # also of the wait for an earlier call
        prepared = self._prepared("reset", seed, options)
        result: tuple[ObsType, dict[str, Any]]
        if prepared is None:
            rows = self._prepared_rows("reset", seed, options, alone=True)
            result = self._pool.reset_rows(*rows, "reset", deadline.left())
        else:
            result = self._pool.reset(*prepared, "reset", deadline.left())
            mask = prepared[1]
            if mask is None or mask.all():
                self._reset_at = self._pool.begun()
        return result

    def reset_async(self, seed: Seeds = None, options: ResetOptions = None) -> None:
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
        packed = self._packed_reset(seed, options)
        self._pool.discard_abandoned(self._callbacks.timeout, calling)
        self._pool.check(calling, idle=True)
        return packed

    def _packed_reset(
        self, seed: Any, options: ResetOptions
    ) -> tuple[list[Any], NDArray[np.bool_] | None]:
        """Returns the messages of a reset that returns all rows, and the mask of its rows."""
        mask: NDArray[np.bool_] | None
        if names_rows(options):
            seeds, mask = as_reset_of_all(seed, options, self.num_envs)
        else:
            seeds = as_seeds(seed, range(self.num_envs), self.num_envs)
            mask = as_reset_mask(options, self.num_envs)
        if mask is None and self._begins_whole:
            mask = np.ones(self.num_envs, np.bool_)  # a reset of some rows does not stagger them
        return self._callbacks.pack_reset(seeds, mask, without_rows(options)), mask

    def next_reset(
        self, *, seed: Seeds = None, options: ResetOptions = None, env_index: Any = None
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

        Returns:
            Observations and infos, as :meth:`reset`.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`reset_async`.
            gymnasium.error.AlreadyPendingCallError: Steps are in flight: :meth:`recv` them, because
                a reset does not return their rewards.
            WorkerTimeoutError: Environments are still busy; wait again, or reset again.
        """
        wait = self._pool.recv_resets if self._pool.in_flight() else self._pool.reset_wait
        return wait(as_timeout(timeout))

    def _in_parts(self, options: ResetOptions) -> bool:
        """Whether a reset with these options returns a batch of some rows, as ``recv`` does."""
        by_number = names_rows(options) and not self.full_batch
        return self.batch_size < self.num_envs or by_number

    def send_reset(self, seed: Seeds = None, options: ResetOptions = None) -> None:
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
        prepared = self._prepared_rows(calling, seed, options, alone=alone)
        self._pool.send_reset(*prepared, calling, in_order=alone)

    def _prepared_rows(
        self, calling: str, seed: Any, options: ResetOptions, *, alone: bool
    ) -> tuple[list[int], list[Any], bool]:
        """Prepares resets: their rows, the messages, and whether no rows are named."""
        rows = as_reset_rows(options, self.num_envs)
        full = not row_options_in(options) and not self._begins_whole
        seeds = as_seeds(seed, rows, self.num_envs)
        messages = self._callbacks.pack_row_resets(rows, seeds, without_rows(options))
        flying = self._pool.in_flight()
        if not flying or not set(rows).isdisjoint(flying):
            self._pool.discard_abandoned(self._callbacks.timeout, calling)
        if alone:
            self._pool.check(calling, idle=True)
        return rows, messages, full
