"""Text on frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.recorder.extra import load

if TYPE_CHECKING:
    from numpy.typing import NDArray


def with_caption(frame: NDArray[np.uint8], lines: list[str]) -> NDArray[np.uint8]:
    """Returns a copy of a frame with lines of text at its upper left."""
    images: Any = load("PIL.Image")
    image = images.fromarray(frame)
    draw = load("PIL.ImageDraw").Draw(image)
    font = load("PIL.ImageFont").load_default(max(10, frame.shape[0] // 20))
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
