"""Spaces and configuration of a task, without a pool."""

from __future__ import annotations

import collections
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from cartwheel.envpool import engine
from cartwheel.envpool.formats import form_of, is_narrow
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from gymnasium.spaces import Space

    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


class Specs:
    """Base class of objects with the spaces of a task, whose specs have the types of ``dm_env``."""

    observation_space: Space[Any]
    action_space: Space[Any]

    def observation_spec(self) -> Any:
        """Returns the spec of a time step's ``observation``, in the types of ``dm_env.specs``.

        Returns:
            A named tuple of ``env_id``, ``players`` and ``obs``. Nested spaces are dictionaries and
            tuples. Infos of the environment have no specs.

        Raises:
            ImportError: ``dm_env`` is not installed.
            TypeError: No type of ``dm_env`` fits the space.
        """
        low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        env_id = _specs().BoundedArray((), np.int32, low, high, "env_id")
        players = record("players", {"env_id": env_id})
        obs = as_dm_spec(self.observation_space, "obs")
        return record("State", {"env_id": env_id, "players": players, "obs": obs})

    def action_spec(self) -> Any:
        """Returns the action space in the types of ``dm_env.specs``; integers are ``int32``.

        Raises:
            ImportError: ``dm_env`` is not installed.
            TypeError: No type of ``dm_env`` fits the space.
        """
        return as_dm_spec(self.action_space, "action")

    def reward_spec(self) -> Any:
        """Returns the spec of a reward, ``float32``.

        Raises:
            ImportError: ``dm_env`` is not installed.
        """
        return _specs().Array((), np.float32, "reward")

    def discount_spec(self) -> Any:
        """Returns the spec of a discount, ``float32`` from 0 to 1; see :meth:`reward_spec`."""
        return _specs().BoundedArray((), np.float32, 0.0, 1.0, "discount")


class EnvSpec(Specs):
    """A task's spaces and configuration.

    Attributes:
        task_id: The task.
        id: The same, under the name that Gymnasium's vector environments and wrappers use. Programs
            set it, because EnvPool's specs do not have it.
        observation_space: The space of one environment, or of one player, in EnvPool's form.
        action_space: The space of one environment, or of one player.
        reward_threshold: The reward at which the task counts as solved, or ``None``.
    """

    def __init__(
        self, task: Task, config: Config, observation_space: Space[Any], action_space: Space[Any]
    ) -> None:
        self.task_id = self.id = task.task_id
        self.observation_space = observation_space
        self.action_space = action_space
        self.reward_threshold = config.reward_threshold
        self._config = config

    @classmethod
    def from_task(cls, task: Task, config: Config) -> EnvSpec:
        """Makes one environment to read its spaces, and closes it."""
        if task.make_env is None:
            envs = NativeVectorEnv(task.task_id, 1, executor="inline", **config.options)
            spaces = envs.single_observation_space, envs.single_action_space
            envs.close()
        else:
            env = engine.make_one(task, config)
            spaces = env.observation_space, env.action_space
            if task.parallel:
                spaces = env.metadata["players"][:2]
            env.close()
        return cls(task, config, form_of(spaces[0]).space, spaces[1])

    @property
    def config(self) -> Any:
        """The configuration, a named tuple of the keywords."""
        return record("Config", self._config.as_dict())

    def __repr__(self) -> str:
        keywords = self._config.as_dict().items()
        text = ", ".join(f"{name}={value!r}" for name, value in keywords)
        return f"EnvSpec({self.task_id!r}, {text})"


def _specs() -> Any:
    """Imports ``dm_env.specs``."""
    try:
        from dm_env import specs
    except ImportError as error:
        raise ImportError(
            "specs have the types of dm_env, which is not installed: pip install dm-env"
        ) from error
    return specs


def as_dm_spec(space: Space[Any], name: str) -> Any:
    """Converts a space to the types of ``dm_env.specs``, in dictionaries and tuples if nested.

    Specs of ``Discrete`` spaces have the dtype ``int32``, if all values fit.

    Raises:
        ImportError: ``dm_env`` is not installed.
        TypeError: No type of ``dm_env`` fits the space.
    """
    specs = _specs()
    if isinstance(space, Dict):
        return {key: as_dm_spec(part, key) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(as_dm_spec(part, f"{name}.{at}") for at, part in enumerate(space.spaces))
    if isinstance(space, Discrete) and space.start == 0:
        return specs.DiscreteArray(int(space.n), dtype=_dtype(space), name=name)
    if isinstance(space, Box):
        return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
    if isinstance(space, Discrete | MultiDiscrete):
        low = np.asarray(space.start)
        high = low + (space.n if isinstance(space, Discrete) else space.nvec) - 1
        return specs.BoundedArray(space.shape, _dtype(space), low, high, name)
    if isinstance(space, MultiBinary):
        return specs.BoundedArray(space.shape, space.dtype, 0, 1, name)
    raise TypeError(f"no type of dm_env fits the space {space}")


def _dtype(space: Space[Any]) -> Any:
    return np.int32 if is_narrow(space) else space.dtype


_namedtuple: Any = collections.namedtuple  # noqa: PYI024 - fields known at run time only


def record(name: str, fields: dict[str, Any]) -> Any:
    """Makes a named tuple; equal names and keys give the same type.

    Raises:
        ValueError: A key is not an identifier, or begins with an underscore.
    """
    return _type_of(name, tuple(fields))(*fields.values())


@functools.lru_cache(maxsize=256)
def _type_of(name: str, fields: tuple[str, ...]) -> Any:
    made = _namedtuple(name, fields)
    # The type is in no module, so values are pickled without it.
    made.__reduce__ = lambda self: (record, (name, self._asdict()))
    return made
