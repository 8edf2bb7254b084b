"""Records the episodes of environments of several agents, with a group for each agent."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict

from cartwheel._internal import nested
from cartwheel.multiagent import ParallelVectorEnv
from cartwheel.multiagent.base import AgentsBase
from cartwheel.recorder.buffer import leaves
from cartwheel.recorder.record_episode import RecordEpisode
from cartwheel.recorder.trajectory_recorder import FLAGS, TrajectoryRecorder
from cartwheel.workers.envs.agents_layout import FLAGS as AGENT_FLAGS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel.multiagent.base import ByAgent
    from cartwheel.multiagent.batches import AgentBatches
    from cartwheel.recorder.buffer import Path
    from cartwheel.recorder.trajectory_recorder import Flags
    from cartwheel.wrappers.batch import Batch

#: The arrays of an agent that observations and actions do not have, but ``present``.
STEPS = ("rewards", "terminated", "truncated", "acted")


class RecordParallelEpisode(ParallelVectorEnv):
    """Writes the episodes of a :class:`~cartwheel.ParallelVectorEnv`, a group for each agent.

    It steps the environments as the :class:`~cartwheel.ParallelVectorEnv` that it takes over, with
    all of its methods. An episode is that of an environment: from its reset until no agent is left.
    It has every possible agent in every step, absent ones with zeros.

    Files are those of :class:`RecordEpisode`. With ``format="maniskill"``, ``traj_i`` has a group
    ``agents/<agent>`` for each agent, with ``obs`` and ``present``, of ``T + 1`` entries, and
    ``actions``, ``rewards``, ``terminated``, ``truncated`` and ``acted``, of ``T``; and perhaps
    ``success`` and ``fail`` from the agent's infos. With
    ``format="minari"``, Minari reads the observations and actions as dictionaries by agent, and
    ``infos["agents"][agent]`` has the other arrays; ``infos[agent]`` has the numbers in the
    agent's infos. In both, ``rewards`` of the episode are the sums over all agents, and its last
    flags tell whether an agent was terminated or truncated in the last step. With ``state=True``,
    ``state`` has ``T + 1`` entries. The metadata have ``agents``, the names in their order, and of
    each episode ``returns`` by agent. Other names than text are written as ``str(name)``.

    Learn from the steps in which ``acted`` is true. :class:`TrajectoryDataset` reads the files,
    and :func:`cartwheel.recorder.replay` plays them again. Videos show environments.

    Example:
        >>> import tempfile, cartwheel, pettingzoo
        >>> from cartwheel.recorder import RecordParallelEpisode, TrajectoryDataset
        >>> make = lambda: pettingzoo.make("parallel", "classic/rps-v2", max_cycles=5)
        >>> folder = tempfile.mkdtemp()
        >>> envs = cartwheel.ParallelVectorEnv([make] * 2, executor="inline")
        >>> with RecordParallelEpisode(envs, folder, trajectory_name="rps") as envs:
        ...     observations, infos = envs.reset(seed=1)
        ...     for _ in range(5):
        ...         observations = envs.step(envs.action_space.sample())[0]
        >>> dataset = TrajectoryDataset(f"{folder}/rps.h5")
        >>> len(dataset.episodes), dataset.agents["player_0"]["rewards"].shape
        (2, (10,))

    Args:
        envs: The environments, which only this object may use from now on.
        output_dir: The folder of all files; it is made.
        **keywords: As for :class:`RecordEpisode`, from ``save_trajectory`` on.

    Raises:
        TypeError: ``envs`` is not a :class:`~cartwheel.ParallelVectorEnv`; or as for
            :class:`RecordEpisode`.
        ValueError: Two agents have the same name as text, a name has ``"/"`` or is ``"agents"``; or
            as for :class:`RecordEpisode`.
        OSError: As for :class:`RecordEpisode`.
        ImportError: As for :class:`RecordEpisode`.
    """

    def __init__(
        self, envs: ParallelVectorEnv, output_dir: str | os.PathLike[str], **keywords: Any
    ) -> None:
        if not isinstance(envs, AgentsBase):
            raise TypeError(
                "`envs` must be a ParallelVectorEnv, whose environments have several agents, got "
                f"{type(envs)}: RecordEpisode records others."
            )
        if isinstance(envs, RecordParallelEpisode):
            raise TypeError("`envs` records its episodes already.")
        self._recorder = PoolRecorder(envs, output_dir, **keywords)
        AgentsBase.__init__(self, self._recorder)
        self._batches = envs._batches

    def reset(
        self, *, seed: Seeds = None, options: ResetOptions = None, save: bool = True
    ) -> tuple[ByAgent, dict[str, Any]]:
        """Resets every environment, or the rows that ``options`` select.

        Args:
            seed: As for :meth:`cartwheel.ParallelVectorEnv.reset`.
            options: As for :meth:`cartwheel.ParallelVectorEnv.reset`.
            save: As for :meth:`RecordEpisode.reset`: false discards episodes that it cuts short.

        Returns:
            Observations by agent, and infos.

        Raises:
            TypeError: ``save`` is not a ``bool``; nothing is reset.
            Exception: As for :meth:`cartwheel.ParallelVectorEnv.reset`; or the error of the writing
                thread.
        """
        return self._shown(self._reset_columns(seed, options, save=save))

    def flush(self) -> None:
        """Waits until all episodes that are over are in the files.

        Raises:
            Exception: The error of the writing thread.
        """
        self._recorder.flush()


class PoolRecorder(RecordEpisode):
    """Records the rows of a :class:`~cartwheel.ParallelVectorEnv`, as its pool shows them."""

    def __init__(
        self, envs: AgentsBase, output_dir: str | os.PathLike[str], **keywords: Any
    ) -> None:
        """Makes the files; see :class:`RecordParallelEpisode`."""
        self._agents = AgentArrays(envs._batches)
        super().__init__(envs._pool, output_dir, **keywords)

    def _check_rewards(self, env: Any) -> None:
        """Rewards are arrays by agent."""

    def _make_trajectories(self, *, saves: bool, **keywords: Any) -> TrajectoryRecorder:
        return AgentTrajectories(self.num_envs, self._agents, saves=saves, **keywords)

    def _facts(self) -> dict[str, Any]:
        return {"agents": self._agents.names}

    def transform(self, batch: Batch) -> None:
        """Records a batch, with infos by the names of agents."""
        if batch.infos:
            recorded = copy.copy(batch)
            recorded.infos = self._agents.named(batch.infos)
            super().transform(recorded)
        else:
            super().transform(batch)

    def _metadata_of(self, row: int, flags: Flags, arrays: dict[Any, Any]) -> dict[str, Any]:
        metadata = super()._metadata_of(row, flags, arrays)
        metadata["returns"] = {
            name: float(arrays["agents", name, "rewards"].sum()) for name in self._agents.names
        }
        return metadata


# The name in errors.
PoolRecorder.__name__ = "RecordParallelEpisode"


class AgentArrays:
    """The recorded parts of the batches of a pool.

    Attributes:
        names: The names of the agents in files, in their order.
        spaces: Their observation and action spaces by these names.
        batches: Converts batches.
    """

    def __init__(self, batches: AgentBatches) -> None:
        """Checks the names.

        Raises:
            ValueError: Two are equal as text, one has ``"/"``, or one is ``"agents"``.
        """
        layout = batches.layout
        self.batches = batches
        self.names = [str(agent) for agent in layout.agents]
        wrong = [
            name
            for name in self.names
            if "/" in name or name == "agents" or self.names.count(name) > 1
        ]
        if wrong:
            raise ValueError(
                "agents are recorded in groups of their names, which must differ as text and be "
                f"without '/', and not 'agents': rename {wrong} of {list(layout.agents)}."
            )
        self.spaces = tuple(
            Dict(OrderedDict(zip(self.names, spaces, strict=True)))
            for spaces in (layout.observation_spaces, layout.action_spaces)
        )

    def named(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Returns infos with the names of agents instead of their numbers."""
        keys = {str(place): name for place, name in enumerate(self.names)}
        keys |= {f"_{place}": f"_{name}" for place, name in keys.items()}
        named = {keys.get(key, key): value for key, value in infos.items()}
        if isinstance(named.get("final_info"), dict):
            named["final_info"] = self.named(named["final_info"])
        return named

    def observations(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns the observations of a batch by name."""
        groups = self.batches.groups_of(batch)
        return dict(zip(self.names, self.batches.all_observations(groups), strict=True))

    def actions(self, actions: Any) -> dict[str, Any]:
        """Returns the actions of a batch of the pool by name."""
        return {
            name: self.batches.actions_of(actions, place) for place, name in enumerate(self.names)
        }

    def columns(self, name: str, columns: NDArray[Any]) -> Iterator[tuple[Path, NDArray[Any]]]:
        """Yields columns ``[n, agents]`` by agent."""
        for place, agent in enumerate(self.names):
            yield ("agents", agent, name), columns[:, place]


class AgentTrajectories(TrajectoryRecorder):
    """Records the observations, actions, rewards, flags and presence of each agent."""

    _takes_texts = False  # agents that are not there have no text

    def __init__(
        self, num_envs: int, agents: AgentArrays, *, saves: bool, keeps_infos: bool, **keywords: Any
    ) -> None:
        self._agents, self._is_minari = agents, keeps_infos
        observation, action = agents.spaces
        super().__init__(
            num_envs, observation if saves else None, action, keeps_infos=keeps_infos, **keywords
        )
        for name in agents.names:
            for column in STEPS:
                dtype = np.float64 if column == "rewards" else np.bool_
                self._buffer.add_track(("agents", name, column), (), dtype, first=1)
            if saves:
                self._buffer.add_track(("agents", name, "present"), (), np.bool_)
        self._state_space = agents.batches.layout.state_space if saves else None
        if self._state_space is not None:
            for path, space in leaves(self._state_space, ("state",)):
                self._buffer.add_track(path, space.shape or (), space.dtype or float)
        self.groups = [self._place(path) for path in self.groups]

    def act(self, actions: Any, rows: Any, busy: Any) -> None:
        """Keeps copies of the pool's actions until their results come."""
        super().act(self._agents.actions(actions), rows, busy)

    def _arrays(self, observations: Any) -> Iterator[tuple[Path, NDArray[Any]]]:
        yield from nested.paths(self._agents.observations(observations), ("obs",))
        present = observations["flags"][:, AGENT_FLAGS.index("present")]
        yield from self._agents.columns("present", present)
        if self._state_space is not None:
            yield from nested.paths(observations["state"], ("state",))

    def _results(self, observations: Any, batch: Batch) -> Iterator[tuple[Path, NDArray[Any]]]:
        rewards = self._agents.batches.rewards_of(observations, batch.rewards)
        yield ("rewards",), rewards.sum(axis=1)
        yield from self._agents.columns("rewards", rewards)
        flags = observations["flags"].astype(np.bool_)
        terminated, truncated, _, acted, lives = flags.swapaxes(0, 1)
        terminated = terminated | (lives & np.asarray(batch.terminations)[:, np.newaxis])
        truncated = truncated | (lives & np.asarray(batch.truncations)[:, np.newaxis])
        columns = {"terminated": terminated, "truncated": truncated, "acted": acted}
        for name, column in columns.items():
            yield from self._agents.columns(name, column)

    def _path(self, name: Path) -> Path | None:
        is_agents = len(name) == 2 and name[0] in self._agents.names and name[1] in FLAGS
        if is_agents and not self._keeps_infos:
            return ("agents", *name)
        return super()._path(name)

    def totals(self, observations: Any, rewards: Any) -> NDArray[Any]:
        """Returns the sums of the rewards of all agents."""
        return np.asarray(self._agents.batches.rewards_of(observations, rewards).sum(axis=1))

    def cut(self, row: int, flags: Flags) -> tuple[dict[Path, NDArray[Any]], Flags]:
        """Returns copies of the present episode of an environment, and the last flags of agents.

        Where agents left without a flag, they are those of the environment.
        """
        arrays = self._episode(row)
        if any(flags):
            last = [
                any(bool(arrays["agents", name, column][-1]) for name in self._agents.names)
                for column in ("terminated", "truncated")
            ]
            flags = (last[0], last[1]) if any(last) else flags
        return arrays, flags

    def placed(
        self, arrays: dict[Path, NDArray[Any]], *, rewards: bool
    ) -> dict[Path, NDArray[Any]]:
        """Returns the arrays of an episode with their paths in the file."""
        arrays = super().placed(arrays, rewards=rewards)
        if not rewards:
            for name in self._agents.names:
                del arrays["agents", name, "rewards"]
        return {self._place(path): array for path, array in arrays.items()}

    def _place(self, path: Path) -> Path:
        if self._is_minari:
            return ("infos", *path) if path[0] == "agents" else path
        if path[0] in ("obs", "actions"):
            return ("agents", path[1], path[0], *path[2:])
        return path
