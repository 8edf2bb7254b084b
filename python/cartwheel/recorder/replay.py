"""Plays recorded episodes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel._internal import nested
from cartwheel.recorder.buffer import as_groups
from cartwheel.wrappers.batch import NAMES, Finals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.recorder.dataset import TrajectoryDataset


def replay(
    dataset: TrajectoryDataset,
    envs: VectorEnv[Any, Any, Any],
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
            wrapped, for instance by a :class:`RecordEpisode` that draws.
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
    every = range(len(dataset.episodes))
    chosen = [*every] if episodes is None else [every[number] for number in episodes]
    states = dict(zip(chosen, dataset.first_states(chosen), strict=True))
    recorded = {number: dataset.episode(number) for number in chosen}
    for number, episode in recorded.items():
        _check_actions(number, envs.single_action_space, episode["actions"])
    waiting = [*reversed([*recorded])]
    envs.reset()
    rows: list[_Row] = []
    for place in range(envs.num_envs if chosen else 0):
        number = waiting.pop() if waiting else rows[0].number
        rows.append(_Row(place, number, recorded[number]))
    done: dict[int, dict[str, Any]] = {}
    begins = rows
    while len(done) < len(recorded):
        if begins:
            first = [states[row.number] for row in begins]
            shown, _ = envs.set_state([row.row for row in begins], first)  # type: ignore[attr-defined]
            for place, row in enumerate(begins):
                row.show(shown, place)
        actions = [row.action(envs.single_action_space) for row in rows]
        observations, rewards, terminated, truncated, infos = envs.step(
            _stacked(envs.single_action_space, actions)
        )
        if any(name in infos for name in NAMES):
            finals, infos = Finals.from_infos(envs.single_observation_space, infos)
            observations = finals.among(observations)
        begins = []
        for row in rows:
            row.show(observations, row.row)
            row.add(rewards, terminated, truncated)
            if row.is_done():
                done.setdefault(row.number, row.episode())
                number = waiting.pop() if waiting else row.number
                row.begin(number, recorded[number])
                begins.append(row)
    return [done[number] for number in chosen]


class _Row:
    """A row and the episode that it plays."""

    def __init__(self, row: int, number: int, recorded: dict[str, Any]) -> None:
        """Begins an episode."""
        self.row = row
        self.begin(number, recorded)

    def begin(self, number: int, recorded: dict[str, Any]) -> None:
        """Begins an episode."""
        self.number, self.recorded = number, recorded
        self._shown: dict[tuple[str, ...], list[NDArray[Any]]] = {}
        self._steps: dict[str, list[Any]] = {"rewards": [], "terminated": [], "truncated": []}

    def show(self, observations: Any, place: int) -> None:
        """Adds the observation at a place of a batch."""
        for path, array in nested.paths(observations, ()):
            self._shown.setdefault(_names(path), []).append(np.array(array[place]))

    def add(self, *columns: Any) -> None:
        """Adds rewards and flags of a batch."""
        for entries, column in zip(self._steps.values(), columns, strict=True):
            entries.append(column[self.row])

    def action(self, space: Space[Any]) -> Any:
        """The next recorded action, in the form of the space."""
        return _action(space, self.recorded["actions"], len(self._steps["rewards"]))

    def is_done(self) -> bool:
        """Whether every recorded step was played."""
        return len(self._steps["rewards"]) == len(self.recorded["terminated"])

    def episode(self) -> dict[str, Any]:
        """The played episode, in the form of the recorded one."""
        played: dict[str, Any] = {"actions": self.recorded["actions"]}
        for name, entries in self._steps.items():
            if (like := self.recorded.get(name)) is not None:
                played[name] = np.array(entries, np.asarray(like).dtype)
        if "obs" in self.recorded:
            played["obs"] = self._like(self.recorded["obs"], ())
        return played

    def _like(self, tree: Any, path: tuple[str, ...]) -> Any:
        if isinstance(tree, dict):
            return {key: self._like(part, (*path, key)) for key, part in tree.items()}
        if isinstance(tree, tuple):
            return tuple(self._like(part, (*path, str(n))) for n, part in enumerate(tree))
        return np.stack(self._shown[path])


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
