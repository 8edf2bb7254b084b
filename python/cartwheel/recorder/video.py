"""Videos of single environments, or of all in tiles, encoded while they are recorded."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.process import Finalizer
from cartwheel.recorder.buffer import numbers
from cartwheel.recorder.frames import line, with_caption
from cartwheel.recorder.h5_file import load_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from cartwheel.recorder.frames import FrameSource
    from cartwheel.recorder.writer import Writer
    from cartwheel.wrappers.batch import Batch

    Frame = NDArray[np.uint8]
    Mask = NDArray[np.bool_]
    Rows = NDArray[np.int64]


@dataclass
class VideoOutput:
    """The folder, the thread and the format of videos.

    Attributes:
        folder: The folder of the files.
        writer: The thread that encodes.
        fps: Frames per second.
        max_steps: The maximum number of steps of a video; ``None`` for any number.
        numbers: The numbers of the files: above all that have one in the folder.
    """

    folder: FilePath
    writer: Writer
    fps: float
    max_steps: int | None
    numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        names = (path.name[: -len(".mp4")].partition("_")[0] for path in self.folder.glob("*.mp4"))
        taken = [int(name) for name in names if name.isdecimal()]
        self.numbers = itertools.count(max(taken, default=-1) + 1)

    def open(self, suffix: str = "") -> Video:
        """Begins a video."""
        return Video(VideoFile(self.folder, suffix, self.numbers, self.fps), self.writer)


class Video:
    """The frames of one video, which the writer encodes.

    Attributes:
        frames: The number of frames.
        file: The video.
    """

    def __init__(self, file: VideoFile, writer: Writer) -> None:
        self.file, self._writer, self.frames = file, writer, 0

    def add(self, frame: Frame, lines: list[str] | None = None) -> None:
        """Adds a frame, which the caller no longer uses, with lines of text on it."""
        file = self.file
        self._writer.put(lambda: file.add(_captioned(frame, lines)), frame.nbytes)
        self.frames += 1

    def end(self, *, keep: bool) -> None:
        """Completes the video, or removes it; a single frame is not a video."""
        self._writer.put(self.file.finish if keep and self.frames > 1 else self.file.discard, 0)


class EpisodeVideos:
    """A video for each episode of some environments.

    Args:
        output: The folder, thread and format.
    """

    def __init__(self, output: VideoOutput) -> None:
        self._output = output
        self._videos: dict[int, Video] = {}
        #: Videos that were cut from the present episode of a row.
        self._cut: dict[int, list[Video]] = {}

    def begin(self, frames: dict[int, Frame]) -> None:
        """Episodes begin with these frames."""
        for row, frame in frames.items():
            self._video(row).add(frame)

    def step(self, frames: dict[int, Frame], captions: dict[int, list[str]]) -> None:
        """Adds frames of a step."""
        max_steps = self._output.max_steps
        for row, frame in frames.items():
            video = self._video(row)
            video.add(frame, captions.get(row))
            if max_steps is not None and video.frames > max_steps:
                self._cut.setdefault(row, []).append(self._videos.pop(row))
                self._video(row).add(frame, captions.get(row))

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
        output: The folder, thread and format.
        num_envs: The number of tiles.
    """

    def __init__(self, output: VideoOutput, num_envs: int) -> None:
        self._output = output
        self._columns = math.ceil(math.sqrt(num_envs))
        self._lines = math.ceil(num_envs / self._columns)
        self._canvas: Frame | None = None
        self._video: Video | None = None

    def begin(self, frames: dict[int, Frame]) -> None:
        """Rows show these frames from now on; a new video begins with them."""
        self._paint(frames)
        if self._video is None and self._canvas is not None:
            self._open()

    def step(self, frames: dict[int, Frame], captions: dict[int, list[str]]) -> None:
        """Adds a frame of all rows after a step."""
        self._paint({row: _captioned(frame, captions.get(row)) for row, frame in frames.items()})
        if self._canvas is None:
            return
        if self._video is None:
            self._open()
        else:
            self._video.add(self._canvas.copy())
        assert self._video is not None
        max_steps = self._output.max_steps
        if max_steps is not None and self._video.frames > max_steps:
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
                size = (self._lines * height, self._columns * width, 3)
                self._canvas = np.zeros(size, np.uint8)
            line, column = divmod(row, self._columns)
            top, left = line * height, column * width
            self._canvas[top : top + height, left : left + width] = frame


def _captioned(frame: Frame, lines: list[str] | None) -> Frame:
    return with_caption(frame, lines) if lines else frame


