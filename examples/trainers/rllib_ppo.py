"""PPO of RLlib learns CartPole with environments of cartwheel.

Native environments by default; ``--env CartPole-v1 --executor process`` for environments in Python.
The training is RLlib's. Two lines are cartwheel's: the registration, and the vectorization
``"vector_entry_point"``.

Run it where RLlib is installed: ``python examples/trainers/rllib_ppo.py``.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from cartwheel.rllib import register

#: The mean return of CartPole-v1 at which training ends; random actions have about 22.
GOAL = 195.0


def configured(env: str, num_envs: int, num_env_runners: int, seed: int) -> PPOConfig:
    """Returns the configuration of a training run.

    Args:
        env: A name that was registered with RLlib.
        num_envs: Environments of each runner.
        num_env_runners: Remote runners; 0 for one in this process.
        seed: The seed of everything.
    """
    return (
        PPOConfig()
        .environment(env)
        .env_runners(
            num_env_runners=num_env_runners,
            num_envs_per_env_runner=num_envs,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .training(
            lr=1e-3, train_batch_size=2048, minibatch_size=256, num_epochs=6, vf_loss_coeff=0.01
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32], vf_share_layers=True))
        .debugging(seed=seed)
    )


def train(config: PPOConfig, max_updates: int) -> list[float]:
    """Trains until the mean return reaches ``GOAL``; returns the mean return of each update."""
    algorithm = config.build_algo()
    curve: list[float] = []
    try:
        while len(curve) < max_updates and (not curve or curve[-1] < GOAL):
            figures: dict[str, Any] = algorithm.train()["env_runners"]
            curve.append(float(figures["episode_return_mean"]))
            steps = int(figures["num_env_steps_sampled_lifetime"])
            print(f"{steps:8,} steps  mean return {curve[-1]:6.1f}", flush=True)
    finally:
        algorithm.stop()
    return curve


def main() -> None:
    """Reads the command line, trains and says whether the goal was reached."""
    parser = argparse.ArgumentParser(description="PPO of RLlib on CartPole, stepped by cartwheel")
    parser.add_argument(
        "--env", default="cartwheel/CartPole-v1", help="an id of Gymnasium's registry"
    )
    parser.add_argument("--executor", help="where Python environments run: inline, thread, process")
    parser.add_argument("--num-envs", type=int, default=16, help="environments of each runner")
    parser.add_argument("--num-env-runners", type=int, default=0, help="0: one, in this process")
    parser.add_argument("--max-updates", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    keywords = {} if arguments.executor is None else {"executor": arguments.executor}
    register("poles", arguments.env, **keywords)
    torch.set_num_threads(1)  # so small a network is slower on more
    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    start = time.perf_counter()
    try:
        config = configured("poles", arguments.num_envs, arguments.num_env_runners, arguments.seed)
        curve = train(config, arguments.max_updates)
    finally:
        ray.shutdown()
    reached = "reached" if curve[-1] >= GOAL else "not reached"
    print(f"mean return {GOAL:g} {reached} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
