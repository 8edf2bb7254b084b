"""Batches of rows with several agents: columns by agent, and actions from them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel.multiagent.action_masks import AgentMasks
from cartwheel.multiagent.actions import check_agents, misshapen, stacked_actions
from cartwheel.vector.infos import failed_rows, is_dense
from cartwheel.workers.envs.agents_layout import FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from cartwheel.workers.envs.agents_layout import Group, Layout

#: Names of entries of infos, which agents cannot have.
RESERVED = frozenset(
    f"{mark}{name}"
    for mark in ("", "_")
    for name in (
        *("present", "acted", "episode_over", "final_obs", "final_info", "env_index", "state"),
        *("final_state", "env_error", "worker_restarted", "restarted", "infos_lost"),
        "final_frame",
    )
)
#: Begins the state of a row that repeats flags, which follow.
_FLAGGED = b"cartwag\n"
_PRESENT, _LIVES = FLAGS.index("present"), FLAGS.index("lives")


class Finals(NamedTuple):
    """The last results of rows that are over, in ``SAME_STEP``.

    Attributes:
        observations: As of :class:`Columns`.
        present: Which rows are over and have an observation of the agent, ``(agents, n)``.
        infos: The last infos that are not of an agent.
        agent_infos: The last infos by the place of the agent.
    """

    observations: dict[str, Any]
    present: NDArray[np.bool_]
    infos: dict[str, Any]
    agent_infos: dict[int, Any]


class Columns(NamedTuple):
    """A batch of ``n`` rows; arrays have the shape ``(agents, n)``, observations a dictionary.

    Attributes:
        observations: The stacked observations ``(n, members, ...)`` of each group.
        rewards: ``float64``.
        terminated: Flags, as those below.
        truncated: Whether the agent was truncated.
        present: Whether ``observations`` have one of the agent.
        acted: Whether the agent was stepped.
        lives: Whether the agent is in ``agents`` now.
        episode_over: Which rows are over, of shape ``(n,)``; ``None`` for a reset.
        infos: Infos that are not of an agent.
        agent_infos: Infos by the place of the agent.
        finals: The last results of rows that are over; ``None``: no row is over, or the mode is
            another one than ``SAME_STEP``.
        failed: Which rows failed in the step; ``None`` for none.
    """

    observations: dict[str, Any]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    present: NDArray[np.bool_]
    acted: NDArray[np.bool_]
    lives: NDArray[np.bool_]
    episode_over: NDArray[np.bool_] | None
    infos: dict[str, Any]
    agent_infos: dict[int, Any]
    finals: Finals | None = None
    failed: NDArray[np.bool_] | None = None


class AgentBatches:
    """Converts batches of a pool of rows with several agents.

    Attributes:
        layout: The agents and their spaces.
        groups: The groups of agents with equal observation spaces.
        groups_space: The space of the observations of all groups of a row.
        action_groups: The groups of agents with equal action spaces.
        places: For each agent its group of observations, and its place there.
        masks: The masks of actions of all rows.
        lives: Which agents live in the rows as they are shown, ``(agents, num_envs)``; none where a
            limit or a failure cut the episode.
    """

    def __init__(
        self, layout: Layout, num_envs: int, mode: AutoresetMode, action_mask: str | None
    ) -> None:
        self.layout = layout
        self.groups: list[Group] = layout.observation_groups()
        self.action_groups: list[Group] = layout.action_groups()
        self.groups_space = Dict({group.key: group.stacked_space() for group in self.groups})
        self.places: list[tuple[Group, int]] = _places(self.groups, len(layout.agents))
        self._action_places = _places(self.action_groups, len(layout.agents))
        self.lives = np.zeros((len(layout.agents), num_envs), np.bool_)
        self.masks = AgentMasks(action_mask, layout, self.places, num_envs)
        self._is_same_step = mode == AutoresetMode.SAME_STEP
        self._names = frozenset(layout.agents)
        #: Each group of actions with the names of its agents.
        self._members = [
            (group, [layout.agents[place] for place in group.members])
            for group in self.action_groups
        ]
        #: The key of the only group, which has all agents in their order.
        self._only = self.groups[0].key if len(self.groups) == 1 else None
        self._info_keys = {str(place): place for place in range(len(layout.agents))}
        #: The flags that rows showed as they failed, and which rows repeat them: where they are
        #: frozen, their environments show others, those of the step before or of another one.
        self._flags_of_failed = np.zeros((2, *self.lives.shape), np.bool_)
        self._repeats = np.zeros(self.lives.shape[1], np.bool_)

    def with_flags(self, rows: Iterable[int], states: list[bytes]) -> list[bytes]:
        """Returns states of rows together with the flags that they repeat."""
        flags = self._flags_of_failed
        return [
            _FLAGGED + flags[:, :, row].tobytes() + state if self._repeats[row] else state
            for row, state in zip(rows, states, strict=True)
        ]

    def without_flags(self, states: list[Any]) -> tuple[list[Any], list[bytes]]:
        """Returns the two parts of such states; flags are empty where a row repeats none."""
        begin, end = len(_FLAGGED), len(_FLAGGED) + 2 * len(self.lives)
        flagged = [isinstance(one, bytes) and one.startswith(_FLAGGED) for one in states]
        pairs = list(zip(states, flagged, strict=True))
        own = [state[end:] if has_flags else state for state, has_flags in pairs]
        return own, [state[begin:end] if has_flags else b"" for state, has_flags in pairs]

    def forget_shown(self, rows: Any, flags: list[bytes]) -> None:
        """Forgets what rows have shown: they continue from states, some of which have flags."""
        self.masks.clear(rows)
        self._repeats[rows] = np.array([len(one) > 0 for one in flags])
        for row, one in zip(np.arange(len(self._repeats))[rows].tolist(), flags, strict=True):
            if one:
                kept = np.frombuffer(one, np.uint8).reshape(2, -1)
                self._flags_of_failed[:, :, row] = kept != 0

    def reset(
        self, batch: dict[str, Any], infos: dict[str, Any], over: NDArray[np.bool_]
    ) -> Columns:
        """Converts the result of a reset.

        Args:
            batch: The observations of the pool.
            infos: Its infos.
            over: Which of all rows are over: their agents do not live, whatever the environment
                said of them before a limit or a failure.
        """
        flags, rows = _flags(batch["flags"]), infos.get("env_index", slice(None))
        self._repeats &= over
        nothing = np.zeros(flags.shape[1:], np.bool_)
        own, by_agent = self._split(infos)
        _show_state(batch, own)
        present, lives = flags[_PRESENT], flags[_LIVES] & ~over[rows]
        columns = Columns(
            self.groups_of(batch),
            np.zeros(present.shape),
            nothing,
            nothing,
            present,
            nothing,
            lives,
            None,
            own,
            by_agent,
        )
        self.masks.take_in(columns, lives)
        self.lives[:, rows] = lives
        return columns

    def step(
        self, result: tuple[Any, Any, Any, Any, dict[str, Any]], frozen: NDArray[np.bool_] | None
    ) -> Columns:
        """Converts the result of a step; rows that are ``frozen`` were not stepped."""
        batch, rewards, terminations, truncations, infos = result
        over = terminations | truncations
        are_over = bool(np.count_nonzero(over))
        last, has_last = batch, not self._is_same_step
        last_infos: dict[str, Any] = {}
        if "_final_obs" in infos:
            last, has_last, last_infos, infos = self._take_last(batch, infos, are_over=are_over)
        rows = infos.get("env_index", slice(None))
        flags = _flags(last["flags"])
        terminated, truncated, present, acted, lives = flags
        left = lives
        if last is not batch:
            final_present = present & over & has_last
            shown = _flags(batch["flags"])
            present, left = shown[_PRESENT], shown[_LIVES]
        failed = None
        if are_over:
            failed = failed_rows(infos)
            if failed is not None:
                # An environment that ended by itself failed in the reset after it. Where infos
                # alone were lost, the step stands, unless its last observation was lost with them.
                failed = failed & over & ~(terminations & has_last)
            lives = self._end_agents(flags, rows, (terminations, truncations), failed)
            if not self._is_same_step:
                left = left & ~over
        if frozen is not None:
            self._repeat_flags(flags[:2], rows, frozen & over, failed)
            acted[:, frozen] = False
            over[frozen] = False
        own_rewards = self.rewards_of(last, rewards).T.copy()
        if np.count_nonzero(acted) < acted.size:
            own_rewards[~acted] = 0
        own, by_agent = self._split(infos)
        _show_state(batch, own)
        columns = Columns(
            self.groups_of(batch),
            own_rewards,
            terminated,
            truncated,
            present,
            acted,
            lives,
            over,
            own,
            by_agent,
            failed=failed,
        )
        self.masks.take_in(columns, left)
        self.lives[:, rows] = left
        if last is batch:
            return columns
        if "state" in last:
            own["final_state"], own["_final_state"] = last["state"], over & has_last
        final_infos = self._split(last_infos)
        final_present &= acted | truncated  # a failed row repeats those of agents that had ended
        return columns._replace(finals=Finals(self.groups_of(last), final_present, *final_infos))

    def _take_last(
        self, batch: dict[str, Any], infos: dict[str, Any], *, are_over: bool
    ) -> tuple[dict[str, Any], Any, dict[str, Any], dict[str, Any]]:
        """Takes the last results of rows that are over out of the infos of a step.

        Returns:
            The true next observations, which are the batch unless a row is over; which rows have
            one; the last infos; and the other infos.
        """
        infos = dict(infos)
        last, has_last = infos.pop("final_obs"), infos.pop("_final_obs")
        last_infos = infos.pop("final_info", {})
        infos.pop("_final_info", None)
        if not are_over:
            last = batch
        elif not is_dense(last):
            last = self._filled(batch, last, has_last)
        return last, has_last, last_infos, infos

    def _end_agents(
        self,
        flags: NDArray[np.bool_],
        rows: Any,
        row_flags: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        failed: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_]:
        """Lets agents that are left end with their row; returns which those were.

        Args:
            flags: Those of the step, ``(flags, agents, n)``, which are changed.
            rows: The rows of the batch.
            row_flags: Which rows are terminated, and which truncated.
            failed: Which of them failed; ``None`` for none.
        """
        lived: NDArray[np.bool_]
        terminated, truncated, _, acted, lived = flags
        ends, cut = row_flags
        if failed is not None:
            flags[:2, :, failed] = False
            acted[:, failed] = False
            # After the death of a worker, the flags are those of the new environment.
            lived = np.where(failed, self.lives[:, rows], lived)
            ends, cut = ends & ~failed, cut | failed
        terminated |= lived & ends
        truncated |= lived & cut
        return lived

    def _repeat_flags(
        self,
        flags: NDArray[np.bool_],
        rows: Any,
        again: NDArray[np.bool_],
        failed: NDArray[np.bool_] | None,
    ) -> None:
        """Lets failed rows repeat flags while they are frozen.

        Args:
            flags: Those of the step, ``(2, agents, n)``.
            rows: The rows of the batch.
            again: Which of them are frozen.
            failed: Which of them fail now.
        """
        repeats, kept = self._repeats[rows] & again, self._flags_of_failed
        if failed is not None:
            repeats |= failed
            kept[:, :, rows] = np.where(failed, flags, kept[:, :, rows])
        self._repeats[rows] = repeats
        np.copyto(flags, kept[:, :, rows], where=repeats)

    def _split(self, infos: dict[str, Any]) -> tuple[dict[str, Any], dict[int, Any]]:
        """Splits infos into those of the row and those of agents."""
        if not infos:
            return {}, {}
        keys = self._info_keys
        by_agent = {keys[key]: value for key, value in infos.items() if key in keys}
        if not by_agent:
            return dict(infos), by_agent
        own = {
            key: value
            for key, value in infos.items()
            if str(key).removeprefix("_") not in keys  # neither theirs nor a mask of them
        }
        return own, by_agent

    def _filled(self, batch: dict[str, Any], finals: Any, ended: NDArray[np.bool_]) -> Any:
        """Returns a batch with the last observations of rows that are over, given one by one."""
        rows = np.flatnonzero(ended).tolist()
        if not rows:
            return batch
        agents = {}
        for group in self.groups:
            agents[group.key] = _replaced(
                batch["agents"][group.key],
                {row: finals[row]["agents"][group.key] for row in rows},
                is_fixed=group.is_fixed,
            )
        filled = {"agents": agents}
        for name in ("flags", "state"):
            if name in batch:
                filled[name] = _replaced(
                    batch[name], {row: finals[row][name] for row in rows}, is_fixed=True
                )
        return filled

    # Observations, actions and rewards of agents

    def groups_of(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns the stacked observations of each group, of a batch of the pool."""
        groups: dict[str, Any] = batch["agents"]
        return groups

    def rewards_of(self, batch: dict[str, Any], rewards: Any) -> NDArray[np.float64]:
        """Returns the rewards ``(n, agents)`` of a step.

        Args:
            batch: The true next observations of the pool.
            rewards: The pool's rewards; rows that are shown again may repeat theirs.
        """
        del batch
        return np.asarray(rewards)

    def actions_of(self, batch: Any, place: int) -> Any:
        """Returns the actions of an agent out of a batch of :meth:`actions`."""
        group, at = self._action_places[place]
        values = batch[group.key]
        return nested.at(values, (slice(None), at)) if group.is_fixed else values[at]

    def observations(self, groups: dict[str, Any], place: int) -> Any:
        """Returns the observations of an agent, ``(n, ...)``: views of those of its group."""
        group, at = self.places[place]
        values = groups[group.key]
        if not group.is_fixed:
            return values[at]
        if isinstance(values, np.ndarray):
            return values[:, at]
        return nested.at(values, (slice(None), at))

    def all_observations(self, groups: dict[str, Any]) -> Iterable[Any]:
        """Returns the observations of each agent, ``(n, ...)``: views of those of its group."""
        if self._only is not None:
            values = groups[self._only]
            if isinstance(values, np.ndarray):
                return values.swapaxes(0, 1)
        return [self.observations(groups, place) for place in range(len(self.places))]

    def stacked(self, groups: dict[str, Any], places: list[int]) -> Any:
        """Returns observations ``(n, len(places), ...)`` of agents with equal spaces.

        They are a view where the agents are at equal distances in their group.
        """
        found = [self.places[place] for place in places]
        return of_places(groups[found[0][0].key], [at for _, at in found])

    def actions(self, actions: Any, count: int) -> dict[str, Any]:
        """Returns the batch of actions of a pool, from those of each agent, ``(count, ...)``.

        Raises:
            TypeError: ``actions`` is not a dictionary, or actions of an agent have another dtype.
            ValueError: An agent is missing or unknown, or its actions have another shape.
        """
        names = self.layout.agents
        if type(actions) is not dict or actions.keys() != self._names:
            check_agents("actions", actions, names)
        batch: dict[str, Any] = {}
        for group, members in self._members:
            values = list(map(actions.__getitem__, members))
            if group.is_fixed:
                batch[group.key] = stacked_actions(group.space, values, members, count, "")
                continue
            for name, value in zip(members, values, strict=True):
                if not hasattr(value, "__len__") or len(value) != count:
                    raise misshapen(name, "", f"a batch of {count} actions", value)
            batch[group.key] = tuple(values)
        return batch


