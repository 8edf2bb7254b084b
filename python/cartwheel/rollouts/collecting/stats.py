"""What a collector measured of itself."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class CollectorStats:
    """Counts and times of a :class:`~cartwheel.Collector` since it was made.

    Attributes:
        order: The order of the last rollout: ``"lockstep"``, ``"groups"`` or ``"free"``.
        reason: With ``order="auto"``, why this order; otherwise ``""``.
        rollouts: Complete rollouts.
        steps: Steps in them, ``T × N`` each.
        policy_calls: Calls of the policy.
        rows_per_call: Rows of a call, on average.
        seconds: Time in which the collector collected. In the background, time in which the thread
            waited for room does not count.
        policy_share: Part of this time in the policy, from 0 to 1.
        waiting_share: Part of this time in which the collector waited for environments.
        other_share: The rest: sending, copying, counting.
        version: Calls of :meth:`~cartwheel.Collector.update`.
        mean_staleness: How many updates there were between an action and the hand-out of its
            rollout, on average.
        max_staleness: At most.
        slowest_rows: Up to five rows, slowest first, and the seconds from the send of a step to its
            receipt, on average. Empty in ``"lockstep"``: see :meth:`~cartwheel.VectorEnv.stats`.
    """

    order: str
    reason: str
    rollouts: int
    steps: int
    policy_calls: int
    rows_per_call: float
    seconds: float
    policy_share: float
    waiting_share: float
    other_share: float
    version: int
    mean_staleness: float
    max_staleness: int
    slowest_rows: tuple[tuple[int, float], ...]
