"""Training: rows whose episodes end begin again at once, and metrics say how well it goes.

Run it with ``python -m examples.reach.training``. In ManiSkill's words: ``auto_reset=True,
ignore_terminations=False, record_metrics=True``.
"""

from __future__ import annotations

import numpy as np

import cartwheel
from cartwheel.wrappers import RecordMetrics
from examples.reach.reach import HORIZON, Reach
from examples.reach.search import Search


def main(generations: int = 60) -> float:
    """Searches a policy and returns the last generation's rate of success."""
    envs = RecordMetrics(
        cartwheel.VectorEnv(
            [Reach] * 64,
            autoreset_mode="same_step",
            max_episode_steps=HORIZON,
            final_obs="dense",
            final_names="maniskill",
            executor="inline",
        )
    )
    search = Search(envs.num_envs)
    success = 0.0
    for generation in range(generations):
        observations, _ = envs.reset(seed=generation)
        for _ in range(HORIZON):  # every row ends an episode within these steps
            observations, *_ = envs.step(search.act(observations))
        ended = envs.finished()  # one entry for each episode
        rows, first = np.unique(ended["env_index"], return_index=True)
        assert len(rows) == envs.num_envs
        search.learn(ended["return"][first])
        success = float(ended["success_once"].mean())
        if generation % 10 == 9:
            print(
                f"generation {generation + 1}: {len(ended['return'])} episodes, mean return "
                f"{ended['return'].mean():.1f}, success {success:.2f}"
            )
    envs.close()
    return success


if __name__ == "__main__":
    main()
