"""Counts of all workers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cartwheel.vector.stats import Stats


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class WorkerStats:
    """Counts of :class:`~cartwheel.ray.RolloutWorkers`, from their construction on.

    Arrays are ``int64``, one number for each worker, and copies.

    Attributes:
        elapsed: Seconds since the construction.
        waited: Seconds in which the caller waited for rollouts.
        policy_version: The newest version of the weights.
        rollouts: Rollouts that arrived.
        steps: Transitions in them, of all environments of the worker.
        bytes: Bytes of their arrays.
        in_flight: Requested rollouts that have not been returned yet.
        staleness: How many versions older than the newest the worker's last rollout was.
        dropped: Rollouts of older versions that :meth:`~cartwheel.ray.RolloutWorkers.collect`
            dropped.
        restarts: How often the worker died and was restarted.
        pids: The process id of each worker; on its own machine.
        nodes: The id of the node of Ray that each worker is on.
        envs: The stats of each worker's environments after its last rollout; ``None`` before the
            first rollout, or if the environments are not cartwheel's.
    """

    elapsed: float
    waited: float
    policy_version: int
    rollouts: NDArray[np.int64]
    steps: NDArray[np.int64]
    bytes: NDArray[np.int64]
    in_flight: NDArray[np.int64]
    staleness: NDArray[np.int64]
    dropped: NDArray[np.int64]
    restarts: NDArray[np.int64]
    pids: tuple[int, ...]
    nodes: tuple[str, ...]
    envs: tuple[Stats | None, ...]

    def __repr__(self) -> str:
        rate = self.steps.sum() / self.elapsed
        return (
            f"WorkerStats({len(self.rollouts)} workers, version {self.policy_version}, "
            f"{self.rollouts.sum():,} rollouts, {self.steps.sum():,} steps, {rate:,.0f} a second, "
            f"{self.restarts.sum()} restarts, {self.elapsed:.3f} s)"
        )
