"""Frames of native environments: what every renderer does, and the one of plugins."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel.native.link import NativeLink

    Ask = Callable[[list[Any], Sequence[int] | None], tuple[Any, ...]]


#: Frames per second of environments that draw themselves, where a video is made of them.
_FPS = 30


class Renderer(Protocol):
    """Draws rows of a native environment.

    Attributes:
        metadata: The metadata of the environment, with its render modes.
        keeps: What rows keep of terminal states: the number of a render mode for drawings, ``None``
            for parameters.
    """

    metadata: dict[str, Any]
    keeps: int | None

    def draw(self, rows: Sequence[int], link: NativeLink, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows.

        Args:
            rows: The rows to draw.
            link: Makes messages to the environments.
            ask: Sends messages, and returns the answers of rows.

        Returns:
            One frame for each of ``rows``.
        """

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:
        """Returns frames of terminal states from what rows kept."""

    def close(self) -> None:
        """Closes windows."""


class OwnRenderer(Renderer):
    """Asks the environments for their frames: those of plugins draw themselves."""

    def __init__(self, env_id: str, modes: list[str], render_mode: str | None) -> None:
        """Keeps the render modes of a kind of environment.

        Raises:
            ValueError: The environment does not have this render mode.
        """
        check_render_mode(env_id, render_mode, modes)
        self._env_id = env_id
        self._render_mode = render_mode
        self.keeps = None if render_mode is None else modes.index(render_mode)
        self.metadata = {"render_modes": modes, "render_fps": _FPS}

    def draw(self, rows: Sequence[int], link: NativeLink, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows, see :meth:`Renderer.draw`; without a render mode, warns."""
        if self.keeps is None:
            warn_without_mode(self._env_id, self.metadata["render_modes"])
            return (None,) * len(rows)
        return ask(link.pack_render(rows, self.keeps), rows)

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:  # noqa: ARG002 - Renderer's signature
        """Returns the drawings that rows kept, see :meth:`Renderer.draw_kept`."""
        return kept

    def close(self) -> None:
        """Does nothing: there are no windows."""


def warn_without_mode(env_id: str, modes: list[str]) -> None:
    """Warns that nothing is drawn, since no render mode was passed."""
    logger.warn(
        f"render() of {env_id} does nothing without a render mode: pass `render_mode`, one of "
        f"{modes}."
    )


def check_render_mode(env_id: str, render_mode: str | None, modes: list[str]) -> None:
    """Raises ``ValueError`` unless ``render_mode`` is ``None`` or one of ``modes``."""
    if render_mode is not None and render_mode not in modes:
        allowed = f"one of {', '.join(map(repr, [None, *modes]))}" if modes else "None"
        raise ValueError(f"`render_mode` of {env_id} must be {allowed}, got {render_mode!r}.")


class Shown:
    """A pool that draws its rows in windows after each result, for ``render_mode="human"``.

    While rows are in flight, nothing is drawn.
    """

    _RESULTS = (
        "step",
        "step_by_row",
        "step_wait",
        "step_wait_by_row",
        "reset",
        "reset_by_row",
        "reset_rows",
        "reset_wait",
        "recv",
    )

    def __init__(self, pool: Any, draw: Callable[[], object]) -> None:
        """Wraps ``pool``; ``draw`` is a bound method, which is held by a weak reference."""
        self._pool = pool
        self._draw = weakref.WeakMethod(draw)

    def __getattr__(self, name: str) -> Any:
        """Returns a method of the pool, which also draws if it returns results."""
        method = getattr(self._pool, name)
        return functools.partial(self._and_draw, method) if name in self._RESULTS else method

    def _and_draw(self, method: Callable[..., Any], *args: Any) -> Any:
        result = method(*args)
        draw = self._draw()
        if draw is not None and not self._pool.in_flight():
            draw()
        return result
