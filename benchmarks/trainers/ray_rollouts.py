"""Rollouts of native CartPole-v1 from actors of Ray, against a ``Collector`` in this process.

Every contender collects the same number of rows in a rollout; with several workers each has its
share of the environments. The policy is a small one in NumPy, on one thread. ``collect`` joins the
rollouts of all workers, ``rollouts`` hands them out as they come, without a copy. Ray adds some
milliseconds to a rollout, about what 64 environments take for one. So the bounds are for 1,024:
with as many workers as processors, the rate is at least 0.9 of that in this process as they come,
and 0.75 joined, which copies them once more. Environments and policies that take longer gain more.

Below the table: bytes of a rollout, and how long one took, of which waiting. Run it with
``python -m benchmarks.trainers.ray_rollouts``; it needs Ray.
"""

from __future__ import annotations

import functools
import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import ray

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.runners import Repeated
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import Contender
from cartwheel.ray import RolloutWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

STEPS = 128
BOUNDS = {"collect": 0.75, "rollouts": 0.9}


def make_policy() -> Callable[[NDArray[np.float32]], tuple[NDArray[np.int64], dict[str, Any]]]:
    """A layer of 64 units by arithmetic on one thread; an extra, as a policy of PPO has it."""
    angle, speed = np.random.default_rng(0).standard_normal((2, 1, 64), np.float32)

    def policy(observations: NDArray[np.float32]) -> tuple[NDArray[np.int64], dict[str, Any]]:
        hidden = np.maximum(observations[:, 2:3] * angle + observations[:, 3:] * speed, 0)
        logits = hidden.sum(1)
        return (logits > 0).astype(np.int64), {"logit": logits}

    return policy


def make_env(num_envs: int) -> Any:
    """Native environments, in this process or in a worker."""
    return cartwheel.make_vec("cartwheel/CartPole-v1", num_envs)


def collector(env_fns: Sequence[Any]) -> Repeated:
    """A collector in this process, on one thread as each worker has it."""
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", len(env_fns), num_workers=1)
    local = cartwheel.Collector(envs, make_policy(), STEPS, seed=1)
    return Repeated(local.collect, STEPS * envs.num_envs, envs.close)


class Remote:
    """Workers whose rollouts are joined (``collect``) or handed out as they come."""

    def __init__(self, num_workers: int, env_fns: Sequence[Any], *, joined: bool) -> None:
        """Starts the workers, which share the environments."""
        share = len(env_fns) // num_workers
        self.workers = RolloutWorkers(
            functools.partial(make_env, share),
            make_policy,
            num_workers,
            STEPS,
            seed=1,
            num_cpus=min(1.0, usable_cpus() / num_workers),
        )
        stream = self.workers.rollouts()
        self._next = self.workers.collect if joined else functools.partial(next, stream)
        self._ahead = 0 if joined else num_workers
        self.note = ""

    def run(self, seconds: float) -> float:
        """Collects for about ``seconds``; returns rows per second."""
        for _ in range(self._ahead):  # they were collected before the measurement
            self._next()
        before, start, rows = self.workers.stats(), time.perf_counter(), 0
        for rollouts in itertools.count(1):
            rollout = self._next()
            rows += rollout.rewards.size
            took = time.perf_counter() - start
            if took >= seconds:
                waited = self.workers.stats().waited - before.waited
                self.note = (
                    f"{rollout.nbytes:,} bytes a rollout, {1e3 * took / rollouts:.2f} ms, "
                    f"of which waiting {1e3 * waited / rollouts:.2f} ms"
                )
                return rows / took
        raise AssertionError

    def close(self) -> None:
        """Ends the workers."""
        self.workers.close()


def claims(bounds: dict[str, float]) -> list[Claim]:
    """A claim for each number of workers; bounds are for as many as there are processors."""
    local = Contender("Collector", collector)
    found = []
    for joined, way in ((True, "collect"), (False, "rollouts")):
        for num_workers in (1, 2, 4):
            build = functools.partial(Remote, num_workers, joined=joined)
            least = bounds.get(way, 0.0) if 1 < num_workers <= usable_cpus() else 0.0
            found.append(Claim(Contender(f"{num_workers} × {way}", build), local, least))
    return found


if __name__ == "__main__":
    ray.init(address="local", num_cpus=32, include_dashboard=False, log_to_driver=False)
    check(
        f"rollouts of {STEPS} steps from actors of Ray",
        no_env,
        {64: claims({}), 1024: claims(BOUNDS)},
    )
    ray.shutdown()
