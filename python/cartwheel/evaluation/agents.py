"""Evaluation of environments of several agents: episodes of each agent, of teams and of all."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.policy import as_function, mask_keywords, mask_parameter
from cartwheel._internal.progress import reporting
from cartwheel.evaluation.episode_counter import MAX_FAILURES, given_up_by
from cartwheel.evaluation.result import Evaluation
from cartwheel.evaluation.stepping import PlayingRows, check_alone
from cartwheel.vector.calls import Calls
from cartwheel.vector.episode_rules import whole_episodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.policy import Policy
    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel.multiagent.base import AgentsBase
    from cartwheel.multiagent.batches import Columns


@dataclass(frozen=True, eq=False, repr=False)
class AgentsEvaluation:
    """Complete episodes of environments of several agents, the same number of every environment.

    Success is not measured.

    Attributes:
        total: Returns are sums over all agents, lengths those of the environments' episodes.
            ``terminated`` and ``truncated`` tell whether any agent was.
        agents: For each agent its returns, the numbers of its steps, and its flags. An agent that
            did not take part in an episode has the return 0 and the length 0 there.
        teams: For each team as ``total``, of its agents.
    """

    total: Evaluation
    agents: dict[Any, Evaluation]
    teams: dict[str, Evaluation]

    def summary(self) -> str:
        """Returns a readable summary: all agents, each team, and each agent in one line."""
        named = [*self.teams.items(), *self.agents.items()]
        lines = [
            f"{name}: return {each.mean_return:.6g} ± {each.std_return:.4g}, "
            f"length {each.mean_length:.6g}"
            for name, each in named
        ]
        return "\n".join([self.total.summary(), *lines])

    def __repr__(self) -> str:
        names = f"agents={list(self.agents)}"
        if self.teams:
            names += f", teams={list(self.teams)}"
        return f"AgentsEvaluation({self.total!r}, {names})"


def evaluate_agents(
    envs: AgentsBase,
    policy: Policy,
    *,
    episodes_per_env: int,
    seed: Seeds,
    options: ResetOptions,
    recurrent: bool,
    confidence: float,
    progress: bool | Callable[[int, int], object],
    teams: Mapping[str, Sequence[Any]] | None,
) -> AgentsEvaluation:
    """Plays complete episodes of every environment; arguments as for ``evaluate``."""
    if envs.batch_size < envs.num_envs:
        raise ValueError(
            f"`envs` has batch_size={envs.batch_size} below num_envs={envs.num_envs}: evaluate "
            "environments that are made without `batch_size`"
        )
    members = _checked(teams, envs.possible_agents)
    function = as_function(policy, recurrent=recurrent)
    mask = mask_parameter(function)
    quota = _Quota(envs.num_envs, envs.num_agents, episodes_per_env)
    total = envs.num_envs * episodes_per_env
    with contextlib.ExitStack() as stack:
        stack.enter_context(whole_episodes(envs._pool))
        report = stack.enter_context(reporting(progress, total))
        playing = _AgentStepping(envs, seed, options)
        calls = Calls(envs._pool)
        while quota.done < total:
            further = (playing.rows.copy(), playing.first.copy()) if recurrent else ()
            masks = mask_keywords(envs, mask, playing.rows)
            answer = function(envs._observations(playing.observations), *further, **masks)
            check_alone(calls)
            columns = playing.step(answer[0] if isinstance(answer, tuple) else answer)
            done = quota.done
            over = quota.add(playing.rows, columns)
            playing.go_on(over, quota.episodes[playing.rows] == episodes_per_env)
            calls.note()
            if quota.done > done:
                report(quota.done)
    places = {agent: place for place, agent in enumerate(envs.possible_agents)}
    return AgentsEvaluation(
        quota.joint(range(len(places)), seed, confidence),
        {agent: quota.single(place, seed, confidence) for agent, place in places.items()},
        {
            name: quota.joint([places[agent] for agent in found], seed, confidence)
            for name, found in members.items()
        },
    )


class _AgentStepping(PlayingRows):
    """Steps rows with several agents; observations are those of groups."""

    def __init__(self, envs: AgentsBase, seed: Any, options: Any) -> None:
        super().__init__(envs, envs._batches.groups_space, seed, options)

    def _reset(self, seed: Any, options: Any) -> Any:
        return self._envs._reset_columns(seed, options).observations

    def step(self, actions: Any) -> Columns:
        """Steps ``rows`` and no others."""
        rows = None if self._steps_all else self.rows
        columns: Columns = self._envs._step_columns(actions, rows)
        self.observations = columns.observations
        return columns


class _Quota:
    """Sums of running episodes by agent, and those of complete ones."""

    def __init__(self, num_envs: int, num_agents: int, episodes_per_env: int) -> None:
        self.episodes = np.zeros(num_envs, np.int64)
        self.done = 0
        self._failures = np.zeros(num_envs, np.int64)
        self._in_a_row = np.zeros(num_envs, np.int64)
        running, kept = (num_agents, num_envs), (num_agents, num_envs, episodes_per_env)
        self._running = _Sums(running)
        self._kept = _Sums(kept)
        self._steps = np.zeros(num_envs, np.int64)
        self._lengths = np.zeros(kept[1:], np.int64)

    def add(self, rows: NDArray[np.intp], columns: Columns) -> NDArray[np.bool_]:
        """Adds a step; returns which episodes are over, complete or failed.

        Raises:
            RuntimeError: An environment failed in too many episodes in a row.
        """
        self._running.add(rows, columns)
        self._steps[rows] += 1
        assert columns.episode_over is not None, "a step tells which rows are over"
        over = columns.episode_over
        if not np.count_nonzero(over):
            return over
        cut = np.zeros_like(over) if columns.failed is None else over & columns.failed
        self._failures[rows[cut]] += 1
        self._in_a_row[rows[cut]] += 1
        given_up = np.flatnonzero(cut & (self._in_a_row[rows] >= MAX_FAILURES))
        if len(given_up):
            raise given_up_by(int(rows[given_up[0]]), columns.infos, int(given_up[0]))
        ended = rows[over & ~cut]
        self._kept.keep(self._running, ended, self.episodes[ended])
        self._lengths[ended, self.episodes[ended]] = self._steps[ended]
        self.episodes[ended] += 1
        self._in_a_row[ended] = 0
        self.done += len(ended)
        self._running.clear(rows[over])
        self._steps[rows[over]] = 0
        return over

    def single(self, place: int, seed: Any, confidence: float) -> Evaluation:
        """The episodes of an agent."""
        kept = self._kept
        return Evaluation(
            kept.returns[place],
            kept.lengths[place],
            kept.terminated[place],
            kept.truncated[place],
            None,
            self._failures.copy(),
            seed,
            confidence,
        )

    def joint(self, places: Sequence[int], seed: Any, confidence: float) -> Evaluation:
        """The episodes of several agents together."""
        kept, members = self._kept, list(places)
        return Evaluation(
            kept.returns[members].sum(axis=0),
            self._lengths.copy(),
            np.logical_or.reduce(kept.terminated[members]),
            np.logical_or.reduce(kept.truncated[members]),
            None,
            self._failures.copy(),
            seed,
            confidence,
        )


class _Sums:
    """Returns, steps and flags by agent and environment."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.returns = np.zeros(shape)
        self.lengths = np.zeros(shape, np.int64)
        self.terminated = np.zeros(shape, np.bool_)
        self.truncated = np.zeros(shape, np.bool_)

    def add(self, rows: NDArray[np.intp], columns: Columns) -> None:
        self.returns[:, rows] += columns.rewards
        self.lengths[:, rows] += columns.acted
        self.terminated[:, rows] |= columns.terminated
        self.truncated[:, rows] |= columns.truncated

    def keep(self, running: _Sums, rows: NDArray[np.intp], episodes: NDArray[np.int64]) -> None:
        for name, kept in vars(self).items():
            kept[:, rows, episodes] = getattr(running, name)[:, rows]

    def clear(self, rows: NDArray[np.intp]) -> None:
        for array in vars(self).values():
            array[:, rows] = 0


def _checked(
    teams: Mapping[str, Sequence[Any]] | None, agents: list[Any]
) -> dict[str, Sequence[Any]]:
    if teams is None:
        return {}
    if not isinstance(teams, dict) or not all(
        isinstance(found, list | tuple) for found in teams.values()
    ):
        raise TypeError(
            f"`teams` must be a dictionary of lists of the agents {agents}, got {teams!r}"
        )
    for name, found in teams.items():
        unknown = [agent for agent in found if agent not in agents]
        if unknown or not found or len(set(found)) < len(found):
            raise ValueError(
                f"each of `teams` must have some of the agents {agents}, each once: {name!r} has "
                f"{list(found)}"
            )
    return dict(teams)
