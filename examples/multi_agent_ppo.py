"""PPO for several agents learns simple_spread of MPE2, and prints how long it took.

Three agents have to cover three landmarks without bumping into each other. All of them share one
policy and one value function: ``ParallelVectorEnv.as_rows()`` makes a row of each agent of each
environment, so ``cartwheel.Collector`` and the update are those of a single agent
(https://arxiv.org/abs/2103.01955). Environments run in worker processes.

Run it with ``python examples/multi_agent_ppo.py``; ``--plot FILE.png`` draws the learning curve. It
needs torch and ``pip install 'cartwheel[pettingzoo]' mpe2``.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch.distributions import Categorical

import cartwheel

if TYPE_CHECKING:
    from numpy.typing import NDArray

AGENTS = 3
#: The mean return of an agent in an episode of 25 steps from which on training ends. Agents that
#: act at random have about -27, those that do not move about the same.
GOOD = -15.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    num_envs: int = 64
    num_steps: int = 50  # of every environment, between two updates: two episodes
    total_steps: int = 400_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 2e-3  # falls linearly to zero over the total steps
    gamma: float = 0.95
    gae_lambda: float = 0.95
    epochs: int = 10
    minibatch_size: int = 1200
    clip: float = 0.2
    entropy: float = 0.01
    executor: Literal["auto", "inline", "thread", "process"] = "auto"


def make_env() -> Any:
    """Makes one environment; it is called in the workers."""
    return importlib.import_module("mpe2.simple_spread_v3").parallel_env(max_cycles=25)


class Agent:
    """A policy and a value function, which all agents share.

    The critic learns returns that are normalized by their recent ``mean`` and ``scale``.
    """

    def __init__(self, observations: int, actions: int) -> None:
        """Creates networks of two layers."""
        self.actor, self.critic = _network(observations, actions, 0.01), _network(observations, 1)
        self.mean, self.scale, self.updates = 0.0, 1.0, 0
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]

    def explore(self, observations: NDArray[np.float32]) -> tuple[Any, dict[str, Any]]:
        """Samples actions for the collector; they go into the rollout with the extras."""
        with torch.no_grad():
            chosen = Categorical(logits=self.actor(torch.as_tensor(observations)))
            actions = chosen.sample()
            return actions, {"log_prob": chosen.log_prob(actions)}

    def values(self, observations: NDArray[np.float32]) -> Any:
        """The values of observations."""
        with torch.no_grad():
            values = self.critic(torch.as_tensor(observations))[:, 0].numpy()
            return values * self.scale + self.mean

    def normalize(self, returns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Normalizes returns by their running mean and scale, which they are added to first."""
        self.updates += 1
        share = max(0.1, 1 / self.updates)
        self.mean += share * (float(returns.mean()) - self.mean)
        self.scale += share * (float(returns.std()) + 1e-6 - self.scale)
        return (returns - self.mean) / self.scale


def _network(inputs: int, outputs: int, gain: float = 1.0) -> Any:
    layers: list[Any] = []
    for size, scale in ((64, 2**0.5), (64, 2**0.5), (outputs, gain)):
        layers += [torch.nn.Linear(inputs, size), torch.nn.Tanh()]
        torch.nn.init.orthogonal_(layers[-2].weight, scale)
        torch.nn.init.zeros_(layers[-2].bias)
        inputs = size
    return torch.nn.Sequential(*layers[:-1])


def update(agent: Agent, optimizer: Any, rollout: cartwheel.Rollout, settings: Settings) -> None:
    """Improves the agent by one rollout."""
    rollout.set_values(agent.values(rollout.value_inputs()))
    advantages, returns = rollout.gae(settings.gamma, settings.gae_lambda)
    rollout.extras["advantages"] = advantages
    rollout.extras["returns"] = agent.normalize(returns)
    for epoch in range(settings.epochs):
        for batch in rollout.minibatches(settings.minibatch_size, seed=epoch):
            observations = torch.as_tensor(batch.observations)
            chosen = Categorical(logits=agent.actor(observations))
            actions, before = torch.as_tensor(batch.actions), torch.as_tensor(batch["log_prob"])
            gain, wanted = (
                torch.as_tensor(batch[name], dtype=torch.float32)
                for name in ("advantages", "returns")
            )
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            ratio = (chosen.log_prob(actions) - before).exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            error = (agent.critic(observations)[:, 0] - wanted).pow(2).mean()
            loss = 0.5 * error - torch.minimum(ratio * gain, clipped * gain).mean()
            loss = loss - settings.entropy * chosen.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters, 0.5)
            optimizer.step()


def train(settings: Settings) -> list[tuple[int, float]]:
    """Trains; returns the steps of all environments and the mean return of an agent after them."""
    torch.manual_seed(settings.seed)
    envs = cartwheel.ParallelVectorEnv(
        [make_env] * settings.num_envs, autoreset_mode="same_step", executor=settings.executor
    )
    rows: Any = envs.as_rows()
    agent = Agent(rows.single_observation_space.shape[0], rows.single_action_space.n)
    optimizer = torch.optim.Adam(agent.parameters, settings.learning_rate, eps=1e-5)
    collector = cartwheel.Collector(
        rows, agent.explore, settings.num_steps, seed=settings.seed, progress=False
    )
    curve: list[tuple[int, float]] = []
    steps, recent = 0, -np.inf
    while steps < settings.total_steps and recent < GOOD:
        rollout = collector.collect()
        steps += settings.num_envs * settings.num_steps
        curve.append((steps, float(rollout.episodes(complete_only=True).returns.mean())))
        recent = float(np.mean([value for _, value in curve[-5:]]))
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * max(0.0, 1 - steps / settings.total_steps)
        update(agent, optimizer, rollout, settings)
        if len(curve) % 10 == 0:
            print(f"{steps:9,} steps: mean return {recent:6.1f}", flush=True)
    envs.close()
    return curve


def plot(curve: list[tuple[int, float]], path: str) -> None:
    """Draws the learning curve."""
    figure = importlib.import_module("matplotlib.figure").Figure((6, 3.4), layout="constrained")
    axes = figure.subplots()
    steps, returns = zip(*curve, strict=True)
    axes.plot([step / 1000 for step in steps], returns, color="#1b9aaa")
    axes.axhline(GOOD, linestyle=":", color="gray")
    axes.set_xlabel("environment steps, thousands")
    axes.set_ylabel("mean return of an agent")
    axes.set_title("PPO on simple_spread: three agents, one policy", loc="left")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Trains with the settings of the command line, and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--executor", default=Settings.executor)
    parser.add_argument("--plot", metavar="FILE", help="draw the learning curve")
    arguments = vars(parser.parse_args())
    path = arguments.pop("plot")
    torch.set_num_threads(1)  # the networks are small: more threads are slower
    start = time.perf_counter()
    curve = train(Settings(**arguments))
    print(f"{curve[-1][0]:,} steps in {time.perf_counter() - start:.1f} s")
    if path is not None:
        plot(curve, path)


if __name__ == "__main__":
    main()
