"""The robot arm of ``examples/arm.py`` learns to reach: trained, recorded and played again.

PPO of ``examples/ppo_half_cheetah.py`` learns on the CPU. Then the trained policy is recorded: a
video of nine arms, and datasets in ManiSkill's layout and Minari's. Finally every recorded
episode is played again, and must be equal to the bit.

Run it with ``python -m examples.reach_arm --output runs/reach_arm``. It needs mujoco, torch and the
extra ``record``; some minutes on two cores. On a machine without a display, set ``MUJOCO_GL=egl``
for the video, or give ``--no-video``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset, replay
from cartwheel.wrappers import NormalizeObservation, NormalizeReward, RecordMetrics
from examples.arm import LIMIT, make
from examples.ppo_half_cheetah import Agent, Settings, plot, update

if TYPE_CHECKING:
    from collections.abc import Sequence


def train(settings: Settings) -> tuple[Agent, Any, list[tuple[int, float]]]:
    """Learns; returns the agent, the moments of observations, and mean returns by steps."""
    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    counted = RecordMetrics(make(settings.num_envs), buffer_length=2 * settings.num_envs)
    normalized = NormalizeObservation(counted)
    envs: Any = NormalizeReward(normalized, settings.gamma)
    (size,), (actions,) = envs.single_observation_space.shape, envs.single_action_space.shape
    agent = Agent(size, actions)
    optimizer = torch.optim.Adam(agent.parameters, eps=1e-5, fused=True)
    collector = cartwheel.Collector(envs, agent.explore, settings.num_steps, seed=settings.seed)
    curve: list[tuple[int, float]] = []
    for steps in range(0, settings.total_steps, settings.num_envs * settings.num_steps):
        remaining = 1 - steps / settings.total_steps
        optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
        update(agent, optimizer, collector.collect(), settings)
        means = counted.mean()
        if np.isfinite(means["return"]):  # an episode has ended
            curve.append((steps, means["return"]))
            if len(curve) % 10 == 1:
                seconds = time.perf_counter() - start
                print(
                    f"{steps:>9,} steps{seconds:>7.1f} s{curve[-1][1]:>9.1f} of return, "
                    f"{means['success_at_end']:.0%} at the target",
                    flush=True,
                )
    moments = normalized.obs_rms
    envs.close()
    return agent, moments, curve


def record(
    agent: Agent, moments: Any, folder: Path, form: Any = "maniskill", *, has_video: bool = False
) -> Path:
    """Plays an episode of each of nine arms; returns the path of the dataset."""
    envs = make(
        9, render_mode="rgb_array" if has_video else None, camera_name="side", width=160, height=120
    )
    recorder = RecordEpisode(
        envs,
        folder,
        trajectory_name=f"{form}-v0",
        save_video=has_video,
        video_envs="tile",
        format=form,
    )
    normalized = NormalizeObservation(recorder)
    normalized.obs_rms = moments
    observations, _ = normalized.reset(seed=1_000)
    with normalized.frozen():
        for _ in range(LIMIT):
            observations, *_ = normalized.step(agent.exploit(observations).numpy())
    normalized.close()
    return folder / (f"{form}-v0" if form == "minari" else f"{form}-v0.h5")


def play_again(path: Path) -> int:
    """Plays the episodes of a dataset again; returns how many values were equal, to the bit.

    Raises:
        AssertionError: One differs.
    """
    dataset = TrajectoryDataset(path)
    envs = make(5, dataset.model_path)  # of any number of rows
    equal = 0
    for number, episode in enumerate(replay(dataset, envs)):
        recorded = dataset.episode(number)
        for name, values in episode.items():
            np.testing.assert_array_equal(values, recorded[name])
            equal += values.size
    envs.close()
    return equal


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, records, and plays again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("runs/reach_arm"))
    parser.add_argument("--total-steps", type=int, default=400_000)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    parser.add_argument("--no-video", dest="has_video", action="store_false")
    options = vars(parser.parse_args(arguments))
    folder, path, has_video = (options.pop(name) for name in ("output", "plot", "has_video"))
    torch.set_num_threads(1)  # the networks are too small for two
    settings = Settings(learning_rate=1e-3, minibatch_size=512, gamma=0.97, **options)
    agent, moments, curve = train(settings)
    if path:
        plot(curve, path, "PPO on an arm with random masses and gains", "return, last 128 episodes")
    for form in ("maniskill", "minari"):
        dataset = record(agent, moments, folder, form, has_video=has_video and form == "maniskill")
        print(f"{dataset}: {play_again(dataset):,} values are equal when played again")


if __name__ == "__main__":
    main()
