"""Draws the steps of a vector environment for its videos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.recorder.caption import line
from cartwheel.recorder.info_numbers import numbers
from cartwheel.recorder.videos import EpisodeVideos, TiledVideo

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cartwheel.recorder.camera import Camera
    from cartwheel.recorder.video_file import VideoFile
    from cartwheel.wrapping.batch import Batch

    Mask = NDArray[np.bool_]
    Rows = NDArray[np.int64]


class VideoRecorder:
    """Draws what filmed rows show, and hands it to their videos.

    Args:
        num_envs: The number of environments.
        camera: Draws rows.
        videos: The videos of the rows.
        trigger: Whether a step is filmed, by its number; ``None``: all are.
        has_captions: Whether numbers are written on the frames.
    """

    def __init__(
        self,
        num_envs: int,
        camera: Camera,
        videos: EpisodeVideos | TiledVideo,
        trigger: Callable[[int], bool] | None,
        *,
        has_captions: bool,
    ) -> None:
        """Draws nothing yet."""
        self._camera, self._videos, self._trigger = camera, videos, trigger
        self._has_captions = has_captions
        self._is_tiled = isinstance(videos, TiledVideo)
        self._is_filmed = np.zeros(num_envs, np.bool_)
        self._is_filmed[videos.rows] = True
        #: What rows show that are filmed in the present batch; ``None``: nothing is filmed.
        self._drawn: dict[int, Any] | None = None

    def draw(self, number: int, rows: Rows, steps: Mask, begins: Mask) -> None:
        """Draws filmed rows of a batch, after so many steps.

        Args:
            number: Of the step.
            rows: The environments of the batch.
            steps: Which of them were stepped.
            begins: Which of them show the beginning of an episode; with a step, the next one's.
        """
        self._drawn = None
        if self._trigger is not None and not self._trigger(number):
            return
        wanted = (steps | begins) & self._is_filmed[rows]
        if self._is_tiled:
            wanted = wanted & ~(steps & begins)  # the terminal frame is shown, and then the next
        self._drawn = self._camera.draw(rows[wanted].tolist())

    def step(
        self, batch: Batch, rows: Rows, steps: Mask, begins: Mask, lengths: Rows, returns: Any
    ) -> None:
        """Adds the frames of a step.

        Args:
            batch: Of the step.
            rows: Its environments.
            steps: Which of them were stepped.
            begins: Which of them show the beginning of an episode.
            lengths: Steps of the present episode of every environment.
            returns: Sums of rewards of the present episode of every environment.
        """
        drawn = self._drawn
        if drawn is None:
            return
        places = np.flatnonzero(steps & self._is_filmed[rows])
        filmed = list(zip(rows[places].tolist(), places.tolist(), strict=True))
        gone = [(row, place) for row, place in filmed if begins[place]]
        frames = self._camera.finals(batch.infos, gone) if gone else {}
        frames |= {row: drawn[row] for row, place in filmed if not begins[place]}
        if self._is_tiled:  # also what rows show that were reset meanwhile
            frames |= {row: frame for row, frame in drawn.items() if row not in frames}
        captions = {}
        if self._has_captions:
            for row, place in filmed:
                infos = batch.infos.get("final_info", {}) if begins[place] else batch.infos
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
        filmed = rows[self._is_filmed[rows]].tolist()
        frames = {row: self._drawn[row] for row in filmed if row in self._drawn}
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
