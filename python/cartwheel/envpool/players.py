"""Environments of several players: PettingZoo's parallel environments and player-major rows.

For the pool, an environment of up to ``P`` players is one row whose arrays have a dimension of
``P`` players. :class:`Players` converts batches of such rows to one row for each player, and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integers
from cartwheel.envpool.formats import checked

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


class PlayersEnv(gym.Env[dict[str, Any], Any]):
    """A PettingZoo parallel environment as one environment whose arrays have a player dimension.

    Player ``i`` is ``possible_agents[i]``. The episode is over when ``agents`` is empty. It is
    truncated if the last step truncated an agent. It is terminated if the last step terminated an
    agent, or if no flag is set.

    A player is present in the result of a reset or step in two cases: it is in ``agents``
    afterwards; or it was in ``agents`` before and is a key of the observations, rewards,
    terminations or truncations. So the caller sends an action for every agent that acts next. If
    the environment returns no observation of a present player, as some do for agents that end, the
    observation is zeros. Agents that ended earlier are not present, even if the environment still
    lists them.

    Its ``metadata`` has the entry ``players``: observation space and action space of one player,
    and the maximum number of players.
    """

    def __init__(self, env: Any, max_num_players: int | None = None) -> None:
        """Wraps an environment.

        Args:
            env: A ``pettingzoo.ParallelEnv``, or any object with its methods.
            max_num_players: The maximum number of its agents.

        Raises:
            ValueError: The environment may have more agents.
            TypeError: Its agents have different spaces, or spaces without a fixed shape.
        """
        self.env = env
        self.metadata = dict(getattr(env, "metadata", None) or {})
        self.render_mode = getattr(env, "render_mode", None)
        self._names = list(env.possible_agents)
        if max_num_players is not None and len(self._names) > max_num_players:
            raise ValueError(
                f"max_num_players={max_num_players}, but the environment has up to "
                f"{len(self._names)} agents: {self._names}"
            )
        self._space = self._common("observation_space")
        player_action_space = self._common("action_space")
        places = len(self._names)
        self.metadata["players"] = (self._space, player_action_space, places)
        empty: Any = create_empty_array(self._space, n=1)
        self._blank = next(iter(iterate(batch_space(self._space, 1), empty)))
        self.observation_space = Dict(
            {
                "obs": batch_space(self._space, places),
                "reward": Box(-np.inf, np.inf, (places,), np.float64),
                "present": MultiBinary(places),
                "terminated": MultiBinary(places),
                "truncated": MultiBinary(places),
            }
        )
        self.action_space = batch_space(player_action_space, places)

    def _common(self, name: str) -> Space[Any]:
        spaces = [getattr(self.env, name)(agent) for agent in self._names]
        for agent, space in zip(self._names, spaces, strict=True):
            if space != spaces[0]:
                raise TypeError(
                    f"agents must have one {name}: {self._names[0]!r} has {spaces[0]}, "
                    f"{agent!r} has {space}"
                )
        first: Space[Any] = spaces[0]
        unfit = [part for part in nested.leaves(first) if not isinstance(part, nested.ARRAY_SPACES)]
        if unfit:
            raise TypeError(
                f"{name} of {self._names[0]!r} must be made of arrays of fixed shape, which "
                f"{type(unfit[0]).__name__} is not: {first}"
            )
        return first

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._gathered(set(self.env.agents), observations, {}, {}, {}), _not_empty(infos)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Steps the agents in ``agents``; the other entries of ``action`` are ignored."""
        by_place = list(iterate(self.action_space, action))
        acting = {name: by_place[self._names.index(name)] for name in self.env.agents}
        observations, rewards, terminations, truncations, infos = self.env.step(acting)
        over = not self.env.agents
        truncated = over and any(truncations.values())
        terminated = over and (any(terminations.values()) or not truncated)
        reported = set().union(observations, rewards, terminations, truncations)
        present = reported.intersection(acting).union(self.env.agents)
        gathered = self._gathered(present, observations, rewards, terminations, truncations)
        return gathered, float(sum(rewards.values())), terminated, truncated, _not_empty(infos)

    def _gathered(
        self,
        present: set[str],
        observations: dict[str, Any],
        rewards: dict[str, Any],
        terminations: dict[str, Any],
        truncations: dict[str, Any],
    ) -> dict[str, Any]:
        """Returns arrays with an entry for each possible agent; zeros for absent agents."""
        space, names = self._space, self._names
        placed = [observations.get(name, self._blank) for name in names]
        return {
            "obs": nested.stack(space, placed),
            "reward": np.array([rewards.get(name, 0.0) for name in names], np.float64),
            "present": np.array([name in present for name in names], np.int8),
            "terminated": np.array([bool(terminations.get(n)) for n in names], np.int8),
            "truncated": np.array([bool(truncations.get(n)) for n in names], np.int8),
        }

    def render(self) -> Any:
        """Renders the environment."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()


def without_step(observations: dict[str, Any]) -> dict[str, Any]:
    """Returns observations of :class:`PlayersEnv` as after a reset: rewards and flags are 0."""
    parts = ("reward", "terminated", "truncated")
    return {**observations, **{name: np.zeros_like(observations[name]) for name in parts}}


def _not_empty(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the agents' infos without empty ones."""
    return {agent: info for agent, info in infos.items() if info}


