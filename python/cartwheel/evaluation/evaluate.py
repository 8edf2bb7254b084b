"""``evaluate``: plays a number of episodes of every environment, and checks the policy."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, overload

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel._internal.arguments import as_integer, check_progress
from cartwheel._internal.literals import EvaluateOrder, check_choice
from cartwheel._internal.policy import (
    actions_and_extras,
    as_function,
    mask_keywords,
    mask_parameter,
)
from cartwheel._internal.progress import reporting
from cartwheel._internal.reset_arguments import check_chooses_no_rows
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.suggestions import checks_keywords, shown, vector_env_instead
from cartwheel.evaluation.agents import evaluate_agents
from cartwheel.evaluation.episode_counter import EpisodeCounter
from cartwheel.evaluation.stepping import check_alone, stepping
from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.multiagent.base import AgentsBase
from cartwheel.vector.calls import Calls
from cartwheel.vector.episode_rules import whole_episodes
from cartwheel.wrappers._shared.conversion import without_conversion
from cartwheel.wrappers._stack.freezing import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._internal.policy import Policy
    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel.evaluation.agents import AgentsEvaluation
    from cartwheel.evaluation.result import Evaluation
    from cartwheel.wrappers._shared.conversion import ConvertsArrays


@overload
def evaluate(
    envs: gym.vector.VectorEnv[Any, Any, Any],
    policy: Policy,
    *,
    episodes_per_env: int = ...,
    seed: Seeds = ...,
    options: ResetOptions = ...,
    recurrent: bool = ...,
    confidence: float = ...,
    progress: bool | Callable[[int, int], object] = ...,
    order: EvaluateOrder = ...,
) -> Evaluation: ...


@overload
def evaluate(
    envs: AgentsBase,
    policy: Policy,
    *,
    episodes_per_env: int = ...,
    seed: Seeds = ...,
    options: ResetOptions = ...,
    recurrent: bool = ...,
    confidence: float = ...,
    progress: bool | Callable[[int, int], object] = ...,
    order: EvaluateOrder = ...,
    teams: Mapping[str, Sequence[Any]] | None = ...,
) -> AgentsEvaluation: ...


@checks_keywords
def evaluate(
    envs: gym.vector.VectorEnv[Any, Any, Any] | AgentsBase,
    policy: Policy,
    *,
    episodes_per_env: int = 1,
    seed: Seeds = None,
    options: ResetOptions = None,
    recurrent: bool = False,
    confidence: float = 0.95,
    progress: bool | Callable[[int, int], object] = True,
    order: EvaluateOrder = "lockstep",
    teams: Mapping[str, Sequence[Any]] | None = None,
) -> Evaluation | AgentsEvaluation:
    """Plays exactly ``episodes_per_env`` complete episodes of every environment.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 4)
        >>> lean = lambda observations: (observations[:, 2] > 0).astype("int64")
        >>> evaluation = cartwheel.evaluate(envs, lean, episodes_per_env=5, seed=1)
        >>> evaluation.returns.shape
        (4, 5)
        >>> envs.close()

    Every environment counts the same, however long its episodes are: short episodes, which end
    first, are not favored. A row that has played its episodes is neither stepped nor shown to the
    policy, so the last row that plays costs as much as a single row.

    The same seed and policy give the same bits, whatever the executor, the number of workers and
    the autoreset mode: in every mode a row begins its next episode right after the last one, and
    each row has its own random numbers. (Seed the random numbers of the policy yourself.)

    Where a failure truncates an episode (``on_error="restart"``, ``on_worker_death="restart"``),
    the episode is not complete. It is dropped and counted in :attr:`Evaluation.failures`, and the
    same environment plays another episode. A failure beyond ``max_restarts`` is raised. An
    environment that fails in 100 episodes in a row is an error, if ``max_restarts`` allows so many.
    Episodes that do not end keep this function from returning: make environments without a limit
    of their own with ``max_episode_steps``.

    All environments are reset at the start, and every episode is a whole one: with
    ``staggered_reset=True`` this reset does not stagger rows. Afterwards, and after an exception,
    nothing is in flight, and the episodes of some rows are over: call ``reset`` before anything
    else. (A :class:`~cartwheel.Collector` does so itself.)

    The training statistics of wrappers of vector environments stay as they are: the moments of
    ``NormalizeObservation`` and ``NormalizeReward`` do not change, and the queues, counts and
    finished episodes of ``RecordEpisodeStatistics`` and ``RecordMetrics`` are those from before,
    also for Gymnasium's wrappers of these names. Wrappers within ``env_fns`` belong to their
    environments, and are updated.

    With ``order="free"`` no row waits for another: rows are sent and received one by one, and those
    that are done are shown to the policy while the others are still at work. A slow step or reset
    delays only its own row. So the policy is called with fewer rows at a time, and more often; that
    pays where environments take long, or unequally long, compared with a call of the policy. The
    result has the same bits as in lockstep if the policy treats each row alone. With networks the
    last bits may differ, because libraries multiply batches of different sizes differently, and a
    policy that draws random numbers for a batch draws others for other batches. An exception waits
    for the rows in flight, at most as long as the ``timeout`` of ``envs`` allows; the next reset
    waits for what is in flight even then.

    Vector environments that are not cartwheel's, and those in wrappers of Gymnasium, can only be
    stepped as a whole: rows that have finished repeat their last action, or with masks of actions
    take one that is allowed, and their results are not counted. (Wrappers of
    ``cartwheel.wrappers`` can step some rows.) The ``metadata`` of such an environment must name
    the autoreset mode; in ``DISABLED`` its ``reset`` must support the option ``"reset_mask"``. In
    ``NEXT_STEP`` rows that reset are not shown to the policy.

    Several agents. Of a :class:`~cartwheel.ParallelVectorEnv` the episodes are those of its
    environments, and the result is an :class:`AgentsEvaluation`: the returns of each agent, of
    teams and of all. The policy gets observations by agent and returns actions by agent. Success is
    not measured, and ``order`` must be ``"lockstep"``.

    Args:
        envs: A vector environment, whose ``batch_size`` is ``num_envs`` if it has one.
        policy: Called with the observations of the rows that play, a batch of ``k ≤ num_envs``
            rows in ascending order (``order`` may change that). Returns ``k`` actions, or ``k``
            actions and a dictionary of extras, which are ignored. Or an object with a method
            ``predict``, such as a model of Stable-Baselines3. :class:`~cartwheel.Collector` takes
            the same policies and documents them: one with a parameter ``action_masks`` gets masks
            of actions.
        episodes_per_env: Episodes of each environment, at least 1.
        seed: As for ``envs.reset``, of the first episodes. Later episodes continue with the random
            numbers of their row; with ``None`` the first episodes do so too.
        options: As for ``envs.reset``, of the first episodes, without a choice of rows.
        recurrent: Call the policy as ``policy(observations, env_index, first)`` instead, for
            policies with a state for each row: the rows (integers, shape ``(k,)``) and whether each
            begins an episode (``bool``, shape ``(k,)``). ``Collector(…, recurrent=True)`` calls a
            policy in the same way. The policy does not see every row in every call.
        confidence: The level of the confidence intervals, between 0 and 1.
        progress: ``True``: draw a progress bar on stderr if stderr is a terminal. A function: it is
            called with the number of finished episodes and the number of all episodes whenever
            episodes finish. ``False``: neither.
        order: ``"lockstep"``: the policy is called with all rows that play. ``"free"``: with the
            rows that are done, at least one, in the order in which they are done. Meanwhile the
            others are in flight, so the policy and ``progress`` cannot use ``envs``. It needs
            environments that send rows: cartwheel's, in wrappers of ``cartwheel.wrappers`` or
            without.
        teams: Of environments of several agents: lists of agents by the name of their team.

    Returns:
        The episodes, their means and confidence intervals.

    Raises:
        ValueError: ``episodes_per_env`` or ``confidence`` is out of range, ``order`` is unknown,
            ``options`` choose rows, ``envs`` cannot be evaluated, rewards are arrays
            (``reward_space``), or the number of actions differs from the number of observations.
            That call has stepped nothing.
        TypeError: ``envs`` cannot send rows, which ``order="free"`` needs, or has a row for each
            agent; nothing was reset.
            ``policy`` cannot be called, or returned a recurrent state or something without a
            length. Infos are not a dictionary, as behind the wrapper ``DictInfoToList``; or
            ``is_success`` or ``success`` of an episode is neither a flag, a number nor an array of
            them.
        RuntimeError: An environment failed in 100 episodes in a row; or the policy or ``progress``
            stepped or reset ``envs``.
        gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        Exception: The policy or an environment raised it.
    """
    _check(envs, options, confidence, progress)
    episodes_per_env = as_integer("episodes_per_env", episodes_per_env, 1, limit=1 << 32)
    check_choice("order", order, EvaluateOrder)
    if isinstance(envs, AgentsBase):
        if order != "lockstep":
            raise ValueError(f"`order` must be 'lockstep' for several agents, got {order!r}")
        return evaluate_agents(
            envs,
            policy,
            episodes_per_env=episodes_per_env,
            seed=seed,
            options=options,
            recurrent=recurrent,
            confidence=confidence,
            progress=progress,
            teams=teams,
        )
    if teams is not None:
        raise ValueError(
            f"`teams` are lists of agents of a ParallelVectorEnv, got {shown(teams)} for {envs}"
        )
    inner, conversion = without_conversion(envs)
    if conversion is not None:
        options = conversion._options_as_arrays(options)
    act = CheckedPolicy(policy, inner, recurrent=recurrent, conversion=conversion)
    counter = EpisodeCounter(inner.num_envs, episodes_per_env)
    total = inner.num_envs * episodes_per_env
    with contextlib.ExitStack() as stack:
        calls = Calls(inner)
        calls.note()
        stack.enter_context(frozen(inner))
        stack.enter_context(whole_episodes(inner))
        playing = stack.enter_context(stepping(inner, order, seed, options))
        report = stack.enter_context(reporting(progress, total))
        calls.note()
        while counter.done < total:
            done, actions = counter.done, None
            if playing.rows.size:
                actions = act(playing.observations, playing.rows, playing.first)
            check_alone(calls)
            step = playing.step(actions)
            over = counter.add(step)
            ended = counter.done - done
            # No environment has finished where no complete episode ended.
            rows, finished = step.rows, np.zeros_like(over)
            if ended:
                finished = counter.episodes[rows] == episodes_per_env
            playing.go_on(over, finished)
            calls.note()
            if ended:
                report(counter.done)
    return counter.evaluation(seed, confidence)


def _check(envs: Any, options: Any, confidence: Any, progress: Any) -> None:
    if not isinstance(envs, AgentsBase):
        if not isinstance(envs, gym.vector.VectorEnv):
            raise TypeError(
                f"`envs` must be a vector environment, got {shown(envs)}: "
                f"{vector_env_instead(envs)}."
            )
        if isinstance(envs.unwrapped, AgentRows):
            raise TypeError(
                "`envs` has a row for each agent, which ends with its environment: pass the "
                "ParallelVectorEnv, whose evaluation has the returns of each agent."
            )
        check_rewards_are_numbers(envs, "`evaluate`")
    check_progress(progress)
    if not isinstance(confidence, float | np.floating) or not 0 < confidence < 1:
        raise ValueError(f"`confidence` must be between 0 and 1, got {confidence!r}")
    check_chooses_no_rows(options)


class CheckedPolicy:
    """Calls a policy and checks the number of its actions before anything is stepped.

    Args:
        policy: A function, or an object with a method ``predict``.
        envs: The vector environment, which may have masks of actions.
        recurrent: Whether it gets the row numbers, and which rows begin an episode.
        conversion: The policy sees arrays as this wrapper returns them.
    """

    def __init__(
        self,
        policy: Policy,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        *,
        recurrent: bool,
        conversion: ConvertsArrays | None = None,
    ) -> None:
        self._function = as_function(policy, recurrent=recurrent)
        self._mask = mask_parameter(self._function)
        if conversion is not None:
            self._function = conversion._converted(self._function)
        self._envs, self._space = envs, envs.single_action_space
        self._recurrent = recurrent

    def __call__(self, observations: Any, rows: NDArray[np.intp], first: NDArray[np.bool_]) -> Any:
        """Returns one action for each of ``rows``.

        Raises:
            ValueError: The policy returned another number of actions.
            TypeError: It returned something that has no length, or a tuple that is not a batch.
            Exception: As raised by the policy.
        """
        further = (rows.copy(), first.copy()) if self._recurrent else ()
        masks = mask_keywords(self._envs, self._mask, rows)
        answer = self._function(observations, *further, **masks)
        actions, _ = actions_and_extras(answer, self._space)
        for name, batch in batches(self._space, actions):
            try:
                count = len(batch)
            except TypeError as error:
                raise TypeError(
                    f"the policy returned {type(batch)}{name} where a batch of {len(rows)} actions "
                    "is expected"
                ) from error
            if count != len(rows):
                of_all = count == self._envs.num_envs
                hint = ": rows that have played their episodes are left out" if of_all else ""
                raise ValueError(
                    f"the policy returned {count} actions{name} for {len(rows)} observations{hint}"
                )
        return actions


def batches(space: Space[Any], actions: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The parts of a batch of actions that have one entry an environment, and their names."""
    if isinstance(space, Dict) and isinstance(actions, dict):
        for key, part in space.spaces.items():
            if key in actions:  # the environments refuse missing ones
                yield from batches(part, actions[key], f"{name} under {key!r}")
    elif isinstance(space, Tuple) and isinstance(actions, tuple):
        for place, (part, batch) in enumerate(zip(space.spaces, actions, strict=False)):
            yield from batches(part, batch, f"{name} at {place}")
    else:
        yield name, actions
