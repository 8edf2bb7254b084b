"""The tasks, and the settings of each trainer in them.

A trainer has the same settings with every vector environment. Settings of two trainers differ, as
their authors recommend others, so times of two trainers do not compare the trainers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

TRAINERS = ("cleanrl", "sb3", "examples")
#: Gymnasium's two, SB3's processes, EnvPool, and cartwheel: native rows, or processes if none are.
VECTORS = ("sync", "async", "subproc", "envpool", "cartwheel")


@dataclasses.dataclass(frozen=True)
class Task:
    """An environment with a return to reach.

    Attributes:
        env_id: Its id in Gymnasium and EnvPool.
        native_id: Its id in cartwheel; the same where cartwheel steps Gymnasium's environment.
        threshold: The mean return of 100 episodes that solves it.
        max_steps: Steps of all rows, after which a training has not solved it.
        rows: Number of environments of each trainer.
        cleanrl: CleanRL's script, and the words of its command line.
        sb3: The keywords of SB3's ``PPO``.
        example: The example of this repository, and its settings.
    """

    env_id: str
    native_id: str
    threshold: float
    max_steps: int
    rows: dict[str, int]
    cleanrl: tuple[str, dict[str, Any]]
    sb3: dict[str, Any]
    example: tuple[str, dict[str, Any]]


TASKS = {
    # Gymnasium's threshold; SB3's settings are those of its zoo.
    "CartPole": Task(
        "CartPole-v1",
        "cartwheel/CartPole-v1",
        475,
        500_000,
        {"cleanrl": 4, "sb3": 8, "examples": 32},
        ("ppo", {"learning-rate": 2.5e-3}),
        {
            "n_steps": 32,
            "batch_size": 256,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.8,
            "learning_rate": 1e-3,
        },
        ("ppo", {}),
    ),
    # Gymnasium's threshold. Returns go from -500 to 300, so the gradient of the value's error is a
    # hundred times that of the policy, and the policy's would vanish where both are clipped
    # together: the coefficient of the value makes up for it. All three reach 200 after 270,000 to
    # 780,000 steps.
    "LunarLander": Task(
        "LunarLander-v3",
        "LunarLander-v3",
        200,
        1_000_000,
        {"cleanrl": 16, "sb3": 16, "examples": 32},
        (
            "ppo",
            {
                "num-steps": 512,
                "num-minibatches": 16,
                "update-epochs": 8,
                "gae-lambda": 0.98,
                "learning-rate": 2e-3,
                "vf-coef": 0.01,  # of half the squared error
                "clip-vloss": False,
            },
        ),
        {
            "n_steps": 512,
            "batch_size": 256,
            "n_epochs": 8,
            "gae_lambda": 0.98,
            "learning_rate": 2e-3,
            "vf_coef": 0.005,
        },
        (
            "ppo",
            {
                "num_steps": 256,
                "epochs": 8,
                "gae_lambda": 0.98,
                "learning_rate": 2e-3,
                "value_coefficient": 0.005,
            },
        ),
    ),
    # A run, not a fast one: Gymnasium's 4,800 is out of reach of PPO in a million steps.
    "HalfCheetah": Task(
        "HalfCheetah-v5",
        "cartwheel/HalfCheetah-v5",
        1_000,
        1_000_000,
        {"cleanrl": 8, "sb3": 8, "examples": 32},
        ("ppo_continuous_action", {"num-steps": 256, "num-minibatches": 8, "learning-rate": 1e-3}),
        {"n_steps": 256, "batch_size": 256, "learning_rate": 1e-3},
        ("ppo_half_cheetah", {"minibatch_size": 256, "learning_rate": 1e-3}),
    ),
    # Pictures of 7 x 7 cells with three channels. All three trainers see them as 147 numbers.
    "DoorKey": Task(
        "MiniGrid-DoorKey-5x5-v0",
        "cartwheel_minigrid/MiniGrid-DoorKey-5x5-v0",
        0.9,
        1_500_000,
        {"cleanrl": 16, "sb3": 16, "examples": 32},
        ("ppo", {"learning-rate": 1e-3}),
        {"n_steps": 128, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01},
        ("ppo_minigrid", {"level": "MiniGrid-DoorKey-5x5-v0"}),
    ),
}
