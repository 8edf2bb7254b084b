"""Records seven cart-poles in one tiled video, and saves a frame of it.

    pip install 'cartwheel[record]' 'gymnasium[classic-control]'
    python examples/tiled_video.py runs/tiles docs/tiles.png

The first argument is the folder of the video and the trajectories. The second one is the picture,
which `docs/wrappers.md` shows.
"""

import argparse
from pathlib import Path

import av
import numpy as np
from PIL import Image

import cartwheel
from cartwheel.wrappers import RecordEpisode

#: The frame that is saved. By then most poles have fallen, and stand again.
FRAME = 44


def record(folder: Path) -> Path:
    """Plays 60 steps with a policy that sometimes pushes the cart under the pole."""
    envs = RecordEpisode(
        cartwheel.NativeVectorEnv("CartPole-v1", 7, render_mode="rgb_array"),
        folder,
        video_envs="tile",
        info_on_video=True,
        max_steps_per_video=60,
    )
    random = np.random.default_rng(2)
    observations, _ = envs.reset(seed=2)
    for _ in range(60):
        leans_right = observations[:, 2] + 0.3 * observations[:, 3] > 0
        actions = np.where(random.random(7) < 0.2, leans_right, random.random(7) < 0.5)
        observations, *_ = envs.step(actions.astype(np.int64))
    envs.close()
    return max(folder.glob("*.mp4"), key=lambda path: path.stat().st_mtime)


def save(video: Path, picture: Path) -> None:
    """Saves a frame of the video as a picture of half its size."""
    with av.open(str(video)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number == FRAME:
                image = Image.fromarray(frame.to_ndarray(format="rgb24"))
                image = image.resize((image.width // 2, image.height // 2))
                image.quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/tiles"))
    parser.add_argument("picture", nargs="?", type=Path, help="the picture of a frame")
    arguments = parser.parse_args()
    video = record(arguments.folder)
    print(f"recorded {video}")
    if arguments.picture is not None:
        save(video, arguments.picture)
