"""Multi-agent environments in workers, with the interface of RLlib's vector environments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector.utils import iterate
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.vector.vector_multi_agent_env import VectorMultiAgentEnv

from cartwheel._internal.arguments import as_bool, as_env_fns
from cartwheel._internal.reset_arguments import check_chooses_no_rows
from cartwheel._internal.suggestions import checks_keywords, shown
from cartwheel.rllib.agents_env import REST, in_order, make_agents_env
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cartwheel._internal.literals import Executor, NumWorkers
    from cartwheel.vector.stats import Stats


class AgentSpaces(MultiAgentEnv):
    """The agents and spaces of a multi-agent environment that lives in a worker."""

    def __init__(self, spaces: dict[Any, tuple[gym.Space[Any], gym.Space[Any]]]) -> None:
        """Takes the observation space and the action space of each possible agent."""
        self.possible_agents = list(spaces)
        super().__init__()
        self.observation_spaces = {agent: space for agent, (space, _) in spaces.items()}
        self.action_spaces = {agent: space for agent, (_, space) in spaces.items()}


class AsyncVectorMultiAgentEnv(VectorMultiAgentEnv):
    """Steps many multi-agent environments at once; RLlib's own steps one after another.

    Example:
        >>> from ray.rllib.env.multi_agent_env import make_multi_agent
        >>> from cartwheel.rllib import AsyncVectorMultiAgentEnv
        >>> two_poles = make_multi_agent("CartPole-v1")
        >>> envs = AsyncVectorMultiAgentEnv([lambda: two_poles({"num_agents": 2})] * 3)
        >>> observations, infos = envs.reset(seed=7)
        >>> [sorted(row) for row in observations]
        [[0, 1], [0, 1], [0, 1]]
        >>> _, rewards, terminateds, _, _ = envs.step([{0: 1, 1: 0}] * 3)
        >>> rewards[2], terminateds[2]
        ({0: 1.0, 1: 1.0}, {0: False, 1: False, '__all__': False})
        >>> envs.close()

    Its results are those of RLlib's ``SyncVectorMultiAgentEnv``: lists with one dictionary by agent
    for each row. Each row resets in the step after the end of its episode (``NEXT_STEP``), whatever
    its action is. Observations have the dtypes of their spaces. Returned arrays are never
    overwritten.

    ``envs[i]`` has the agents and spaces of row ``i``, as RLlib needs them, and nothing else: read
    attributes and call methods by :meth:`get_attr` and :meth:`call`.
    """

    #: True before the environments are made and after ``close``.
    closed = True

    @checks_keywords
    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        *,
        executor: Executor = "auto",
        num_workers: NumWorkers = None,
        context: Any = None,
        timeout: float | None = None,
        max_batches: int | None = None,
        check: bool = False,
    ) -> None:
        """Starts the workers and makes the environments.

        Args:
            env_fns: Functions that make the environments, which workers call: instances of RLlib's
                ``MultiAgentEnv``, or parallel environments of PettingZoo.
            executor: Where environments run, as for :class:`~cartwheel.VectorEnv`.
            num_workers: Number of processes or threads, as for :class:`~cartwheel.VectorEnv`; by
                default one for each usable processor, and at most one for each environment.
            context: Start method of worker processes.
            timeout: Seconds that the construction and each call may take; ``None``: no limit.
            max_batches: Upper bound of the batches of observations that are kept as views.
            check: Whether the workers make RLlib's checks of multi-agent environments, which reset
                and step each environment once.

        Raises:
            TypeError: A function makes something else, or ``check`` is not a ``bool``.
            ValueError: An environment does not name its possible agents, or they are others than
                those of row 0; RLlib's checks fail; or an argument is wrong.
            Exception: As for :class:`~cartwheel.VectorEnv`.
        """
        super().__init__()
        make_each = [
            functools.partial(make_agents_env, env_fn, check=as_bool("check", check))
            for env_fn in as_env_fns(env_fns)
        ]
        self._envs: VectorEnv[Any, Any] = VectorEnv(
            make_each,
            executor=executor,
            num_workers=num_workers,
            context=context,
            timeout=timeout,
            max_batches=max_batches,
        )
        self.closed = False
        self.num_envs = self._envs.num_envs
        self.metadata = {**self._envs.metadata, "autoreset_mode": "next_step"}
        self.render_mode = self._envs.render_mode
        try:
            self.envs = self._described()
        except BaseException:
            self.close()
            raise
        self._places = {
            agent: place for place, agent in enumerate(in_order(self.envs[0].possible_agents))
        }
        self.single_observation_spaces = self.envs[0].observation_spaces
        self.single_action_spaces = self.envs[0].action_spaces
        self.single_observation_space = gym.spaces.Dict(self.single_observation_spaces)
        self.single_action_space = gym.spaces.Dict(self.single_action_spaces)

    def _described(self) -> list[AgentSpaces]:
        spaces = self._envs.get_attr("agent_spaces")
        for row, found in enumerate(spaces):
            if in_order(found) != in_order(spaces[0]):
                raise ValueError(
                    "all environments must have the same possible agents: row 0 has "
                    f"{in_order(spaces[0])}, row {row} has {in_order(found)}."
                )
        return [AgentSpaces(found) for found in spaces]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: Any = None
    ) -> tuple[list[dict[Any, Any]], list[dict[Any, Any]]]:
        """Resets all environments.

        Args:
            seed: Row ``i`` gets ``seed + i``, or entry ``i`` of a list.
            options: Passed to every environment.

        Returns:
            For each row the observations and the infos by agent.

        Raises:
            ValueError: Options choose rows; nothing was reset.
            Exception: As :meth:`cartwheel.VectorEnv.reset`.
        """
        check_chooses_no_rows(options)
        observations, infos = self._envs.reset(seed=seed, options=options)
        by_agent, _, _, _, infos_by_agent = self._by_agent(observations, infos)
        return by_agent, infos_by_agent

    def step(self, actions: Sequence[dict[Any, Any]]) -> tuple[list[dict[Any, Any]], ...]:
        """Steps all environments at once.

        Args:
            actions: For each row the actions by agent, of the agents that act.

        Returns:
            For each row observations, rewards, terminateds, truncateds and infos by agent.

        Raises:
            TypeError: ``actions`` are not a list of dictionaries; nothing was stepped.
            ValueError: The number of actions is not ``num_envs``; nothing was stepped.
            Exception: An environment raised it; a note has its row.
        """
        is_list = isinstance(actions, list | tuple)
        if not is_list or not all(isinstance(by_agent, dict) for by_agent in actions):
            raise TypeError(
                "`actions` must be a list with a dictionary for each row, the actions by agent, "
                f"got {shown(actions)}."
            )
        observations, _, _, _, infos = self._envs.step(tuple(actions))
        return self._by_agent(observations, infos)

    def _by_agent(
        self, observations: Any, infos: dict[str, Any]
    ) -> tuple[list[dict[Any, Any]], ...]:
        rows = iterate(self._envs.observation_space, observations)
        observed, rewards, terminateds, truncateds, infos_by_agent = zip(*infos[REST], strict=True)
        by_agent = [
            {agent: row[self._places[agent]] for agent in agents}
            for row, agents in zip(rows, observed, strict=True)
        ]
        rest = (list(rewards), list(terminateds), list(truncateds), list(infos_by_agent))
        return by_agent, *rest

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row and worker, as of ``VectorEnv``."""
        return self._envs.stats()

    def render(self) -> tuple[Any, ...]:
        """Renders every environment."""
        return self._envs.render()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or reads an attribute that is not callable."""
        return self._envs.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of every environment."""
        return self._envs.get_attr(name)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments and ends the workers."""
        self._envs.close(**kwargs)
