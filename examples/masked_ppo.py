"""PPO with masks of actions learns Taxi, and prints how long it took.

In Taxi five of six actions often have no effect, or cost ten points. The environment shows in every
step which actions change something, and ``envs.action_masks()`` has these masks for all rows. A
policy with a parameter ``action_masks`` gets them from ``cartwheel.Collector`` and
``cartwheel.evaluate``, and the rollout keeps them for the update: logits of actions that are not
allowed are lowered until their probability is zero (https://arxiv.org/abs/2006.14171).

Run it with ``python examples/masked_ppo.py``; ``--no-masks`` shows the difference. It needs torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.distributions import Categorical

import cartwheel

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENV_ID = "cartwheel/Taxi-v4"
STATES, ACTIONS = 500, 6
#: The mean return of 64 episodes from which on Taxi counts as solved; the best is about 7.9.
SOLVED = 7.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    masks: bool = True
    num_envs: int = 64
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 600_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 0.1
    gamma: float = 0.98
    gae_lambda: float = 0.95
    epochs: int = 4
    minibatch_size: int = 1024
    clip: float = 0.2
    entropy: float = 0.01


class Agent:
    """A table of logits and values, one row for each state of the taxi."""

    def __init__(self, settings: Settings) -> None:
        """Begins with equal probabilities."""
        self.logits = torch.nn.Embedding(STATES, ACTIONS)
        self.values = torch.nn.Embedding(STATES, 1)
        for table in (self.logits, self.values):
            torch.nn.init.zeros_(table.weight)
        self.parameters = [self.logits.weight, self.values.weight]
        self._masks = settings.masks

    def distribution(self, states: Any, masks: Any) -> Categorical:
        """The distribution of actions, ``[N]``."""
        logits = self.logits(torch.as_tensor(states))
        if self._masks:
            logits = logits.masked_fill(~torch.as_tensor(masks), -1e9)
        return Categorical(logits=logits)

    def explore(
        self, states: NDArray[np.int64], action_masks: NDArray[np.bool_]
    ) -> tuple[Any, dict[str, Any]]:
        """Samples actions for the collector; they go into the rollout with the extras."""
        with torch.no_grad():
            chosen = self.distribution(states, action_masks)
            actions = chosen.sample()
            return actions, {"log_prob": chosen.log_prob(actions)}

    def best(self, states: NDArray[np.int64], action_masks: NDArray[np.bool_]) -> Any:
        """The most probable actions, for the evaluation."""
        with torch.no_grad():
            return self.distribution(states, action_masks).probs.argmax(-1)

    def critic(self, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """The value of each state."""
        with torch.no_grad():
            values: NDArray[np.float32] = self.values(torch.as_tensor(states))[:, 0].numpy()
        return values


def update(agent: Agent, optimizer: Any, batch: Any, settings: Settings) -> None:
    """Takes one step of gradient descent on a minibatch."""
    states = torch.as_tensor(batch.observations)
    chosen = agent.distribution(states, batch["action_masks"])
    actions, before = (torch.as_tensor(part) for part in (batch.actions, batch["log_prob"]))
    advantages, returns = (
        torch.as_tensor(batch[name], dtype=torch.float32) for name in ("advantages", "returns")
    )
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = (chosen.log_prob(actions) - before).exp()
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
    error = (agent.values(states)[:, 0] - returns).pow(2).mean()
    loss = 0.5 * error - gain - settings.entropy * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(settings: Settings) -> tuple[int, float]:
    """Trains until the evaluation counts as solved; returns steps and the last mean return."""
    torch.manual_seed(settings.seed)
    envs = cartwheel.make_vec(ENV_ID, settings.num_envs)
    agent = Agent(settings)
    optimizer = torch.optim.Adam(agent.parameters, settings.learning_rate)
    collector = cartwheel.Collector(envs, agent.explore, settings.num_steps, seed=settings.seed)
    steps, mean_return = 0, -np.inf
    while steps < settings.total_steps and mean_return < SOLVED:
        rollout = collector.collect()
        steps += int(rollout.valid.sum())
        rollout.set_values(agent.critic(rollout.value_inputs()))
        rollout.extras["advantages"], rollout.extras["returns"] = rollout.gae(
            gamma=settings.gamma, gae_lambda=settings.gae_lambda
        )
        for epoch in range(settings.epochs):
            for batch in rollout.minibatches(settings.minibatch_size, seed=epoch):
                update(agent, optimizer, batch, settings)
        if collector.stats().rollouts % 10 == 0:
            evaluation = cartwheel.evaluate(envs, agent.best, seed=settings.seed, progress=False)
            mean_return = float(evaluation.mean_return)
            collector.reset(seed=settings.seed + steps)
            print(f"{steps:8,} steps: mean return {mean_return:7.1f}")
    envs.close()
    return steps, mean_return


def main() -> None:
    """Trains with the settings of the command line, and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-masks", dest="masks", action="store_false")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    torch.set_num_threads(1)  # the tables are small: more threads are slower
    start = time.perf_counter()
    steps, mean_return = train(Settings(**vars(parser.parse_args())))
    solved = "solved" if mean_return >= SOLVED else "not solved"
    print(f"{steps:,} steps in {time.perf_counter() - start:.1f} s: {solved}")


if __name__ == "__main__":
    main()
