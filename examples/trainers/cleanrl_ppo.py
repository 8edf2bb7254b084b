"""PPO in CleanRL's style: one file, a loop over arrays, and vector environments in SAME_STEP.

CleanRL's scripts were written for Gymnasium 0.29. What changes in them is marked ``CHANGED`` here:
the line that makes the environments, and the lines that read returns of episodes. Training is
CleanRL's: no value of a truncated episode is bootstrapped (``examples/ppo.py`` does that).

Run it with ``python examples/trainers/cleanrl_ppo.py``. It needs torch, and half a minute.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

import cartwheel
from cartwheel.wrappers import RecordEpisodeStatistics

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    env_id: str = "CartPole-v1"
    num_envs: int = 8
    num_steps: int = 128  # of every environment, between two updates
    total_steps: int = 120_000
    seed: int = 1
    learning_rate: float = 2.5e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    epochs: int = 4
    minibatches: int = 4
    clip: float = 0.2
    entropy: float = 0.01


def python_envs(settings: Settings, **keywords: Any) -> VectorEnv[Any, Any, Any]:
    """Any Gymnasium environment, with CleanRL's wrapper for returns around each."""

    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.RecordEpisodeStatistics(gym.make(settings.env_id))

    # CHANGED: was gym.vector.SyncVectorEnv([...])
    return cartwheel.VectorEnv([make] * settings.num_envs, autoreset_mode="same_step", **keywords)


def native_envs(settings: Settings) -> VectorEnv[Any, Any, Any]:
    """Environments in Rust, with one wrapper around all."""
    # CHANGED: a native environment has no wrappers of its own
    return RecordEpisodeStatistics(
        cartwheel.make_vec(
            f"cartwheel/{settings.env_id}", settings.num_envs, autoreset_mode="same_step"
        )
    )


def episodes(infos: dict[str, Any]) -> list[tuple[float, int]]:
    """Returns and lengths of the episodes that ended in a step."""
    # CHANGED: was `for info in infos["final_info"]: if info and "episode" in info: …`
    told = infos.get("final_info", {}) if "episode" not in infos else infos
    if "episode" not in told:
        return []
    rows = np.flatnonzero(told["_episode"])
    returns, lengths = (told["episode"][key][rows].tolist() for key in ("r", "l"))
    return list(zip(returns, lengths, strict=True))


class Agent(torch.nn.Module):
    """CleanRL's two networks for arrays as observations and discrete actions."""

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Makes orthogonal layers; the policy's last one has small weights."""
        super().__init__()
        shape, actions = envs.single_observation_space.shape, envs.single_action_space
        assert shape is not None
        assert isinstance(actions, gym.spaces.Discrete)
        size = int(np.prod(shape))
        self.critic = _network(size, 1, 1.0)
        self.actor = _network(size, int(actions.n), 0.01)

    def act(self, observations: Any, actions: Any = None) -> tuple[Any, Any, Any, Any]:
        """Actions, their log-probabilities, the policy's entropy, and values."""
        policy = torch.distributions.Categorical(logits=self.actor(observations))
        actions = policy.sample() if actions is None else actions
        values = self.critic(observations).squeeze(-1)
        return actions, policy.log_prob(actions), policy.entropy(), values


def train(envs: VectorEnv[Any, Any, Any], settings: Settings) -> list[tuple[float, int]]:
    """Trains a new agent; returns the returns and lengths of all episodes, in their order."""
    torch.manual_seed(settings.seed)
    generator = np.random.default_rng(settings.seed)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), settings.learning_rate, eps=1e-5)
    steps, rows = settings.num_steps, settings.num_envs
    seen: Any = torch.zeros((steps, rows, *(envs.single_observation_space.shape or ())))
    taken = torch.zeros((steps, rows), dtype=torch.int64)
    log_probs, rewards, dones, values = torch.zeros((4, steps, rows)).unbind()
    found: list[tuple[float, int]] = []
    shown, done = torch.as_tensor(envs.reset(seed=settings.seed)[0]), torch.zeros(rows)
    updates = settings.total_steps // (steps * rows)
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1 - update / updates)
        for step in range(steps):
            seen[step], dones[step] = shown, done
            with torch.no_grad():
                taken[step], log_probs[step], _, values[step] = agent.act(shown)
            observations, reward, terminations, truncations, infos = envs.step(taken[step].numpy())
            rewards[step] = torch.as_tensor(reward)
            done = torch.as_tensor(terminations | truncations, dtype=torch.float32)
            shown = torch.as_tensor(observations)
            found += episodes(infos)
        with torch.no_grad():
            advantages = _advantages(
                rewards, values, dones, agent.critic(shown).squeeze(-1), done, settings
            )
        batch = [part.flatten(0, 1) for part in (seen, taken, log_probs, advantages, values)]
        for _ in range(settings.epochs):
            for chosen in np.array_split(generator.permutation(steps * rows), settings.minibatches):
                optimizer.zero_grad()
                _add_gradients(agent, [part[chosen] for part in batch], settings)
                torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return found


def _network(inputs: int, outputs: int, gain: float) -> Any:
    layers = [torch.nn.Linear(*sizes) for sizes in ((inputs, 64), (64, 64), (64, outputs))]
    for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
        torch.nn.init.orthogonal_(layer.weight, scale)
        torch.nn.init.zeros_(layer.bias)
    tanh = torch.nn.Tanh
    return torch.nn.Sequential(layers[0], tanh(), layers[1], tanh(), layers[2])


def _advantages(
    rewards: Any, values: Any, dones: Any, last_values: Any, last_done: Any, settings: Settings
) -> Any:
    """Generalized advantages; a done flag is that of the observation which it came with."""
    advantages, following = torch.zeros_like(rewards), torch.zeros_like(last_values)
    for step in reversed(range(len(rewards))):
        last = step == len(rewards) - 1
        going = 1 - (last_done if last else dones[step + 1])
        beyond = last_values if last else values[step + 1]
        delta = rewards[step] + settings.gamma * beyond * going - values[step]
        following = delta + settings.gamma * settings.gae_lambda * going * following
        advantages[step] = following
    return advantages


def _add_gradients(agent: Agent, minibatch: list[Any], settings: Settings) -> None:
    """Computes the gradients of PPO's loss."""
    seen, taken, before, gains, values = minibatch
    clip = settings.clip
    _, log_probs, entropy, now = agent.act(seen, taken)
    ratio = (log_probs - before).exp()
    normal = (gains - gains.mean()) / (gains.std() + 1e-8)
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy = torch.max(-normal * ratio, -normal * clipped).mean()
    squared = (now - (gains + values)).square()
    moved = values + (now - values).clamp(-clip, clip) - (gains + values)
    value = 0.5 * torch.max(squared, moved.square()).mean()
    (policy + 0.5 * value - settings.entropy * entropy.mean()).backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--native", action="store_true", help="environments in Rust")
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # more threads are slower with networks as small as these
    settings = Settings(total_steps=arguments.total_steps)
    envs = native_envs(settings) if arguments.native else python_envs(settings)
    start = time.perf_counter()
    returns = [each for each, _ in train(envs, settings)]
    envs.close()
    print(f"{settings.total_steps / (time.perf_counter() - start):,.0f} steps a second")
    print(f"{len(returns)} episodes; mean return of the last 20: {np.mean(returns[-20:]):.0f}")
