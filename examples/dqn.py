"""DQN in one file: learns CartPole from a replay buffer in each autoreset mode.

Deep Q-learning (https://www.nature.com/articles/nature14236) with double estimators
(https://arxiv.org/abs/1509.06461) and returns of several steps, for native environments, on the
CPU.

A replay buffer needs two things that are not columns of a rollout: the true next observation of
every transition, which the next row does not show if an episode ended, and the discount of its
value. ``Rollout.transitions`` gives both, so the code is the same in every autoreset mode.
``examples/autoreset_modes.py`` shows the differences, written by hand.

With ``--order free`` no row waits for another: a rollout is of the first half of the rows to have
their steps (``columns``). A replay buffer does not mind whose steps come first, and the collector
drops none, so it holds no more of the rows that are fast.

Run it with ``python examples/dqn.py``. It needs torch. ``examples/learning_curves.py`` draws its
learning curves.
"""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import CollectOrder, ModeName
    from cartwheel.rollouts import Transitions

ENV_ID = "cartwheel/CartPole-v1"
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
ORDERS: tuple[CollectOrder, ...] = ("lockstep", "groups", "free")
SOLVED = 475.0  # the reward threshold of Gymnasium's registry; the maximum return is 500


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of DQN."""

    num_envs: int = 8
    num_steps: int = 32  # of every environment, before each round of updates
    total_steps: int = 150_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 1e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    n_step: int = 3  # rewards that a target adds up before it bootstraps
    capacity: int = 100_000  # transitions of the replay buffer
    learning_starts: int = 1_000  # transitions collected before the first update
    updates: int = 64  # for a rollout of all environments; half as many for one of half of them
    batch_size: int = 128
    target_rate: float = 0.01  # how far the target network follows in each update
    final_epsilon: float = 0.02  # share of random actions in the end
    exploration: float = 0.1  # share of the total steps in which epsilon falls from 1
    order: CollectOrder = "lockstep"  # in which the collector asks the policy


class Replay:
    """The latest transitions; a new one replaces the oldest."""

    def __init__(self, capacity: int) -> None:
        """An empty buffer."""
        self.capacity, self.added = capacity, 0
        self.observations, self.next_observations = torch.empty(2, capacity, 4)
        self.actions = torch.empty(capacity, dtype=torch.int64)
        self.rewards, self.discounts = torch.empty(2, capacity)

    def add(self, transitions: Transitions) -> None:
        """Adds the transitions of a rollout, oldest first."""
        places = (self.added + torch.arange(len(transitions))) % self.capacity
        for name in ("observations", "actions", "rewards", "next_observations", "discounts"):
            column = getattr(self, name)
            column[places] = torch.from_numpy(getattr(transitions, name)).to(column.dtype)
        self.added += len(transitions)

    def sample(self, size: int) -> tuple[Any, ...]:
        """Transitions drawn at random, with replacement."""
        drawn = torch.randint(min(self.added, self.capacity), (size,))
        return (
            self.observations[drawn],
            self.actions[drawn],
            self.rewards[drawn],
            self.next_observations[drawn],
            self.discounts[drawn],
        )


class Agent:
    """A network for the values of the two actions, and an epsilon-greedy policy."""

    def __init__(self) -> None:
        """Creates the network and its copy, which computes targets and follows slowly."""
        self.online = torch.nn.Sequential(  # (…, 4) to the values of pushing left and right
            torch.nn.Linear(4, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 2),
        )
        self.target = copy.deepcopy(self.online).requires_grad_(requires_grad=False)
        self.epsilon = 1.0

    def explore(self, observations: NDArray[np.float32]) -> Any:
        """The best actions (N,), but each with probability ``epsilon`` a random one."""
        best = self.exploit(observations)
        random = torch.rand(len(best)) < self.epsilon
        return torch.where(random, torch.randint(2, best.shape), best)

    def exploit(self, observations: NDArray[np.float32]) -> Any:
        """The best actions (N,)."""
        with torch.inference_mode():
            return self.online(torch.from_numpy(observations)).argmax(-1)

    def loss(self, batch: tuple[Any, ...]) -> Any:
        """The Huber loss between the values and their targets."""
        observations, actions, rewards, next_observations, discounts = batch
        with torch.no_grad():
            # One network chooses the action and the other one gives its value, because the largest
            # of several noisy values is too large. The discount is 0 after a termination, but not
            # after a time limit, where the episode would have continued.
            best = self.online(next_observations).argmax(-1, keepdim=True)
            after = self.target(next_observations).gather(-1, best).squeeze(-1)
            targets = rewards + discounts * after
        values = self.online(observations).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        return torch.nn.functional.smooth_l1_loss(values, targets)


def update(agent: Agent, optimizer: Any, replay: Replay, updates: int, settings: Settings) -> None:
    """Improves the agent by some batches of the replay buffer."""
    for _ in range(updates):
        loss = agent.loss(replay.sample(settings.batch_size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for target, online in zip(
                agent.target.parameters(), agent.online.parameters(), strict=True
            ):
                target.lerp_(online, settings.target_rate)


def play(agent: Agent, seed: int) -> float:
    """Mean return of the best actions, in 100 episodes of new environments."""
    envs = cartwheel.make_vec(ENV_ID, 20, autoreset_mode="disabled")
    evaluation = cartwheel.evaluate(
        envs, agent.exploit, episodes_per_env=5, seed=seed, progress=False
    )
    envs.close()
    return evaluation.mean_return


@dataclasses.dataclass
class Result:
    """The result of training in one mode."""

    mode: ModeName
    steps: int  # of all environments together, without those that only reset
    seconds: float  # everything: collecting, learning, evaluating
    evaluation: float  # mean return of `play`
    curve: list[tuple[int, float]]  # steps, mean return of the last 100 episodes


def train(mode: ModeName, settings: Settings) -> Result:
    """Learns until the environment is solved, or the total steps are used up."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    envs = cartwheel.make_vec(ENV_ID, settings.num_envs, autoreset_mode=mode)
    agent, replay = Agent(), Replay(settings.capacity)
    optimizer = torch.optim.Adam(agent.online.parameters(), fused=True)
    columns = None if settings.order == "lockstep" else settings.num_envs // 2
    collector = cartwheel.Collector(
        envs,
        agent.explore,
        settings.num_steps,
        seed=settings.seed,
        order=settings.order,
        columns=columns,
    )
    evaluation_seed = settings.seed + settings.num_envs  # the rows' seeds are those before it
    evaluation, steps = 0.0, 0
    returns: collections.deque[float] = collections.deque(maxlen=100)  # the last episodes'
    curve: list[tuple[int, float]] = []
    while steps < settings.total_steps and evaluation < SOLVED:
        done = steps / settings.total_steps
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1 - done)
        agent.epsilon = max(settings.final_epsilon, 1 - done / settings.exploration)
        rollout = collector.collect()
        replay.add(rollout.transitions(n_step=settings.n_step, gamma=settings.gamma))
        if replay.added >= settings.learning_starts:
            updates = settings.updates * rollout.num_envs // settings.num_envs
            update(agent, optimizer, replay, updates, settings)
        steps += int(rollout.valid.sum())
        returns.extend(rollout.episodes(complete_only=True).returns)
        if returns:
            curve.append((steps, float(np.mean(returns))))
            if len(curve) % 20 == 1:
                seconds = time.perf_counter() - start
                print(
                    f"{mode:<11}{steps:>8,} steps{seconds:>7.1f} s{curve[-1][1]:>8.1f}", flush=True
                )
            if len(returns) == 100 and curve[-1][1] >= SOLVED:
                evaluation = play(agent, evaluation_seed)
    if evaluation < SOLVED:
        evaluation = play(agent, evaluation_seed)
    envs.close()
    return Result(mode, steps, time.perf_counter() - start, evaluation, curve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains in the selected modes and prints a table."""
    parser = argparse.ArgumentParser(description="DQN on CartPole in each autoreset mode.")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--order", choices=ORDERS, default=Settings.order)
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--n-step", type=int, default=Settings.n_step)
    options = vars(parser.parse_args(arguments))
    mode = options.pop("mode")
    torch.set_num_threads(1)  # the networks are too small for two

    settings = Settings(**options)
    results = [train(each, settings) for each in (MODES if mode == "all" else (mode,))]
    print(f"\n{'mode':<11}{'env steps':>10}{'seconds':>9}{'last 100':>10}{'evaluation':>12}")
    for result in results:
        last = result.curve[-1][1] if result.curve else float("nan")
        print(
            f"{result.mode:<11}{result.steps:>10,}{result.seconds:>9.1f}{last:>10.1f}"
            f"{result.evaluation:>12.1f}"
        )
    unsolved = [result.mode for result in results if result.evaluation < SOLVED]
    if unsolved:
        raise SystemExit(f"a mean return of {SOLVED:.0f} was not reached in: {', '.join(unsolved)}")


if __name__ == "__main__":
    main()
