"""One environment of Gymnasium, which loads the model and has everything except the steps.

The keywords are Gymnasium's own: its class checks them, reads the XML file, and has the initial
state, the spaces, the metadata and the settings of the renderer. The environment is never stepped
for the caller; it is reset and stepped once, so that a model that does not fit raises Gymnasium's
error.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.registration import load_env_creator

from cartwheel._internal.arguments import as_integer
from cartwheel._internal.suggestions import shown
from cartwheel._internal.versions import rendering_spec
from cartwheel.native.mujoco.library import logged_warnings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

#: The package of Gymnasium's classes. Steps of another class of the same id may differ.
_PACKAGE = "gymnasium.envs.mujoco."
#: Keywords of the base class that environments set themselves.
_SET = ("model_path", "observation_space", "render_mode")


class GymnasiumEnv:
    """Gymnasium's class of an id, and one environment of it.

    Attributes:
        env_id: The id.
        keywords: Its keywords and their defaults, without ``render_mode``.
    """

    def __init__(self, env_id: str) -> None:
        """Finds the class.

        Raises:
            ImportError: MuJoCo, or a library that Gymnasium renders with, is not installed.
            TypeError: The id was registered again, with a class that is not Gymnasium's.
        """
        spec = rendering_spec(env_id)
        entry_point = None if spec is None else spec.entry_point
        if not isinstance(entry_point, str) or not entry_point.startswith(_PACKAGE):
            raise TypeError(
                f"{env_id} of Gymnasium's registry is not Gymnasium's own class but "
                f"{shown(entry_point)}, which cannot be stepped natively: "
                f"{in_workers(env_id)}"
            )
        self.env_id = env_id
        try:
            self._make: Any = load_env_creator(entry_point)
        except ImportError as error:
            raise ImportError(
                f"cartwheel/{env_id} needs what Gymnasium's {env_id} needs: "
                f"pip install 'cartwheel[mujoco]' ({error})",
                name=error.name,
            ) from error
        self._own = _defaults(self._make)
        base = importlib.import_module(f"{_PACKAGE}mujoco_env").MujocoEnv
        every = self._own | _defaults(base) | self._own  # its own first, and with its defaults
        self.keywords = {name: every[name] for name in every if name not in _SET}

    def make(self, mujoco: ModuleType, keywords: Mapping[str, Any]) -> Any:
        """Makes an environment, and resets and steps it once.

        Args:
            mujoco: The imported package.
            keywords: Keywords of Gymnasium's environment.

        Raises:
            Exception: As Gymnasium's environment of this id: the file does not exist
                (``OSError``), MuJoCo cannot read it (``ValueError``), or the model lacks a body
                that the environment needs (``KeyError``).
            ValueError: ``frame_skip`` is not an integer of at least 1.
        """
        if "frame_skip" in keywords:
            as_integer("frame_skip", keywords["frame_skip"], 1, limit=2**32 - 1)
        level = logging.WARNING if "xml_file" in keywords else logging.INFO  # Gymnasium's files
        with logged_warnings(mujoco, level):
            env = self._make(**keywords)
            env.reset()
            observation, *_ = env.step(np.zeros(env.action_space.shape, env.action_space.dtype))
        if np.shape(observation) != env.observation_space.shape:
            raise ValueError(
                f"the model of {self.env_id} does not fit: its observations have the shape "
                f"{np.shape(observation)}, but the environment's space has "
                f"{env.observation_space.shape}"
            )
        return env

    def native_options(
        self, keywords: Mapping[str, Any], native: Collection[str]
    ) -> dict[str, Any]:
        """Returns the keywords that Rust reads, each with the value that Gymnasium uses.

        Raises:
            TypeError: A keyword of the caller changes steps in a way that Rust does not implement.
            ValueError: A value is not of the kind of the default.
        """
        for name in keywords:
            if name in self._own and name not in (*native, *_MODEL_KEYWORDS):
                raise TypeError(
                    f"`{name}` of this Gymnasium's {self.env_id} is not known to cartwheel's "
                    f"native one: {in_workers(self.env_id)}"
                )
        return {
            name: _as_option(name, keywords.get(name, default), default)
            for name, default in self._own.items()
            if name in native
        }


#: Keywords that determine the model or its frames.
_MODEL_KEYWORDS = ("xml_file", "frame_skip", "default_camera_config")


def in_workers(env_id: str) -> str:
    """Returns the advice for environments that cannot be native."""
    return f"cartwheel.make_vec({env_id!r}, num_envs) steps Gymnasium's in worker processes"


def _defaults(constructor: Any) -> dict[str, Any]:
    parameters = inspect.signature(constructor.__init__).parameters.values()
    return {
        each.name: each.default
        for each in parameters
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and each.name != "self"
    }


def _as_option(name: str, value: Any, default: Any) -> Any:
    """Returns a value in the form that Rust reads, of the kind of its default.

    JSON has no infinity, so numbers that are not finite become text.
    """
    if name == "main_body" and isinstance(value, str):
        return value
    try:
        if isinstance(default, bool):
            return bool(value)
        if isinstance(default, tuple):
            low, high = (_number(bound) for bound in value)
            return [low, high]
        return _number(value)
    except (TypeError, ValueError):
        kind = "two numbers" if isinstance(default, tuple) else "a number"
        raise ValueError(f"`{name}` must be {kind}, got {shown(value)}.") from None


def _number(value: Any) -> float | int | str:
    if isinstance(value, int | np.integer):  # so are the infos that are computed from it
        return int(value)
    number = float(value)
    return number if isfinite(number) else str(number)