class Players:
    """Player-major rows: all players of the first environment of a batch, then of the second."""

    def __init__(self, action_space: Space[Any], places: int, num_envs: int) -> None:
        """Begins without present players; the first results mark those that are present.

        Args:
            action_space: The action space of one player.
            places: The maximum number of players of an environment.
            num_envs: Number of environments.
        """
        self._action_space = action_space
        self._actions = batch_space(action_space, places)
        self._present = np.zeros((num_envs, places), np.bool_)

    def rows(
        self, ids: NDArray[Any], batch: dict[str, Any], truncations: NDArray[np.bool_]
    ) -> tuple[Any, NDArray[np.float32], dict[str, Any]]:
        """Converts a received batch to one row for each player.

        Args:
            ids: The environments.
            batch: Observations of :class:`PlayersEnv`.
            truncations: Truncations of the environments, which truncate all their players.

        Returns:
            Observations, rewards (``float32``) and the entry ``players`` of infos: ``env_id`` and
            ``id`` (``int32``; ``id`` is the index in the environment's possible agents),
            ``terminated`` and ``truncated`` (``bool``) of each player.
        """
        present = batch["present"].astype(np.bool_)
        self._present[ids] = present
        env, player = present.nonzero()
        players = {
            "env_id": ids[env].astype(np.int32),
            "id": player.astype(np.int32),
            "terminated": batch["terminated"][present].astype(np.bool_),
            "truncated": batch["truncated"][present].astype(np.bool_) | truncations[env],
        }
        rewards = batch["reward"][present].astype(np.float32)
        return nested.at(batch["obs"], present), rewards, players

    def places_of(self, ids: NDArray[Any], actions: Any, players_env_id: Any) -> Any:
        """Converts the players' actions to one row for each environment.

        Args:
            ids: The environments.
            actions: One action for each player that was received last; the players of one
                environment are in the order in which they were received.
            players_env_id: The environment of each action, a one-dimensional array or list of
                integers; by default player-major, in the order of ``ids``.

        Raises:
            ValueError: The number of actions is not the number of players.
            TypeError: Actions have another kind of dtype, or ``players_env_id`` has another form.
        """
        present = self._present[ids]
        counts = present.sum(axis=1)
        owners = np.repeat(ids, counts)
        if players_env_id is not None:
            given = as_integers("players.env_id", players_env_id)
            order = _order_by(ids, given)
            if len(given) != len(owners) or not np.array_equal(given[order], owners):
                raise ValueError(
                    "`players.env_id` must name each environment once for each of its players: "
                    f"environments {ids.tolist()} have {counts.tolist()}, got {given.tolist()}"
                )
        actions = checked(self._action_space, actions, owners)
        if players_env_id is not None:
            actions = nested.take(self._action_space, actions, order)
        blank: Any = create_empty_array(self._actions, n=len(ids))
        nested.assign(blank, present, actions)
        return blank


def _order_by(ids: NDArray[Any], given: NDArray[Any]) -> NDArray[np.intp]:
    """Returns the permutation that sorts ``given`` into the order of ``ids``, stably."""
    sorter = np.argsort(ids)
    at = np.searchsorted(ids, given, sorter=sorter).clip(max=len(ids) - 1)
    return np.argsort(sorter[at], kind="stable")
