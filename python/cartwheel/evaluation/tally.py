"""Counts episodes while they are played, and keeps those that are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.evaluation.evaluation import Evaluation
from cartwheel.vector.infos import LOST, failed_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.evaluation.stepping import Step

#: Keys under which environments report success; of each episode the first that is there counts.
SUCCESS_KEYS = ("is_success", "success")

#: Failures in a row after which an environment is given up, if its own budget has not ended it.
MOST_FAILURES = 100


class Tally:
    """Counts rewards and steps of running episodes, and keeps those of complete ones."""

    def __init__(self, num_envs: int, episodes_per_env: int) -> None:
        """Nothing was played yet."""
        size = num_envs * episodes_per_env
        #: Complete episodes of each environment.
        self.episodes = np.zeros(num_envs, np.int64)
        #: Their sum.
        self.done = 0
        self._failures = np.zeros(num_envs, np.int64)
        #: Failures since the last complete episode.
        self._in_a_row = np.zeros(num_envs, np.int64)
        self._rewards = np.zeros(num_envs)
        self._steps = np.zeros(num_envs, np.int64)
        # Of one dimension, by which NumPy indexes several times as fast as by two.
        self._shape = num_envs, episodes_per_env
        self._returns = np.zeros(size)
        self._lengths = np.zeros(size, np.int64)
        self._terminated = np.zeros(size, np.bool_)
        self._truncated = np.zeros(size, np.bool_)
        self._successes: NDArray[np.bool_] | None = None

    def add(self, rows: NDArray[np.intp], step: Step) -> NDArray[np.bool_]:
        """Adds a step of ``rows`` and returns whose episode is over, completely or by a failure.

        Raises:
            RuntimeError: Episodes of an environment do nothing but fail.
            TypeError: What infos say of success is no flag.
        """
        self._rewards[rows] += step.rewards
        self._steps[rows] += 1
        over = np.logical_or(step.terminations, step.truncations)
        if not np.count_nonzero(over):
            return over
        self._keep(rows, step, self._complete(rows, step, over))
        begin = rows[over]
        self._rewards[begin] = 0.0
        self._steps[begin] = 0
        return over

    def _complete(
        self, rows: NDArray[np.intp], step: Step, over: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whose episode is over and was not cut short by a failure; counts those that were.

        A failed step truncates. An episode that was terminated ended by itself, and it was its
        autoreset that failed (in ``SAME_STEP``). Where it truncated itself in such a step, nobody
        can tell, and it is dropped; so it is where infos were lost, which may tell of success.
        """
        failed = failed_rows(step.infos) if step.infos else None
        if failed is None:
            return over
        cut = over & ~step.terminations & failed[step.places]
        if LOST in step.infos:
            cut |= over & step.infos[LOST][step.places]
        self._failures[rows[cut]] += 1
        self._in_a_row[rows[cut]] += 1
        given_up = cut & (self._in_a_row[rows] >= MOST_FAILURES)
        if given_up.any():
            at = int(given_up.argmax())
            told = step.infos.get("env_error")
            last = told[step.places[at]] if told is not None else None
            raise RuntimeError(
                f"the environment of row {rows[at]} failed in {MOST_FAILURES} episodes in a row, "
                f"the last time by {last or 'the death of its worker'}"
            )
        return over & ~cut

    def _keep(self, rows: NDArray[np.intp], step: Step, complete: NDArray[np.bool_]) -> None:
        """Keeps episodes that end with a step."""
        ended = rows[complete]
        if not ended.size:
            return
        at = ended * self._shape[1] + self.episodes[ended]
        self._returns[at] = self._rewards[ended]
        self._lengths[at] = self._steps[ended]
        self._terminated[at] = step.terminations[complete]
        self._truncated[at] = step.truncations[complete]
        successes = reported_successes(step.infos, step.places[complete]) if step.infos else None
        if successes is not None:
            if self._successes is None:
                self._successes = np.zeros(self._returns.shape, np.bool_)
            self._successes[at] = successes
        self.episodes[ended] += 1
        self._in_a_row[ended] = 0
        self.done += len(ended)

    def evaluation(self, seed: Any, confidence: float) -> Evaluation:
        """All episodes, which must be complete."""
        successes = self._successes
        return Evaluation(
            self._returns.reshape(self._shape),
            self._lengths.reshape(self._shape),
            self._terminated.reshape(self._shape),
            self._truncated.reshape(self._shape),
            None if successes is None else successes.reshape(self._shape),
            self._failures,
            seed,
            confidence,
        )


def reported_successes(infos: dict[str, Any], places: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Whether episodes succeeded, from the infos of their last step.

    Args:
        infos: A batch; in the mode ``SAME_STEP`` the last infos are under ``final_info``.
        places: Where the episodes that ended are in its arrays.

    Returns:
        ``bool``, one each: of the first key that says something of this very episode, false where
        none does; ``None`` if nothing is said of anyone.

    Raises:
        TypeError: What is said is no flag, number or array of them.
    """
    infos = infos.get("final_info", infos)
    successes, silent = np.zeros(len(places), np.bool_), np.ones(len(places), np.bool_)
    for key in SUCCESS_KEYS:
        if f"_{key}" in infos:
            asked = np.flatnonzero(infos[f"_{key}"][places] & silent)
            if asked.size:
                said, flags = _flags(key, infos[key], places[asked])
                successes[asked[said]] = flags[said]
                silent[asked[said]] = False
    return None if silent.all() else successes


def _flags(
    key: str, values: Any, places: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For which places the infos of a key say something, and what; an array is true if all is.

    Raises:
        TypeError: It is no flag, number or array of them.
    """
    if not isinstance(values, dict):
        values = np.asarray(values)
        if values.dtype.kind in "biuf":
            flags = values[places].reshape(len(places), -1).astype(np.bool_).all(axis=1)
            return np.ones(len(places), np.bool_), flags
        if values.dtype == object:  # Gymnasium keeps `np.bool_`, lists and `None` as they are
            answers = [None if said is None else _flag(key, said) for said in values[places]]
            return np.array([said is not None for said in answers]), np.array(answers, np.bool_)
    raise _no_flag(key, values if isinstance(values, dict) else values[places[0]])


def _flag(key: str, said: Any) -> bool:
    """What one environment said.

    Raises:
        TypeError: It is no flag, number or array of them.
    """
    try:
        array = np.asarray(said)
    except ValueError:  # ragged
        raise _no_flag(key, said) from None
    if array.dtype.kind not in "biuf":
        raise _no_flag(key, said)
    return bool(array.all())


def _no_flag(key: str, said: Any) -> TypeError:
    return TypeError(
        f"the infos of the last step of an episode say in {key!r} whether it succeeded, which must "
        f"be a flag, a number or an array of them, got {type(said)}: give it another name"
    )
