"""Frames of native environments, drawn by Gymnasium's environments of the same ids."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Renderer:
    """Draws rows of a native environment as Gymnasium's environment draws itself.

    Parameters of native environments are attributes of Gymnasium's. So one environment of
    Gymnasium, made with the same keywords when it is first needed and never stepped, is given the
    attributes of one row after the other and told to render.

    Attributes:
        metadata: Those of Gymnasium's environment, with the render modes there are; without any
            when Gymnasium has no environment of this id.
    """

    def __init__(
        self, env_id: str, keywords: dict[str, Any], render_mode: str | None, *, native_id: str
    ) -> None:
        """Looks the environment up; nothing is made yet.

        Args:
            env_id: The id of Gymnasium's environment.
            keywords: Keywords of the environment.
            render_mode: One of Gymnasium's render modes for it, or ``None``.
            native_id: The registered id of the native environment, which warnings name.

        Raises:
            ValueError: It cannot be rendered like that.
        """
        self._env_id = env_id
        self._native_id = native_id
        self._keywords = keywords
        self._render_mode = render_mode
        self._spec = gym.registry.get(env_id)
        self._envs: dict[int, gym.Env[Any, Any]] = {}
        self.metadata: dict[str, Any] = {"render_modes": []}
        if self._spec is not None:
            self.metadata = dict(self._load().metadata)
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            allowed = ", ".join(map(repr, [None, *modes]))
            raise ValueError(
                f"`render_mode` of {env_id} must be one of {allowed}, got {render_mode!r}."
            )

    def _load(self) -> Any:
        """The class of Gymnasium's environment."""
        assert self._spec is not None
        entry_point = self._spec.entry_point
        return load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point

    def _env(self, row: int) -> gym.Env[Any, Any]:
        """The environment that draws ``row``: one for all, but in a window every row keeps time."""
        place = row if self._render_mode == "human" else 0
        if place not in self._envs:
            if self._spec is None:
                raise NotImplementedError(f"{self._env_id} cannot be rendered.")
            keywords = {**self._spec.kwargs, **self._keywords, "render_mode": self._render_mode}
            env: gym.Env[Any, Any] = self._load()(**keywords)
            env.spec = gym.registry.get(self._native_id)
            self._envs[place] = env
        return self._envs[place]

    def draw(
        self, rows: Iterable[int], parameters: Mapping[str, Sequence[Any]]
    ) -> tuple[tuple[Any, ...], dict[str, list[Any]]]:
        """Draws some rows.

        Args:
            rows: Which.
            parameters: Of every row.

        Returns:
            What Gymnasium's ``render`` returned, one frame a row; and those parameters that it
            changed, again of every row.

        Raises:
            gymnasium.error.DependencyNotInstalled: pygame is missing.
            NotImplementedError: Gymnasium has no environment of this id.
        """
        frames: list[Any] = []
        changed: dict[str, list[Any]] = {}
        for row in rows:
            env = self._env(row)
            given = {name: as_attribute(values[row]) for name, values in parameters.items()}
            for name, value in given.items():
                setattr(env, name, value)
            frames.append(env.render())
            for name, value in given.items():
                kept = getattr(env, name)
                if kept is not value:
                    changed.setdefault(name, list(parameters[name]))[row] = kept
        return tuple(frames), changed

    def close(self) -> None:
        """Closes the environments that drew, and with them windows."""
        while self._envs:
            self._envs.popitem()[1].close()


def as_attribute(value: Any) -> Any:
    """A parameter as Gymnasium's attribute: lines of text are an array of characters there."""
    is_text = isinstance(value, list) and any(isinstance(line, str) for line in value)
    return np.asarray(value, "c") if is_text else value


class Shown:
    """A pool whose results are drawn in a window before they are returned, as far as they can be.

    That is what ``render_mode="human"`` means. Rows in flight cannot be drawn.
    """

    _RESULTS = ("step", "step_rows", "step_wait", "reset_wait", "recv")

    def __init__(self, pool: Any, draw: Callable[[], object]) -> None:
        """Draws by calling the bound method ``draw``, whose object this one does not keep alive."""
        self._pool = pool
        self._draw = weakref.WeakMethod(draw)

    def __getattr__(self, name: str) -> Any:
        """A method of the pool."""
        method = getattr(self._pool, name)
        return functools.partial(self._and_draw, method) if name in self._RESULTS else method

    def _and_draw(self, method: Callable[..., Any], *args: Any) -> Any:
        result = method(*args)
        draw = self._draw()
        if draw is not None and not self._pool.in_flight():
            draw()
        return result
