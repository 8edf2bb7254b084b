"""Tianshou's DQN on native CartPole.

``CartwheelVectorEnv`` stands where Tianshou's examples have ``DummyVectorEnv`` or
``SubprocVectorEnv``. Nothing else changes: collectors, buffers and trainers are Tianshou's.

Run it with ``python examples/trainers/tianshou_dqn.py``. It needs Tianshou, and less than a minute.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import cartwheel
from cartwheel.tianshou import CartwheelVectorEnv


def make_envs(num_envs: int) -> CartwheelVectorEnv:
    """Native environments; for any others, ``CartwheelVectorEnv([make] * num_envs)``."""
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", num_envs, autoreset_mode="disabled")
    return CartwheelVectorEnv(envs)


def train(num_envs: int = 16, epochs: int = 6, steps_per_epoch: int = 4_000) -> list[float]:
    """Trains until the mean return of tests is 475, or for all epochs; returns these means.

    They rise, and fall now and then: this is DQN with few settings tried.
    """
    np.random.seed(1)  # noqa: NPY002 - Tianshou draws from it
    torch.manual_seed(1)
    training, tests = make_envs(num_envs), make_envs(8)
    training.seed(1)
    tests.seed(1_000)
    actions = training.get_env_attr("action_space", 0)[0]
    net = Net(state_shape=(4,), action_shape=2, hidden_sizes=[128, 128])
    algorithm: Any = DQN(
        policy=DiscreteQLearningPolicy(
            model=net, action_space=actions, eps_training=0.1, eps_inference=0.0
        ),
        optim=AdamOptimizerFactory(lr=5e-4),
        gamma=0.98,
        n_step_return_horizon=3,
        target_update_freq=500,
    )
    collector: Any = Collector(
        algorithm, training, VectorReplayBuffer(60_000, num_envs), exploration_noise=True
    )
    collector.reset()
    collector.collect(n_step=num_envs * 64, random=True)
    means: list[float] = []

    def score(told: Any) -> float:
        means.append(float(told.returns_stat.mean))
        return means[-1]

    parameters: Any = OffPolicyTrainerParams(
        training_collector=collector,
        test_collector=Collector(algorithm, tests),
        max_epochs=epochs,
        epoch_num_steps=steps_per_epoch,
        collection_step_num_env_steps=num_envs * 4,
        update_step_num_gradient_steps_per_sample=0.25,
        batch_size=64,
        test_step_num_episodes=8,
        compute_score_fn=score,
        stop_fn=lambda best: best >= 475,
        show_progress=False,
        verbose=False,
    )
    algorithm.run_training(parameters)
    training.close()
    tests.close()
    return means


if __name__ == "__main__":
    torch.set_num_threads(1)  # more threads are slower with networks as small as these
    start = time.perf_counter()
    curve = [round(mean) for mean in train()]
    print(f"mean returns of the tests: {curve}, after {time.perf_counter() - start:.0f} s")
