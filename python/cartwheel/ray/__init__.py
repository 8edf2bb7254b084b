"""Rollouts from actors of Ray: the environments and the policy on many machines.

``pip install 'cartwheel[ray]'``. :class:`RolloutWorkers` has the interface of
:class:`~cartwheel.Collector`: a training loop changes the line that makes it. Ray starts the
processes, moves the arrays and restarts processes that died (https://docs.ray.io); cartwheel steps
the environments in each.
"""

from typing import TYPE_CHECKING

from cartwheel._internal.versions import load

load("ray", "ray", "cartwheel.ray", "2.40")

# ruff: noqa: E402 - they import what was loaded
# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.rollouts  # noqa: F401 - for the order

from cartwheel.ray.rollout_actor import WorkerInfo, worker_info
from cartwheel.ray.rollout_workers import RolloutWorkers
from cartwheel.ray.worker_rollout import WorkerRollout
from cartwheel.ray.worker_stats import WorkerStats

__all__ = ["RolloutWorkers", "WorkerInfo", "WorkerRollout", "WorkerStats", "worker_info"]
