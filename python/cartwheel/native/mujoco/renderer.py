"""Frames of rows that MuJoCo steps, drawn by Gymnasium's ``MujocoRenderer``."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from cartwheel.native.renderer import Renderer, check_render_mode, warn_without_mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.native.callbacks import NativeCallbacks
    from cartwheel.native.mujoco.env import MujocoBackend
    from cartwheel.native.mujoco.simulations import Row
    from cartwheel.native.renderer import Ask


class RowsRenderer(Renderer):
    """Draws each row from its own model and data, as Gymnasium's environment would.

    Each row gets its own renderer at its first frame, because cameras keep the position of the
    robot at that time, and tracking cameras keep their own.

    Attributes:
        metadata: The metadata of Gymnasium's environment.
    """

    keeps = None

    def __init__(self, env_id: str, mujoco: MujocoBackend, render_mode: str | None) -> None:
        """Keeps the settings of the renderer of Gymnasium's environment.

        Raises:
            ValueError: The environment does not have this render mode.
        """
        self.metadata: dict[str, Any] = dict(mujoco.env.metadata)
        check_render_mode(env_id, render_mode, self.metadata["render_modes"])
        self._env_id = env_id
        self._mujoco = mujoco
        self._render_mode = render_mode
        #: For each row that was drawn, the number of its simulation and its renderer.
        self._renderers: dict[int, tuple[int, Any]] = {}

    def draw(self, rows: Sequence[int], callbacks: NativeCallbacks, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows, see :meth:`Renderer.draw`; without a render mode, warns.

        Raises:
            RuntimeError: No display was found for windows; or MuJoCo finds no OpenGL to draw with,
                and the error says how to set ``MUJOCO_GL``.
        """
        if self._render_mode is None:
            warn_without_mode(self._env_id, self.metadata["render_modes"])
            return (None,) * len(rows)
        numbers = ask(callbacks.pack_request("simulation", rows), rows)
        return tuple(map(self._draw, rows, numbers))

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:
        """Draws terminal states from the parameters that rows kept.

        Those of rows that were replaced since are ``None``: their simulations are gone.
        """
        return [
            self._draw(row, number, parameters)
            if (number := parameters["simulation"]) in self._mujoco.simulation.rows
            else None
            for row, parameters in zip(rows, kept, strict=True)
        ]

    def _draw(self, row: int, number: int, kept: dict[str, Any] | None = None) -> Any:
        """Draws a row as it is, or as it was when it kept its parameters."""
        of = self._mujoco.row(number)
        renderer = self._renderer(row, of)
        if kept is None:
            return self._rendered(renderer)
        data = of.data_of(kept["qpos"], kept["scene"])
        try:
            _set_data(renderer, data)
            return self._rendered(renderer)
        finally:
            _set_data(renderer, of.data)

    def _rendered(self, renderer: Any) -> Any:
        try:
            return renderer.render(self._render_mode)
        except Exception as error:
            if renderer.viewer is None:  # it could not be made
                raise _no_opengl() from error
            raise

    def _renderer(self, row: int, of: Row) -> Any:
        """Returns the renderer of a row after making its context the present one."""
        number, renderer = self._renderers.get(row, (-1, None))
        if renderer is not None and number == of.number:
            if renderer.viewer is not None:  # another row's context may be the present one
                renderer.viewer.make_context_current()
            return renderer
        if renderer is not None:  # of the environment that was replaced
            _free(renderer)
        renderer = self._make(of)
        self._renderers[row] = (of.number, renderer)
        return renderer

    def _make(self, of: Row) -> Any:
        """Returns a renderer for a simulation, made as Gymnasium's environment makes its own."""
        if self._render_mode == "human":
            _check_display()
        module = importlib.import_module("gymnasium.envs.mujoco.mujoco_rendering")
        env = self._mujoco.env
        return module.MujocoRenderer(
            of.model,
            of.data,
            env.mujoco_renderer.default_cam_config,
            env.width,
            env.height,
            env.mujoco_renderer.max_geom,
            env.camera_id,
            env.camera_name,
            self._mujoco.visual_options,
        )

    def close(self) -> None:
        """Closes the renderers, and their windows."""
        renderers = [renderer for _, renderer in self._renderers.values()]
        self._renderers.clear()
        for renderer in renderers:
            _free(renderer)
        for renderer in renderers[-1:]:  # one is enough: this also terminates GLFW
            renderer.close()


def _free(renderer: Any) -> None:
    if renderer.viewer is not None:
        renderer.viewer.free()


def _set_data(renderer: Any, data: Any) -> None:
    renderer.data = data
    if renderer.viewer is not None:
        renderer.viewer.data = data


def _no_opengl() -> RuntimeError:
    value = os.environ.get("MUJOCO_GL")
    state = "is not set" if value is None else f"is {value!r}"
    return RuntimeError(
        f"MuJoCo cannot draw: it found no OpenGL, and MUJOCO_GL {state}; on a machine "
        "without a display, set MUJOCO_GL=egl (or osmesa) before Python starts."
    )


def _check_display() -> None:
    """Raises unless there is a display: GLFW ends the process where Gymnasium asks for its size."""
    glfw = importlib.import_module("glfw")
    if not glfw.init() or not glfw.get_primary_monitor():
        raise RuntimeError(
            "render_mode='human' needs a display, and GLFW finds none: set DISPLAY, or use "
            "render_mode='rgb_array' with MUJOCO_GL=egl or osmesa."
        )
