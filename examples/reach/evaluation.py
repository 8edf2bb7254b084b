"""Evaluation: every episode runs to the step limit, and success counts once and at the end.

Run it with ``python -m examples.reach.evaluation``. In ManiSkill's words: ``ignore_terminations=
True, record_metrics=True``, without partial resets. Two policies reach nearly every target; one of
them does not stay there, which only the success at the end shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cartwheel
from examples.reach.reach import HORIZON, Reach


def hasty(observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Goes towards the target at full speed, and past it; ``[N, 2]``."""
    return np.sign(observations[:, 2:] - observations[:, :2])


def careful(observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Slows down near the target; ``[N, 2]``."""
    return np.clip(5.0 * (observations[:, 2:] - observations[:, :2]), -1.0, 1.0)


def main(episodes_per_env: int = 8) -> dict[str, cartwheel.Evaluation]:
    """Evaluates both policies on the same episodes."""
    envs = cartwheel.VectorEnv(
        [Reach] * 16,
        max_episode_steps=HORIZON,
        ignore_terminations=True,
        executor="inline",
    )
    evaluations = {}
    for policy in (hasty, careful):
        result = cartwheel.evaluate(envs, policy, episodes_per_env=episodes_per_env, seed=5)
        evaluations[policy.__name__] = result
        print(f"{policy.__name__}:\n{result}\n")
    envs.close()
    return evaluations


if __name__ == "__main__":
    main()
