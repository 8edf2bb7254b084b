"""A video that is encoded while it is filmed."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.finalizer import Finalizer
from cartwheel.recorder.extra import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

#: Encoders, the best first, with their options.
ENCODERS = {"libx264": {"preset": "veryfast", "crf": "20"}, "libopenh264": {}, "mpeg4": {}}
_PARTS = itertools.count()


def encoder() -> str:
    """Returns the name of the encoder: H.264 where PyAV has it.

    Raises:
        ImportError: PyAV is missing, or has no encoder for MP4 files.
    """
    av = load("av")
    found = next((name for name in ENCODERS if name in av.codecs_available), None)
    if found is None:
        raise ImportError(
            f"PyAV {av.__version__} has none of the encoders {list(ENCODERS)}: install another "
            "build, or record with save_video=False.",
            name="av",
        )
    return found


class VideoFile:
    """An MP4 file (H.264, ``yuv420p``), whose name is given when it is complete.

    All methods but the constructor belong to the thread of the writer.

    Args:
        folder: Where it is put.
        suffix: The end of its name, which begins with the number of the video.
        numbers: Numbers for the names; those of files that exist are left out.
        fps: Frames per second.
    """

    def __init__(self, folder: FilePath, suffix: str, numbers: Iterator[int], fps: float) -> None:
        """Opens nothing yet."""
        self._folder, self._suffix, self._numbers = folder, suffix, numbers
        self._part = folder / f".{os.getpid()}-{next(_PARTS)}.part.mp4"
        self._rate = Fraction(fps).limit_denominator(1001)
        #: Also removes the part if the video is never ended, as after an interrupt.
        self._remove = Finalizer(self, _remove, self._part)
        self._container: Any = None
        self._stream: Any = None
        self._shape: tuple[int, ...] = ()
        #: The name of the complete file; ``None`` before.
        self.name: str | None = None

    def add(self, frame: NDArray[np.uint8]) -> bool:
        """Encodes a frame ``[height, width, 3]``.

        Raises:
            ValueError: The frame has another size than those before.
            OSError: It cannot be written.
        """
        if self._container is None:
            self._open(frame.shape)
        if frame.shape != self._shape:
            raise ValueError(
                f"the frames of a video must be equal in shape: got {frame.shape} after "
                f"{self._shape}."
            )
        height, width = frame.shape[:2]
        if height % 2 or width % 2:  # yuv420p has one colour for two by two pixels
            frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)))
        picture = load("av").VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        self._container.mux(self._stream.encode(picture))
        return False

    def finish(self) -> bool:
        """Completes the file and names it; no other file is overwritten."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        self._container = None
        while True:
            path = self._folder / f"{next(self._numbers)}{self._suffix}.mp4"
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                continue
            self._part.replace(path)
            self._remove.detach()
            self.name = path.name
            return False

    def discard(self) -> bool:
        """Removes what was encoded."""
        if self._container is not None:
            self._container.close()
            self._container = None
        self._remove()
        return False

    def _open(self, shape: tuple[int, ...]) -> None:
        name = encoder()
        self._shape = shape
        self._container = load("av").open(str(self._part), "w", format="mp4")
        self._stream = self._container.add_stream(name, rate=self._rate, options=ENCODERS[name])
        self._stream.height, self._stream.width = (size + size % 2 for size in shape[:2])
        self._stream.pix_fmt = "yuv420p"


def _remove(part: FilePath) -> None:
    part.unlink(missing_ok=True)
