"""The actor: vector environments, a policy and a collector in a process of Ray."""

from __future__ import annotations

import dataclasses
import os
import pickle
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import ray
from gymnasium.vector import VectorEnv

from cartwheel.errors import add_note
from cartwheel.ray.worker_rollout import WorkerRollout
from cartwheel.rollouts import Collector

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.vector.stats import Stats


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """Facts about a worker for its ``make_env`` and ``policy``, from :func:`worker_info`.

    Attributes:
        index: The number of the worker, from 0 on.
        num_workers: The number of workers.
        num_cpus: The processors that Ray has assigned to the worker, at least 1.
        seed: A seed for random numbers of the policy, different in every worker: ``seed + index``
            with the ``seed`` of :class:`RolloutWorkers`, or ``None`` if that is ``None``. A worker
            that was restarted ``k`` times has that of worker ``index + k * num_workers``. Libraries
            with a fixed default seed, such as torch, would explore identically in every worker.
    """

    index: int
    num_workers: int
    num_cpus: int
    seed: int | None


_info: WorkerInfo | None = None


def worker_info() -> WorkerInfo | None:
    """Returns facts about the worker of this process; ``None`` in other processes."""
    return _info


@dataclasses.dataclass(frozen=True)
class Plan:
    """The arguments from which every worker is made, documented in :class:`RolloutWorkers`."""

    make_env: Callable[[], Any]
    policy: Callable[[], Any]
    num_workers: int
    seed: int | None
    collector: dict[str, Any]

    def seed_of(self, place: int, num_envs: int = 1) -> int | None:
        """Returns the first seed of a worker that needs ``num_envs`` of them.

        Args:
            place: ``index + restarts * num_workers``: no two workers share a seed, nor does a
                worker before and after a restart.
            num_envs: The number of seeds of each place.
        """
        return None if self.seed is None else self.seed + place * num_envs


@dataclasses.dataclass(frozen=True)
class Description:
    """Description of a worker; the same for all workers except for process and node."""

    envs: str
    num_envs: int
    takes_weights: bool
    policy: str
    pid: int
    node: str


class RolloutActor:
    """One worker. Its methods run one after the other, in the order of the calls."""

    def __init__(self, plan: bytes, index: int) -> None:
        """Keeps the arguments: Ray hides the class of exceptions that are raised here."""
        self._plan, self._index = plan, index
        self._collector: Collector | None = None
        self._version = 0

    def start(self, restarts: int) -> Description:
        """Makes the environments and the policy, after ``restarts`` restarts of the worker.

        Raises:
            TypeError: ``make_env`` returned no vector environment, or ``policy`` no policy.
            Exception: One of them raised it.
        """
        global _info
        cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
        num_cpus = max(1, int(cpus))
        # The default number of workers of cartwheel's environments, here and in child processes.
        os.environ["CARTWHEEL_CPUS"] = str(num_cpus)
        plan: Plan = pickle.loads(self._plan)
        place = self._index + restarts * plan.num_workers
        _info = WorkerInfo(self._index, plan.num_workers, num_cpus, plan.seed_of(place))
        try:
            envs = plan.make_env()
        except gym.error.UnregisteredEnv as error:
            add_note(
                error,
                "a worker is a process of its own, which knows only the ids that are registered in "
                "it: import or register them in `make_env`, or pass 'module:id'.",
            )
            raise
        if not isinstance(envs, VectorEnv):
            raise TypeError(
                f"`make_env` must return a vector environment, such as cartwheel.make_vec(…), got "
                f"{type(envs)}."
            )
        policy = plan.policy()
        seed = plan.seed_of(place, envs.num_envs)
        self._collector = Collector(envs, policy, seed=seed, **plan.collector)
        return Description(
            envs=f"{envs.num_envs} × {envs.single_observation_space}, {envs.single_action_space}, "
            f"{self._collector.autoreset_mode.name}",
            num_envs=envs.num_envs,
            takes_weights=callable(getattr(policy, "set_weights", None)),
            policy=type(policy).__qualname__,
            pid=os.getpid(),
            node=ray.get_runtime_context().get_node_id(),
        )

    def collect(
        self, version: int, weights: tuple[Any, ...]
    ) -> tuple[WorkerRollout, Stats | None] | None:
        """Collects a rollout with the weights of a version.

        Args:
            version: The number of the version.
            weights: A reference to the weights, in a tuple, so that they are loaded once a version
                and not by Ray for every call. Empty for version 0.

        Returns:
            The rollout and the stats of the environments; ``None`` if this process was restarted
            and has no environments yet.
        """
        collector = self._collector
        if collector is None:
            return None
        if version != self._version:
            policy: Any = collector.policy
            policy.set_weights(ray.get(weights[0]))
            self._version = version
        rollout = WorkerRollout.from_rollout(collector.collect(), version, self._index)
        stats: Any = getattr(collector.envs.unwrapped, "stats", None)
        return rollout, stats() if callable(stats) else None

    def close(self) -> None:
        """Closes the environments."""
        if self._collector is not None:
            self._collector.envs.close()
