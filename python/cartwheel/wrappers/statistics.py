"""Statistics of episodes: returns, lengths, durations, and metrics of each step."""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import EpisodeMetrics, TimedEpisodes
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.rewards import check_rewards_are_numbers, reward_shape_of
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.vector.infos import FAIL, SUCCESS, step_outcomes
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers._shared.reports import check_stats_key, refuse_taken
from cartwheel.wrappers.base import VectorWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation
    from cartwheel.wrappers.batch import Batch

#: The names of the reported values.
_SUCCESSES = ("success_once", "success_at_end")
_FAILURES = ("fail_once", "fail_at_end")
_REPORTS = frozenset((*SUCCESS, *FAIL))
#: Neither success nor failure is reported.
_UNREPORTED: tuple[None, None] = (None, None)


class _ReportsEpisodes(KeepsState, VectorWrapper):
    """The common part of wrappers that report episodes in the infos of steps.

    A subclass has ``_episodes``, which counts the running episodes of all environments.
    """

    _changes_steps = False

    def __init__(self, env: VectorEnv[Any, Any, Any], buffer_length: int, stats_key: str) -> None:
        self._buffer_length = as_integer("buffer_length", buffer_length, 1, limit=1 << 32)
        check_stats_key(env, stats_key)
        super().__init__(env)
        self._stats_key, self._mask_key = stats_key, f"_{stats_key}"


