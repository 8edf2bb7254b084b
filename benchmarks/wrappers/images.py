"""Atari frames as trainers want them: the maximum of two, gray, 84×84.

64 pairs of frames 210×160×3 become images. Cartwheel makes them in one call; OpenCV frame by frame,
since it has no call for many; Gymnasium's arithmetic is that of its ``GrayscaleObservation``, and
OpenCV's size. OpenCV has other weights of the colors. The frames are random, or drawn in a few
colors as by a game: a background, blocks and sprites. A step of the table is one image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.runners import Repeated
from cartwheel._cartwheel import ImagePlan
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_FRAMES = 64
HEIGHT, WIDTH, SIDE = 210, 160, 84

Frames = Any  # uint8 [N, HEIGHT, WIDTH, 3]
#: Makes images of pairs of frames.
Maker = Callable[[Frames, Frames], Any]


def random_frames(count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Two frames each, every level random."""
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 256, (count, HEIGHT, WIDTH, 3), np.uint8) for _ in range(2))
    return first, second


def drawn_frames(count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Two frames each, with a background, rows of blocks, gray walls and sprites."""
    rng = np.random.default_rng(0)
    frames = np.zeros((2, count, HEIGHT, WIDTH, 3), np.uint8)
    frames[:, :, 24:, :8] = frames[:, :, 24:, -8:] = frames[:, :, 24:32] = 142
    for number, color in enumerate([(200, 72, 72), (198, 108, 58), (66, 158, 130)]):
        frames[:, :, 57 + 6 * number : 63 + 6 * number, 8:-8] = color
    for pair in np.moveaxis(frames, 1, 0):
        for frame in pair:
            y, x = rng.integers(80, 200), rng.integers(10, 140)
            frame[y : y + 8, x : x + 8] = (214, 214, 214)
    return frames[0], frames[1]


def cartwheel_maker(num_threads: int | None) -> Maker:
    """A plan of cartwheel, which writes into a new array."""
    plan = ImagePlan(
        HEIGHT, WIDTH, 3, out_height=SIDE, out_width=SIDE, gray=True, num_threads=num_threads
    )
    return plan.run


def opencv_maker(num_threads: int) -> Maker:
    """OpenCV, frame by frame; -1 threads: as many as it likes."""
    images = np.empty((NUM_FRAMES, SIDE, SIDE), np.uint8)

    def make(first: Frames, second: Frames) -> Any:
        cv2.setNumThreads(num_threads)
        for image, one, other in zip(images, first, second, strict=True):
            gray = cv2.cvtColor(cv2.max(one, other), cv2.COLOR_RGB2GRAY)
            cv2.resize(gray, (SIDE, SIDE), dst=image, interpolation=cv2.INTER_AREA)
        return images

    return make


def gymnasium_maker(first: Frames, second: Frames) -> Any:
    """Gymnasium's arithmetic of gray levels, frame by frame, then OpenCV's size."""
    cv2.setNumThreads(1)
    weights = np.array([0.2125, 0.7154, 0.0721])
    for one, other in zip(first, second, strict=True):
        gray = np.sum(np.multiply(np.maximum(one, other), weights), axis=-1).astype(np.uint8)
        cv2.resize(gray, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


def main() -> None:
    """Prints the claims."""
    for name, draw in (("random", random_frames), ("drawn", drawn_frames)):
        frames = draw(NUM_FRAMES)

        def contender(who: str, maker: Maker, frames: Any = frames) -> Contender:
            return Contender(who, lambda _: Repeated(partial(maker, *frames), NUM_FRAMES))

        single = contender("cartwheel, 1 thr.", cartwheel_maker(1))
        ours = contender("cartwheel", cartwheel_maker(None))
        claims = [
            Claim(single, contender("OpenCV, 1 thread", opencv_maker(1)), 4),
            Claim(ours, contender("OpenCV", opencv_maker(-1)), 4),
            Claim(single, contender("Gymnasium's arithmetic", gymnasium_maker), 20),
        ]
        check(f"84×84 gray of two frames, {name}", no_env, {NUM_FRAMES: claims})


if __name__ == "__main__":
    main()
