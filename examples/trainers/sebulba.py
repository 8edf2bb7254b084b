"""Sebulba: actor threads with environments of their own, and one learner.

The layout of Podracer's Sebulba (https://arxiv.org/abs/2104.06272, section 2.2) for one machine:
several threads act, each with native environments that step without the GIL, and the main thread
learns. The policy of each actor is a copy of the learner's on the same device, so an actor never
reads weights that are being changed. Rollouts stay in the memory of the host until the learner's
thread moves them to the device. An actor is one rollout ahead at most, so the weights that act are
about one update older than those that learn; V-trace corrects for that (``vtrace_learner.py``).

Run it with ``python -m examples.trainers.sebulba``, with ``--device cuda`` on a machine that has
one. It needs torch.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel
from examples.ppo import ENV_ID, SOLVED
from examples.trainers.vtrace_learner import Agent, Learner, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence


class Exchange:
    """Data that the threads share: the newest weights, and the rollouts that are complete."""

    def __init__(self, num_actors: int, weights: dict[str, Any]) -> None:
        """Lets each actor collect one rollout."""
        self.published = 0, weights  # version and weights; replaced, never changed
        self.rollouts: queue.SimpleQueue[tuple[int, cartwheel.Rollout] | BaseException]
        self.rollouts = queue.SimpleQueue()
        self.room = threading.Semaphore(num_actors)  # for rollouts that are not taken yet
        self.is_over = False

    def take(self) -> tuple[int, cartwheel.Rollout]:
        """Waits for a rollout, with the version of its weights; lets an actor collect another."""
        taken = self.rollouts.get()
        if isinstance(taken, BaseException):
            raise taken
        self.room.release()
        return taken


class Actor(threading.Thread):
    """Collects rollouts in environments of its own until the training is over."""

    def __init__(
        self, index: int, num_envs: int, device: str, settings: Settings, exchange: Exchange
    ) -> None:
        """Makes the environments and the policy; ``index`` decides the seeds."""
        super().__init__(name=f"actor {index}")
        self.agent, self.exchange = Agent(device), exchange
        # The actors are the threads: each steps its environments itself.
        self.envs = cartwheel.make_vec(ENV_ID, num_envs, executor="inline")
        self.collector = cartwheel.Collector(
            self.envs, self.agent, settings.num_steps, seed=settings.seed + index * num_envs
        )

    def run(self) -> None:
        """Collects with the newest weights; an exception goes to the learner."""
        exchange = self.exchange
        try:
            while exchange.room.acquire() and not exchange.is_over:
                version, weights = exchange.published
                self.agent.set_weights(weights)
                exchange.rollouts.put((version, self.collector.collect()))
        except BaseException as error:
            exchange.rollouts.put(error)
        finally:
            self.envs.close()


@dataclasses.dataclass
class Result:
    """The result of training."""

    steps: int  # of all environments together, without those that only reset
    seconds: float
    mean_return: float  # of the last 100 episodes
    staleness: float  # mean number of updates between acting and learning
    curve: list[float]  # mean return of the last 100 episodes, after each rollout


def train(num_actors: int, device: str, settings: Settings) -> Result:
    """Learns until the last 100 episodes solve the environment, or the steps are used up."""
    torch.manual_seed(settings.seed)
    learner = Learner(Agent(device), settings)
    exchange = Exchange(num_actors, learner.agent.weights())
    share = settings.num_envs // num_actors
    actors = [Actor(index, share, device, settings, exchange) for index in range(num_actors)]
    returns: collections.deque[float] = collections.deque(maxlen=100)
    start, curve, ages = time.perf_counter(), [0.0], []
    for actor in actors:
        actor.start()
    try:
        while curve[-1] < SOLVED and learner.steps < settings.total_steps:
            newest, _ = exchange.published
            taken = [exchange.take() for _ in actors]
            learner.learn(*(rollout for _, rollout in taken))
            exchange.published = newest + 1, learner.agent.weights()
            for version, rollout in taken:
                ages.append(newest - version)
                returns.extend(rollout.episodes(complete_only=True).returns)
            curve.append(float(np.mean(returns)) if returns else 0.0)
            if newest % 10 == 0:
                seconds = time.perf_counter() - start
                print(f"{learner.steps:>9,} steps{seconds:>7.1f} s{curve[-1]:>8.1f}", flush=True)
    finally:
        exchange.is_over = True
        exchange.room.release(num_actors)
        for actor in actors:
            actor.join()
    seconds = time.perf_counter() - start
    return Result(learner.steps, seconds, curve[-1], float(np.mean(ages)), curve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and prints the result."""
    parser = argparse.ArgumentParser(description="Actor threads and one learner on CartPole.")
    parser.add_argument("--num-actors", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    options = vars(parser.parse_args(arguments))
    num_actors, device = options.pop("num_actors"), options.pop("device")
    torch.set_num_threads(1)  # the networks are too small for two
    result = train(num_actors, device, Settings(**options))
    print(
        f"{result.mean_return:.1f} after {result.steps:,} steps in {result.seconds:.1f} s, "
        f"{result.steps / result.seconds:,.0f} steps a second, weights {result.staleness:.1f} "
        "updates old"
    )
    if result.mean_return < SOLVED:
        raise SystemExit(f"a mean return of {SOLVED:.0f} was not reached")


if __name__ == "__main__":
    main()
