"""Learns while actors of Ray collect, as IMPALA does; prints speed and staleness.

The workers collect while the learner learns (``RolloutWorkers.rollouts``), so a rollout was made
by weights that are older than those that it changes: V-trace corrects for that
(``vtrace_learner.py``). Each update takes as many rollouts as there are workers, of whichever
workers are done: none waits for another.

Run it with ``python -m examples.trainers.ray_impala``. It needs torch and Ray.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import time
from typing import TYPE_CHECKING

import numpy as np
import ray
import torch

import cartwheel
from cartwheel.ray import RolloutWorkers, worker_info
from examples.ppo import ENV_ID, SOLVED
from examples.trainers.vtrace_learner import Agent, Learner, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def make_policy() -> Agent:
    """Makes the agent of a worker, with random numbers that no other worker draws."""
    worker = worker_info()
    torch.set_num_threads(1)
    if worker is not None and worker.seed is not None:
        torch.manual_seed(worker.seed)
    return Agent()


@dataclasses.dataclass
class Result:
    """The result of training with some workers."""

    steps: int  # of all environments together, without those that only reset
    seconds: float
    staleness: float  # mean number of updates between acting and learning
    mean_return: float  # of the last 100 episodes
    curve: list[float]  # the same after each update


def train(num_workers: int, settings: Settings, num_cpus: float = 1) -> Result:
    """Learns until the last 100 episodes solve the environment, or the steps are used up."""
    torch.manual_seed(settings.seed)
    learner = Learner(Agent(), settings)
    num_envs = settings.num_envs // num_workers
    with RolloutWorkers(
        lambda: cartwheel.make_vec(ENV_ID, num_envs),
        make_policy,
        num_workers,
        settings.num_steps,
        seed=settings.seed,
        num_cpus=num_cpus,
        in_flight=1,
    ) as workers:
        workers.update(learner.agent.weights())
        start, curve, ages = time.perf_counter(), [0.0], []
        returns: collections.deque[float] = collections.deque(maxlen=100)
        stream = workers.rollouts()
        while curve[-1] < SOLVED and learner.steps < settings.total_steps:
            rollouts = list(itertools.islice(stream, num_workers))
            learner.learn(*rollouts)
            for rollout in rollouts:
                ages.append(workers.policy_version - rollout.version)
                returns.extend(rollout.episodes(complete_only=True).returns)
            workers.update(learner.agent.weights())
            curve.append(float(np.mean(returns)) if returns else 0.0)
        seconds = time.perf_counter() - start
    return Result(learner.steps, seconds, float(np.mean(ages)), curve[-1], curve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains with each number of workers and prints a table."""
    parser = argparse.ArgumentParser(description="V-trace on CartPole with actors of Ray.")
    parser.add_argument("--num-workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--address", default="local", help="of the cluster; by default a new one")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    options = vars(parser.parse_args(arguments))
    workers, address = options.pop("num_workers"), options.pop("address")
    torch.set_num_threads(1)  # the networks are too small for two
    ray.init(address=address, include_dashboard=False, log_to_driver=False)
    cpus = min(1.0, ray.cluster_resources()["CPU"] / max(workers))
    print(f"{'workers':>7}{'env steps':>10}{'seconds':>9}{'a second':>9}{'age':>6}{'return':>8}")
    for num_workers in workers:
        result = train(num_workers, Settings(**options), cpus)
        print(
            f"{num_workers:>7}{result.steps:>10,}{result.seconds:>9.1f}"
            f"{result.steps / result.seconds:>9,.0f}{result.staleness:>6.1f}"
            f"{result.mean_return:>8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
