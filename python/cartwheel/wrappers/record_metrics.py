"""Metrics of episodes, in every step and when they have ended."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import EpisodeMetrics
from cartwheel.arguments import as_integer
from cartwheel.vector.reports import FAIL, SUCCESS, has_reports, step_reports
from cartwheel.wrapping.state import KeepsState
from cartwheel.wrapping.stats_key import check_stats_key, refuse_taken
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrapping.batch import Batch

#: What of the state is about episodes that have ended.
_ENDED = ("window", "finished", "episode_count", "dropped")
#: The names of what is reported.
_SUCCESSES = ("success_once", "success_at_end")
_FAILURES = ("fail_once", "fail_at_end")
_REPORTS = frozenset((*SUCCESS, *FAIL))
#: Nobody says anything of success and of failure.
_SILENCE: tuple[None, None] = (None, None)


class RecordMetrics(KeepsState, VectorWrapper):
    """Shows how each episode goes, in every step, and collects the episodes that have ended.

    The infos of every step (not of ``reset``) have ``"episode"``, a dictionary of arrays with one
    entry for each row of the batch. Keys and dtypes are the same in every step:

    * ``"return"``: the sum of the rewards so far, ``float64``;
    * ``"episode_len"``: the number of steps so far, ``int64``;
    * ``"reward"``: return ÷ length, ``float64``; 0 at length 0;
    * ``"success_once"``, ``"success_at_end"``: whether any step of the episode reported success,
      and whether the present step does, ``bool``;
    * ``"fail_once"``, ``"fail_at_end"``: likewise failure.

    The mask ``"_episode"`` is true where a complete episode ended in this step.

    Success is what ``is_success``, or else ``success``, says in the infos of a step, and failure
    what ``fail`` says: flags, numbers or arrays, all of which must be true. A step that says
    nothing counts as false. Each pair is there from the first infos on that have such a key; those
    of a reset suffice, though what they say does not count. Give it there if other code relies on
    the pair from the first step on.

    The step that ends an episode shows the values of the ended episode, in every autoreset mode. In
    ``SAME_STEP`` the values of these rows are also in ``infos["final_info"]``, with zeros
    elsewhere, and success is read there. A row that is reset shows zeros, and frozen rows, or rows
    that a reset left alone, keep their values.

    An episode that a failure cut short keeps its values in that step, and one of which a step was
    lost, because a call raised, shows zeros until it ends. Neither is in the mask, in
    :meth:`finished` or in :meth:`mean`.

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
        envs: A vector environment.
        window: How many of the last complete episodes :meth:`mean` is about.
        stats_key: The key in the infos.

    Raises:
        TypeError: ``stats_key`` is no string, or the infos are no dictionary, as behind
            ``DictInfoToList``; or, in a step, a report is no flag.
        ValueError: ``window`` is below 1; the key is used by a wrapper inside; or, in a step or
            reset, infos have the key already.
    """

    _changes_steps = False
    _any_length = ("window", "finished")
    #: How many episodes wait for :meth:`finished` at most.
    _MOST_WAITING = 1 << 20

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], window: int = 100, stats_key: str = "episode"
    ) -> None:
        """Checks the arguments; steps nothing."""
        window = as_integer("window", window, 1, 1 << 32)
        check_stats_key(envs, stats_key)
        super().__init__(envs)
        self._stats_key = stats_key
        self._mask_key = f"_{stats_key}"
        is_same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._episodes = EpisodeMetrics(self.num_envs, is_same_step, window, self._MOST_WAITING)
        #: Whether success was reported, and failure.
        self._reported = (False, False)

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
                f"{dropped} finished episodes were dropped, since only {self._MOST_WAITING} wait: "
                "call finished() more often",
                RuntimeWarning,
                stacklevel=2,
            )
        return {name: column for name, column in columns.items() if self._is_shown(name)}

    def mean(self) -> dict[str, float]:
        """The mean of each value over the last ``window`` complete episodes; NaN without any.

        Episodes that ended before success, or failure, was reported by anyone count as false.
        """
        means = self._episodes.mean()
        names = ["return", "episode_len", "reward", *_SUCCESSES, *_FAILURES]
        values = [math.nan] * len(names) if means is None else means
        pairs = zip(names, values, strict=True)
        return {name: value for name, value in pairs if self._is_shown(name)}

    def _is_shown(self, name: str) -> bool:
        success, fail = self._reported
        return success if name in _SUCCESSES else fail if name in _FAILURES else True

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        before, reported = self._episodes.state(), self._reported
        try:
            yield
        finally:
            ended = {name: before[name] for name in _ENDED}
            self._episodes.set_state({**self._episodes.state(), **ended})
            self._reported = reported

    def _transform(self, batch: Batch) -> None:
        infos = batch.infos
        said = self._read(batch) if infos else _SILENCE
        if batch.rewards is None:
            self._episodes.begin(batch.rows, batch.kinds, batch.seeds)
            return
        values, mask, finals = self._episodes.step(
            (batch.rows, batch.kinds, batch.rewards, batch.terminations, batch.truncations),
            said,
            batch.seeds,
            self._reported,
        )
        shown = {**infos} if infos else {}
        shown[self._stats_key], shown[self._mask_key] = values, mask
        batch.infos = shown
        if finals is not None:
            last, ended = finals
            final_info = infos.get("final_info", {})
            shown["final_info"] = {**final_info, self._stats_key: last, self._mask_key: ended}
            if "_final_info" not in infos:  # otherwise it has all rows that ended
                shown["_final_info"] = ended.copy()

    def _read(self, batch: Batch) -> tuple[Any, Any]:
        """What the infos of a batch say of success and failure; refuses a key that is taken."""
        infos, key, mask_key = batch.infos, self._stats_key, self._mask_key
        finals = infos.get("final_info", ())
        if key in infos or mask_key in infos or key in finals or mask_key in finals:
            refuse_taken(infos, key, mask_key)
            refuse_taken(infos["final_info"], key, mask_key)
        if _REPORTS.isdisjoint(infos) and _REPORTS.isdisjoint(finals):
            return _SILENCE
        success, fail = has_reports(infos, SUCCESS), has_reports(infos, FAIL)
        self._reported = self._reported[0] or success, self._reported[1] or fail
        if batch.rewards is None:
            return _SILENCE
        over = np.logical_or(batch.terminations, batch.truncations)
        successes = step_reports(infos, SUCCESS, over) if success else None
        failures = step_reports(infos, FAIL, over) if fail else None
        return (
            None if successes is None else successes.flags,
            None if failures is None else failures.flags,
        )

    def get_wrapper_state(self) -> dict[str, Any]:
        """The state: values and seeds of each environment's present episode by name, and more.

        ``"stale"``: whether they are those of an episode before the present one; ``"window"`` and
        ``"finished"``: columns of the last episodes, and of those that wait for :meth:`finished`;
        counts; what was reported. A wrapper that goes on with it keeps the size of its own window.
        """
        success, fail = self._reported
        return {**self._episodes.state(), "reports_success": success, "reports_fail": fail}

    def _go_on(self, state: dict[str, Any]) -> None:
        self._episodes.set_state(state)
        self._reported = state["reports_success"], state["reports_fail"]
