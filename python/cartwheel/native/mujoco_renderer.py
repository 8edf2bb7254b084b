"""Frames of rows that MuJoCo steps, drawn by Gymnasium's ``MujocoRenderer``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cartwheel.native.renderer import Renderer, check_render_mode, warn_without_mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.native.link import NativeLink
    from cartwheel.native.renderer import Ask
    from cartwheel.native.simulated import Simulated


class RowsRenderer(Renderer):
    """Draws each row from its own model and data, as the row's environment of Gymnasium would.

    A row has a renderer of its own from its first frame on: a camera looks where the robot was
    then, and those that follow it remember where they were.

    Attributes:
        metadata: The metadata of Gymnasium's environment.
    """

    keeps = None

    def __init__(self, env_id: str, simulated: Simulated, render_mode: str | None) -> None:
        """Keeps what Gymnasium's environment draws with.

        Raises:
            ValueError: The environment does not have this render mode.
        """
        self.metadata: dict[str, Any] = dict(simulated.env.metadata)
        check_render_mode(env_id, render_mode, self.metadata["render_modes"])
        self._env_id = env_id
        self._simulated = simulated
        self._render_mode = render_mode
        #: Of each row that was drawn, the number of its simulation and its renderer.
        self._renderers: dict[int, tuple[int, Any]] = {}

    def draw(self, rows: Sequence[int], link: NativeLink, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows, see :meth:`Renderer.draw`; without a render mode, warns.

        Raises:
            Exception: MuJoCo finds no way to draw: ``MUJOCO_GL`` may be ``egl`` or ``osmesa`` where
                there is no display.
        """
        if self._render_mode is None:
            warn_without_mode(self._env_id, self.metadata["render_modes"])
            return (None,) * len(rows)
        numbers = ask(link.pack_request("simulation", rows), rows)
        return tuple(map(self._draw, rows, numbers))

    def _draw(self, row: int, number: int) -> Any:
        of, renderer = self._renderers.get(row, (-1, None))
        if renderer is None or of != number:  # the first frame of the row, or of its replacement
            if renderer is not None:
                renderer.close()
            renderer = self._make(self._simulated.row(number))
            self._renderers[row] = (number, renderer)
        elif renderer.viewer is not None:  # another row's context may be the present one
            renderer.viewer.make_context_current()
        return renderer.render(self._render_mode)

    def _make(self, row: Any) -> Any:
        """Returns a renderer for a simulation, made as Gymnasium's environment makes its own."""
        module = importlib.import_module("gymnasium.envs.mujoco.mujoco_rendering")
        env = self._simulated.env
        return module.MujocoRenderer(
            row.model,
            row.data,
            env.mujoco_renderer.default_cam_config,
            env.width,
            env.height,
            env.mujoco_renderer.max_geom,
            env.camera_id,
            env.camera_name,
            self._simulated.visual_options,
        )

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:
        """Draws terminal states."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the renderers, and their windows."""
        while self._renderers:
            self._renderers.popitem()[1][1].close()
