"""Evaluation: every episode runs to the step limit, and success counts once and at the end.

Run it with ``python -m examples.reach.evaluation``. In ManiSkill's words: ``ignore_terminations=
True, record_metrics=True``, without partial resets. Two policies reach nearly every target; one of
them does not stay there, which only the success at the end shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import cartwheel
from examples.reach.reach import HORIZON, Reach

if TYPE_CHECKING:
    from numpy.typing import NDArray


def hasty(observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Goes toward the target at full speed, and past it; ``[N, 2]``."""
    actions: NDArray[np.float32] = np.sign(observations[:, 2:] - observations[:, :2])
    return actions


def careful(observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Slows down near the target; ``[N, 2]``."""
    actions: NDArray[np.float32] = 5.0 * (observations[:, 2:] - observations[:, :2])
    return np.clip(actions, -1.0, 1.0)


def main(episodes_per_env: int = 8) -> dict[str, cartwheel.Evaluation]:
    """Evaluates both policies on the same episodes."""
    envs = cartwheel.VectorEnv(
        [Reach] * 16, max_episode_steps=HORIZON, ignore_terminations=True, executor="inline"
    )
    evaluations = {}
    for policy in (hasty, careful):
        result = cartwheel.evaluate(envs, policy, episodes_per_env=episodes_per_env, seed=5)
        evaluations[policy.__name__] = result
        assert result.success_once is not None
        assert result.success_at_end is not None
        print(
            f"{policy.__name__}: mean return {result.mean_return:.1f}, success once "
            f"{result.success_once.mean():.2f}, at the end {result.success_at_end.mean():.2f}"
        )
    envs.close()
    return evaluations


if __name__ == "__main__":
    main()
