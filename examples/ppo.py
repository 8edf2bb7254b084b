"""PPO in one file: learns CartPole in each autoreset mode, and prints how long it took.

Proximal policy optimization (https://arxiv.org/abs/1707.06347) with generalized advantage
estimation (https://arxiv.org/abs/1506.02438), for native environments, on the CPU or, with
``--device cuda``, on a GPU, which pays off only for larger networks than these.

The autoreset modes differ in two things only: which rows of a rollout are transitions, and where
the true next observation of a row is found. The rollouts of ``cartwheel.Collector`` know both, so
the code is the same in every mode. Without this, mistakes would be silent: PPO would still learn
something. ``examples/autoreset_modes.py`` shows the differences, written by hand.

``--order free`` lets rows step while the policy works for others. Each rollout is still made by one
policy, as PPO needs it: with ``run_ahead=0``, the collector's default, no row begins a rollout
before the update.

Run it with ``python examples/ppo.py``, or with ``--env-id`` on another environment with arrays as
observations and ``Discrete`` actions. It needs torch. ``examples/learning_curves.py`` draws its
learning curves.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import CollectOrder, ModeName

ENV_ID = "cartwheel/CartPole-v1"
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
ORDERS: tuple[CollectOrder, ...] = ("lockstep", "groups", "free", "auto")
SOLVED = 475.0  # the reward threshold of Gymnasium's registry; the maximum return is 500


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    env_id: str = ENV_ID  # observations are arrays, actions are Discrete
    num_envs: int = 32
    num_steps: int = 64  # of every environment, between two updates
    total_steps: int = 300_000  # of all environments together; then training stops
    seed: int = 1
    learning_rate: float = 3e-3  # falls linearly to zero over the total steps
    gamma: float = 0.99
    gae_lambda: float = 0.95
    bootstrap: str = "truncated"  # "never" shows why the value beyond a time limit matters
    epochs: int = 5
    minibatch_size: int = 512
    clip: float = 0.2
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5
    order: CollectOrder = "lockstep"  # in which the collector asks the policy
    device: str = "cpu"  # of the networks


class Agent:
    """A policy and a value function, which share no weights."""

    def __init__(self, device: str = "cpu", observations: int = 4, actions: int = 2) -> None:
        """Creates networks with orthogonal weights; the policy's last layer has small ones."""
        self.device = device
        # (…, 4) to the logits of pushing left and right
        self.actor = _network(observations, actions, gain=0.01).to(device)
        self.critic = _network(observations, 1, gain=1.0).to(device)  # (…, 4) to (…, 1)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]

    def tensor(self, values: Any) -> Any:
        """An array, or a tensor as it is, as a tensor of the networks' device."""
        return torch.as_tensor(values, device=self.device)

    def explore(self, observations: Any) -> tuple[Any, dict[str, Any]]:
        """Draws actions (N,), and returns their log-probabilities too."""
        with torch.inference_mode():
            log_probs = self.actor(self.tensor(observations)).log_softmax(-1)  # (N, 2)
            actions = torch.multinomial(log_probs.exp(), 1)
            return actions.squeeze(-1), {"log_prob": log_probs.gather(-1, actions).squeeze(-1)}

    def exploit(self, observations: NDArray[np.float32]) -> Any:
        """The best actions (N,)."""
        with torch.inference_mode():
            return self.actor(self.tensor(observations)).argmax(-1).cpu()

    def values(self, observations: NDArray[np.float32]) -> Any:
        """Values (M, 1) of observations (M, 4)."""
        with torch.inference_mode():
            return self.critic(self.tensor(observations)).cpu()


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
    # `gae` uses two different masks. A termination ends the value, since nothing comes after it.
    # Either flag ends the sum, since the next row belongs to another episode. A truncated episode
    # would have continued, so its value is the critic's value of its last observation. The
    # observation does not contain the time: with zero instead (`--bootstrap never`) the same
    # upright pole would have a value of 1 just before the limit and almost 100 long before it.
    rollout.set_values(agent.values(rollout.value_inputs()))
    rollout.extras["advantages"], rollout.extras["returns"] = rollout.gae(
        settings.gamma, settings.gae_lambda, bootstrap=settings.bootstrap
    )
    # From here on there are only transitions: other rows affect no loss, mean or deviation.
    rows = rollout.flatten()
    observations = agent.tensor(rows.observations)  # (M, 4)
    actions = agent.tensor(rows.actions).unsqueeze(-1)
    old_log_probs, advantages, returns = (
        agent.tensor(rows[name]) for name in ("log_prob", "advantages", "returns")
    )
    for _ in range(settings.epochs):
        order = torch.randperm(len(rows)).to(agent.device)
        for batch in order.split(settings.minibatch_size):
            log_probs = agent.actor(observations[batch]).log_softmax(-1)
            log_probs = log_probs.gather(-1, actions[batch]).squeeze(-1)
            ratio = (log_probs - old_log_probs[batch]).exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            scaled = advantages[batch]
            scaled = (scaled - scaled.mean()) / (scaled.std(correction=0) + 1e-8)
            policy_loss = -torch.minimum(ratio * scaled, clipped * scaled).mean()
            errors = agent.critic(observations[batch]).squeeze(-1) - returns[batch]
            loss = policy_loss + settings.value_coefficient * errors.square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters, settings.max_grad_norm)
            optimizer.step()


