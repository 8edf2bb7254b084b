"""Environments of several agents for the training loops of AgileRL.

``pip install 'cartwheel[agilerl]'``. AgileRL fixes the version of ``tensordict``.
"""

from __future__ import annotations

from cartwheel._internal.versions import load

load("agilerl", "agilerl", "cartwheel.agilerl", "2.58")
load("agilerl.vector", "agilerl", "cartwheel.agilerl")

# ruff: noqa: E402 - they import what was loaded

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from agilerl.vector import PettingZooVecEnv
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.adapters import check_mode, check_whole_batches
from cartwheel._internal.arguments import as_autoreset_mode, as_env_fns
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import check_chooses_no_rows
from cartwheel._internal.spaces import has_fixed_shape
from cartwheel.multiagent import ParallelVectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    #: Results by agent.
    ByAgent = dict[Any, Any]

__all__ = ["CartwheelPettingZooVecEnv"]


class CartwheelPettingZooVecEnv(ClosesAfterWith, PettingZooVecEnv):
    """Steps environments of PettingZoo for AgileRL; replaces its ``AsyncPettingZooVecEnv``.

    Example:
        >>> import pettingzoo
        >>> from cartwheel.agilerl import CartwheelPettingZooVecEnv
        >>> make = lambda: pettingzoo.make("parallel", "classic/rps-v2")
        >>> envs = CartwheelPettingZooVecEnv([make] * 4, executor="inline")
        >>> envs.reset(seed=1)[0]["player_0"].shape
        (4, 1)
        >>> envs.step({"player_0": [0, 1, 2, 0], "player_1": [0, 0, 0, 0]})[1]["player_0"].tolist()
        [0.0, 1.0, -1.0, 0.0]
        >>> envs.close()

    Spaces are those of AgileRL, by agent: ``single_observation_space(agent)``. Single numbers are
    observed as arrays of the shape ``(num_envs, 1)``. Rewards and flags of agents that did not act
    are NaN, unless their row failed, which truncates them. So are floating-point observations of
    absent agents; others are 0. Infos have an
    entry for each agent. A row whose episode is over restarts in the same step, which shows the
    reset's observations and infos; AgileRL has no place for the last ones, which are in
    :attr:`infos`. Arrays are never overwritten.

    Attributes:
        vector_env: The vector environment.
        agents: All possible agents.
        possible_agents: The same.
        num_agents: Their number.
        num_envs: The number of environments.
        metadata: Those of the first environment.
        render_mode: That of the first environment.
        infos: The infos of the last step or reset, as of :class:`cartwheel.ParallelVectorEnv`:
            ``infos["final_obs"]``, ``infos["present"]`` and others.

    Args:
        env_fns: Functions that make environments of PettingZoo.
        copy: Has no effect: returned arrays belong to the caller, as with AgileRL's ``copy=True``.
        context: Start method of worker processes.
        **keywords: As for :class:`cartwheel.ParallelVectorEnv`, such as ``num_workers``.

    Raises:
        TypeError: A keyword does not exist.
        ValueError: The mode is not ``SAME_STEP``, batches do not have all rows, or a space has no
            fixed shape.
        Exception: As for :class:`cartwheel.ParallelVectorEnv`.
    """

    #: For evaluations and collectors, which step it.
    _vector_env_instead = "pass its `vector_env`"

    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        copy: bool = True,  # noqa: ARG002, FBT001 - AgileRL's signature
        context: Any = None,
        **keywords: Any,
    ) -> None:
        env_fns = as_env_fns(env_fns)
        mode = as_autoreset_mode(keywords.pop("autoreset_mode", AutoresetMode.SAME_STEP))
        why = "AgileRL restarts rows in the step that ends them"
        check_mode(mode, AutoresetMode.SAME_STEP, why, makes_all=True)
        check_whole_batches("AgileRL", keywords.get("batch_size"), len(env_fns))
        self.vector_env = envs = ParallelVectorEnv(
            env_fns, autoreset_mode=mode, context=context, **{"absent": np.nan, **keywords}
        )
        spaces = (envs.single_observation_space, envs.single_action_space)
        if not all(map(has_fixed_shape, spaces)):
            envs.close()
            raise ValueError(
                "AgileRL needs observations and actions of fixed shape, got the observation space "
                f"{spaces[0]} and the action space {spaces[1]}."
            )
        super().__init__(
            envs.num_envs,
            *map(dict, spaces),
            envs.possible_agents,
            metadata=envs.metadata,
            render_mode=envs.render_mode,
        )
        self.infos: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vector_env!r})"

    # Stepping

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ByAgent, dict[str, Any]]:
        """Resets all environments.

        Args:
            seed: Row ``i`` gets ``seed + i``, or entry ``i`` of a list.
            options: Passed to every environment.

        Returns:
            Observations and infos by agent.

        Raises:
            ValueError: Options choose rows; nothing was reset.
            Exception: As :meth:`cartwheel.ParallelVectorEnv.reset`.
        """
        check_chooses_no_rows(options)
        observations, self.infos = self.vector_env.reset(seed=seed, options=options)
        return self._columns(observations), self._agent_infos()

    def step(
        self,
        actions: Mapping[Any, Any],
        *args: Any,  # noqa: ARG002 - AgileRL's signature
        **kwargs: Any,  # noqa: ARG002 - AgileRL's signature
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """Steps all environments.

        Args:
            actions: For each agent an action for each row. They may be NaN where the agent is
                absent, and missing if it is absent in every row.
            *args: Ignored, as by AgileRL.
            **kwargs: Ignored, as by AgileRL.

        Returns:
            Observations, rewards, terminations and truncations by agent, and infos.

        Raises:
            TypeError: ``actions`` is not a dictionary, or actions have another kind of dtype.
            ValueError: Actions of a present agent are missing or NaN, or fractions where the space
                has integers; an agent is unknown, or actions have another shape. Nothing was
                stepped.
            Exception: As :meth:`cartwheel.ParallelVectorEnv.step`.
        """
        return self._stepped(self.vector_env.step(self._batch(actions)))

    def step_async(self, actions: Sequence[Mapping[Any, Any]]) -> None:
        """Begins a step; :meth:`step_wait` returns its result.

        Args:
            actions: For each row a dictionary of actions by agent, in which absent ones may be
                missing.

        Raises:
            Exception: As :meth:`step`.
        """
        if len(actions) != self.num_envs:
            raise ValueError(
                f"`actions` must have a dictionary for each of {self.num_envs} rows, "
                f"got {len(actions)}."
            )
        self.vector_env.step_async(self._batch(self._by_agent(actions)))

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """Waits for a step, for at most ``timeout`` seconds; returns as :meth:`step`."""
        return self._stepped(self.vector_env.step_wait(timeout))

    def _stepped(self, result: Any) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        observations, rewards, terminations, truncations, self.infos = result
        # Agents of a row that failed did not act, and are truncated.
        known = {agent: acted | truncations[agent] for agent, acted in self.infos["acted"].items()}
        masked: list[ByAgent] = [
            {agent: _with_nan(values[agent], known[agent]) for agent in self.agents}
            for values in (rewards, terminations, truncations)
        ]
        return self._columns(observations), *masked, self._agent_infos()  # type: ignore[return-value]

    # Actions

    def _batch(self, actions: Any) -> ByAgent:
        """Returns actions as :class:`cartwheel.ParallelVectorEnv` takes them."""
        if not isinstance(actions, Mapping):
            raise TypeError(f"`actions` must be a dictionary by agent, got {type(actions)}.")
        batch = dict(actions)
        for agent in self.agents:
            space = self.single_action_space(agent)
            if isinstance(space, Dict | Tuple):
                continue
            shape = (self.num_envs, *(space.shape or ()))
            if agent in actions:
                values = nested.as_array(f"actions[{agent!r}]", actions[agent])
            else:
                values = np.full(shape, np.nan)
            if values.dtype.kind == "f":
                values = _as_dtype(agent, self._without_nan(agent, values), space.dtype)
            batch[agent] = values.reshape(shape) if values.size == np.prod(shape) else values
        return batch

    def _without_nan(self, agent: Any, values: NDArray[Any]) -> NDArray[Any]:
        """Returns actions with 0 where they are NaN, after a check that the agent is absent."""
        missing = np.isnan(values)
        if not missing.any():
            return values
        rows = missing.reshape(len(values), -1).any(axis=1)
        if len(rows) == self.num_envs:
            present = self.infos.get("present", {}).get(agent, np.ones(self.num_envs, np.bool_))
            rows &= present
            if rows.any():
                raise ValueError(
                    f"`actions[{agent!r}]` are missing or NaN in rows "
                    f"{np.flatnonzero(rows).tolist()}, in which the agent is present."
                )
        return np.where(missing, 0, values)

    def _by_agent(self, actions: Sequence[Mapping[Any, Any]]) -> ByAgent:
        """Returns batches of the actions of rows; NaN where an agent has none."""
        names = dict.fromkeys([*self.agents, *(name for row in actions for name in row)])
        found: ByAgent = {}
        for agent in names:
            given = [row[agent] for row in actions if agent in row]
            if not given:
                continue
            none = np.full(np.shape(given[0]), np.nan)
            found[agent] = np.stack([np.asarray(row.get(agent, none)) for row in actions])
        return found

    # Results

    def _columns(self, observations: ByAgent) -> ByAgent:
        return {agent: nested.apply(_as_column, observations[agent]) for agent in self.agents}

    def _agent_infos(self) -> dict[str, Any]:
        """Returns infos of all agents; AgileRL's masks of agents are true in every row."""
        infos = {agent: self.infos.get(agent, {}) for agent in self.agents}
        return {**infos, **{f"_{agent}": np.ones(self.num_envs, np.bool_) for agent in self.agents}}

    # Calls

    @property
    def processes(self) -> list[Any]:
        """The worker processes; empty for other executors."""
        return self.vector_env.processes

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or reads an attribute that is not callable."""
        return self.vector_env.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of every environment."""
        return self.vector_env.get_attr(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment, to one value or to one for each row."""
        self.vector_env.set_attr(name, values)

    def render(self) -> tuple[Any, ...]:
        """Renders every environment."""
        return self.vector_env.render()

    def close_extras(
        self, *, timeout: float | None = None, terminate: bool = False, **kwargs: Any
    ) -> None:
        """Ends the workers; :meth:`close` calls this, with its keywords."""
        super().close_extras(**kwargs)
        self.vector_env.close(timeout, terminate=terminate)


def _with_nan(values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    return values if known.all() else np.where(known, values, np.nan)


def _as_dtype(agent: Any, values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Returns actions in the dtype of their space; none changes its value to become an integer."""
    cast = values.astype(dtype)
    if cast.dtype.kind != "f" and not np.array_equal(cast, values):
        odd = values[cast != values].flat[0]
        raise ValueError(f"`actions[{agent!r}]` must be integers, got {odd}.")
    return cast


def _as_column(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, None] if array.ndim == 1 else array
