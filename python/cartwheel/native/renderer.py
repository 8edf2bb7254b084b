"""Frames of native environments, drawn by plugins or by Gymnasium's environments."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import logger
from gymnasium.envs.registration import load_env_creator

from cartwheel._internal.suggestions import keywords_of
from cartwheel._internal.versions import rendering_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel.native.callbacks import NativeCallbacks

    Ask = Callable[[list[Any], Sequence[int] | None], tuple[Any, ...]]


class Renderer(Protocol):
    """Draws rows of a native environment.

    Attributes:
        metadata: The metadata of the environment, with its render modes.
        keeps: The form in which rows keep terminal states: the number of a render mode for frames,
            ``None`` for parameters.
    """

    metadata: dict[str, Any]
    keeps: int | None

    def draw(self, rows: Sequence[int], callbacks: NativeCallbacks, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows.

        Args:
            rows: The rows to draw.
            callbacks: Makes messages to the environments.
            ask: Sends messages, and returns the answers of rows.

        Returns:
            One frame for each of ``rows``.
        """

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:
        """Returns frames of the terminal states that rows kept; ``None`` for one without."""

    def close(self) -> None:
        """Closes windows."""


class OwnRenderer(Renderer):
    """Gets frames from the environments themselves, as those of plugins draw them."""

    def __init__(self, env_id: str, modes: list[str], fps: int, render_mode: str | None) -> None:
        """Keeps the render modes and the frames per second of a kind of environment.

        Raises:
            ValueError: The environment does not have this render mode.
        """
        check_render_mode(env_id, render_mode, modes)
        self._env_id = env_id
        self._render_mode = render_mode
        self.keeps = None if render_mode is None else modes.index(render_mode)
        self.metadata = {"render_modes": modes, "render_fps": fps}

    def draw(self, rows: Sequence[int], callbacks: NativeCallbacks, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows, see :meth:`Renderer.draw`; without a render mode, warns."""
        if self.keeps is None:
            warn_without_mode(self._env_id, self.metadata["render_modes"])
            return (None,) * len(rows)
        return ask(callbacks.pack_render(rows, self.keeps), rows)

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:  # noqa: ARG002 - Renderer's signature
        """Returns the frames that rows kept, see :meth:`Renderer.draw_kept`."""
        return kept

    def close(self) -> None:
        """Does nothing: there are no windows."""


def warn_without_mode(env_id: str, modes: list[str]) -> None:
    """Warns that nothing is drawn, because no render mode was passed."""
    if modes:
        why = f" without a render mode: pass `render_mode`, one of {modes}"
    else:
        why = ": it cannot draw"
    logger.warn(f"render() of {env_id} does nothing{why}.")


def check_render_mode(env_id: str, render_mode: str | None, modes: list[str]) -> None:
    """Raises ``ValueError`` unless ``render_mode`` is ``None`` or one of ``modes``."""
    if render_mode is not None and render_mode not in modes:
        allowed = f"one of {', '.join(map(repr, [None, *modes]))}" if modes else "None"
        raise ValueError(f"`render_mode` of {env_id} must be {allowed}, got {render_mode!r}.")


class WindowedPool:
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
        "recv_resets",
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


class GymnasiumRenderer(Renderer):
    """Draws rows of a native environment with Gymnasium's environment of the same id.

    The parameters of a native environment are attributes of Gymnasium's environment. So one
    environment of Gymnasium draws all rows: for each row, its attributes are set to the row's
    parameters, and it renders. It is made with the same keywords for the first frame, and never
    stepped.

    Attributes:
        metadata: The metadata of Gymnasium's environment, with its render modes; no render modes if
            Gymnasium has no environment of this id.
    """

    keeps = None

    def __init__(
        self, env_id: str, keywords: dict[str, Any], render_mode: str | None, *, native_id: str
    ) -> None:
        """Finds Gymnasium's environment by its id, without making it.

        Args:
            env_id: The id of Gymnasium's environment.
            keywords: Keywords of the environment.
            render_mode: One of the environment's render modes, or ``None``.
            native_id: The registered id of the native environment, for warnings.

        Raises:
            ValueError: The environment does not have this render mode.
        """
        self._env_id = env_id
        self._native_id = native_id
        self._keywords = keywords
        self._render_mode = render_mode
        self._spec = rendering_spec(env_id)
        self._envs: dict[int, gym.Env[Any, Any]] = {}
        self.metadata: dict[str, Any] = {"render_modes": []}
        if self._spec is not None:
            self.metadata = dict(self._load().metadata)
        check_render_mode(env_id, render_mode, self.metadata["render_modes"])

    def _load(self) -> Any:
        """Returns the class of Gymnasium's environment."""
        assert self._spec is not None
        entry_point = self._spec.entry_point
        return load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point

    def _env(self, row: int) -> gym.Env[Any, Any]:
        """Returns the environment that draws ``row``: one for all rows, or one for each window."""
        place = row if self._render_mode == "human" else 0
        if place not in self._envs:
            if self._spec is None:
                raise NotImplementedError(
                    f"{self._env_id} cannot be rendered: Gymnasium, which draws native "
                    "environments, has none of this id."
                )
            make = self._load()
            known = keywords_of(make)  # older versions of Gymnasium have fewer than native ones
            own = {name: value for name, value in self._keywords.items() if name in known}
            keywords = {**self._spec.kwargs, **own, "render_mode": self._render_mode}
            env: gym.Env[Any, Any] = make(**keywords)
            env.spec = gym.registry.get(self._native_id)
            self._envs[place] = env
        return self._envs[place]

    def draw(self, rows: Sequence[int], callbacks: NativeCallbacks, ask: Ask) -> tuple[Any, ...]:
        """Draws some rows, see :meth:`Renderer.draw`; copies parameters back that drawing changed.

        Raises:
            gymnasium.error.DependencyNotInstalled: pygame is missing.
            NotImplementedError: Gymnasium has no environment of this id.
        """
        names = callbacks.envs.parameters()
        parameters = {name: ask(callbacks.pack_request(name, rows), rows) for name in names}
        frames: list[Any] = []
        changed: dict[str, dict[int, Any]] = {}
        for at, row in enumerate(rows):
            given = {name: as_attribute(values[at]) for name, values in parameters.items()}
            env = self._env_like(row, given)
            frames.append(env.render())
            for name, value in given.items():
                kept = getattr(env, name)
                if kept is not value:
                    changed.setdefault(name, {})[row] = kept
        for name, by_row in changed.items():
            ask(callbacks.pack_request(name, list(by_row), list(by_row.values())), None)
        return tuple(frames)

    def draw_kept(self, rows: Sequence[int], kept: list[Any]) -> list[Any]:
        """Draws terminal states from the parameters that rows kept.

        Parameters that drawing changes are not set: the rows were reset since.
        """
        states = [
            {name: as_attribute(value) for name, value in parameters.items()} for parameters in kept
        ]
        pairs = zip(rows, states, strict=True)
        return [self._env_like(row, state).render() for row, state in pairs]

    def _env_like(self, row: int, state: dict[str, Any]) -> gym.Env[Any, Any]:
        """Returns the environment that draws ``row``, with these attributes."""
        env = self._env(row)
        for name, value in state.items():
            setattr(env, name, value)
        return env

    def close(self) -> None:
        """Closes the environments that drew, and their windows."""
        while self._envs:
            self._envs.popitem()[1].close()


def as_attribute(value: Any) -> Any:
    """Converts a parameter to Gymnasium's form, where lines of text are an array of characters."""
    is_text = isinstance(value, list) and any(isinstance(line, str) for line in value)
    return np.asarray(value, "c") if is_text else value
