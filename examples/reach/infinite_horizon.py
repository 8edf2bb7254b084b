"""Infinite horizon: terminations are ignored, and every episode ends at the step limit.

Run it with ``python -m examples.reach.infinite_horizon``. In ManiSkill's words: ``auto_reset=True,
ignore_terminations=True, record_metrics=True``. All rows are truncated in the same step, so that
every row has the same number of steps. A learner has to bootstrap there: no episode really ended.
"""

from __future__ import annotations

import cartwheel
from cartwheel.wrappers import RecordMetrics
from examples.reach.reach import HORIZON, Reach
from examples.reach.search import Search


def main(generations: int = 60) -> tuple[float, float]:
    """Searches a policy that stays; returns the rates of success once and at the end."""
    envs = RecordMetrics(
        cartwheel.VectorEnv(
            [Reach] * 64,
            autoreset_mode="same_step",
            max_episode_steps=HORIZON,
            ignore_terminations=True,
            executor="inline",
        ),
        buffer_length=64,
    )
    search = Search(envs.num_envs)
    observations, _ = envs.reset(seed=1)
    for generation in range(generations):
        for _ in range(HORIZON):
            observations, _, terminations, truncations, _ = envs.step(search.act(observations))
            assert not terminations.any()
        assert truncations.all()
        search.learn(envs.finished()["return"])
        if generation % 10 == 9:
            metrics = envs.mean()
            print(
                f"generation {generation + 1}: mean return {metrics['return']:.1f}, success once "
                f"{metrics['success_once']:.2f}, at the end {metrics['success_at_end']:.2f}"
            )
    metrics = envs.mean()
    envs.close()
    return metrics["success_once"], metrics["success_at_end"]


if __name__ == "__main__":
    main()
