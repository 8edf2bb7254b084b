"""Plays a number of episodes of every environment."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.evaluation.evaluation import Evaluation
from cartwheel.evaluation.policy import Policy
from cartwheel.evaluation.stepping import stepping
from cartwheel.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium as gym
    from numpy.typing import NDArray

    from cartwheel.evaluation.stepping import Step

#: Keys under which environments report success, the first that is there counts.
SUCCESS_KEYS = ("is_success", "success")


def evaluate(
    envs: gym.vector.VectorEnv[Any, Any, Any],
    policy: Callable[..., Any],
    *,
    episodes_per_env: int = 1,
    seed: int | list[int | None] | None = 0,
    options: dict[str, Any] | None = None,
    recurrent: bool = False,
    confidence: float = 0.95,
    progress: bool | Callable[[int, int], object] = True,
) -> Evaluation:
    """Plays exactly ``episodes_per_env`` complete episodes of every environment.

    Every environment counts the same, however long its episodes are; episodes that happen to end
    first are not favoured. A row that has played its episodes is not stepped any more and is no
    longer shown to the policy, so the last of many rows costs what one row costs.

    The same seed and policy give the same bits, whatever the executor, the number of workers and
    the autoreset mode: a row begins its next episode right after the last one in every mode, and
    its random numbers are its own. (The policy's must be the caller's to seed.)

    All environments are reset at the start. Afterwards, and after an exception, nothing is in
    flight, and the episodes of some rows are over: call ``reset`` before anything else.

    Vector environments that are not cartwheel's, and wrapped ones, can only be stepped as a whole:
    rows that have finished go on with their last action, uncounted. Their ``metadata`` must name
    the autoreset mode; in ``DISABLED`` they must know the option ``"reset_mask"``. In ``NEXT_STEP``
    the rows being reset are not shown to the policy.

    Args:
        envs: A vector environment, whose ``batch_size`` is ``num_envs`` if it has one.
        policy: Called with the observations of the rows that play, a batch of ``k ≤ num_envs``
            rows in ascending order; returns ``k`` actions, or a tuple of actions and extras, which
            are ignored. Where the action space is a ``Tuple``, a tuple is the actions.
        episodes_per_env: Episodes of each environment, at least 1.
        seed: As for ``envs.reset``, of the first episodes; later ones go on with the random numbers
            of their row. ``None`` lets the first do so too.
        options: As for ``envs.reset``, of the first episodes, without a choice of rows.
        recurrent: Call the policy as ``policy(observations, env_index, first)`` instead, for
            policies with a state a row: the rows (an array of integers of shape ``(k,)``) and
            whether each begins an episode (``bool``).
        confidence: The level of the confidence intervals, from 0 to 1, exclusive.
        progress: ``True`` draws a bar on stderr if that is a terminal and nothing otherwise. It is
            cartwheel's own, as it needs nothing of what ``tqdm`` offers beyond; a function is
            called instead with the numbers of episodes done and in all whenever some end, which
            may feed any other bar. ``False`` does neither.

    Returns:
        The episodes and what follows from them.

    Raises:
        ValueError: ``episodes_per_env`` or ``confidence`` makes no sense, ``options`` choose rows,
            ``envs`` cannot be evaluated, or the policy returned another number of actions than
            there are observations. Nothing was stepped by that call.
        TypeError: ``policy`` is no function, or returned no batch.
        gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight.
        Exception: What the policy or an environment raises.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 4)
        >>> lean = lambda observations: (observations[:, 2] > 0).astype("int64")
        >>> evaluation = cartwheel.evaluate(envs, lean, episodes_per_env=5, seed=1)
        >>> evaluation.returns.shape
        (4, 5)
        >>> envs.close()
    """
    _check(episodes_per_env, options, confidence)
    asked = Policy(policy, envs.single_action_space, recurrent=recurrent)
    playing = stepping(envs, seed, options)
    tally = _Tally(envs.num_envs, int(episodes_per_env))
    total = envs.num_envs * int(episodes_per_env)
    with contextlib.ExitStack() as stack:
        if progress is True:
            bar = stack.enter_context(contextlib.closing(Progress(total)))
        while playing.rows.size:
            actions = asked(playing.observations, playing.rows, playing.first)
            step = playing.step(actions)
            over = tally.add(playing.rows, step)
            ended = int(np.count_nonzero(over))
            # Nobody has finished where no episode ended.
            finished = tally.episodes[playing.rows] == episodes_per_env if ended else over
            playing.go_on(over, finished)
            if ended and progress is True:
                bar.advance("episodes", ended)
            elif ended and callable(progress):
                progress(int(tally.episodes.sum()), total)
    return tally.evaluation(seed, confidence)


def _check(episodes_per_env: Any, options: Any, confidence: float) -> None:
    is_integer = isinstance(episodes_per_env, int | np.integer)
    if not is_integer or isinstance(episodes_per_env, bool) or episodes_per_env < 1:
        raise ValueError(f"`episodes_per_env` must be a positive integer, got {episodes_per_env!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must be between 0 and 1, got {confidence!r}")
    chosen = sorted({"reset_mask", "env_index"} & set(options or ()))
    if chosen:
        raise ValueError(f"`options` must not choose rows, got {chosen}: all of them are evaluated")


class _Tally:
    """Counts rewards and steps of running episodes, and keeps those of complete ones."""

    def __init__(self, num_envs: int, episodes_per_env: int) -> None:
        size = num_envs * episodes_per_env
        #: Complete episodes of each environment.
        self.episodes = np.zeros(num_envs, np.int64)
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
        """Adds a step of ``rows`` and returns whose episode it completed."""
        self._rewards[rows] += step.rewards
        self._steps[rows] += 1
        over = np.logical_or(step.terminations, step.truncations)
        if not np.count_nonzero(over):
            return over
        ended = rows[over]
        at = ended * self._shape[1] + self.episodes[ended]
        self._returns[at] = self._rewards[ended]
        self._lengths[at] = self._steps[ended]
        self._terminated[at] = step.terminations[over]
        self._truncated[at] = step.truncations[over]
        successes = reported_successes(step.infos, step.places[over]) if step.infos else None
        if successes is not None:
            if self._successes is None:
                self._successes = np.zeros(self._returns.shape, np.bool_)
            self._successes[at] = successes
        self._rewards[ended] = 0.0
        self._steps[ended] = 0
        self.episodes[ended] += 1
        return over

    def evaluation(self, seed: Any, confidence: float) -> Evaluation:
        """All episodes, which must be complete."""
        successes = self._successes
        return Evaluation(
            self._returns.reshape(self._shape),
            self._lengths.reshape(self._shape),
            self._terminated.reshape(self._shape),
            self._truncated.reshape(self._shape),
            None if successes is None else successes.reshape(self._shape),
            seed,
            confidence,
        )


def reported_successes(infos: dict[str, Any], places: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Whether episodes succeeded, from the infos of their last step.

    Args:
        infos: A batch; in the mode ``SAME_STEP`` the last infos are under ``final_info``.
        places: Where the episodes that ended are in its arrays.

    Returns:
        ``bool``, one each, false where nothing is said; ``None`` if nothing is said of anyone.
    """
    infos = infos.get("final_info", infos)
    for key in SUCCESS_KEYS:
        said = infos[f"_{key}"][places] if f"_{key}" in infos else np.zeros(1, np.bool_)
        if said.any():
            values = infos[key][places].astype(np.bool_)
            successes: NDArray[np.bool_] = values.reshape(len(places), -1).all(axis=1) & said
            return successes
    return None
