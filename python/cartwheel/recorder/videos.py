"""Videos of single environments, one an episode, or of all in tiles."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartwheel.recorder.caption import with_caption
from cartwheel.recorder.video_file import VideoFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from cartwheel.recorder.writer import Writer

    Frame = NDArray[np.uint8]


@dataclass
class VideoOutput:
    """Where videos are encoded and put.

    Attributes:
        folder: The folder of the files.
        writer: The thread that encodes.
        fps: Frames per second.
        longest: Steps of a video at most; ``None`` for any number.
        numbers: The numbers of the files.
    """

    folder: FilePath
    writer: Writer
    fps: float
    longest: int | None
    numbers: Iterator[int]

    def open(self, suffix: str = "") -> Video:
        """Begins a video."""
        return Video(VideoFile(self.folder, suffix, self.numbers, self.fps), self.writer)


class Video:
    """The frames of one video, on their way to the writer.

    Attributes:
        frames: How many there are.
        file: The video.
    """

    def __init__(self, file: VideoFile, writer: Writer) -> None:
        """Has no frame."""
        self.file, self._writer, self.frames = file, writer, 0

    def add(self, frame: Frame, captions: Callable[[Frame], Frame] | None = None) -> None:
        """Adds a frame, which is the video's from now on."""
        file = self.file
        if captions is None:
            self._writer.put(lambda: file.add(frame), frame.nbytes)
        else:
            self._writer.put(lambda: file.add(captions(frame)), frame.nbytes)
        self.frames += 1

    def end(self, *, keep: bool) -> None:
        """Completes the video, or removes it; a single frame is no video."""
        self._writer.put(self.file.finish if keep and self.frames > 1 else self.file.discard, 0)


class EpisodeVideos:
    """A video for each episode of some environments.

    Args:
        output: Where they are made.
        rows: The environments.
    """

    def __init__(self, output: VideoOutput, rows: list[int]) -> None:
        """Has no frame yet."""
        self._output, self.rows = output, rows
        self._videos: dict[int, Video] = {}
        #: Videos that were cut from the present episode of a row.
        self._cut: dict[int, list[Video]] = {}

    def begin(self, frames: dict[int, Frame]) -> None:
        """Episodes begin with these frames."""
        for row, frame in frames.items():
            self._video(row).add(frame)

    def step(self, frames: dict[int, Frame], captions: dict[int, list[str]]) -> None:
        """Adds frames of a step."""
        longest = self._output.longest
        for row, frame in frames.items():
            video = self._video(row)
            video.add(frame, _captioner(captions.get(row)))
            if longest is not None and video.frames > longest:
                self._cut.setdefault(row, []).append(self._videos.pop(row))
                self._video(row).add(frame, _captioner(captions.get(row)))

    def end(self, row: int, *, keep: bool) -> list[VideoFile]:
        """The episode of a row is over; returns its videos."""
        videos = self._cut.pop(row, [])
        if row in self._videos:
            videos.append(self._videos.pop(row))
        for video in videos:
            video.end(keep=keep)
        return [video.file for video in videos] if keep else []

    def close(self, *, keep: bool) -> None:
        """Ends all."""
        for row in [*self._videos]:
            self.end(row, keep=keep)

    def _video(self, row: int) -> Video:
        if row not in self._videos:
            self._videos[row] = self._output.open(f"_row_{row}")
        return self._videos[row]


class TiledVideo:
    """A video of all environments, row by row in a square of tiles.

    Args:
        output: Where it is made.
        num_envs: The number of tiles.
    """

    def __init__(self, output: VideoOutput, num_envs: int) -> None:
        """Has no frame yet."""
        self._output = output
        self.rows = list(range(num_envs))
        self._columns = math.ceil(math.sqrt(num_envs))
        self._canvas: Frame | None = None
        self._video: Video | None = None

    def begin(self, frames: dict[int, Frame]) -> None:
        """Rows show these frames from now on; a new video begins with them."""
        self._paint(frames)
        if self._video is None and self._canvas is not None:
            self._open()

    def step(self, frames: dict[int, Frame], captions: dict[int, list[str]]) -> None:
        """Adds a frame with what rows show after a step."""
        self._paint({row: _captioned(frame, captions.get(row)) for row, frame in frames.items()})
        if self._canvas is None:
            return
        if self._video is None:
            self._open()
        else:
            self._video.add(self._canvas.copy())
        assert self._video is not None
        longest = self._output.longest
        if longest is not None and self._video.frames > longest:
            self.close(keep=True)
            self._open()

    def end(self, row: int, *, keep: bool) -> list[VideoFile]:
        """An episode is over, which does not end the video."""
        del row, keep
        return []

    def close(self, *, keep: bool) -> None:
        """Ends the video."""
        if self._video is not None:
            self._video.end(keep=keep)
            self._video = None

    def _open(self) -> None:
        assert self._canvas is not None
        self._video = self._output.open()
        self._video.add(self._canvas.copy())

    def _paint(self, frames: dict[int, Frame]) -> None:
        for row, frame in frames.items():
            height, width = frame.shape[:2]
            if self._canvas is None:
                lines = math.ceil(len(self.rows) / self._columns)
                self._canvas = np.zeros((lines * height, self._columns * width, 3), np.uint8)
            line, column = divmod(row, self._columns)
            top, left = line * height, column * width
            self._canvas[top : top + height, left : left + width] = frame


def _captioned(frame: Frame, lines: list[str] | None) -> Frame:
    return with_caption(frame, lines) if lines else frame


def _captioner(lines: list[str] | None) -> Callable[[Frame], Frame] | None:
    return (lambda frame: with_caption(frame, lines)) if lines else None


def free_numbers(folder: FilePath) -> Iterator[int]:
    """Numbers for videos: above all that have a file in a folder."""
    names = (path.name[: -len(".mp4")].partition("_")[0] for path in folder.glob("*.mp4"))
    taken = [int(name) for name in names if name.isdecimal()]
    return itertools.count(max(taken, default=-1) + 1)
