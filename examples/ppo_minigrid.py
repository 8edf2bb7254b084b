"""PPO on native MiniGrid, in one file: finds the key, opens the door and reaches the goal.

Proximal policy optimization (https://arxiv.org/abs/1707.06347) on DoorKey-8x8 of the plugin
``cartwheel-minigrid``, on the CPU. Nothing is rewarded before the goal. A state is what the agent
sees: three numbers for each of 49 cells, and its direction. All are categories, so the network gets
them one-hot. It has no memory. The policy has the five actions that the level needs: without
``drop`` and ``done`` chance reaches the goal in 15 % of the episodes, with them in 2 %.

An episode is a success if it reaches the goal before its time limit of 640 steps. Training ends
when 95 % of the last 100 episodes are, and then 95 % of 200 new ones, with actions drawn from the
policy: an agent that only sees a part of the grid, and that remembers nothing, can go in circles
with its best actions.

Run it with ``python examples/ppo_minigrid.py``, or with ``--seeds 1 2 3 --plot curve.png`` to draw
learning curves. It needs cartwheel-minigrid and torch, and matplotlib for the plot.
``examples/ppo.py`` explains the update of PPO.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cartwheel_minigrid  # noqa: F401 - registers the ids
import gymnasium as gym
import numpy as np
import torch

import cartwheel
from cartwheel.wrappers import FilterObservation, TransformAction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LEVEL = "MiniGrid-DoorKey-8x8-v0"
SOLVED = 0.95  # the share of episodes that reach the goal
#: The numbers of objects, colors and states of a cell, and of directions (minigrid.core.constants).
OBJECTS, COLORS, STATES, DIRECTIONS = 11, 6, 3, 4
CELLS = 7 * 7
FEATURES = CELLS * (OBJECTS + COLORS + STATES) + DIRECTIONS
ACTIONS = np.array([0, 1, 2, 3, 5])  # left, right, forward, pickup and toggle


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    level: str = LEVEL
    num_envs: int = 64
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 2_000_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 1e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    gae_lambda: float = 0.95
    epochs: int = 4
    minibatch_size: int = 512
    clip: float = 0.2
    entropy: float = 0.01
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5


def one_hot(observations: dict[str, NDArray[Any]]) -> Any:
    """Images (…, 7, 7, 3) and directions (…,) as a tensor of zeros and ones (…, 984)."""
    image, direction = observations["image"], observations["direction"]
    cells = image.reshape(*image.shape[:-3], CELLS, 3)
    first = np.array([0, OBJECTS, OBJECTS + COLORS])  # of each channel, among the 20 of a cell
    ones = cells + first + np.arange(CELLS)[:, None] * (OBJECTS + COLORS + STATES)
    ones = ones.reshape(*direction.shape, CELLS * 3)
    last = FEATURES - DIRECTIONS + direction.astype(np.int64)
    features = np.zeros((*direction.shape, FEATURES), np.float32)
    np.put_along_axis(features, np.concatenate([ones, last[..., None]], -1), 1.0, -1)
    return torch.from_numpy(features)


class Agent:
    """A policy and a value function, which share two layers."""

    def __init__(self) -> None:
        """Creates the layers with orthogonal weights; the policy's last layer has small ones."""
        relu = torch.nn.ReLU
        self.body = torch.nn.Sequential(
            _layer(FEATURES, 128, 2**0.5), relu(), _layer(128, 64, 2**0.5), relu()
        )
        self.actor, self.critic = _layer(64, len(ACTIONS), 0.01), _layer(64, 1, 1.0)
        layers = (self.body, self.actor, self.critic)
        self.parameters = [weights for layer in layers for weights in layer.parameters()]

    def explore(self, observations: dict[str, NDArray[Any]]) -> tuple[Any, dict[str, Any]]:
        """Draws actions (N,), and returns their log-probabilities too."""
        with torch.inference_mode():
            log_probs = self.actor(self.body(one_hot(observations))).log_softmax(-1)  # (N, 5)
            actions = torch.multinomial(log_probs.exp(), 1)
            return actions.squeeze(-1), {"log_prob": log_probs.gather(-1, actions).squeeze(-1)}

    def values(self, observations: dict[str, NDArray[Any]]) -> Any:
        """Values (M, 1)."""
        with torch.inference_mode():
            return self.critic(self.body(one_hot(observations)))


def _layer(inputs: int, outputs: int, gain: float) -> Any:
    linear = torch.nn.Linear(inputs, outputs)
    torch.nn.init.orthogonal_(linear.weight, gain)
    torch.nn.init.zeros_(linear.bias)
    return linear


def make(settings: Settings, num_envs: int, autoreset_mode: Any = "same_step") -> Any:
    """Environments with five actions, and without the mission, which never changes."""
    env_id = f"cartwheel_minigrid/{settings.level}"
    envs: Any = cartwheel.make_vec(env_id, num_envs, autoreset_mode=autoreset_mode)
    envs = TransformAction(
        FilterObservation(envs, ["image", "direction"]),
        lambda chosen: ACTIONS[np.asarray(chosen)],
        single_action_space=gym.spaces.Discrete(len(ACTIONS)),
    )
    return envs


