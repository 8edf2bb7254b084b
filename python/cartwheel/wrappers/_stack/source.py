"""The vector environment under the wrappers of cartwheel: its calls, and the batches of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv

from cartwheel._cartwheel import FusedStep
from cartwheel._internal import nested
from cartwheel._internal.gymnasium_classes import AsyncVectorEnv, SyncVectorEnv
from cartwheel._internal.reset_arguments import (
    NUMBERING_OPTIONS,
    as_reset_mask,
    as_reset_of_all,
    kept_options,
    names_rows,
)
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.infos import RESTARTED, failed_rows
from cartwheel.wrappers._stack.known_rows import KnownRows
from cartwheel.wrappers.batch import (
    FAILED,
    RESET,
    SHOWN,
    ActionBatch,
    Batch,
    final_names_of,
    refuse_transformed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions

#: The methods of a pool's vector environment whose errors tell which results were lost.
_CALLS = ("reset", "reset_async", "reset_wait", "step", "step_async", "step_wait", "send", "recv")


class Source(KnownRows):
    """Calls a vector environment and determines the kind of each row of its batches.

    All wrappers of cartwheel around a vector environment share one, up to a wrapper that makes
    calls of its own, around which there is another one.

    Attributes:
        absent: The value of absent agents in observations with floating-point numbers.
        is_bare: Whether every array and exception of a call is the pool's.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Checks the environment; steps nothing.

        Raises:
            TypeError: ``envs`` is not a vector environment.
            ValueError: The metadata has no autoreset mode.
        """
        super().__init__(envs)
        self._final_names = final_names_of(envs, self.autoreset_mode)
        of_agents: Any = None if self.rows_per_env is None else envs.unwrapped
        self.absent: float = 0.0 if of_agents is None else of_agents.absent
        self.is_bare = _is_bare(envs)

    def ahead(self, env_index: Any) -> ActionBatch:
        """Returns the rows that are about to be stepped, for wrappers that change actions."""
        return ActionBatch(self._kinds, self.envs.num_envs, env_index)

    def fused(self, operations: list[tuple[Any, str, tuple[Any, ...]]]) -> FusedStep | None:
        """Returns the pass of a step of all rows through wrappers.

        Args:
            operations: Of the wrappers, from the innermost to the outermost, see ``FusedStep``.

        Returns:
            The pass; ``None`` where arrays are not those of a pool, or not of all rows.
        """
        if not self.is_bare or self._in_parts:
            return None
        kept = self._kinds, self._final_names, self._beginnings.flag, self.unseen.flag
        return FusedStep(*kept, operations)

    def plain_batch(self, parts: tuple[Any, ...]) -> Batch:
        """Returns a batch of a step of all rows, before which no result was lost."""
        batch = Batch(None, *parts)
        batch.final_names = self._final_names
        return batch

    def note_change(self) -> None:
        """Notes that an attribute of a wrapper was set: the next step makes its plan again."""
        self._kinds.note_change()

    # Each method makes one call.

    def step(self, actions: Any, env_index: Any) -> Batch:
        """Steps all rows, or those of ``env_index``."""
        if env_index is not None:
            self.check_steps_rows("step")
        before = None if self.is_bare else self.pool_state()
        try:
            if env_index is None:
                result = self.envs.step(actions)
            else:
                result = self.envs.step(actions, env_index)
            batch = self.on_its_way = self._stepped(result, in_parts=env_index is not None)
        except BaseException as error:
            self._waits_for = env_index
            self._lose_step(error, env_index, before)
            raise
        return batch

    def stepped(self, result: tuple[Any, Any, Any, Any, dict[str, Any]]) -> Batch:
        """Returns the batch of a step of all rows that was made by ``envs.step``."""
        batch = self.on_its_way = self._stepped(result, in_parts=False)
        return batch

    def lose_step(self, error: BaseException) -> None:
        """A step of all rows by ``envs.step``, or a wrapper after it, raises this."""
        self._waits_for = None
        if self.on_its_way is None:
            self._lose_step(error, None, None)
        self.lose_batch(error)

    def step_async(self, actions: Any, env_index: Any) -> None:
        """Begins a step."""
        if env_index is not None:
            self.check_steps_rows("step_async")
        earlier, self._waits_for = self._waits_for, env_index
        try:
            if env_index is None:
                self.envs.step_async(actions)
            else:
                self.envs.step_async(actions, env_index)
        except Exception:
            self._waits_for = earlier
            raise

    def step_wait(self, timeout: float | None) -> Batch:
        """Waits for the step that ``step_async`` began."""
        before = None if self.is_bare else self.pool_state()
        try:
            result = self.envs.step_wait(timeout) if timeout is not None else self.envs.step_wait()
            batch = self.on_its_way = self._stepped(result, in_parts=self._waits_for is not None)
        except BaseException as error:
            self._lose_step(error, self._waits_for, before)
            raise
        return batch

    def wait_again(self, calls: Any, *timeout: float | None) -> Any:
        """Waits once more for a step that timed out; one of some rows is received.

        ``calls`` are made: of this source, or of the vector environment that has it.
        """
        try:
            return calls.step_wait(*timeout)
        except NoAsyncCallError:
            if not (getattr(self.envs, "sends_rows", False) and self._flying()):
                raise
        return calls.recv(*timeout)

    def recv(self, timeout: float | None, **bounds: int | None) -> Batch:
        """Receives rows that were sent."""
        before = None if self.is_bare else self.pool_state()
        try:
            result = self.envs.recv(timeout, **bounds)
            batch = self.on_its_way = self._stepped(result, in_parts=True)
        except BaseException as error:
            self._lose_step(error, None if before is None else sorted(before.flying), before)
            raise
        return batch

    def reset(self, seed: Any, options: ResetOptions) -> Batch:
        """Resets all rows, or those that ``options`` select."""
        # Gymnasium's environments remove the mask from the dictionary that they are given.
        own = dict(options) if isinstance(options, dict) else options
        self._refuse_own_options(own)
        before = self.pool_state()
        # Rows of agents do not read what their pool dropped: steps that timed out.
        calls = self._calls
        has_missed = calls is not None and calls.sees_all and calls.others()
        try:
            result = self.envs.reset(seed=seed, options=own)
            self._read_dropped()
            mask = as_reset_mask(options, self.envs.num_envs) if has_missed else None
            if mask is not None:
                self._lose_unknown(np.flatnonzero(~mask))
            return self._reset(result, seed, options)
        except BaseException as error:
            self._lose_reset(error, seed, options, before)
            raise

    def reset_async(self, seed: Any, options: ResetOptions) -> None:
        """Begins a reset."""
        own = dict(options) if isinstance(options, dict) else options
        self._refuse_own_options(own)
        before = self.pool_state()
        try:
            self.envs.reset_async(seed=seed, options=own)
            self._read_dropped()
            self._resets_with = seed, kept_options(options)
            self._send_resets(seed, options, in_parts=self.resets_parts(options))
        except BaseException as error:
            self._lose_reset(error, seed, options, before)
            raise

    def reset_wait(self, timeout: float | None) -> Batch:
        """Waits for the reset that ``reset_async`` began."""
        before = self.pool_state()
        try:
            wait = self.envs.reset_wait
            result = wait(timeout) if timeout is not None else wait()
            self._read_dropped()
            return self._reset(result, *self._resets_with)
        except BaseException as error:
            self._lose_reset(error, *self._resets_with, before)
            raise

    def send_reset(self, seed: Any, options: ResetOptions) -> None:
        """Sends resets."""
        before = self.pool_state()
        try:
            self.envs.send_reset(seed=seed, options=options)
            self._read_dropped()
            self._send_resets(seed, options, in_parts=True)
        except BaseException as error:
            self._lose_reset(error, seed, options, before)
            raise

    def set_state(self, env_index: Any, numbers: NDArray[np.int64], states: Any) -> Batch:
        """Restores rows from states; for wrappers that is the beginning of an episode."""
        before = self.pool_state()
        try:
            observations, infos = self.envs.set_state(env_index, states)
        except BaseException as error:
            self._lose_states(error, numbers, before)
            raise
        self._read_dropped(ignores=True)
        self._beginnings.forget_next(numbers.tolist())
        kinds = self._kinds.reset(numbers, None)
        self._note_over(np.intersect1d(numbers, self.rows_over()))
        batch = Batch(numbers, kinds, observations, None, None, None, infos)
        batch.is_restored = True
        self.unseen.forget(numbers)
        self.on_its_way = batch
        return batch

    def present(self) -> Batch:
        """The present observations of all rows, as the environments show them again."""
        arrays = self.envs.rollout(1)
        self.envs.end_rollout()
        self._read_dropped()
        observations = nested.at(arrays.observations, 0)
        kinds = np.full(self.envs.num_envs, SHOWN, np.uint8)
        batch = Batch(None, kinds, observations, None, None, None, {})
        self.on_its_way = batch
        self._show(batch)
        return batch

    def pass_on(self, batch: Batch, inner: Iterable[Any], last: Any) -> None:
        """Passes the batch on its way through the wrappers, from the innermost to the last one."""
        for wrapper in inner:
            if batch.late is not None:
                batch.catch_up(self.seen_by)
            returned = wrapper.transform(batch)
            if returned is not None or batch.observations is None:
                refuse_transformed(wrapper, batch, returned)
            self.seen_by += 1
        if batch.late is not None:
            batch.catch_up(self.seen_by)
        returned = last.transform(batch)
        lacks_rewards = batch.rewards is None and batch.truncations is not None
        if returned is not None or batch.observations is None or lacks_rewards:
            refuse_transformed(last, batch, returned)
        self.on_its_way = None
        self.seen_by = 0

    # Checks

    def check_steps_rows(self, calling: str) -> None:
        """Raises ``TypeError`` if rows cannot be stepped apart."""
        if not self.steps_rows:
            of_rows = " of some rows" if calling in ("step", "step_async") else ""
            raise TypeError(
                f"`{calling}`{of_rows} needs a vector environment of cartwheel, without "
                f"wrappers of Gymnasium around it; this is {self.envs}"
            )

    def _refuse_own_options(self, options: ResetOptions) -> None:
        """Refuses cartwheel's own options where Gymnasium would take them for the environment's."""
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

    # Batches

    def _stepped(
        self, result: tuple[Any, Any, Any, Any, dict[str, Any]], *, in_parts: bool
    ) -> Batch:
        observations, rewards, terminations, truncations, infos = result
        if self._calls is not None:
            self._calls.note()
        failed = failed_rows(infos) if infos else None  # refuses infos other than a dictionary
        rows = infos["env_index"] if in_parts or self._in_parts else None
        kinds = self._kinds.step(rows, terminations, truncations, failed)
        batch = Batch(rows, kinds, observations, rewards, terminations, truncations, infos)
        batch.final_names = self._final_names
        if self.rows_per_env is not None:
            batch.kinds = self._kinds_of_agents(kinds, infos, self.rows_per_env)
            batch.absent = ~infos["present"]
            if not self.is_same_step:
                self._find_rejoined(batch)
            elif "final_info" in infos:
                batch.final_absent = infos["_final_obs"] & ~infos["final_info"]["present"]
        if self._beginnings.flag.is_set:
            self._attach_beginnings(batch)
        if self.unseen.flag.is_set:
            self._show_stepped(batch)
        return batch

    def _kinds_of_agents(
        self, kinds: NDArray[np.uint8], infos: dict[str, Any], rows_per_env: int
    ) -> NDArray[np.uint8]:
        """The kinds of rows of agents: where one did not act, its next step begins an episode.

        Where its environment rests, or failed, the row may show its last observation again.
        """
        acted, failed = infos["acted"], kinds == FAILED

        def in_env(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return np.repeat(rows.reshape(-1, rows_per_env).any(axis=1), rows_per_env)

        idle = ~acted & ~failed
        begun = idle
        if self.autoreset_mode == AutoresetMode.DISABLED:
            begun = idle & in_env(acted)
        elif not self.is_same_step:
            begun = idle & ~in_env(failed)
        self._kinds.reset(np.flatnonzero(begun), None)
        return np.where(begun, RESET, np.where(idle, SHOWN, kinds)).astype(np.uint8)

    def _find_rejoined(self, batch: Batch) -> None:
        """Finds agents that ended and are back in the same step: they are stepped next."""
        over = np.logical_or(batch.terminations, batch.truncations)
        if np.count_nonzero(over):
            rejoined = over & self.envs.unwrapped._lives
            if np.count_nonzero(rejoined):
                batch.rejoined = rejoined
                self._kinds.reset(np.flatnonzero(rejoined), None)

    def _attach_beginnings(self, batch: Batch) -> None:
        """Adds seeds and options of resets to a step, of automatic ones too."""
        rows = batch.rows
        restarted = failed_rows(batch.infos, (RESTARTED,))
        if restarted is not None:  # the worker that had received it died
            self._beginnings.forget_next(rows[restarted].tolist())
        begun = batch.kinds == RESET
        if self.is_same_step:
            begun |= np.logical_or(batch.terminations, batch.truncations)
        self._beginnings.forget_sent(rows, batch.kinds)
        self._beginnings.use_next(rows[begun])
        self._beginnings.attach_to(batch)

    def _show_stepped(self, batch: Batch) -> None:
        """Rows of a step, or of a reset, whose last results were lost."""
        over: Any = False
        if batch.rewards is not None:
            over = np.logical_or(batch.terminations, batch.truncations)
        batch.late = self.unseen.step(batch.env_index, batch.kinds, over)

    def _show(self, batch: Batch) -> None:
        """All rows are shown, by a reset of some."""
        if self.unseen.flag.is_set:
            batch.late, begun = self.unseen.show(batch.kinds)
            self._kinds.reset(begun, None)
            if batch.late is not None and batch.seeds is not None:
                # A seed that was kept for an episode before the one that is shown.
                stale = np.isin(np.arange(len(batch.kinds)), begun) & (batch.late.skipped < 0)
                batch.seeds = np.where(stale, -1, batch.seeds)

    def _reset(self, result: tuple[Any, dict[str, Any]], seed: Any, options: ResetOptions) -> Batch:
        observations, infos = result
        num_envs = self.envs.num_envs
        by_number = names_rows(options)
        if self._calls is not None:
            is_whole = not by_number and as_reset_mask(options, num_envs) is None
            self._calls.note(is_reset=is_whole)
        failed_rows(infos)  # refuses infos other than a dictionary
        if self.resets_parts(options):  # the other rows, if there are any, are in flight
            rows = infos["env_index"]
            self._send_resets(seed, options, in_parts=True)
            kinds = self._kinds.reset(rows, None)
            batch = Batch(rows, kinds, observations, None, None, None, infos)
            self._beginnings.attach_to(batch)
            if self.unseen.flag.is_set:
                self._show_stepped(batch)
        else:
            self._note_resets(seed, options, in_parts=False)
            mask = as_reset_mask(options, num_envs)
            if by_number:
                _, mask = as_reset_of_all(seed, options, num_envs)
            kinds = self._kinds.reset(None, mask)
            batch = Batch(None, kinds, observations, None, None, None, infos)
            if self.rows_per_env is not None:
                batch.absent = ~infos["present"]
            self._beginnings.attach_to(batch)
            self.on_its_way = batch
            self._show(batch)
        self.on_its_way = batch
        return batch


def _is_bare(envs: Any) -> bool:
    """Whether the class adds nothing to the calls of the pool."""
    kind = type(envs)
    return isinstance(envs, PoolVectorEnv) and all(
        getattr(kind, name) is getattr(PoolVectorEnv, name) for name in _CALLS
    )
