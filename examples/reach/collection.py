"""Collection: trajectories of successful episodes in ManiSkill's layout, and a tiled video.

Run it with ``python -m examples.reach.collection FOLDER``; needs the extra ``record``.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import cartwheel
from cartwheel.wrappers import RecordEpisode, TrajectoryDataset
from examples.reach.evaluation import careful
from examples.reach.reach import HORIZON, Reach


def succeeded(metadata: dict[str, Any]) -> bool:
    """Whether the episode is kept."""
    return bool(metadata["success"])


def main(folder: str | Path, steps: int = 200) -> TrajectoryDataset:
    """Records successful episodes of nine rows and reads them again."""
    envs = RecordEpisode(
        cartwheel.VectorEnv(
            [partial(Reach, render_mode="rgb_array")] * 9,
            autoreset_mode="same_step",
            max_episode_steps=HORIZON,
            executor="inline",
        ),
        folder,
        trajectory_name="reach",
        video_envs="tile",
        max_steps_per_video=100,
        episode_filter=succeeded,
        source_type="example",
        source_desc="a robot that slows down near its target",
    )
    observations, _ = envs.reset(seed=1)
    for _ in range(steps):
        observations, *_ = envs.step(careful(observations))
    envs.close()
    dataset = TrajectoryDataset(Path(folder) / "reach.h5")
    print(f"{len(dataset)} transitions of {len(dataset.episodes)} episodes in {folder}")
    return dataset


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Records successful episodes of a robot.")
    parser.add_argument("folder", nargs="?", default="recorded", help="where files are put")
    main(parser.parse_args().folder)
