"""skrl's PPO on native CartPole, with the true next observations of truncated episodes.

skrl's ``wrap_env`` takes the vector environments of cartwheel. Two things make what it records
right: ``SAME_STEP``, and ``TrueNextObservations`` before the agent's class.
``docs/trainers/skrl.md`` explains both.

Run it with ``python examples/trainers/skrl_ppo.py``. It needs skrl, and less than a minute.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

import cartwheel
from cartwheel.skrl import TrueNextObservations
from cartwheel.wrappers import RecordEpisodeStatistics


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of PPO."""

    num_envs: int = 32
    rollouts: int = 64  # steps of every environment between two updates
    timesteps: int = 4_000  # of every environment
    seed: int = 1


class TruePPO(TrueNextObservations, PPO):
    """PPO that bootstraps truncated episodes from their own last observation."""


class Policy(CategoricalMixin, Model):
    """The logits of the actions."""

    def __init__(self, env: Any) -> None:
        """Makes the layers for the spaces of ``env``."""
        Model.__init__(
            self,
            observation_space=env.observation_space,
            action_space=env.action_space,
            device=env.device,
        )
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = _network(self.num_observations, self.num_actions)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Logits of a batch."""
        del role
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    """The value of an observation."""

    def __init__(self, env: Any) -> None:
        """Makes the layers for the spaces of ``env``."""
        Model.__init__(
            self,
            observation_space=env.observation_space,
            action_space=env.action_space,
            device=env.device,
        )
        DeterministicMixin.__init__(self)
        self.net = _network(self.num_observations, 1)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict[str, Any]]:
        """Values of a batch."""
        del role
        return self.net(inputs["observations"]), {}


def train(settings: Settings) -> list[float]:
    """Trains, and returns the returns of all episodes in their order."""
    torch.manual_seed(settings.seed)
    envs = RecordEpisodeStatistics(
        cartwheel.make_vec("cartwheel/CartPole-v1", settings.num_envs, autoreset_mode="same_step"),
        buffer_length=1_000_000,
    )
    env = wrap_env(envs, verbose=False)
    memory = RandomMemory(
        memory_size=settings.rollouts, num_envs=settings.num_envs, device=env.device
    )
    config = PPO_CFG(
        rollouts=settings.rollouts,
        learning_epochs=5,
        mini_batches=4,
        learning_rate=3e-3,
        discount_factor=0.99,
        time_limit_bootstrap=True,
    )
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    agent = TruePPO(
        models={"policy": Policy(env), "value": Value(env)},
        memory=memory,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
        cfg=config,
    )
    trainer = {"timesteps": settings.timesteps, "headless": True, "disable_progressbar": True}
    trainer["close_environment_at_exit"] = False
    SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
    returns = list(envs.return_queue)
    env.close()
    return returns


def _network(inputs: int, outputs: int) -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, outputs),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # more threads are slower with networks as small as these
    settings = Settings()
    start = time.perf_counter()
    returns = train(settings)
    steps = settings.num_envs * settings.timesteps
    print(f"{steps / (time.perf_counter() - start):,.0f} steps a second, with training")
    print(f"{len(returns)} episodes; mean return of the last 50: {sum(returns[-50:]) / 50:.0f}")
