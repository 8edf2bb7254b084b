"""Checks ``rendering``: frames have the form of their render mode; drawing has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from cartwheel.testing.report import Unchecked

if TYPE_CHECKING:
    from cartwheel.testing.kit import Kit


def check_rendering(kit: Kit) -> str:
    """Renders two rows after every step of a run, in every mode but ``"human"``."""
    modes = kit.variants.render_modes
    if not modes:
        raise Unchecked("there is no render mode, or only 'human', which opens windows")
    steps = min(kit.steps, 12)
    for mode in modes:
        with kit.made(2, mode=kit.mode, limit=kit.short, render_mode=mode) as envs:
            player = kit.player(envs)
            player.reset(seed=kit.seed)
            shape: tuple[int, ...] | None = None
            for step in range(steps):
                try:
                    frames = player.render()
                except DependencyNotInstalled as error:
                    raise Unchecked(str(error)) from error
                for row, frame in enumerate(frames):
                    shape = _check_frame(kit, mode, frame, shape, f"of row {row} in step {step}")
                player.step()
        kit.assert_same(
            player,
            kit.singles(ending=True),
            (f"with render_mode={mode!r}, drawn after every step", "when nothing is drawn"),
            "`render` must change nothing: draw from the state, and use no random number.",
        )
    return f"{', '.join(modes)}: 2 rows × {steps} frames"


def _check_frame(
    kit: Kit, mode: str, frame: Any, shape: tuple[int, ...] | None, where: str
) -> tuple[int, ...] | None:
    """Fails if a frame does not have the form of its mode; returns the shape of frames."""
    text = f"the frame {where} (render_mode={mode!r}) is"
    if mode in ("rgb_array_list", "ansi_list"):
        if not isinstance(frame, list):
            kit.fail(f"{text} {type(frame).__name__}", "Return the list of frames.")
        return shape
    if mode == "ansi" and not isinstance(frame, str):
        kit.fail(f"{text} {type(frame).__name__}", "Return text, a str.")
    if mode != "rgb_array":
        return shape
    if not isinstance(frame, np.ndarray):
        kit.fail(f"{text} {type(frame).__name__}", "Return an array.")
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or not frame.size:
        kit.fail(
            f"{text} {frame.dtype} of shape {frame.shape}",
            "Return an array of uint8 and shape (height, width, 3).",
        )
    if shape not in (None, frame.shape):
        kit.fail(
            f"{text} of shape {frame.shape}, and frames before had {shape}",
            "All frames must have the same shape, so that they make a video.",
        )
    size: tuple[int, ...] = frame.shape
    return size
