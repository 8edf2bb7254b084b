"""PPO with continuous actions on native HalfCheetah, and its learning curve, in one file.

Proximal policy optimization (https://arxiv.org/abs/1707.06347) with normalized observations and
rewards, on the CPU. MuJoCo steps on threads, from the wheel that is installed; every number is that
of ``gymnasium.make("HalfCheetah-v5")``. ``examples/ppo.py`` explains the update of PPO.

Run it with ``python examples/ppo_half_cheetah.py --plot curve.png``. It needs mujoco and torch, and
matplotlib for the plot. A million steps take a few minutes on two cores.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel
from cartwheel.wrappers import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ENV_ID = "cartwheel/HalfCheetah-v5"
OBSERVATIONS, ACTIONS = 17, 6


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    num_envs: int = 32
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 1_000_000  # of all environments together
    seed: int = 1
    learning_rate: float = 3e-4  # falls linearly to zero over the total steps
    gamma: float = 0.99
    gae_lambda: float = 0.95
    epochs: int = 10
    minibatch_size: int = 64
    clip: float = 0.2
    max_grad_norm: float = 0.5


class Agent:
    """A Gaussian policy, with deviations of its own, and a value function."""

    def __init__(self, observations: int = OBSERVATIONS, actions: int = ACTIONS) -> None:
        """Creates networks with orthogonal weights; the policy's last layer has small ones."""
        self.actor = _network(observations, actions, gain=0.01)  # (…, 17) to means (…, 6)
        self.critic = _network(observations, 1, gain=1.0)  # (…, 17) to (…, 1)
        self.log_deviation = torch.nn.Parameter(torch.full((actions,), -0.5))
        self.parameters = [*self.actor.parameters(), *self.critic.parameters(), self.log_deviation]

    def explore(self, observations: NDArray[np.float32]) -> tuple[Any, dict[str, Any]]:
        """Draws actions (N, 6), and returns their log-probabilities (N,) too."""
        with torch.inference_mode():
            means = self.actor(torch.from_numpy(observations))
            actions = means + self.log_deviation.exp() * torch.randn_like(means)
            return actions, {"log_prob": self.log_prob(means, actions)}

    def exploit(self, observations: NDArray[np.float32]) -> Any:
        """The means of the actions (N, 6)."""
        with torch.inference_mode():
            return self.actor(torch.from_numpy(observations))

    def log_prob(self, means: Any, actions: Any) -> Any:
        """Log-probabilities (M,) of actions (M, 6)."""
        scaled = (actions - means) / self.log_deviation.exp()
        log_density = -0.5 * scaled.square() - self.log_deviation - 0.5 * math.log(2 * math.pi)
        return log_density.sum(-1)

    def values(self, observations: NDArray[np.float32]) -> Any:
        """Values (M, 1) of observations (M, 17)."""
        with torch.inference_mode():
            return self.critic(torch.from_numpy(observations))


def _network(inputs: int, outputs: int, gain: float) -> Any:
    sizes = [(inputs, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]
    layers: list[Any] = []
    for fan_in, fan_out, layer_gain in sizes:
        linear = torch.nn.Linear(fan_in, fan_out)
        torch.nn.init.orthogonal_(linear.weight, layer_gain)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def update(agent: Agent, optimizer: Any, rollout: cartwheel.Rollout, settings: Settings) -> None:
    """Improves the agent by one rollout."""
    # HalfCheetah never terminates: only the time limit ends episodes, and values go on beyond it.
    rollout.set_values(agent.values(rollout.value_inputs()))
    rollout.extras["advantages"], rollout.extras["returns"] = rollout.gae(
        settings.gamma, settings.gae_lambda, bootstrap="truncated"
    )
    rows = rollout.flatten()
    observations, actions = torch.from_numpy(rows.observations), torch.from_numpy(rows.actions)
    old_log_probs, advantages, returns = (
        torch.from_numpy(rows[name]) for name in ("log_prob", "advantages", "returns")
    )
    for _ in range(settings.epochs):
        for batch in torch.randperm(len(rows)).split(settings.minibatch_size):
            log_probs = agent.log_prob(agent.actor(observations[batch]), actions[batch])
            ratio = (log_probs - old_log_probs[batch]).exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            scaled = advantages[batch]
            scaled = (scaled - scaled.mean()) / (scaled.std(correction=0) + 1e-8)
            policy_loss = -torch.minimum(ratio * scaled, clipped * scaled).mean()
            errors = agent.critic(observations[batch]).squeeze(-1) - returns[batch]
            optimizer.zero_grad()
            (policy_loss + 0.5 * errors.square().mean()).backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters, settings.max_grad_norm)
            optimizer.step()


def train(settings: Settings) -> list[tuple[int, float]]:
    """Learns for the total steps; returns steps and the mean return of the last 32 episodes."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    counted = RecordEpisodeStatistics(
        cartwheel.make_vec(ENV_ID, settings.num_envs, autoreset_mode="same_step"), buffer_length=32
    )
    envs = NormalizeReward(NormalizeObservation(counted), settings.gamma)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    collector = cartwheel.Collector(envs, agent.explore, settings.num_steps, seed=settings.seed)
    curve: list[tuple[int, float]] = []
    for steps in range(0, settings.total_steps, settings.num_envs * settings.num_steps):
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (
            1 - steps / settings.total_steps
        )
        update(agent, optimizer, collector.collect(), settings)
        if counted.return_queue:
            curve.append((steps, float(np.mean(counted.return_queue))))
            if len(curve) % 20 == 1:
                seconds = time.perf_counter() - start
                print(f"{steps:>9,} steps{seconds:>7.1f} s{curve[-1][1]:>9.1f}", flush=True)
    envs.close()
    return curve


def plot(
    curve: Sequence[tuple[int, float]],
    path: Path,
    title: str = "PPO on cartwheel/HalfCheetah-v5",
    value: str = "return, last 32 episodes",
) -> None:
    """Draws a learning curve; the ending of the path's name is the format."""
    from matplotlib.figure import Figure  # only the plot needs it

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    steps, returns = zip(*curve, strict=True)
    axes.plot([step / 1000 for step in steps], returns, color="#1b9aaa")
    axes.set_xlabel("environment steps, thousands")
    axes.set_ylabel(value)
    axes.set_title(title, loc="left")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, prints the progress, and draws the learning curve if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    options = vars(parser.parse_args(arguments))
    path = options.pop("plot")
    torch.set_num_threads(1)  # the networks are too small for two
    curve = train(Settings(**options))
    if not curve:
        raise SystemExit("no episode ended: an episode of HalfCheetah has 1,000 steps")
    print(f"mean return of the last episodes: {curve[-1][1]:.1f}")
    if path:
        plot(curve, path)


if __name__ == "__main__":
    main()
