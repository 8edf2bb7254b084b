"""Frames of the rows of a vector environment, with text on them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.recorder.h5_file import load_library
from cartwheel.vector.pool_owner import pool_of
from cartwheel.workers.envs.attributes import own_attribute
from cartwheel.wrappers.batch import chain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

#: Render modes whose frames are images.
IMAGES = ("rgb_array",)


def why_no_video(envs: Any, mode: AutoresetMode) -> str | None:
    """Returns the reason why a vector environment cannot be recorded as video, or ``None``.

    Raises:
        gymnasium.error.AlreadyPendingCallError: Rows cannot be asked for terminal frames now.
    """
    bare = envs.unwrapped
    render_mode = getattr(envs, "render_mode", None)
    if render_mode not in IMAGES:
        return (
            f"its render_mode is {render_mode!r}: make it with render_mode='rgb_array', or record "
            "with save_video=False"
        )
    if getattr(bare, "batch_size", bare.num_envs) < bare.num_envs:
        return (
            f"with batch_size={bare.batch_size} of num_envs={bare.num_envs} other rows are in "
            "flight when one is drawn"
        )
    own_mode = (bare.metadata or {}).get("autoreset_mode")
    draws_finals = hasattr(bare, "draw_final_frames") and own_mode == AutoresetMode.SAME_STEP
    if mode == AutoresetMode.SAME_STEP and not draws_finals:
        return (
            "in SAME_STEP it is reset before its terminal frame can be drawn: use a vector "
            "environment of cartwheel, or another autoreset mode"
        )
    pool = pool_of(bare)
    if mode == AutoresetMode.SAME_STEP and pool is not None:
        pool.check(type(envs).__name__, idle=True)
    return None


class FrameSource:
    """Draws some rows, and only these where the vector environment can.

    Args:
        envs: The vector environment, or a wrapper of it.
        rows: The rows that will be drawn.
        mode: The autoreset mode.
    """

    def __init__(self, envs: Any, rows: list[int], mode: AutoresetMode) -> None:
        """Requests the terminal frames of these rows in ``SAME_STEP``, where they would be lost."""
        self._envs = envs
        bare = envs.unwrapped
        self._draws_rows = "env_index" in inspect.signature(bare.render).parameters
        self._shape: tuple[int, ...] | None = None
        if mode == AutoresetMode.SAME_STEP:  # a request replaces those of recorders inside
            inside = (getattr(own_attribute(one, "_videos"), "rows", ()) for one in chain(envs))
            bare.draw_final_frames(sorted(set(rows).union(*inside)))

    def draw(self, rows: list[int]) -> dict[int, NDArray[np.uint8]]:
        """Returns copies of frames ``[height, width, 3]``, by row.

        Raises:
            TypeError: A frame is not an image.
            ValueError: A frame has another shape than the others.
        """
        if not rows:
            return {}
        if self._draws_rows:
            drawn = self._envs.unwrapped.render(rows)
            return {row: self.checked(row, one) for row, one in zip(rows, drawn, strict=True)}
        drawn = self._envs.render()
        return {row: self.checked(row, drawn[row]) for row in rows}

    def finals(self, infos: dict[str, Any], places: Iterable[tuple[int, int]]) -> dict[int, Any]:
        """Returns terminal frames by row, for pairs of a row and its place in the batch."""
        frames, mask = infos.get("final_frame"), infos.get("_final_frame")
        if frames is None or mask is None:
            return {}
        return {row: self.checked(row, frames[place]) for row, place in places if mask[place]}

    def checked(self, row: int, drawn: Any) -> NDArray[np.uint8]:
        """Returns a copy of a frame.

        Raises:
            TypeError: It is not an image.
            ValueError: It has another shape than the others.
        """
        frame = np.asarray(drawn)
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise TypeError(
                f"`render` of row {row} must return an array of uint8 and shape "
                f"(height, width, 3), got {type(drawn).__name__} of {frame.dtype} and shape "
                f"{frame.shape}."
            )
        if not frame.size:
            raise ValueError(
                f"the frame of row {row} has the shape {frame.shape}, without a pixel: record with "
                "save_video=False, or choose other `video_envs`."
            )
        if self._shape is None:
            self._shape = frame.shape
        if frame.shape != self._shape:
            raise ValueError(
                f"frames must be equal in shape: that of row {row} has {frame.shape}, others have "
                f"{self._shape}."
            )
        return frame.copy()


def with_caption(frame: NDArray[np.uint8], lines: list[str]) -> NDArray[np.uint8]:
    """Returns a copy of a frame with lines of text at its upper left."""
    images: Any = load_library("PIL.Image")
    image = images.fromarray(frame)
    draw = load_library("PIL.ImageDraw").Draw(image)
    font = load_library("PIL.ImageFont").load_default(max(10, frame.shape[0] // 20))
    text = "\n".join(lines)
    left, top, right, bottom = draw.multiline_textbbox((3, 2), text, font=font)
    draw.rectangle((left - 2, top - 2, right + 2, bottom + 2), fill=(0, 0, 0))
    draw.multiline_text((3, 2), text, font=font, fill=(255, 255, 255))
    return np.asarray(image)


def line(name: str, value: Any) -> str | None:
    """Returns a line for a number, a flag or a short array; ``None`` for anything else."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.size > 8:
        return None
    if array.size == 1:
        return f"{name} {array.item():.4g}"
    text = np.array2string(array, precision=3, suppress_small=True)
    return f"{name} {text}"
