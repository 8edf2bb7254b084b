"""Vector environments whose rows have several agents; results are dictionaries by agent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gymnasium.vector import AutoresetMode

from cartwheel._internal.arguments import as_autoreset_mode, as_bool, as_env_fns, as_integer
from cartwheel._internal.suggestions import checks_keywords, names_methods
from cartwheel._internal.versions import load
from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.multiagent.base import AgentsBase, ByAgent
from cartwheel.multiagent.groups import Groups
from cartwheel.multiagent.native import NativeAgentsPool
from cartwheel.multiagent.pool import open_pool
from cartwheel.vector.action_masks import as_mask_key
from cartwheel.workers.envs.agents_layout import AgentsSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gymnasium.envs.registration import EnvSpec

    from cartwheel._internal.literals import (
        Executor,
        Mode,
        NumWorkers,
        OnDone,
        OnError,
        OnTimeout,
        OnWorkerDeath,
        States,
    )
    from cartwheel._internal.reset_arguments import ResetOptions, Seeds


@names_methods
class ParallelVectorEnv(AgentsBase):
    """Steps many environments of several agents at once; results are dictionaries by agent.

    Example:
        >>> import cartwheel, pettingzoo
        >>> envs = cartwheel.ParallelVectorEnv(
        ...     [lambda: pettingzoo.make("parallel", "classic/rps-v2")] * 3
        ... )
        >>> observations, infos = envs.reset(seed=7)
        >>> actions = {agent: [0, 1, 2] for agent in envs.possible_agents}
        >>> observations, rewards, terminations, truncations, infos = envs.step(actions)
        >>> rewards["player_0"].shape, infos["acted"]["player_1"].tolist()
        ((3,), [True, True, True])
        >>> envs.close()

    Environments are parallel ones of PettingZoo; those whose agents take turns (AEC) are converted
    by PettingZoo's own functions. Row ``i`` is environment ``i`` with all its agents. Each agent's
    observations have the shape ``(num_envs, *shape)``, its rewards ``(num_envs,)`` and ``float64``,
    its flags ``(num_envs,)`` and ``bool``. Dictionaries are in the order of the first row's
    ``possible_agents``. Arrays keep their values, as those of :class:`~cartwheel.VectorEnv` do.

    Agents may come and go. ``infos["present"][agent]`` has the rows whose observation is one of the
    agent; in the others it is zeros. ``infos["acted"][agent]`` has the rows in which the agent was
    in ``agents`` before the step: its action counted, and its reward and flags are its own. Where
    it is false, they are zeros; except that a row that failed truncates the agents that lived, and
    a frozen one repeats flags. An agent's last observation, reward, flags and info are in the step
    in which it ends.

    Episodes. A row's episode is over when no agent is left: ``infos["episode_over"]``, in every
    step. Then ``autoreset_mode`` decides, as for :class:`~cartwheel.VectorEnv`. In ``SAME_STEP``,
    ``infos["final_obs"][agent]`` has the form of the agent's observations; it counts in the rows of
    ``infos["_final_obs"][agent]``, which ended while the agent was present. ``infos["final_info"]``
    and its masks are likewise. In ``DISABLED``, pass ``infos["episode_over"]`` as the
    ``"reset_mask"`` of :meth:`reset`.

    ``infos[agent]`` has the agent's infos, batched as Gymnasium's, with a mask ``_key`` for each
    ``key``; agents without infos may be missing.

    Args:
        env_fns: Functions that make the environments, as for :class:`~cartwheel.VectorEnv`.
        absent: The value of absent agents in observations with floating-point numbers: 0 or
            ``math.nan``. In others it is 0.
        state: Whether ``infos["state"]`` has the state of each environment, by PettingZoo's
            ``state()``, in the form of :attr:`state_space`. In ``SAME_STEP`` the last states of
            rows that are over are in ``infos["final_state"]``.
        context: As for :class:`~cartwheel.VectorEnv`, like all that follow.
        daemon: Whether worker processes are daemonic.
        autoreset_mode: When a row whose episode is over restarts.
        executor: Where environments run.
        num_workers: Number of processes or threads; ``"auto"``: more if environments wait.
        batch_size: Rows of a batch that :meth:`recv` returns.
        on_done: The effect of a step of a row that is over in the mode ``DISABLED``.
        on_error: The effect of an ``Exception`` of an environment. With ``"restart"``, the agents
            that lived are truncated.
        on_worker_death: The effect of the death of a worker process.
        on_timeout: The effect of a worker that hangs.
        max_restarts: How often one environment, or one worker, is replaced.
        max_episodes_per_worker: Episodes of a row after which its worker process is replaced.
        max_worker_memory: Resident memory from which on a worker process is replaced.
        timeout: Seconds that a call may take.
        max_batches: Upper bound of the batches of observations that are kept as views.
        max_episode_steps: Steps after which all agents that live are truncated. With
            ``action_repeat``, a multiple of it.
        action_repeat: How many times each step repeats its actions. Rewards are summed. Of an agent
            that ends, the last observation, flags and info stay.
        staggered_reset: Whether rows begin at different places in their episodes after a reset.
        full_batch: Whether a reset with row numbers returns the batch of all rows.
        action_mask: The key under which :meth:`action_masks` finds masks of actions: a part of the
            ``Dict`` observation space of an agent, or a key of its infos. ``None``: there are no
            masks.
        states: How :meth:`state_dict` saves environments.

    Raises:
        TypeError: A function returns something other than an environment of PettingZoo; or as for
            :class:`~cartwheel.VectorEnv`.
        ValueError: Environments have no ``possible_agents``, or differ in agents or spaces; an
            agent has a name that infos use; or as for :class:`~cartwheel.VectorEnv`.
    """

    @checks_keywords
    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        *,
        absent: float = 0.0,
        state: bool = False,
        context: Any = None,
        daemon: bool = True,
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        executor: Executor = "auto",
        num_workers: NumWorkers = None,
        batch_size: int | None = None,
        on_done: OnDone = "raise",
        on_error: OnError = "raise",
        on_worker_death: OnWorkerDeath = "raise",
        on_timeout: OnTimeout = "raise",
        max_restarts: int | None = 10,
        max_episodes_per_worker: int | None = None,
        max_worker_memory: int | str | None = None,
        timeout: float | None = None,
        max_batches: int | None = None,
        max_episode_steps: int | None = None,
        action_repeat: int = 1,
        staggered_reset: bool = False,
        full_batch: bool = False,
        action_mask: str | None = "action_mask",
        states: States = "methods",
    ) -> None:
        if isinstance(env_fns, str):
            raise TypeError(
                f"`env_fns` must be a list of functions that make environments, got {env_fns!r}: "
                f'`[lambda: pettingzoo.make("parallel", {env_fns!r})] * num_envs`; '
                "`ParallelVectorEnv.native(env_id, num_envs)` makes native environments."
            )
        settings = AgentsSettings(
            None,
            _as_absent(absent),
            as_bool("state", state),
            as_integer("action_repeat", action_repeat, 1),
        )
        mode = as_autoreset_mode(autoreset_mode)
        env_fns = as_env_fns(env_fns)
        keywords = {
            "context": context,
            "daemon": daemon,
            "autoreset_mode": mode,
            "executor": executor,
            "num_workers": num_workers,
            "batch_size": batch_size,
            "on_done": on_done,
            "on_error": on_error,
            "on_worker_death": on_worker_death,
            "on_timeout": on_timeout,
            "max_restarts": max_restarts,
            "max_episodes_per_worker": max_episodes_per_worker,
            "max_worker_memory": max_worker_memory,
            "timeout": timeout,
            "max_batches": max_batches,
            "max_episode_steps": _as_limit(max_episode_steps, settings.action_repeat),
            "staggered_reset": staggered_reset,
            "full_batch": full_batch,
            "states": states,
        }
        action_mask = as_mask_key(action_mask)
        super().__init__(open_pool(env_fns, settings, keywords, action_mask))

    @staticmethod
    def native(env_id: str | EnvSpec, num_envs: int, **keywords: Any) -> ParallelVectorEnv:
        """Makes native environments that name their agents, with dictionaries by agent.

        Observations by agent are views of the rows' own, unless agents with equal spaces are apart
        in memory. Rewards, flags, ``present``, ``acted`` and ``infos["state"]`` are those that the
        environments show; infos are of rows. :class:`~cartwheel.NativeVectorEnv` makes the same
        environments, with the spaces of the author.

        Args:
            env_id: The id, as for :class:`~cartwheel.NativeVectorEnv`.
            num_envs: The number of environments.
            **keywords: Keywords of :class:`~cartwheel.NativeVectorEnv` and of the environment.
                ``action_repeat``, ``final_names``, ``final_obs`` and ``ignore_terminations`` do not
                exist, and ``action_mask`` names a part of the agents' observations.

        Raises:
            TypeError: A keyword does not exist; or as for :class:`~cartwheel.NativeVectorEnv`.
            ValueError: The environment does not name its agents, or its spaces are not those that
                ``docs/multi-agent.md`` describes; or as for :class:`~cartwheel.NativeVectorEnv`.
        """
        envs = object.__new__(ParallelVectorEnv)
        AgentsBase.__init__(envs, NativeAgentsPool(env_id, num_envs, **keywords))
        return envs

    # Stepping

    def reset(
        self, *, seed: Seeds = None, options: ResetOptions = None
    ) -> tuple[ByAgent, dict[str, Any]]:
        """Resets every environment, or the rows that ``options`` select.

        Args:
            seed: As for :meth:`cartwheel.VectorEnv.reset`: row ``i`` gets ``seed + i``, or entry
                ``i`` of a list.
            options: As for :meth:`cartwheel.VectorEnv.reset`; ``"reset_mask"`` and
                ``"env_index"`` select rows.

        Returns:
            Observations by agent, and infos with ``present`` and ``acted``, which is false. Rows
            that are not reset repeat both and have no other infos.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.reset`.
        """
        return self._shown(self._reset_columns(seed, options))

    def step(
        self, actions: ByAgent, env_index: Any = None
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """Steps every environment, or those of ``env_index``.

        Args:
            actions: For each possible agent one action for each row, as in :attr:`action_space`;
                those of absent agents are ignored.
            env_index: Row numbers, as for :meth:`cartwheel.VectorEnv.step`.

        Returns:
            Observations ``(rows, *shape)``, rewards (``float64``), terminations and truncations
            (``bool``), all ``(rows,)``, as dictionaries by agent; and infos.

        Raises:
            TypeError: ``actions`` is not a dictionary, or actions have another kind of dtype;
                nothing was stepped.
            ValueError: An agent is missing or unknown, or actions have another shape; nothing was
                stepped.
            Exception: As :meth:`cartwheel.VectorEnv.step`.
        """
        return self._stepped(self._step_columns(actions, env_index))

    def step_async(self, actions: ByAgent, env_index: Any = None) -> None:
        """Begins a step with the arguments of :meth:`step`; :meth:`step_wait` returns its result.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.step_async`.
        """
        self._begin_step(actions, env_index)

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """Waits for a step.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            The same five values as :meth:`step`.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.step_wait`.
        """
        return self._stepped(self._wait_columns(timeout))

    def send(self, actions: ByAgent, env_index: Any = None) -> None:
        """Sends actions to environments and returns at once; :meth:`recv` returns the results.

        Args:
            actions: For each possible agent one action for each of these rows.
            env_index: The rows; by default all.

        Raises:
            Exception: As :meth:`step`, and :meth:`cartwheel.VectorEnv.send`.
        """
        self._pool.send(self._prepared(actions, env_index), env_index)

    def recv(
        self,
        timeout: float | None = None,
        *,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """Receives the next batch, as :meth:`cartwheel.VectorEnv.recv`.

        Args:
            timeout: Seconds to wait; by default the ``timeout`` of this object.
            min_rows: The minimum number of rows.
            max_rows: The maximum number of rows.

        Returns:
            The same values as :meth:`step`; ``infos["env_index"]`` has the row numbers.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.recv`.
        """
        bounds = {"min_rows": min_rows, "max_rows": max_rows}
        return self._stepped(self._received(lambda: self._pool.recv(timeout, **bounds)))

    def send_reset(self, seed: Seeds = None, options: ResetOptions = None) -> None:
        """Begins a reset and returns at once; :meth:`recv` returns the results.

        Args:
            seed: As for :meth:`reset`.
            options: As for :meth:`reset`.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.send_reset`.
        """
        self._pool.send_reset(seed, options)

    def next_reset(
        self, *, seed: Seeds = None, options: ResetOptions = None, env_index: Any = None
    ) -> None:
        """Gives seeds and options to the next automatic reset of each row.

        Args:
            seed: As for :meth:`cartwheel.VectorEnv.next_reset`, like all that follow.
            options: Options of the resets.
            env_index: The rows; by default all.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.next_reset`.
        """
        self._pool.next_reset(seed=seed, options=options, env_index=env_index)

    # Other forms

    def by_group(self, groups: Mapping[str, Sequence[Any]]) -> Groups:
        """Returns an object that steps these environments with arrays by group of agents.

        Example:
            >>> import cartwheel, pettingzoo
            >>> make = lambda: pettingzoo.make("parallel", "classic/rps-v2")
            >>> with cartwheel.ParallelVectorEnv([make] * 3) as envs:
            ...     players = envs.by_group({"players": ["player_0", "player_1"]})
            ...     observations, infos = players.reset(seed=7)
            ...     players.step({"players": [[0, 1], [1, 2], [2, 0]]})[1]["players"].shape
            (3, 2)

        Args:
            groups: The agents of each group. Each possible agent is in one group, and the agents of
                a group have equal spaces of fixed shape.

        Raises:
            TypeError: ``groups`` is not a dictionary of lists.
            ValueError: An agent is in no group or in two, or spaces within a group differ.
        """
        return Groups(self, groups)

    def as_rows(self) -> AgentRows:
        """Returns a ``gymnasium.vector.VectorEnv`` with a row for each agent of each environment.

        Row ``i * agents + j`` is agent ``j`` of environment ``i``. For trainers of one agent whose
        policy all agents share: ``docs/multi-agent.md`` describes what they see of absent agents.

        Raises:
            ValueError: Spaces of agents differ, or ``batch_size`` is below the number of
                environments.
        """
        return AgentRows(self)

    def as_parallel_env(self) -> Any:
        """Returns the only environment as a ``pettingzoo.ParallelEnv``, for tests and tools.

        Raises:
            ValueError: There are several environments, or the mode is not ``DISABLED``.
            ImportError: PettingZoo is not installed.
        """
        load("pettingzoo", "pettingzoo", "ParallelVectorEnv.as_parallel_env")
        from cartwheel.multiagent.parallel_env import ParallelRow

        return ParallelRow(self)


def _as_absent(absent: Any) -> float:
    if isinstance(absent, int | float) and (absent == 0 or math.isnan(absent)):
        return float(absent)
    raise ValueError(f"`absent` must be 0 or math.nan, got {absent!r}.")


def _as_limit(max_episode_steps: Any, action_repeat: int) -> int | None:
    if max_episode_steps is None:
        return None
    limit = as_integer("max_episode_steps", max_episode_steps, 1)
    if limit % action_repeat:
        raise ValueError(
            f"`max_episode_steps` counts repetitions, and must be a multiple of action_repeat="
            f"{action_repeat}, got {limit}: pass {max(limit // action_repeat, 1) * action_repeat}."
        )
    return limit // action_repeat
