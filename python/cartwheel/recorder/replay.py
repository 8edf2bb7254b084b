"""Plays recorded episodes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel._internal import nested
from cartwheel._internal.arguments import mode_of
from cartwheel.multiagent.base import AgentsBase
from cartwheel.recorder.agents import AgentArrays
from cartwheel.recorder.buffer import as_groups
from cartwheel.recorder.dataset import place_of
from cartwheel.wrappers.batch import Finals, final_names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.recorder.dataset import TrajectoryDataset


def replay(
    dataset: TrajectoryDataset,
    envs: VectorEnv[Any, Any, Any] | AgentsBase,
    episodes: Iterable[int] | None = None,
) -> list[dict[str, Any]]:
    """Plays episodes again from their recorded first states, with their recorded actions.

    A state has everything that the following steps depend on: what a reset drew at random, the
    random numbers to come, and the parameters of the row's own model. So an environment with the
    same code, keywords and libraries gives the same bits, in any row, in every autoreset mode and
    with any number of threads. Environments that were played by ``send`` have no states, and
    neither have those that cannot be saved.

    Each row of ``envs`` plays one episode after the other; one that has none left repeats its last
    one. Reset ``envs`` before you use it for something else.

    Example:
        dataset = TrajectoryDataset("runs/demo.h5")
        (again,) = replay(dataset, envs, [3])
        np.testing.assert_array_equal(again["obs"], dataset.episode(3)["obs"])

    Args:
        dataset: The recording.
        envs: A vector environment like the recorded one, with any number of rows. It may be
            wrapped, for instance by a :class:`RecordEpisode` that draws. Of several agents: a
            :class:`~cartwheel.ParallelVectorEnv`.
        episodes: Places in ``dataset.episodes``; by default all.

    Returns:
        For each episode a dictionary in the form of ``dataset.episode(number)``, with ``obs``,
        ``actions``, ``rewards``, ``terminated`` and ``truncated``, as they are now.

    Raises:
        TypeError: ``envs`` cannot be restored from states, ``dataset`` is not a dataset, or
            ``episodes`` is not a list.
        IndexError: The dataset has fewer episodes.
        ValueError: An episode has no states, or its actions or its states are of another
            environment, other keywords or another model.
    """
    if not callable(getattr(envs, "set_state", None)):
        raise TypeError(
            f"`envs` must be a vector environment of cartwheel, which has `set_state`, got {envs}."
        )
    if not hasattr(dataset, "first_states"):
        raise TypeError(f"`dataset` must be a TrajectoryDataset, got {dataset!r}.")
    if isinstance(episodes, int):
        raise TypeError(f"`episodes` must be a list of places, got {episodes}: [{episodes}].")
    places = range(len(dataset.episodes)) if episodes is None else episodes
    chosen = [place_of(dataset, number) for number in places]
    states = dict(zip(chosen, dataset.first_states(chosen), strict=True))
    recorded = {number: dataset.episode(number) for number in chosen}
    player = _AgentsPlayer(envs) if isinstance(envs, AgentsBase) else _Player(envs)
    for number, episode in recorded.items():
        _check_actions(number, player.action_space, episode["actions"])
    waiting = [*reversed([*recorded])]
    player.envs.reset()
    rows: list[_Row] = []
    for place in range(envs.num_envs if chosen else 0):
        number = waiting.pop() if waiting else rows[0].number
        rows.append(_Row(place, number, recorded[number]))
    done: dict[int, dict[str, Any]] = {}
    begins = rows
    while len(done) < len(recorded):
        if begins:
            first = [states[row.number] for row in begins]
            shown = player.begin([row.row for row in begins], first)
            for place, row in enumerate(begins):
                row.show(shown, place)
        actions = [row.action(player.action_space) for row in rows]
        shown, results = player.step(_stacked(player.action_space, actions))
        begins = []
        for row in rows:
            row.show(shown, row.row)
            row.add(results)
            if row.is_done():
                done.setdefault(row.number, row.episode())
                number = waiting.pop() if waiting else row.number
                row.begin(number, recorded[number])
                begins.append(row)
    return [done[number] for number in chosen]


class _Player:
    """Sets the states of rows and steps all of them.

    Attributes:
        envs: The vector environment.
        action_space: Of one row, as the recording has its actions.
    """

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        self.action_space: Any = envs.single_action_space

    def begin(self, rows: list[int], states: list[bytes]) -> dict[str, Any]:
        """Continues rows from states; returns what they show."""
        return {"obs": self._with_text_arrays(self.envs.set_state(rows, states)[0])}

    def step(self, actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Steps; returns what the rows truly show next, and rewards and flags."""
        observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        names = [name for name in final_names_of(self.envs, mode_of(self.envs)) if name in infos]
        over = np.logical_or(terminated, truncated)
        if names and over.any():
            space = self.envs.single_observation_space
            finals, _ = Finals.from_infos(space, infos, names, over)
            observations = finals.among(observations)
        results = {"rewards": rewards, "terminated": terminated, "truncated": truncated}
        return {"obs": self._with_text_arrays(observations)}, results

    def _with_text_arrays(self, observations: Any) -> Any:
        return nested.with_text_arrays(self.envs.single_observation_space, observations)