class RecordMetrics(_ReportsEpisodes):
    """Reports the metrics of each running episode in every step, and collects ended episodes.

    The infos of every step (not of ``reset``) have ``"episode"``, a dictionary of arrays with one
    entry for each row of the batch. Keys and dtypes are the same in every step:

    * ``"return"``: the sum of the rewards so far, ``float64``;
    * ``"episode_len"``: the number of steps so far, ``int64``;
    * ``"reward"``: return ÷ length, ``float64``; 0 at length 0;
    * ``"success_once"``, ``"success_at_end"``: whether any step of the episode reported success,
      and whether the present step does, ``bool``;
    * ``"fail_once"``, ``"fail_at_end"``: the same for failure.

    The mask ``"_episode"`` is true where a complete episode ended in this step.

    Success is read from ``is_success``, or else ``success``, in the infos of a step, and failure
    from ``fail``: flags, numbers or arrays, all of which must be true. A step that reports neither
    counts as false. Each pair is there from the first infos on that have such a key. Those of a
    reset suffice, although their values do not count: set the key there if other code relies on the
    pair from the first step on.

    The step that ends an episode shows the values of the ended episode, in every autoreset mode. In
    ``SAME_STEP`` the values of these rows are also in ``infos["final_info"]``, with zeros
    elsewhere, and success is read there. A row that is reset shows zeros, and frozen rows, or rows
    that a reset left alone, keep their values.

    An episode that a failure cut short keeps its values in that step. An episode that lost a step,
    because a call raised, or that began before this wrapper was made, shows zeros until it ends.
    None of these is in the mask, in :meth:`finished` or in :meth:`mean`.

    It can be put around or inside of :class:`RecordEpisodeStatistics` if one of the two has another
    ``stats_key``.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import RecordMetrics
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=3)
        >>> envs = RecordMetrics(envs)
        >>> _ = envs.reset(seed=1)
        >>> for _ in range(3):
        ...     infos = envs.step([0, 1])[4]
        >>> infos["episode"]["return"], infos["_episode"]
        (array([3., 3.]), array([ True,  True]))
        >>> envs.finished()["seed"]
        array([1, 2])
        >>> envs.mean()
        {'return': 3.0, 'episode_len': 3.0, 'reward': 1.0}
        >>> envs.close()

    Args:
        env: A vector environment.
        buffer_length: The number of last complete episodes whose mean :meth:`mean` returns.
        stats_key: The key in the infos.

    Raises:
        TypeError: ``stats_key`` is not a string, or the infos are not a dictionary, as behind
            ``DictInfoToList``; or, in a step, a report is not a flag.
        ValueError: ``buffer_length`` is below 1; the key is used by a wrapper inside; or, in a step
            or reset, infos have the key already.
    """

    #: For wrappers that put infos of some rows together.
    _reports_every_step = True
    _any_length = ("window", "finished")
    row_entries = (
        *("returns", "lengths", "stale", "seeds"),
        *("success_once", "success_at_end", "fail_once", "fail_at_end"),
    )
    #: The maximum number of episodes that wait for :meth:`finished`.
    _MAX_WAITING = 1 << 20

    @checks_keywords
    def __init__(
        self, env: VectorEnv[Any, Any, Any], buffer_length: int = 100, stats_key: str = "episode"
    ) -> None:
        check_rewards_are_numbers(env, "RecordMetrics")
        super().__init__(env, buffer_length, stats_key)
        self._episodes = EpisodeMetrics(
            self.num_envs, self._source.is_same_step, self._buffer_length, self._MAX_WAITING
        )
        #: Whether success was reported before the present context of ``frozen``, and failure.
        self._shown_before = (False, False)

    def finished(self) -> dict[str, NDArray[Any]]:
        """The complete episodes that have ended since the last call, in the order of their ends.

        Returns:
            A column for each value of ``infos["episode"]``, with its dtype; and ``"env_index"``
            (``int64``), ``"episode_id"`` (``int64``: complete episodes are numbered from 0 on in
            the order of their ends, over all environments of this wrapper), ``"seed"`` (``int64``:
            the seed of the reset before this episode: from ``reset``, ``s + i`` for an integer
            ``s``, or from ``next_reset`` for an automatic one; -1 if it had none or one above the
            greatest ``int64``, or if the episode began in a restored state),
            ``"terminated"`` and ``"truncated"`` (``bool``, of the last step).

        Warns:
            RuntimeWarning: More than 1,048,576 episodes had ended: only the last ones are left.
        """
        columns, dropped = self._episodes.finished()
        if dropped:
            warnings.warn(
                f"{dropped} finished episodes were dropped, since only {self._MAX_WAITING} wait: "
                "call finished() more often",
                RuntimeWarning,
                stacklevel=2,
            )
        return {name: column for name, column in columns.items() if self._is_shown(name)}

    def mean(self) -> dict[str, float]:
        """The mean of each value over the last complete episodes, at most ``buffer_length``.

        Episodes that ended before any environment reported success, or failure, count as false.

        Returns:
            ``return``, ``episode_len``, ``reward`` (return divided by length), and the shares of
            ``success_once``, ``fail_once`` and so on if environments report them. All are NaN
            before the first episode has ended.
        """
        means = self._episodes.mean()
        names = ["return", "episode_len", "reward", *_SUCCESSES, *_FAILURES]
        values = [math.nan] * len(names) if means is None else means
        pairs = zip(names, values, strict=True)
        return {name: value for name, value in pairs if self._is_shown(name)}

    def _blank_report(self, size: int) -> dict[str, Any]:
        """Returns the infos of a step for ``size`` rows that were only reset."""
        dtypes: dict[str, Any] = {"return": np.float64, "episode_len": np.int64}
        dtypes |= {"reward": np.float64, **dict.fromkeys((*_SUCCESSES, *_FAILURES), np.bool_)}
        values = {
            name: np.zeros(size, dtype) for name, dtype in dtypes.items() if self._is_shown(name)
        }
        return {self._stats_key: values, self._mask_key: np.zeros(size, np.bool_)}

    def _is_shown(self, name: str) -> bool:
        success, fail = self._episodes.shown
        return success if name in _SUCCESSES else fail if name in _FAILURES else True

    def _set_frozen(self, *, is_frozen: bool) -> None:
        self._episodes.updates = not is_frozen
        if is_frozen:
            self._shown_before = self._episodes.shown
        else:
            self._episodes.shown = self._shown_before

    def _operation(self) -> Operation:
        return "metrics", (self._episodes, self._stats_key, self._mask_key)

    def transform(self, batch: Batch) -> None:
        """Counts transitions, and adds statistics to the infos."""
        infos = batch.infos
        reports = self._read(batch) if infos else _UNREPORTED
        if batch.rewards is None:
            self._episodes.begin(batch.env_index, batch.kinds, batch.seeds)
            return
        values, mask, finals = self._episodes.step(
            (batch.env_index, batch.kinds, batch.rewards, batch.terminations, batch.truncations),
            reports,
            batch.seeds,
        )
        if batch.rejoined is not None:
            self._episodes.begin(batch.env_index, batch.begun_by_rejoined(), None)
        shown = {**infos} if infos else {}
        shown[self._stats_key], shown[self._mask_key] = values, mask
        batch.infos = shown
        if finals is not None:
            last, ended = finals
            final_infos = batch.final_infos or {}
            shown["final_info"] = {**final_infos, self._stats_key: last, self._mask_key: ended}
            if "_final_info" not in infos:  # otherwise it has all rows that ended
                shown["_final_info"] = ended.copy()

    def _read(self, batch: Batch) -> tuple[Any, Any]:
        """Returns the success and failure flags of a batch; refuses a key that is taken."""
        infos, finals = batch.infos, batch.final_infos
        told = infos if finals is None else {**infos, **finals}
        refuse_taken(told, self._stats_key, self._mask_key)
        said = told.keys()
        if _REPORTS.isdisjoint(said):
            return _UNREPORTED
        success, fail = not said.isdisjoint(SUCCESS), not said.isdisjoint(FAIL)
        shown = self._episodes.shown
        self._episodes.shown = shown[0] or success, shown[1] or fail
        if batch.rewards is None:
            return _UNREPORTED
        over = np.logical_or(batch.terminations, batch.truncations)
        successes = step_outcomes(infos, finals, SUCCESS, over) if success else None
        failures = step_outcomes(infos, finals, FAIL, over) if fail else None
        return (
            None if successes is None else successes.flags,
            None if failures is None else failures.flags,
        )

    def get_own_state(self) -> dict[str, Any]:
        """The state: values and seeds of each environment's present episode by name, and more.

        ``"stale"``: whether they are those of an episode before the present one; ``"window"`` and
        ``"finished"``: columns of the last episodes, and of those that wait for :meth:`finished`;
        counts; what was reported. A wrapper that continues with it keeps its own ``buffer_length``.
        """
        success, fail = self._episodes.shown
        return {**self._episodes.state(), "reports_success": success, "reports_fail": fail}

    def _restore(self, state: dict[str, Any]) -> None:
        self._episodes.set_state(state)
        self._episodes.shown = state["reports_success"], state["reports_fail"]


