"""Sample Factory's PPO (APPO) on native CartPole, with a recent Gymnasium.

Sample Factory 2.1.1 asks for Gymnasium below 1.0, and works with newer ones after
:func:`forward_attributes`: install it with
``pip install --no-deps sample-factory`` and what it needs besides Gymnasium, as
``docs/trainers/sample-factory.md`` lists. Its batched sampling takes vectorized environments as one
environment with many agents. :class:`ManyAgents` is such an environment; copy it.

Run it with ``python examples/trainers/sample_factory_ppo.py``. It trains for a minute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl

import cartwheel

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

NAME = "cartwheel_cartpole"
#: Of one worker, which is one process of Sample Factory.
NUM_ENVS = 64
ARGUMENTS = (
    f"--env={NAME}",
    "--device=cpu",
    "--serial_mode=True",
    "--async_rl=False",
    "--batched_sampling=True",
    "--num_workers=1",
    "--num_envs_per_worker=1",
    "--worker_num_splits=1",
    "--use_rnn=False",
    "--normalize_input=False",
    "--rollout=32",
    "--batch_size=2048",
    "--learning_rate=0.003",
    "--encoder_mlp_layers=64",
    "--train_for_env_steps=150000",
    "--save_every_sec=3600",
    "--experiment_summaries_interval=3",
    "--restart_behavior=overwrite",
)


class ManyAgents(gym.Env[Any, Any]):
    """A vector environment as Sample Factory wants it: one environment, an agent for each row.

    The mode must be ``SAME_STEP``: Sample Factory expects vectorized environments to reset
    themselves within the step that ends an episode. It bootstraps truncated episodes from the value
    of the last step's observation, so it needs no final observations.
    """

    is_multiagent = True

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Takes over ``envs``.

        Raises:
            ValueError: ``envs`` are in another mode than ``SAME_STEP``.
        """
        mode = envs.metadata["autoreset_mode"]
        if mode != gym.vector.AutoresetMode.SAME_STEP:
            raise ValueError(f"make `envs` with autoreset_mode='same_step', got {mode.name}")
        self.envs = envs
        self.num_agents = envs.num_envs
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all environments; infos are dropped."""
        return self.envs.reset(seed=seed, options=options)[0], {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all environments; infos are dropped."""
        actions = np.asarray(action)
        observations, rewards, terminations, truncations, _ = self.envs.step(actions)
        return observations, rewards.astype(np.float32), terminations, truncations, {}

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


def forward_attributes() -> None:
    """Lets Gymnasium's wrappers pass on the attributes of what they wrap, as before Gymnasium 1.0.

    Sample Factory puts wrappers around every environment and reads ``num_agents`` through them.
    """

    def forwarded(wrapper: gym.Wrapper[Any, Any, Any, Any], name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(wrapper.env, name)

    gym.Wrapper.__getattr__ = forwarded  # type: ignore[attr-defined]


def make_env(name: str, config: Any, env_config: Any, render_mode: str | None = None) -> ManyAgents:
    """Makes the environments of a worker; called by Sample Factory, in each of its processes."""
    del name, config, env_config, render_mode
    forward_attributes()
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", NUM_ENVS, autoreset_mode="same_step")
    return ManyAgents(envs)


def train(arguments: list[str]) -> int:
    """Trains with Sample Factory's arguments; returns its status, 0 for success."""
    register_env(NAME, make_env)
    parser, _ = parse_sf_args(argv=[*ARGUMENTS, *arguments])
    status: int = run_rl(parse_full_cfg(parser, argv=[*ARGUMENTS, *arguments]))
    return status


if __name__ == "__main__":
    sys.exit(train(sys.argv[1:]))
