"""The known facts of the rows of a vector environment, and results of theirs that are lost."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from cartwheel._cartwheel import RowKinds
from cartwheel._internal.arguments import mode_of
from cartwheel._internal.gymnasium_classes import AsyncState, AsyncVectorEnv
from cartwheel._internal.reset_arguments import (
    as_reset_of_all,
    as_reset_rows,
    kept_options,
    names_rows,
)
from cartwheel._internal.suggestions import vector_env_instead
from cartwheel.errors import ForkedProcessError, WorkerTimeoutError, is_raised_by_env
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.calls import Calls
from cartwheel.vector.state_dict import check_array, check_keys
from cartwheel.workers.envs.attributes import own_attribute
from cartwheel.wrappers._stack.beginnings import Beginnings, options_of, seeds_of
from cartwheel.wrappers._stack.unseen import Unseen
from cartwheel.wrappers.batch import RESET, SHOWN, Batch, chain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from cartwheel._cartwheel import Pool
    from cartwheel._internal.reset_arguments import ResetOptions

#: Errors of Gymnasium's vector environments before anything is stepped.
_REFUSALS = gym.error.Error | gym.error.AlreadyPendingCallError | gym.error.NoAsyncCallError


class KnownRows:
    """The kind, the seed and the options that each row has next, and results that were lost.

    Results can be lost on their way to the caller: with a call that was given up and whose results
    a reset drops, with an error of another row, or because a wrapper raises. Then the row went on,
    and its next batch is marked: its transitions are :data:`INCOMPLETE`, and wrappers that
    have not seen the results get them as far as they are shown (:attr:`Batch.late`). The pool
    reports what it dropped, and what wrappers lost is noted in the pool, for outer sources.

    Attributes:
        envs: The vector environment, possibly in wrappers of Gymnasium.
        autoreset_mode: Its autoreset mode.
        steps_rows: Whether some of its rows can be stepped apart: cartwheel's own can.
        rows_per_env: How many rows an environment has, if rows are agents; ``None``: they are
            environments.
        on_its_way: The batch that has not passed all wrappers yet; the last one clears it.
        seen_by: How many wrappers have seen this batch, from the innermost on; 0 without one.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Checks the environment; steps nothing.

        Raises:
            TypeError: ``envs`` is not a vector environment.
            ValueError: The metadata has no autoreset mode.
        """
        if not isinstance(envs, VectorEnv):
            advice = (
                "pass its `as_rows()`" if hasattr(envs, "as_rows") else vector_env_instead(envs)
            )
            raise TypeError(f"a wrapper needs a vector environment, got {type(envs)}: {advice}.")
        self.autoreset_mode = mode_of(envs)
        self.envs: Any = envs
        self.steps_rows: bool = getattr(envs, "steps_rows", False)
        #: Counts calls where the vector environment does not.
        self._calls = None if self.steps_rows else Calls(envs)
        self._kinds = RowKinds(envs.num_envs, self.autoreset_mode.value)
        self._in_parts = getattr(envs, "batch_size", envs.num_envs) < envs.num_envs
        self.rows_per_env: int | None = getattr(envs.unwrapped, "rows_per_env", None)
        #: The rows of a pending ``step_async``; seed and options of a pending ``reset_async``.
        self._waits_for: Any = None
        self._resets_with: tuple[Any, ResetOptions] = None, None
        self._beginnings = Beginnings(envs.num_envs)
        self.unseen = Unseen(envs.num_envs)
        self.on_its_way: Batch | None = None
        self.seen_by = 0
        #: The pool at the bottom, if there is one, and how many of its drops were read.
        self._pool: Pool | None = None
        self._drops_read = 0
        self._level = _level_in(envs) + 1
        innermost = envs.unwrapped
        if isinstance(innermost, PoolVectorEnv):
            self._pool = innermost._pool
            self._read_dropped(ignores=True)
            innermost._sources.add(self)
            self._note_over(self.rows_over())
        self.add_wrapper(0)

    def add_wrapper(self, number: int) -> None:
        """A wrapper is made, with this number from the innermost on."""
        with contextlib.suppress(gym.error.ClosedEnvironmentError, ForkedProcessError):
            calls = Calls(self.envs)
            if calls.has_begun:
                self.unseen.join(number, begins=calls.begins)

    def get_rows(self) -> dict[str, Any]:
        """Returns what is known of the rows, for :meth:`set_rows`."""
        self._read_dropped()
        kinds = RowKinds(self.envs.num_envs, self.autoreset_mode.value)
        kinds.set_state(self._kinds.state())
        kinds.lose(self.unseen.joined, True)  # there, no wrapper knows all of such an episode
        return {
            "kinds": kinds.state(),
            "beginnings": self._beginnings.get_state(),
            "unseen": self.unseen.get_state(),
        }

    def check_rows(self, state: Any, path: str) -> None:
        """Raises ``ValueError`` unless this is a state of as many rows; ``path`` names it."""
        check_keys(path, state, {"kinds", "beginnings", "unseen"})
        num_envs = self.envs.num_envs
        check_array(f"{path}['kinds']", state["kinds"], (num_envs,), np.uint8)
        RowKinds(num_envs, self.autoreset_mode.value).set_state(state["kinds"])
        Beginnings(num_envs).set_state(state["beginnings"], f"{path}['beginnings']")
        Unseen(num_envs).set_state(state["unseen"], f"{path}['unseen']")

    def set_rows(self, state: dict[str, Any]) -> None:
        """Continues with a checked state, once the environments have loaded theirs."""
        self._read_dropped(ignores=True)
        self._kinds.set_state(state["kinds"])
        self._beginnings.set_state(state["beginnings"], "beginnings")
        self.unseen.set_state(state["unseen"], "unseen")
        self._waits_for, self._resets_with = None, (None, None)
        self.on_its_way, self.seen_by = None, 0
        if self._calls is not None:
            self._calls.note()

    def keep_next_resets(self, rows: list[int], seeds: Any, options: ResetOptions) -> None:
        """``next_reset`` of the environments gave these rows a seed or ``None``, and options."""
        self._beginnings.keep_next(rows, seeds, options)

    # Resets

    def resets_parts(self, options: ResetOptions) -> bool:
        """Returns whether a reset returns a batch of some rows."""
        is_full = getattr(self.envs.unwrapped, "full_batch", False)
        return self._in_parts or (names_rows(options) and not is_full)

    def _send_resets(self, seed: Any, options: ResetOptions, *, in_parts: bool) -> None:
        """Resets of rows were sent; they are found when the rows are received."""
        self._kinds.send_reset(as_reset_rows(options, self.envs.num_envs))
        self._note_resets(seed, options, in_parts=in_parts)

    def _note_resets(self, seed: Any, options: ResetOptions, *, in_parts: bool) -> None:
        num_envs, rows = self.envs.num_envs, as_reset_rows(options, self.envs.num_envs)
        if self.rows_per_env is not None:
            seed, options = _of_agents(seed, options, num_envs, self.rows_per_env)
        seeds = seed
        if not in_parts and names_rows(options):  # a list has a seed for each of these rows, or all
            seeds, _ = as_reset_of_all(seed, options, num_envs)
        if seed is None:
            seeds = None
        elif in_parts or isinstance(seeds, int | np.integer):
            seeds = seeds_of(seeds, rows)
        else:
            seeds = seeds_of([seeds[row] for row in rows], rows)
        self._beginnings.forget_next(rows)
        self._beginnings.note(rows, seeds, options_of(options, rows))

    # Results that are lost

    def lose_batch(self, error: BaseException) -> None:
        """A call raises this: the batch on its way, if there is one, does not reach the caller."""
        batch, seen_by = self.on_its_way, self.seen_by
        self.seen_by = 0
        if batch is not None:
            self.lose(batch, seen_by)
            if not isinstance(error, Exception):  # Ctrl-C, perhaps just after a wrapper had seen it
                self.unseen.mark_uncertain(batch.rows)

    def lose(self, batch: Batch, seen_by: int) -> None:
        """Notes that the caller gets no results of a batch that ``seen_by`` wrappers have seen."""
        self.on_its_way = None
        rows, kinds = batch.rows, batch.kinds_of_others
        begun, over = kinds == RESET, np.zeros(len(rows), np.bool_)
        new = kinds != SHOWN
        if batch.absent is not None:  # nothing has begun yet
            new &= ~(begun & batch.absent)
        if batch.rewards is not None:
            over = np.logical_or(batch.terminations, batch.truncations)
        begins = begun | (over & self.is_same_step)
        if batch.rejoined is not None:
            begins |= batch.rejoined
        known = begins
        if batch.late is not None:  # what it showed of results that were lost before, is lost again
            self.unseen.take_back(rows, batch.late, seen_by)
            self._kinds.lose(rows[batch.late.kinds != SHOWN], True)
            known = begins | (batch.late.kinds == RESET)
        seeded = np.zeros(len(rows), np.bool_)
        if batch.seeds is not None or batch.options or self._beginnings.flag.is_set:
            seeds = np.full(len(rows), -1) if batch.seeds is None else batch.seeds
            seeded = begins & (seeds >= 0)
            self._beginnings.note(rows[known].tolist(), seeds[known], batch.options)
        self._lose_known(rows[new], begins[new], seen_by, seeded[new])
        self.drop(rows[new], begun[new], over[new])

    def drop(self, rows: NDArray[np.int64], resets: Any, over: Any) -> None:
        """Wrappers outside of these get no results of rows.

        Args:
            rows: The rows.
            resets: Which of them began an episode by a reset.
            over: Which of them ended an episode.
        """
        if self._pool is not None and len(rows):
            were_reset, ended = (
                np.broadcast_to(flag, len(rows)).tolist() for flag in (resets, over)
            )
            self._pool.drop_rows(rows.tolist(), were_reset, ended, self._level)

    @property
    def is_same_step(self) -> bool:
        """Whether a step that ends an episode shows the next one."""
        return self.autoreset_mode == AutoresetMode.SAME_STEP

    def _read_dropped(self, *, ignores: bool = False) -> NDArray[np.int64]:
        """Reads which results were dropped further inside; returns their rows."""
        dropped = None if self._pool is None else self._pool.dropped(self._drops_read, self._level)
        if dropped is None:
            return np.zeros(0, np.int64)
        self._drops_read, rows, resets, over = dropped
        numbers, ended = np.array(rows, np.int64), np.array(over, np.bool_)
        if not ignores and rows:
            self._kinds.send_reset(numbers[np.array(resets, np.bool_)])
            kinds = self._kinds.step(numbers, ended, np.zeros_like(ended), None)
            begun = (kinds == RESET) | (ended & self.is_same_step)
            self._beginnings.forget_sent(numbers, kinds)
            self._beginnings.use_next(numbers[begun])
            new = kinds != SHOWN
            seeded = begun & self._beginnings.seeded(numbers)
            self._lose_known(numbers[new], begun[new], 0, seeded[new])
        return numbers

    def _end(self, rows: NDArray[np.int64]) -> None:
        """The episodes of these rows are over."""
        self._kinds.step(rows, np.ones(len(rows), np.bool_), np.zeros(len(rows), np.bool_), None)

    def _note_over(self, rows: NDArray[np.int64]) -> None:
        """The episodes of these rows are over already, although no step has told so."""
        if self.autoreset_mode == AutoresetMode.DISABLED:
            self._end(rows)
        else:
            self._kinds.send_reset(rows)  # the next step resets them

    def _lose_known(self, rows: NDArray[np.int64], begun: Any, seen_by: int, seeded: Any) -> None:
        """Results were lost that the kinds of rows include."""
        self._kinds.lose(rows, True)
        self.unseen.lose(rows, begun, seen_by, seeded)

    def _lose_unknown(self, rows: Iterable[int]) -> None:
        """Unknown results were lost."""
        numbers = np.fromiter(rows, np.int64)
        self._kinds.reset(numbers, None)  # whatever was expected of them
        self._kinds.lose(numbers, False)
        over = np.intersect1d(numbers, self.rows_over())
        mode = self.autoreset_mode
        if len(over) and not self.is_same_step and self.envs.unwrapped.autoreset_mode == mode:
            self._end(over)
        self.unseen.lose(numbers, False, 0)
        self.unseen.mark_uncertain(numbers, begins=self.autoreset_mode != AutoresetMode.DISABLED)

    def _lose_step(self, error: BaseException, env_index: Any, before: PoolState | None) -> None:
        """A step raised: what was lost with it is marked."""
        rows = range(self.envs.num_envs) if env_index is None else np.ravel(env_index).tolist()
        if self._pool is None:
            if not self._loses_nothing(error):
                self._lose_unknown(rows)
            return
        dropped = self._read_dropped()
        if self.on_its_way is None and self._came_back(error, before):
            self._lose_unknown(set(rows).difference(dropped.tolist(), self._flying()))

    def _lose_reset(
        self, error: BaseException, seed: Any, options: ResetOptions, before: PoolState
    ) -> None:
        """The same for a reset: rows next to the one that failed have begun another episode."""
        if self.on_its_way is not None:
            return
        if self._pool is None:
            if not self._loses_nothing(error):
                self._beginnings.forget_next(as_reset_rows(options, self.envs.num_envs))
                self._lose_unknown(as_reset_rows(options, self.envs.num_envs))
            return
        now = self.pool_state()
        if now == before:  # it was refused, or continues
            self._read_dropped()
            return
        self._resets_with = seed, kept_options(options)
        rows = as_reset_rows(options, self.envs.num_envs)
        self._note_resets(seed, options, in_parts=self.resets_parts(options))
        dropped = self._read_dropped()
        self._kinds.send_reset([row for row in rows if row in now.flying])
        lost = np.setdiff1d(rows, [*dropped.tolist(), *now.flying]).astype(np.int64)
        self._kinds.reset(lost, None)
        self._lose_known(lost, True, 0, self._beginnings.seeded(lost))

    def _lose_states(
        self, error: BaseException, rows: NDArray[np.int64], before: PoolState
    ) -> None:
        """The same for states. Where one was refused, all rows are again what they were."""
        is_refused, now = is_raised_by_env(error), self.pool_state()
        self._read_dropped(ignores=is_refused)
        if now != before:
            self._beginnings.forget_next(rows.tolist())
        if now != before and not is_refused:
            self._kinds.send_reset([row for row in rows.tolist() if row in now.flying])
            lost = np.setdiff1d(rows, [*now.flying]).astype(np.int64)
            self._kinds.reset(lost, None)
            self._lose_known(lost, True, 0, self._beginnings.seeded(lost))

    def _loses_nothing(self, error: BaseException) -> bool:
        """Whether a call without a pool is known to go on, or not to have begun, as it raises."""
        if isinstance(error, TimeoutError | _REFUSALS):
            return True
        with contextlib.suppress(Exception):  # closed, or of another process
            return self._calls is not None and self._calls.sees_all and not self._calls.others()
        return False

    def _came_back(self, error: BaseException, before: PoolState | None) -> bool:
        """Whether the pool returned results in a call that raised ``error`` later."""
        assert self._pool is not None
        if self._pool.pending() is not None:
            return False
        if isinstance(error, WorkerTimeoutError) and not error.results_lost:
            return False  # the call can be waited for again
        if before is not None:
            now = self.pool_state()
            return now.begun != before.begun or not before.flying <= now.flying
        return not isinstance(error, Exception)  # Ctrl-C, perhaps between two lines of Python

    def pool_state(self) -> PoolState:
        """Returns the state of the pool, which tells after an error whether anything happened."""
        try:
            begun = 0 if self._pool is None else self._pool.begun()
        except Exception:  # closed, or of another process: the call will say so
            begun = 0
        return PoolState(begun, self._flying())

    def _flying(self) -> set[int]:
        """The rows in flight; all rows while a call of all rows is pending."""
        if self._pool is None:
            return set()
        if self._pool.pending() is not None:
            return set(range(self.envs.num_envs))
        try:
            return set(self._pool.in_flight())
        except Exception:  # closed, broken, or of another process
            return set()

    def in_flight(self) -> list[int]:
        """Returns the rows in flight; all rows while a call of all rows is pending."""
        innermost = self.envs.unwrapped
        if isinstance(innermost, AsyncVectorEnv) and innermost._state != AsyncState.DEFAULT:
            return list(range(self.envs.num_envs))
        return sorted(self._flying())

    def rows_over(self) -> NDArray[np.int64]:
        """Returns the rows whose episode is over in the pool; none without a pool."""
        return np.array([] if self._pool is None else self._pool.rows_over(), np.int64)


class PoolState(NamedTuple):
    """The state of a pool.

    Attributes:
        begun: Steps and resets that have begun.
        flying: Rows in flight, all while a call of all rows is pending.
    """

    begun: int
    flying: set[int]


def _of_agents(seed: Any, options: Any, num_rows: int, rows_per_env: int) -> tuple[Any, Any]:
    envs = [row // rows_per_env for row in range(num_rows)]
    if seed is not None:
        is_one = isinstance(seed, int | np.integer)
        seed = [int(seed) + env if is_one else seed[env] for env in envs]
    if isinstance(options, list | tuple):
        options = [options[env] for env in envs]
    return seed, options


def _level_in(envs: Any) -> int:
    """The level of the outermost source in a vector environment; 0 if there is none."""
    sources = (own_attribute(inner, "_source") for inner in chain(envs))
    return next((source._level for source in sources if isinstance(source, KnownRows)), 0)