class _EpisodesOfObjectives:
    """Counts as ``TimedEpisodes``, where rewards are arrays: one of these for each objective."""

    def __init__(self, num_objectives: int, *arguments: Any) -> None:
        self._each = [TimedEpisodes(*arguments) for _ in range(num_objectives)]

    def begin(self, rows: Any, kinds: Any) -> None:
        for episodes in self._each:
            episodes.begin(rows, kinds)

    def step(self, arrays: Any) -> Any:
        rows, kinds, rewards, *flags = arrays
        columns = np.ascontiguousarray(np.asarray(rewards).T)
        reports: list[Any] = [
            episodes.step((rows, kinds, column, *flags))
            for episodes, column in zip(self._each, columns, strict=True)
        ]
        if reports[0] is None:
            return None
        values, mask = reports[0]
        return {**values, "r": np.stack([report[0]["r"] for report in reports], axis=-1)}, mask

    @property
    def counts(self) -> tuple[int, int]:
        return self._each[0].counts

    @counts.setter
    def counts(self, counts: tuple[int, int]) -> None:
        self._each[0].counts = counts

    @property
    def updates(self) -> bool:
        return self._each[0].updates

    @updates.setter
    def updates(self, updates: bool) -> None:
        self._each[0].updates = updates

    def take_recent(self) -> tuple[list[Any], list[int], list[float]]:
        recent = [episodes.take_recent() for episodes in self._each]
        returns = np.array([returns for returns, _, _ in recent], np.float64).T.copy()
        _, lengths, seconds = recent[0]
        return list(returns), lengths, seconds

    def running(self) -> tuple[Any, Any, Any]:
        running = [episodes.running() for episodes in self._each]
        return np.stack([returns for returns, *_ in running], axis=-1), *running[0][1:]

    def state(self) -> dict[str, Any]:
        states = [episodes.state() for episodes in self._each]
        return {**states[0], "returns": np.stack([state["returns"] for state in states], axis=-1)}

    def set_state(self, state: dict[str, Any]) -> None:
        columns = np.ascontiguousarray(state["returns"].T)
        for episodes, returns in zip(self._each, columns, strict=True):
            episodes.set_state({**state, "returns": returns})


