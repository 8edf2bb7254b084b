"""The vector environment under the wrappers of cartwheel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.async_vector_env import AsyncVectorEnv  # never patched
from gymnasium.vector.sync_vector_env import SyncVectorEnv

from cartwheel._cartwheel import RowKinds
from cartwheel.arguments import (
    NUMBERING_OPTIONS,
    as_reset_mask,
    as_reset_of_all,
    as_reset_rows,
    by_row,
    copied,
    mode_of,
    names_rows,
    without_rows,
)
from cartwheel.errors import is_raised_by_env
from cartwheel.spaces import nested
from cartwheel.vector.calls import Calls
from cartwheel.vector.infos import RESTARTED, failed_rows
from cartwheel.vector.pool_env import PoolVectorEnv
from cartwheel.wrapping.batch import RESET, SHOWN, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel.arguments import ResetOptions


class Source:
    """Calls a vector environment and says of each row of its batches what it is.

    All wrappers of cartwheel around a vector environment share one.

    Attributes:
        envs: The vector environment, possibly in wrappers of Gymnasium.
        mode: Its autoreset mode.
        steps_rows: Whether some of its rows can be stepped apart: cartwheel's own can.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Checks the environment; steps nothing.

        Raises:
            TypeError: ``envs`` is not a vector environment.
            ValueError: The metadata has no autoreset mode.
        """
        if not isinstance(envs, VectorEnv):
            raise TypeError(
                f"a wrapper needs a vector environment, got {type(envs)}: see cartwheel.make_vec."
            )
        self.mode = mode_of(envs)
        self.envs: Any = envs
        self.steps_rows: bool = getattr(envs, "steps_rows", False)
        self._is_foreign = not self.steps_rows
        #: Counts calls where the vector environment does not.
        self._calls = Calls(envs) if self._is_foreign else None
        self._kinds = RowKinds(envs.num_envs, self.mode.value)
        self._in_parts = getattr(envs, "batch_size", envs.num_envs) < envs.num_envs
        #: The rows of a pending ``step_async``; seed and options of a pending ``reset_async``.
        self._waits_for: Any = None
        self._resets_with: tuple[Any, ResetOptions] = None, None
        #: The seeds of rows whose reset was sent and has not been received.
        self._seeds_sent: NDArray[np.int64] | None = None
        #: The options of these rows, where there are any.
        self._options_sent: dict[int, dict[str, Any]] = {}
        #: Seed and options of the next automatic reset of rows, where `next_reset` gave some.
        self._next_resets: dict[int, tuple[int, dict[str, Any] | None]] = {}
        if isinstance(envs.unwrapped, PoolVectorEnv):
            envs.unwrapped._sources.add(self)

    # Each method makes one call.

    def step(self, actions: Any, env_index: Any) -> Batch:
        """Steps all rows, or those of ``env_index``."""
        try:
            if env_index is None:
                result = self.envs.step(actions)
            else:
                self.check_steps_rows("step")
                result = self.envs.step(actions, env_index)
        except Exception as error:
            self._lose(error, env_index)
            raise
        return self._stepped(result, in_parts=env_index is not None)

    def step_async(self, actions: Any, env_index: Any) -> None:
        """Begins a step."""
        if env_index is None:
            self.envs.step_async(actions)
        else:
            self.check_steps_rows("step_async")
            self.envs.step_async(actions, env_index)
        self._waits_for = env_index

    def step_wait(self, timeout: float | None) -> Batch:
        """Waits for the step that ``step_async`` began."""
        try:
            result = self.envs.step_wait(timeout) if timeout is not None else self.envs.step_wait()
        except Exception as error:
            self._lose(error, self._waits_for)
            raise
        return self._stepped(result, in_parts=self._waits_for is not None)

    def recv(self, timeout: float | None, **bounds: int | None) -> Batch:
        """Receives rows that were sent."""
        try:
            result = self.envs.recv(timeout, **bounds)
        except Exception as error:
            idle = np.setdiff1d(np.arange(self.envs.num_envs), self.envs.in_flight)
            self._lose(error, idle)
            raise
        return self._stepped(result, in_parts=True)

    def reset(self, seed: Any, options: ResetOptions) -> Batch:
        """Resets all rows, or those that ``options`` select."""
        # Gymnasium's environments remove the mask from the dictionary that they are given.
        given = dict(options) if isinstance(options, dict) else options
        self._refuse_foreign(given)
        try:
            result = self.envs.reset(seed=seed, options=given)
        except Exception as error:
            self._lose_resets(error, seed, options)
            raise
        return self._reset(result, seed, options)

    def reset_async(self, seed: Any, options: ResetOptions) -> None:
        """Begins a reset."""
        given = dict(options) if isinstance(options, dict) else options
        self._refuse_foreign(given)
        self.envs.reset_async(seed=seed, options=given)
        self._resets_with = seed, options
        self._forget_next_resets(options)

    def reset_wait(self, timeout: float | None) -> Batch:
        """Waits for the reset that ``reset_async`` began."""
        wait = self.envs.reset_wait
        try:
            result = wait(timeout) if timeout is not None else wait()
        except Exception as error:
            self._lose_resets(error, *self._resets_with)
            raise
        return self._reset(result, *self._resets_with)

    def async_reset(self, seed: Any, options: ResetOptions) -> None:
        """Sends resets."""
        self.envs.async_reset(seed=seed, options=options)
        self._send_resets(seed, options)

    def _send_resets(self, seed: Any, options: ResetOptions) -> None:
        """Resets of rows were sent; they are found when the rows are received."""
        rows = as_reset_rows(options, self.envs.num_envs)
        self._kinds.send_reset(rows)
        self._forget_next_resets(options)
        self._note_resets(
            rows, None if seed is None else _seeds_of(seed, rows), _options_of(options, rows)
        )

    def _note_resets(
        self, rows: Sequence[int], seeds: Any, options: dict[int, dict[str, Any]] | None
    ) -> None:
        """Keeps seeds (``None``: none) and options of resets until their results come."""
        if seeds is not None and self._seeds_sent is None:
            self._seeds_sent = np.full(self.envs.num_envs, -1, np.int64)
        if self._seeds_sent is not None:
            self._seeds_sent[rows] = -1 if seeds is None else seeds
        if options or self._options_sent:
            for row in rows:
                self._options_sent.pop(row, None)
            self._options_sent.update(options or {})

    def keep_next_resets(self, rows: list[int], seeds: Any, options: ResetOptions) -> None:
        """`next_reset` of the environments was called, successfully.

        Args:
            rows: The rows.
            seeds: A seed or ``None`` for each of them.
            options: As for ``next_reset``.
        """
        own = _options_of(options, rows) or {}
        for row, seed in zip(rows, _seeds_of(seeds, rows).tolist(), strict=True):
            self._next_resets.pop(row, None)
            if seed >= 0 or row in own:
                self._next_resets[row] = seed, own.get(row)

    def _forget_next_resets(self, options: ResetOptions) -> None:
        """Explicit resets of rows, which discard what is kept for automatic ones."""
        if self._next_resets:
            for row in as_reset_rows(options, self.envs.num_envs):
                self._next_resets.pop(row, None)

    def _use_next_resets(self, batch: Batch) -> None:
        """Automatic resets of a step used what was kept for them."""
        rows = np.arange(len(batch.kinds)) if batch.rows is None else batch.rows
        if RESTARTED in batch.infos:  # the worker that had received it died
            for row in rows[batch.infos[RESTARTED]].tolist():
                self._next_resets.pop(row, None)
        begun = batch.kinds == RESET
        if self.mode == AutoresetMode.SAME_STEP:
            begun |= np.logical_or(batch.terminations, batch.truncations)
        for row in rows[begun].tolist():
            if row in self._next_resets:
                seed, options = self._next_resets.pop(row)
                self._note_resets([row], [seed], {row: options} if options else None)

    def restored(self, rows: NDArray[np.int64], result: tuple[Any, dict[str, Any]]) -> Batch:
        """Rows were restored from states; for wrappers that is the beginning of an episode."""
        observations, infos = result
        for row in rows.tolist():
            self._next_resets.pop(row, None)
        batch = Batch(rows, self._kinds.reset(rows, None), observations, None, None, None, infos)
        batch.is_restored = True
        return batch

    def present(self) -> Batch:
        """The present observations of all rows, as the environments show them again."""
        arrays = self.envs.rollout(1)
        self.envs.end_rollout()
        observations = nested.at(arrays.observations, 0)
        kinds = np.full(self.envs.num_envs, SHOWN, np.uint8)
        return Batch(None, kinds, observations, None, None, None, {})

    def check_steps_rows(self, calling: str) -> None:
        """Raises ``TypeError`` if rows cannot be stepped apart."""
        if not self.steps_rows:
            of_rows = " of some rows" if calling in ("step", "step_async") else ""
            raise TypeError(
                f"`{calling}`{of_rows} needs a vector environment of cartwheel, without "
                f"wrappers of Gymnasium around it; this is {self.envs}"
            )

    def _refuse_foreign(self, options: ResetOptions) -> None:
        """Refuses options that are cartwheel's own where they would be taken for something else."""
        if not isinstance(self.envs.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            return
        name = type(self.envs.unwrapped).__name__
        if isinstance(options, list | tuple):
            raise TypeError(
                f"{name} of Gymnasium would pass the list of `options` to every row: pass a "
                "dictionary or None."
            )
        for key in NUMBERING_OPTIONS:
            if options is not None and key in options:
                raise ValueError(
                    f"{name} of Gymnasium does not know `options[{key!r}]` and would reset all "
                    "rows: use 'reset_mask'."
                )

    def _stepped(
        self, result: tuple[Any, Any, Any, Any, dict[str, Any]], *, in_parts: bool
    ) -> Batch:
        observations, rewards, terminations, truncations, infos = result
        if self._calls is not None:
            self._calls.note()
        failed = failed_rows(infos) if infos else None  # refuses infos that are no dictionary
        rows = infos["env_index"] if in_parts or self._in_parts else None
        kinds = self._kinds.step(rows, terminations, truncations, failed)
        batch = Batch(rows, kinds, observations, rewards, terminations, truncations, infos)
        if self._next_resets:
            self._use_next_resets(batch)
        if self._seeds_sent is not None or self._options_sent:
            self._tell_reset(batch)
        return batch

    def _reset(self, result: tuple[Any, dict[str, Any]], seed: Any, options: ResetOptions) -> Batch:
        observations, infos = result
        if self._calls is not None:
            self._calls.note()
        failed_rows(infos)  # refuses infos that are no dictionary
        num_envs = self.envs.num_envs
        by_number = names_rows(options)
        rows: Any = infos.get("env_index") if self._in_parts or by_number else None
        if rows is not None:  # the others, if there are any, are in flight
            self._send_resets(seed, options)
            kinds = self._kinds.reset(rows, None)
            batch = Batch(rows, kinds, observations, None, None, None, infos)
            self._tell_reset(batch)
            return batch
        mask = as_reset_mask(options, num_envs)
        if by_number:  # a full batch; a list of seeds may have one for each row that was reset
            by_row, mask = as_reset_of_all(seed, options, num_envs)
            seed = None if seed is None else by_row
        self._forget_next_resets(options)
        kinds = self._kinds.reset(None, mask)
        seeds = None if seed is None else _seeds_of(seed, range(num_envs))
        if seeds is not None and mask is not None:
            seeds = np.where(mask, seeds, -1)
        again: Any = range(num_envs) if mask is None else mask.nonzero()[0].tolist()
        batch = Batch(None, kinds, observations, None, None, None, infos)
        batch.seeds, batch.options = seeds, _options_of(options, again)
        return batch

    def _tell_reset(self, batch: Batch) -> None:
        """Tells seeds and options of the resets that were sent and are received with a batch."""
        if self._seeds_sent is not None:
            batch.seeds = self._take_seeds(batch.rows)
        if self._options_sent:
            batch.options = self._take_options(batch.rows)

    def _take_seeds(self, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """The seeds with which these rows were reset; ``None`` if there are none."""
        assert self._seeds_sent is not None
        at: Any = slice(None) if rows is None else rows
        seeds = self._seeds_sent[at].copy()
        self._seeds_sent[at] = -1
        if not (self._seeds_sent >= 0).any():
            self._seeds_sent = None
        return seeds if (seeds >= 0).any() else None

    def _take_options(self, rows: NDArray[np.int64] | None) -> dict[int, dict[str, Any]] | None:
        """The options with which these rows were reset; ``None`` if there are none."""
        sent = self._options_sent
        numbers = range(self.envs.num_envs) if rows is None else rows.tolist()
        return {row: sent.pop(row) for row in numbers if row in sent} or None

    def _lose(self, error: Exception, env_index: Any) -> None:
        """Marks rows whose results the call lost; a call that is refused or goes on loses none."""
        if self._loses(error):
            self._kinds.lose(env_index)

    def _lose_resets(self, error: Exception, seed: Any, options: ResetOptions) -> None:
        """The same for a reset: rows beside the one that failed have begun another episode."""
        if not self._loses(error):
            return
        if self._in_parts:  # other rows may be in flight: they are received later
            self._send_resets(seed, options)
        self._forget_next_resets(options)
        self._kinds.lose(as_reset_rows(options, self.envs.num_envs))

    def _loses(self, error: Exception) -> bool:
        if isinstance(error, TimeoutError | gym.error.Error):
            return False
        return self._is_foreign or is_raised_by_env(error)


def _seeds_of(seed: Any, rows: Sequence[int]) -> NDArray[np.int64]:
    """The seed of each of these rows, from what ``reset`` was given: an integer, or a list.

    Where none was given, or one above the greatest ``int64``, it is -1.
    """
    is_one = isinstance(seed, int | np.integer)
    seeds = [int(seed) + row for row in rows] if is_one else seed
    most = np.iinfo(np.int64).max
    known = [-1 if given is None or given > most else int(given) for given in seeds]
    return np.array(known, np.int64)


def _options_of(options: ResetOptions, rows: Sequence[int]) -> dict[int, dict[str, Any]] | None:
    """The options of each of these rows that has some, without those that select rows."""
    pairs = zip(rows, by_row(without_rows(options), len(rows)), strict=True)
    return {row: copied(given) for row, given in pairs if given} or None