class VideoRecorder:
    """Draws recorded rows and adds the frames to their videos.

    Args:
        num_envs: The number of environments.
        rows: The recorded ones.
        frames: Draws rows.
        output: The folder, thread and format.
        trigger: Whether a step is drawn, by its number; ``None``: all are.
        is_tiled: Whether one video has all rows, instead of one for each of their episodes.
        has_captions: Whether numbers are written on the frames.

    Attributes:
        rows: The recorded rows, which recorders around this one ask for.
    """

    def __init__(
        self,
        num_envs: int,
        rows: list[int],
        frames: FrameSource,
        output: VideoOutput,
        trigger: Callable[[int], bool] | None,
        *,
        is_tiled: bool,
        has_captions: bool,
    ) -> None:
        self._frames, self._trigger = frames, trigger
        self._videos = TiledVideo(output, num_envs) if is_tiled else EpisodeVideos(output)
        self._is_tiled, self._has_captions = is_tiled, has_captions
        self.rows = rows
        self._has_video = np.zeros(num_envs, np.bool_)
        self._has_video[rows] = True
        #: The frames of recorded rows in the present batch; ``None``: nothing is drawn.
        self._drawn: dict[int, Any] | None = None

    def draw(self, number: int, rows: Rows, steps: Mask, begins: Mask) -> None:
        """Draws the recorded rows of a batch, after so many steps.

        Args:
            number: Of the step.
            rows: The environments of the batch.
            steps: Which of them were stepped.
            begins: Which of them show the beginning of an episode; with a step, the next one's.
        """
        self._drawn = None
        if self._trigger is not None and not self._trigger(number):
            return
        wanted = (steps | begins) & self._has_video[rows]
        if self._is_tiled:
            wanted = wanted & ~(steps & begins)  # the terminal frame is shown, and then the next
        self._drawn = self._frames.draw(rows[wanted].tolist())

    def step(
        self,
        batch: Batch,
        rows: Rows,
        steps: Mask,
        begins: Mask,
        last_infos: dict[str, Any],
        lengths: Rows,
        returns: Any,
    ) -> None:
        """Adds the frames of a step.

        Args:
            batch: Of the step.
            rows: Its environments.
            steps: Which of them were stepped.
            begins: Which of them show the beginning of an episode.
            last_infos: The infos of those that were stepped and show a beginning.
            lengths: Steps of the present episode of every environment.
            returns: Sums of rewards of the present episode of every environment.
        """
        drawn = self._drawn
        if drawn is None:
            return
        places = np.flatnonzero(steps & self._has_video[rows])
        recorded = list(zip(rows[places].tolist(), places.tolist(), strict=True))
        gone = [(row, place) for row, place in recorded if begins[place]]
        frames = self._frames.finals(batch.infos, gone) if gone else {}
        frames |= {row: drawn[row] for row, place in recorded if not begins[place]}
        if self._is_tiled:  # also the frames of rows that were reset meanwhile
            frames |= {row: frame for row, frame in drawn.items() if row not in frames}
        captions = {}
        if self._has_captions:
            for row, place in recorded:
                infos = last_infos if begins[place] else batch.infos
                captions[row] = [
                    f"step {int(lengths[row])}",
                    *_lines(batch.rewards[place], returns[row], infos, place, len(rows)),
                ]
        if frames:
            self._videos.step(frames, captions)

    def begin(self, rows: Rows, *, is_step: bool) -> None:
        """Episodes of these rows begin; ``is_step``: in a step, whose frame a tile has already."""
        if self._drawn is None or (is_step and self._is_tiled):
            return
        recorded = rows[self._has_video[rows]].tolist()
        frames = {row: self._drawn[row] for row in recorded if row in self._drawn}
        if frames:
            self._videos.begin(frames)

    def end(self, row: int, *, keep: bool) -> list[VideoFile]:
        """The episode of a row is over; returns its videos."""
        return self._videos.end(row, keep=keep)

    def cut(self, *, keep: bool) -> None:
        """All rows are reset at once, which ends a video of all."""
        if self._is_tiled:
            self._videos.close(keep=keep)

    def close(self, *, keep: bool) -> None:
        """Ends all videos."""
        self._videos.close(keep=keep)


def _lines(reward: Any, total: Any, infos: dict[str, Any], place: int, size: int) -> list[str]:
    lines = [line("reward", reward), line("return", total)]
    for path, values, mask in numbers(infos, size):
        if mask[place]:
            lines.append(line("/".join(map(str, path)), values[place]))
    return [one for one in lines if one is not None]


#: Encoders, the best first, with their options.
ENCODERS = {"libx264": {"preset": "veryfast", "crf": "20"}, "libopenh264": {}, "mpeg4": {}}
_PARTS = itertools.count()


def encoder() -> str:
    """Returns the name of the encoder: H.264 where PyAV has it.

    Raises:
        ImportError: PyAV is missing, or has no encoder for MP4 files.
    """
    av = load_library("av")
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
        if height % 2 or width % 2:  # yuv420p has one color for two by two pixels
            frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)))
        picture = load_library("av").VideoFrame.from_ndarray(
            np.ascontiguousarray(frame), format="rgb24"
        )
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
        self._part.touch()  # PyAV's errors do not name it
        self._container = load_library("av").open(str(self._part), "w", format="mp4")
        self._stream = self._container.add_stream(name, rate=self._rate, options=ENCODERS[name])
        self._stream.height, self._stream.width = (size + size % 2 for size in shape[:2])
        self._stream.pix_fmt = "yuv420p"
        self._container.start_encoding()  # opens the file, not with some later frame


def _remove(part: FilePath) -> None:
    part.unlink(missing_ok=True)
