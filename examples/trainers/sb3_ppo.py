"""PPO of Stable-Baselines3 learns CartPole, on native environments or on those of Python.

Run it with ``python examples/trainers/sb3_ppo.py``; ``--python`` steps Gymnasium's environments in
worker processes instead. Both learn the same weights. Needs ``pip install 'cartwheel[sb3]'``.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from cartwheel.sb3 import CartwheelVecEnv

ENV_ID = "CartPole-v1"
#: The mean return of 100 episodes from which on CartPole-v1 counts as solved.
SOLVED = 475.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes:
        python: Whether the environments are Gymnasium's, in worker processes.
        num_envs: Number of environments.
        total_steps: Steps of all environments together.
        seed: Of the weights, the actions and the environments.
    """

    python: bool = False
    num_envs: int = 8
    total_steps: int = 60_000
    seed: int = 1


@dataclasses.dataclass(frozen=True)
class Result:
    """The results of a run.

    Attributes:
        model: The trained model.
        seconds: The time of the training.
        mean_return: The mean return of 100 episodes of the trained policy.
    """

    model: PPO
    seconds: float
    mean_return: float


def make_envs(settings: Settings) -> CartwheelVecEnv:
    """Makes the environments; these lines are all that a script has to change."""
    if settings.python:
        made: CartwheelVecEnv = make_vec_env(
            ENV_ID,
            settings.num_envs,
            vec_env_cls=CartwheelVecEnv,
            vec_env_kwargs={"executor": "process"},
        )
        return made
    return CartwheelVecEnv(f"cartwheel/{ENV_ID}", settings.num_envs, monitor=True)


def train(settings: Settings) -> Result:
    """Trains and evaluates a policy."""
    envs = make_envs(settings)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=64,
        batch_size=256,
        n_epochs=10,
        gae_lambda=0.8,
        gamma=0.98,
        learning_rate=lambda remaining: 1e-3 * remaining,
        clip_range=lambda remaining: 0.2 * remaining,
        seed=settings.seed,
        device="cpu",
    )
    start = time.perf_counter()
    model.learn(settings.total_steps)
    seconds = time.perf_counter() - start
    mean_return, _ = evaluate_policy(model, envs, n_eval_episodes=100)
    envs.close()
    return Result(model, seconds, float(mean_return))


def main() -> None:
    """Trains with the settings of the command line, and prints what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="store_true", help="step Gymnasium's environments")
    parser.add_argument("--num-envs", type=int, default=Settings.num_envs)
    parser.add_argument("--total-steps", type=int, default=Settings.total_steps)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    torch.set_num_threads(1)  # the networks are small: more threads are slower
    settings = Settings(**vars(parser.parse_args()))
    result = train(settings)
    solved = "solved" if result.mean_return >= SOLVED else "not solved"
    print(
        f"{settings.total_steps:,} steps in {result.seconds:.1f} s, "
        f"mean return {result.mean_return:.1f}: {solved}"
    )


if __name__ == "__main__":
    main()