class _AgentsPlayer(_Player):
    """As :class:`_Player`, for rows with several agents."""

    def __init__(self, envs: AgentsBase) -> None:
        super().__init__(envs)
        self._agents = AgentArrays(envs._batches)
        self.action_space: Any = self._agents.spaces[1]

    def begin(self, rows: list[int], states: list[bytes]) -> dict[str, Any]:
        observations, infos = self.envs.set_state(rows, states)
        return self._shown([*observations.values()], [*infos["present"].values()], infos)

    def step(self, actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        names, agents = self._agents.names, self.envs.possible_agents
        by_agent = {agent: actions[name] for agent, name in zip(agents, names, strict=True)}
        columns = self.envs._step_columns(by_agent, None)
        groups, present, infos = columns.observations, columns.present, columns.infos
        over = columns.episode_over
        assert over is not None, "a step tells which rows are over"
        if columns.finals is not None:
            groups = columns.finals.observations
            present = np.where(over, columns.finals.present, present)
            infos = {"state": infos["final_state"]} if "final_state" in infos else infos
        observations = [*self.envs._batches.all_observations(groups)]
        results: dict[str, Any] = {
            "rewards": np.ascontiguousarray(columns.rewards.T).sum(axis=1),
            "terminated": over & (columns.terminated.any(axis=0) | ~columns.truncated.any(axis=0)),
            "truncated": over & columns.truncated.any(axis=0),
            "agents": {
                name: {
                    "rewards": columns.rewards[place],
                    "terminated": columns.terminated[place],
                    "truncated": columns.truncated[place],
                    "acted": columns.acted[place],
                }
                for place, name in enumerate(names)
            },
        }
        return self._shown(observations, [*present], infos), results

    def _shown(
        self, observations: list[Any], present: list[Any], infos: dict[str, Any]
    ) -> dict[str, Any]:
        names = self._agents.names
        shown = {
            "obs": dict(zip(names, observations, strict=True)),
            "present": dict(zip(names, present, strict=True)),
        }
        return shown | {"state": infos["state"]} if "state" in infos else shown


class _Row:
    """A row and the episode that it plays."""

    def __init__(self, row: int, number: int, recorded: dict[str, Any]) -> None:
        self.row = row
        self.begin(number, recorded)

    def begin(self, number: int, recorded: dict[str, Any]) -> None:
        """Begins an episode."""
        self.number, self.recorded = number, recorded
        self._shown: dict[tuple[str, ...], list[NDArray[Any]]] = {}
        self._length = 0

    def show(self, shown: dict[str, Any], place: int) -> None:
        """Adds what is at a place of a batch: observations and so on."""
        for path, array in nested.paths(shown, ()):
            self._shown.setdefault(_names(path), []).append(np.array(array[place]))

    def add(self, results: dict[str, Any]) -> None:
        """Adds rewards and flags of a batch."""
        self.show(results, self.row)
        self._length += 1

    def action(self, space: Space[Any]) -> Any:
        """The next recorded action, in the form of the space."""
        return _action(space, self.recorded["actions"], self._length)

    def is_done(self) -> bool:
        """Whether every recorded step was played."""
        return self._length == len(self.recorded["terminated"])

    def episode(self) -> dict[str, Any]:
        """The played episode, in the form of the recorded one."""
        played: dict[str, Any] = {"actions": self.recorded["actions"]}
        for name in {path[0]: None for path in self._shown}:
            if (like := self.recorded.get(name)) is not None:
                played[name] = self._like(like, (name,))
                if name == "rewards":
                    played[name] = played[name].astype(np.asarray(like).dtype)
        return played

    def _like(self, tree: Any, path: tuple[str, ...]) -> Any:
        if isinstance(tree, dict):
            return {
                key: self._like(part, (*path, key))
                for key, part in tree.items()
                if isinstance(part, dict | tuple) or (*path, key) in self._shown
            }
        if isinstance(tree, tuple):
            return tuple(self._like(part, (*path, str(n))) for n, part in enumerate(tree))
        played = np.stack(self._shown[path])
        # The dtype of texts is as wide as the longest.
        is_text = played.dtype.kind == "U"
        return played.astype(np.promote_types(played.dtype, tree.dtype)) if is_text else played


def _names(path: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, as_groups(path)))


def _action(space: Space[Any], tree: Any, step: int) -> Any:
    """The action of a step, out of the arrays of an episode."""
    if isinstance(space, Dict):
        return {key: _action(part, _within(tree, key), step) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        kept = tree if isinstance(tree, tuple) else [*tree.values()]
        return tuple(_action(part, kept[n], step) for n, part in enumerate(space.spaces))
    return np.reshape(tree[step], space.shape or ())


def _within(tree: Any, key: str) -> Any:
    for name in key.split("/"):
        tree = tree[name]
    return tree


def _stacked(space: Space[Any], actions: list[Any]) -> Any:
    """A batch of actions, in the dtype in which they were recorded."""
    if isinstance(space, Dict):
        return {
            key: _stacked(part, [action[key] for action in actions])
            for key, part in space.spaces.items()
        }
    if isinstance(space, Tuple):
        parts = enumerate(space.spaces)
        return tuple(_stacked(part, [action[n] for action in actions]) for n, part in parts)
    return np.stack(actions)


def _check_actions(number: int, space: Space[Any], actions: Any) -> None:
    try:
        _action(space, actions, 0)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the actions of episode {number} are not of the action space {space} of `envs`: give "
            "a vector environment like the recorded one."
        ) from error
