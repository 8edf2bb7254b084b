"""PPO on rollouts of several actors of Ray; prints the speed with 1, 2 and 4 of them.

The networks and the update are those of ``examples/ppo.py``, and so is the loop. What changes is
the line that makes the collector: ``RolloutWorkers`` instead of ``Collector``. It publishes the
agent's weights before each rollout, and joins the rollouts of all workers, so all rows are of the
newest weights. The rows are divided among the workers: a rollout is as large with four as with one.

Run it with ``python -m examples.trainers.ray_ppo``. It needs torch and Ray.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
import torch

import cartwheel
from cartwheel.ray import RolloutWorkers, worker_info
from examples import ppo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Policy:
    """The agent of a worker, with the weights of the learner."""

    def __init__(self) -> None:
        """Creates the networks, and random numbers that no other worker draws."""
        worker = worker_info()
        torch.set_num_threads(1)
        if worker is not None and worker.seed is not None:
            torch.manual_seed(worker.seed)
        self.agent = ppo.Agent()

    def set_weights(self, weights: dict[str, Any]) -> None:
        """Takes the weights of the learner's actor."""
        self.agent.actor.load_state_dict(weights)

    def __call__(self, observations: NDArray[np.float32]) -> tuple[Any, dict[str, Any]]:
        """Draws actions (N,), and returns their log-probabilities too."""
        return self.agent.explore(observations)


@dataclasses.dataclass
class Result:
    """The result of training with some workers."""

    num_workers: int
    steps: int  # of all environments together, without those that only reset
    seconds: float  # of collecting and learning
    collecting: float  # seconds of it in which the learner waited for rollouts
    evaluation: float  # mean return of `ppo.play`
    curve: list[float]  # mean return of the last 100 episodes, after each rollout


def train(num_workers: int, settings: ppo.Settings, num_cpus: float = 1) -> Result:
    """Learns until the last 100 episodes solve the environment, or the steps are used up."""
    torch.manual_seed(settings.seed)
    num_envs = settings.num_envs // num_workers
    agent = ppo.Agent()
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    with RolloutWorkers(
        lambda: cartwheel.make_vec(ppo.ENV_ID, num_envs),
        Policy,
        num_workers,
        settings.num_steps,
        seed=settings.seed,
        weights=agent.actor.state_dict,
        num_cpus=num_cpus,
    ) as collector:
        start, steps, curve = time.perf_counter(), 0, [0.0]
        returns: collections.deque[float] = collections.deque(maxlen=100)
        while steps < settings.total_steps and curve[-1] < ppo.SOLVED:
            remaining = 1 - steps / settings.total_steps
            optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
            rollout = collector.collect()
            ppo.update(agent, optimizer, rollout, settings)
            steps += int(rollout.valid.sum())
            returns.extend(rollout.episodes(complete_only=True).returns)
            curve.append(float(np.mean(returns)) if returns else 0.0)
        seconds, waited = time.perf_counter() - start, collector.stats().waited
    evaluation = ppo.play(agent, settings.seed + settings.num_envs)
    return Result(num_workers, steps, seconds, waited, evaluation, curve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains with each number of workers and prints a table."""
    parser = argparse.ArgumentParser(description="PPO on CartPole with actors of Ray.")
    parser.add_argument("--num-workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--address", default="local", help="of the cluster; by default a new one")
    parser.add_argument("--seed", type=int, default=ppo.Settings.seed)
    parser.add_argument("--total-steps", type=int, default=ppo.Settings.total_steps)
    options = vars(parser.parse_args(arguments))
    workers, address = options.pop("num_workers"), options.pop("address")
    torch.set_num_threads(1)  # the networks are too small for two
    ray.init(address=address, include_dashboard=False, log_to_driver=False)
    cpus = min(1.0, ray.cluster_resources()["CPU"] / max(workers))
    print(f"{'workers':>7}{'env steps':>10}{'seconds':>9}{'a second':>9}{'waited':>8}{'return':>8}")
    for num_workers in workers:
        result = train(num_workers, ppo.Settings(**options), cpus)
        print(
            f"{num_workers:>7}{result.steps:>10,}{result.seconds:>9.1f}"
            f"{result.steps / result.seconds:>9,.0f}{result.collecting:>8.1f}"
            f"{result.evaluation:>8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