def check_names(agents: tuple[object, ...]) -> None:
    """Checks the names of agents.

    Raises:
        ValueError: An agent is named twice, or has the name of an entry of infos.
    """
    if len(set(agents)) < len(agents):
        raise ValueError(f"an agent is named twice: {list(agents)}")
    taken = [name for name in agents if name in RESERVED]
    if taken:
        raise ValueError(
            f"agents cannot be named {taken}, because infos have entries of these names: rename "
            f"them in `possible_agents`, which has {list(agents)}."
        )


def of_places(values: Any, places: Sequence[int]) -> Any:
    """Returns values ``(n, agents, ...)`` of some places: a view of those at equal distances."""
    steps = {after - before for before, after in itertools.pairwise(places)} or {1}
    if len(steps) == 1 and min(steps) > 0:
        return nested.at(values, (slice(None), slice(places[0], places[-1] + 1, min(steps))))
    return nested.apply(lambda array: np.take(array, places, axis=1), values)


def _places(groups: list[Group], count: int) -> list[tuple[Group, int]]:
    found = {place: (group, at) for group in groups for at, place in enumerate(group.members)}
    return [found[place] for place in range(count)]


def _flags(columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns flags ``(flags, agents, n)``, as a copy; bytes that are not 0 are true."""
    # In two steps: a comparison or a cast of the transposed bytes takes longer than both together.
    return columns.transpose(1, 2, 0).copy().astype(np.bool_)


def _show_state(batch: dict[str, Any], infos: dict[str, Any]) -> None:
    if "state" in batch:
        infos["state"] = batch["state"]


def _replaced(values: Any, rows: dict[int, Any], *, is_fixed: bool) -> Any:
    """Returns values of a batch with other values in some rows."""
    if is_fixed:
        copied = nested.apply(np.copy, values)
        for row, value in rows.items():
            nested.assign(copied, row, value)
        return copied
    by_agent = [list(value) for value in values]
    for row, value in rows.items():
        for at, own in enumerate(value):
            by_agent[at][row] = own
    return tuple(tuple(value) for value in by_agent)


def by_name(names: tuple[Any, ...], columns: Mapping[int, Any]) -> dict[Any, Any]:
    """Returns entries by name, in the order of the agents."""
    return {name: columns[place] for place, name in enumerate(names) if place in columns}