def update(agent: Agent, optimizer: Any, rollout: cartwheel.Rollout, settings: Settings) -> None:
    """Improves the agent by one rollout."""
    rollout.set_values(agent.values(rollout.value_inputs()))
    rollout.extras["advantages"], rollout.extras["returns"] = rollout.gae(
        settings.gamma, settings.gae_lambda
    )
    rows = rollout.flatten()
    features = one_hot(rows.observations)  # (M, 984)
    actions = torch.as_tensor(rows.actions).unsqueeze(-1)
    old_log_probs, advantages, returns = (
        torch.as_tensor(rows[name]) for name in ("log_prob", "advantages", "returns")
    )
    # Advantages are not divided by their deviation: as long as nothing is rewarded they would be
    # noise of size 1, and the policy would lose its randomness before it has found the goal.
    for _ in range(settings.epochs):
        for batch in torch.randperm(len(rows)).split(settings.minibatch_size):
            hidden = agent.body(features[batch])
            log_probs = agent.actor(hidden).log_softmax(-1)
            entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
            chosen = log_probs.gather(-1, actions[batch]).squeeze(-1)
            ratio, gain = (chosen - old_log_probs[batch]).exp(), advantages[batch]
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            policy_loss = -torch.minimum(ratio * gain, clipped * gain).mean()
            errors = agent.critic(hidden).squeeze(-1) - returns[batch]
            loss = policy_loss + settings.value_coefficient * errors.square().mean()
            optimizer.zero_grad()
            (loss - settings.entropy * entropy).backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters, settings.max_grad_norm)
            optimizer.step()


def play(agent: Agent, settings: Settings, episodes_per_env: int = 4) -> float:
    """Share of successes in 200 episodes of new environments, with drawn actions."""
    envs = make(settings, 50, "disabled")
    evaluation = cartwheel.evaluate(
        envs,
        lambda observations: agent.explore(observations)[0],
        episodes_per_env=episodes_per_env,
        seed=settings.seed + settings.num_envs,  # the rows' seeds are those before it
        progress=False,
    )
    envs.close()
    return float(np.mean(evaluation.returns > 0))  # only the goal is rewarded


@dataclasses.dataclass
class Result:
    """The result of a training."""

    seed: int
    steps: int  # of all environments together
    seconds: float  # everything: collecting, learning, evaluating
    evaluation: float  # share of successes of `play`
    curve: list[tuple[int, float]]  # steps, share of successes in the last 100 episodes


def train(settings: Settings) -> Result:
    """Learns until the level is solved, or the total steps are used up."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    envs = make(settings, settings.num_envs)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    collector = cartwheel.Collector(
        envs, agent.explore, settings.num_steps, seed=settings.seed, progress=False
    )
    evaluation, steps = 0.0, 0
    successes: collections.deque[bool] = collections.deque(maxlen=100)  # of the last episodes
    curve: list[tuple[int, float]] = []
    while steps < settings.total_steps and evaluation < SOLVED:
        remaining = 1 - steps / settings.total_steps
        optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
        rollout = collector.collect()
        update(agent, optimizer, rollout, settings)
        steps += int(rollout.valid.sum())
        successes.extend(rollout.episodes(complete_only=True).returns > 0)
        if len(successes) < 100:
            continue  # the first to end are successes: others take 640 steps
        curve.append((steps, float(np.mean(successes))))
        if len(curve) % 10 == 1:
            seconds = time.perf_counter() - start
            print(f"{steps:>10,} steps{seconds:>7.1f} s{curve[-1][1]:>7.0%}", flush=True)
        if curve[-1][1] >= SOLVED:
            evaluation = play(agent, settings)
    if evaluation < SOLVED:
        evaluation = play(agent, settings)
    envs.close()
    return Result(settings.seed, steps, time.perf_counter() - start, evaluation, curve)


def plot(results: Sequence[Result], path: Path) -> None:
    """Draws a learning curve for each result; the ending of the path's name is the format."""
    from matplotlib.figure import Figure  # only the plot needs it

    ink = "#6e7681"  # readable on a white page and on a black one
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    colors = itertools.cycle(("#1b9aaa", "#e09f3e", "#b5482f"))
    for result, color in zip(results, colors, strict=False):
        steps, shares = zip(*result.curve, strict=True)
        thousands = [step / 1000 for step in steps]
        axes.plot(thousands, shares, color=color, linewidth=1.3, label=f"seed {result.seed}")
        if result.evaluation >= SOLVED:
            axes.plot(thousands[-1], shares[-1], "o", color=color)
    axes.axhline(SOLVED, color=ink, linestyle="dotted", linewidth=1.2)
    axes.set_ylim(0, 1.03)
    axes.set_xlim(left=0)
    axes.set_xlabel("environment steps, thousands", color=ink)
    axes.set_ylabel("successes, last 100 episodes", color=ink)
    axes.set_title("PPO on DoorKey-8x8", loc="left", fontweight="bold", color=ink)
    axes.tick_params(length=0, colors=ink)
    axes.grid(axis="y", color=ink, alpha=0.25, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(ink)
    axes.legend(frameon=False, labelcolor=ink)
    figure.savefig(path, dpi=150, transparent=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains with each seed, prints a table, and draws the learning curves if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default=Settings.level)
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seeds", type=int, nargs="+", default=[Settings.seed])
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    options = vars(parser.parse_args(arguments))
    path, seeds = options.pop("plot"), options.pop("seeds")
    torch.set_num_threads(1)  # the network is too small for two

    results = [train(Settings(seed=seed, **options)) for seed in seeds]
    print(f"\n{'seed':>4}{'env steps':>12}{'seconds':>9}{'last 100':>10}{'evaluation':>12}")
    for result in results:
        last = result.curve[-1][1] if result.curve else float("nan")
        print(
            f"{result.seed:>4}{result.steps:>12,}{result.seconds:>9.1f}{last:>10.0%}"
            f"{result.evaluation:>12.1%}"
        )
    if path and all(result.curve for result in results):
        plot(results, path)
    unsolved = [str(result.seed) for result in results if result.evaluation < SOLVED]
    if unsolved:
        raise SystemExit(f"{SOLVED:.0%} successes were not reached with: {', '.join(unsolved)}")


if __name__ == "__main__":
    main()
