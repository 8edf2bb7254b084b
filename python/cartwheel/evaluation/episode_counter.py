"""Counts episodes while they are played, and keeps those that are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.evaluation.result import Evaluation
from cartwheel.vector.infos import (
    LOST,
    SUCCESS,
    check_infos,
    failed_rows,
    final_infos,
    step_outcomes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.evaluation.stepping import Step
    from cartwheel.vector.infos import Outcomes

#: Consecutive failures after which an environment raises, if ``max_restarts`` allows so many.
MAX_FAILURES = 100


def given_up_by(row: int, infos: dict[str, Any], place: int) -> RuntimeError:
    """The error of a row that failed too often; infos of the last time have it at a place."""
    errors = infos.get("env_error")
    last = errors[place] if errors is not None else None
    return RuntimeError(
        f"the environment of row {row} failed in {MAX_FAILURES} episodes in a row, the last time "
        f"by {last or 'the death of its worker'}"
    )


class EpisodeCounter:
    """Counts rewards and steps of running episodes, and keeps those of complete ones."""

    def __init__(self, num_envs: int, episodes_per_env: int) -> None:
        size = num_envs * episodes_per_env
        #: Complete episodes of each environment.
        self.episodes = np.zeros(num_envs, np.int64)
        #: The number of complete episodes.
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
        self._once: NDArray[np.bool_] | None = None
        #: Whether a step of the running episode reported success, for each environment.
        self._succeeded = np.zeros(num_envs, np.bool_)

    def add(self, step: Step) -> NDArray[np.bool_]:
        """Adds a step of some rows and returns which episodes are over, complete or failed.

        Raises:
            RuntimeError: An environment failed in :data:`MAX_FAILURES` episodes in a row.
            TypeError: The infos are not a dictionary, or a report of success is not a flag.
        """
        rows = step.rows
        self._rewards[rows] += step.rewards
        self._steps[rows] += 1
        over = np.logical_or(step.terminations, step.truncations)
        outcomes = None
        if step.infos:
            check_infos(step.infos)
            finals = final_infos(step.infos)
            outcomes = step_outcomes(step.infos, finals, SUCCESS, over, step.places)
        if outcomes is not None:
            if self._once is None:
                self._once = np.zeros(self._returns.shape, np.bool_)
            self._succeeded[rows] |= outcomes.flags
        if not np.count_nonzero(over):
            return over
        self._keep(step, outcomes, self._complete(step, over))
        begin = rows[over]
        self._rewards[begin] = 0.0
        self._steps[begin] = 0
        self._succeeded[begin] = False
        return over

    def _complete(self, step: Step, over: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns which episodes are over and were not cut short by a failure; counts the others.

        A failed step truncates. An episode that was terminated ended by itself, and it was its
        autoreset that failed (in ``SAME_STEP``). Where it truncated itself in such a step, the two
        cannot be told apart, and it is dropped, as an episode whose last infos were lost.
        """
        rows = step.rows
        failed = failed_rows(step.infos) if step.infos else None
        if failed is None:
            return over
        cut = over & ~step.terminations & failed[step.places]
        lost = failed_rows(step.infos, (LOST,))
        if lost is not None:
            cut |= over & lost[step.places]
        self._failures[rows[cut]] += 1
        self._in_a_row[rows[cut]] += 1
        given_up = cut & (self._in_a_row[rows] >= MAX_FAILURES)
        if given_up.any():
            at = int(given_up.argmax())
            raise given_up_by(int(rows[at]), step.infos, int(step.places[at]))
        return over & ~cut

    def _keep(self, step: Step, outcomes: Outcomes | None, complete: NDArray[np.bool_]) -> None:
        """Keeps episodes that end with a step, in which rows reported success."""
        ended = step.rows[complete]
        if not ended.size:
            return
        at = ended * self._shape[1] + self.episodes[ended]
        self._returns[at] = self._rewards[ended]
        self._lengths[at] = self._steps[ended]
        self._terminated[at] = step.terminations[complete]
        self._truncated[at] = step.truncations[complete]
        if outcomes is not None and np.count_nonzero(outcomes.reported[complete]):
            if self._successes is None:
                self._successes = np.zeros(self._returns.shape, np.bool_)
            self._successes[at] = outcomes.flags[complete]
        if self._once is not None:
            self._once[at] = self._succeeded[ended]
        self.episodes[ended] += 1
        self._in_a_row[ended] = 0
        self.done += len(ended)

    def evaluation(self, seed: Any, confidence: float) -> Evaluation:
        """Returns the result, once all episodes are complete."""
        successes, once = self._successes, self._once
        return Evaluation(
            self._returns.reshape(self._shape),
            self._lengths.reshape(self._shape),
            self._terminated.reshape(self._shape),
            self._truncated.reshape(self._shape),
            None if successes is None else successes.reshape(self._shape),
            self._failures,
            seed,
            confidence,
            None if once is None else once.reshape(self._shape),
        )