class RecordEpisodeStatistics(_ReportsEpisodes):
    """Reports the return, the length and the duration of each episode, in the step that ends it.

    Infos of a step that ends complete episodes get ``"episode"``, a dictionary of arrays with one
    entry for each row of the batch (zeros where no episode ended), and the mask ``"_episode"``:

    * ``"r"``: the sum of the rewards, ``float64``; with a ``reward_space`` of shape ``(k,)``, an
      array of shape ``(k,)`` for each row;
    * ``"l"``: the number of steps, ``int64``;
    * ``"t"``: seconds since the episode began, ``float64``, rounded to microseconds.

    Names and dtypes are Gymnasium's. They are at the same place in every autoreset mode: also in
    ``SAME_STEP`` not in ``final_info``. Only transitions count: neither the steps of ``NEXT_STEP``
    that reset a row, nor those of frozen rows.

    An episode is dropped if a failure cut it short (``on_error="restart"``, a worker that was
    restarted), if one of its steps was lost because a call raised, or if it began before this
    wrapper was made. It is not reported and is not in the queues; only ``failed_count`` counts it
    when it ends.

    ``return_queue``, ``length_queue`` and ``time_queue`` have the last ``buffer_length`` complete
    episodes. They are brought up to date when they are read from the wrapper.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import RecordEpisodeStatistics
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=3)
        >>> envs = RecordEpisodeStatistics(envs)
        >>> _ = envs.reset(seed=1)
        >>> for _ in range(3):
        ...     infos = envs.step([0, 1])[4]
        >>> infos["episode"]["r"], infos["_episode"]
        (array([3., 3.]), array([ True,  True]))
        >>> list(envs.length_queue)
        [3, 3]
        >>> envs.close()

    Args:
        env: A vector environment.
        buffer_length: The number of episodes in the queues.
        stats_key: The key in the infos.

    Raises:
        TypeError: ``stats_key`` is not a string, or the infos are not a dictionary, as behind
            ``DictInfoToList``.
        ValueError: ``buffer_length`` is below 1; the key is used by a wrapper inside; or, in a step
            or reset, infos have the key already.
    """

    _any_length = ("return_queue", "length_queue", "time_queue")
    row_entries = ("returns", "lengths", "seconds", "stale")

    @checks_keywords
    def __init__(
        self, env: VectorEnv[Any, Any, Any], buffer_length: int = 100, stats_key: str = "episode"
    ) -> None:
        super().__init__(env, buffer_length, stats_key)
        size = self._buffer_length
        self._made = time.perf_counter()
        #: The shape of a reward.
        self._shape = reward_shape_of(env)
        self._episodes: TimedEpisodes | _EpisodesOfObjectives
        arguments = self.num_envs, self._source.is_same_step, size
        if self._shape:
            self._episodes = _EpisodesOfObjectives(self._shape[0], *arguments)
        else:
            self._episodes = TimedEpisodes(*arguments)
        self._queues: Any = tuple(deque(maxlen=size) for _ in range(3))

    @property
    def episode_count(self) -> int:
        """The number of complete episodes; can be set."""
        return self._episodes.counts[0]

    @episode_count.setter
    def episode_count(self, count: int) -> None:
        self._episodes.counts = count, self.failed_count

    @property
    def failed_count(self) -> int:
        """The number of episodes that were dropped; can be set."""
        return self._episodes.counts[1]

    @failed_count.setter
    def failed_count(self, count: int) -> None:
        self._episodes.counts = self.episode_count, count

    @property
    def return_queue(self) -> deque[Any]:
        """The returns of the last ``buffer_length`` complete episodes: numbers, or arrays."""
        return self._filled_queues()[0]

    @property
    def length_queue(self) -> deque[int]:
        """The lengths of the last ``buffer_length`` complete episodes."""
        return self._filled_queues()[1]

    @property
    def time_queue(self) -> deque[float]:
        """The durations of the last ``buffer_length`` complete episodes, seconds."""
        return self._filled_queues()[2]

    def _filled_queues(self) -> tuple[deque[Any], ...]:
        # Not in every step: hundreds of episodes may end in one, and most queues are seldom read.
        queues: tuple[deque[Any], ...] = self._queues
        recent: Any = self._episodes.take_recent()
        for queue, values in zip(queues, recent, strict=True):
            if not self.is_frozen:
                queue.extend(values)
        return queues

    def _set_frozen(self, *, is_frozen: bool) -> None:
        self._episodes.updates = not is_frozen
        self._filled_queues()  # with the episodes before the context; or forgets those within it

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """The sum of rewards of each environment's present episode so far, ``[num_envs]``.

        With a ``reward_space`` of shape ``(k,)`` the sums are ``[num_envs, k]``.
        """
        return self._episodes.running()[0]

    @property
    def episode_start_times(self) -> NDArray[np.float64]:
        """When each environment's present episode began, by ``time.perf_counter``, ``[num_envs]``.

        Before the first reset it is when this wrapper was made.
        """
        begun: NDArray[np.float64] = self._episodes.running()[2]
        return self._made + begun

    @property
    def episode_lengths(self) -> NDArray[np.int64]:
        """The number of steps of each environment's present episode so far, ``[num_envs]``."""
        return self._episodes.running()[1]

    def _operation(self) -> Operation:
        if self._shape:
            return "transform", ()
        return "episodes", (self._episodes, self._stats_key, self._mask_key)

    def transform(self, batch: Batch) -> None:
        """Counts transitions, and adds the statistics of ended episodes to the infos."""
        if batch.infos:
            refuse_taken(batch.infos, self._stats_key, self._mask_key)
        if batch.rewards is None:
            self._episodes.begin(batch.env_index, batch.kinds)
            return
        report = self._episodes.step(
            (batch.env_index, batch.kinds, batch.rewards, batch.terminations, batch.truncations)
        )
        if batch.rejoined is not None:
            self._episodes.begin(batch.env_index, batch.begun_by_rejoined())
        if report is not None:
            values, mask = report
            batch.infos = {**batch.infos, self._stats_key: values, self._mask_key: mask}

    def get_own_state(self) -> dict[str, Any]:
        """The state: of each environment's present episode, the queues as arrays, the counts.

        The first are ``"returns"``, ``"lengths"``, ``"seconds"`` and ``"stale"`` (whether they are
        those of an episode before the present one). A wrapper that continues with it keeps the last
        ``buffer_length`` entries of the queues.
        """
        return {
            **self._episodes.state(),
            "return_queue": np.array(self.return_queue, np.float64).reshape(-1, *self._shape),
            "length_queue": np.array(self.length_queue, np.int64),
            "time_queue": np.array(self.time_queue, np.float64),
            "episode_count": self.episode_count,
            "failed_count": self.failed_count,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._episodes.set_state(state)
        queues: tuple[deque[Any], ...] = self._filled_queues()
        for name, queue in zip(self._any_length, queues, strict=True):
            queue.clear()
            values = state[name]
            queue.extend(values.tolist() if values.ndim == 1 else values.copy())
        self.episode_count, self.failed_count = state["episode_count"], state["failed_count"]