def play(agent: Agent, seed: int, env_id: str = ENV_ID) -> float:
    """Mean return of the best actions, in 100 episodes of new environments."""
    envs = cartwheel.make_vec(env_id, 20, autoreset_mode="disabled")
    evaluation = cartwheel.evaluate(
        envs, agent.exploit, episodes_per_env=5, seed=seed, progress=False
    )
    envs.close()
    return evaluation.mean_return


def threshold(env_id: str) -> float:
    """The return of a solved environment, from Gymnasium's registry."""
    found = gym.spec(env_id).reward_threshold
    if found is None:
        raise ValueError(f"{env_id} has no reward threshold in Gymnasium's registry.")
    return found


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
    solved = threshold(settings.env_id)
    envs: Any = cartwheel.make_vec(settings.env_id, settings.num_envs, autoreset_mode=mode)
    spaces = envs.single_observation_space, envs.single_action_space
    agent = Agent(settings.device, spaces[0].shape[0], int(spaces[1].n))
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    collector = cartwheel.Collector(
        envs,
        agent.explore,
        settings.num_steps,
        seed=settings.seed,
        order=settings.order,
        device=None if settings.device == "cpu" else settings.device,  # arrays, or tensors there
    )
    evaluation_seed = settings.seed + settings.num_envs  # the rows' seeds are those before it
    evaluation, steps = -np.inf, 0
    returns: collections.deque[float] = collections.deque(maxlen=100)  # the last episodes'
    curve: list[tuple[int, float]] = []
    while steps < settings.total_steps and evaluation < solved:
        remaining = 1 - steps / settings.total_steps
        optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
        rollout = collector.collect()
        update(agent, optimizer, rollout, settings)
        steps += int(rollout.valid.sum())
        returns.extend(rollout.episodes(complete_only=True).returns)
        if returns:
            curve.append((steps, float(np.mean(returns))))
            if len(curve) % 5 == 1:
                seconds = time.perf_counter() - start
                print(
                    f"{mode:<11}{steps:>8,} steps{seconds:>7.1f} s{curve[-1][1]:>8.1f}", flush=True
                )
            if len(returns) == 100 and curve[-1][1] >= solved:
                evaluation = play(agent, evaluation_seed, settings.env_id)
    if evaluation < solved:
        evaluation = play(agent, evaluation_seed, settings.env_id)
    envs.close()
    return Result(mode, steps, time.perf_counter() - start, evaluation, curve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains in the selected modes and prints a table."""
    parser = argparse.ArgumentParser(description="PPO on CartPole in each autoreset mode.")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--order", choices=ORDERS, default=Settings.order)
    parser.add_argument("--env-id", default=Settings.env_id)
    parser.add_argument("--device", default=Settings.device)
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--bootstrap", choices=["truncated", "never"], default=Settings.bootstrap)
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
    solved = threshold(settings.env_id)
    unsolved = [result.mode for result in results if result.evaluation < solved]
    if unsolved:
        raise SystemExit(f"a mean return of {solved:g} was not reached in: {', '.join(unsolved)}")


if __name__ == "__main__":
    main()
