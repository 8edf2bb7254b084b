"""PufferLib 3's PPO (PuffeRL) on native CartPole.

PuffeRL takes any object with the few members of :class:`CartwheelVecEnv`; copy it. It stands in for
``pufferlib.vector.make``, and keeps environments in Python that PufferLib 4 no longer vectorizes.

Run it with ``python examples/trainers/pufferlib_ppo.py``. It trains for half a minute.
``docs/trainers/pufferlib.md`` says how to install PufferLib 3 with a recent Gymnasium.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

import cartwheel
from cartwheel.wrappers import RecordEpisodeStatistics

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

NUM_ENVS, HORIZON = 64, 32


class CartwheelVecEnv:
    """A vector environment as PuffeRL wants it.

    The mode must be ``SAME_STEP``: an observation with a done flag is then the first of the next
    episode, which is what PufferLib's advantages expect, and its own native environments do. (Its
    wrappers around Gymnasium's environments spend a step on every reset, and train on it.)

    Attributes:
        num_agents: Rows, as PufferLib counts them. ``agents_per_batch`` is the same: batches have
            all rows in their order, since PuffeRL stores neighboring rows only.
        driver_env: What PufferLib makes policies for: it has the spaces of one row.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Takes over ``envs``; their returns are reported if they are recorded.

        Raises:
            ValueError: ``envs`` are in another mode than ``SAME_STEP``, or their batches have fewer
                rows than there are.
        """
        mode = envs.metadata["autoreset_mode"]
        if mode != gym.vector.AutoresetMode.SAME_STEP:
            raise ValueError(f"make `envs` with autoreset_mode='same_step', got {mode.name}")
        batch_size = getattr(envs, "batch_size", envs.num_envs)
        if batch_size < envs.num_envs:
            raise ValueError(f"make `envs` without a `batch_size`, got {batch_size}")
        self.envs: Any = envs
        self.driver_env = self
        self.num_envs = self.num_agents = self.agents_per_batch = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.observation_space, self.action_space = envs.observation_space, envs.action_space
        self._rows = np.arange(envs.num_envs)
        self._all = np.ones(envs.num_envs, np.bool_)

    def async_reset(self, seed: int | None = None) -> None:
        """Begins a reset of all rows; row ``i`` gets ``seed + i``."""
        self.envs.send_reset(seed=seed)

    def send(self, actions: Any) -> None:
        """Begins a step of all rows."""
        self.envs.send(actions)

    def recv(self) -> tuple[Any, Any, Any, Any, list[dict[str, Any]], Any, Any]:
        """Waits for the step.

        Returns:
            Observations, rewards (``float32``), terminals, truncations, one dictionary with the
            episodes that ended, the numbers of all rows, and a mask that is all true.
        """
        observations, rewards, terminals, truncations, infos = self.envs.recv()
        told = []
        if "episode" in infos:
            ended, episode = infos["_episode"], infos["episode"]
            found = {"episode_return": episode["r"][ended], "episode_length": episode["l"][ended]}
            told = [{name: values.tolist() for name, values in found.items()}]
        rewards = rewards.astype(np.float32)
        return observations, rewards, terminals, truncations, told, self._rows, self._all

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


class Policy(torch.nn.Module):
    """Two small networks, as PuffeRL calls them."""

    def __init__(self, envs: CartwheelVecEnv) -> None:
        """Makes the layers for arrays as observations and discrete actions."""
        super().__init__()
        assert envs.single_observation_space.shape is not None
        assert isinstance(envs.single_action_space, gym.spaces.Discrete)
        size = int(np.prod(envs.single_observation_space.shape))
        self.body = torch.nn.Sequential(torch.nn.Linear(size, 64), torch.nn.Tanh())
        self.actor = torch.nn.Linear(64, int(envs.single_action_space.n))
        self.critic = torch.nn.Linear(64, 1)

    def forward_eval(self, observations: Any, state: Any = None) -> tuple[Any, Any]:
        """Logits and values of a batch."""
        del state
        hidden = self.body(observations)
        return self.actor(hidden), self.critic(hidden)

    def forward(self, observations: Any, state: Any = None) -> tuple[Any, Any]:
        """The same, for training."""
        return self.forward_eval(observations, state)


def train(total_steps: int = 150_000) -> list[float]:
    """Trains, and returns the mean return of the episodes of each epoch."""
    from pufferlib.pufferl import PuffeRL, load_config  # its import changes how Ctrl-C ends Python

    config = load_config("default")["train"]
    config |= {
        "device": "cpu",
        "optimizer": "adam",
        "learning_rate": 0.01,
        "total_timesteps": total_steps,
        "batch_size": NUM_ENVS * HORIZON,
        "bptt_horizon": HORIZON,
        "minibatch_size": NUM_ENVS * HORIZON // 2,
        "max_minibatch_size": NUM_ENVS * HORIZON // 2,
        "update_epochs": 2,
        "use_rnn": False,
        "env": "cartpole",
        "checkpoint_interval": 10**9,
    }
    envs = CartwheelVecEnv(
        RecordEpisodeStatistics(
            cartwheel.make_vec("cartwheel/CartPole-v1", NUM_ENVS, autoreset_mode="same_step")
        )
    )
    torch.manual_seed(1)
    trainer = PuffeRL(config, envs, Policy(envs))
    curve = []
    while trainer.global_step < total_steps:
        stats = trainer.evaluate()
        returns = stats.pop("episode_return", [])
        curve += [float(np.mean(returns))] if returns else []
        trainer.train()
    trainer.utilization.stop()
    envs.close()
    return curve


if __name__ == "__main__":
    import sys

    torch.set_num_threads(1)
    sys.argv = sys.argv[:1]  # PufferLib reads the command line, too
    print(f"mean returns of the epochs: {[round(mean) for mean in train()]}")
