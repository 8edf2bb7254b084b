"""Single environments written in Rust, with the interface of Gymnasium's ``Env``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, Text, Tuple
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import NativeEnvs
from cartwheel._internal.arguments import check_dictionary
from cartwheel._internal.suggestions import keywords_of
from cartwheel.errors import EpisodeOverError
from cartwheel.native.attributes import as_generator
from cartwheel.native.ids import as_env_id
from cartwheel.native.keywords import as_json, check_keywords, options_of_reset
from cartwheel.native.mujoco.env import is_mujoco
from cartwheel.native.registration import registered_id
from cartwheel.native.renderer import as_attribute
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space

    from cartwheel.native.callbacks import Stream


class NativeEnv(gym.Env[Any, Any]):
    """One environment written in Rust, with the results of Gymnasium's environment of the same id.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> env = gym.make("cartwheel/FrozenLake-v1")
        >>> env.reset(seed=7)
        (0, {'prob': 1})
        >>> env.unwrapped.s
        0
        >>> env.close()

    ``gymnasium.make("cartwheel/CartPole-v1")`` makes it, inside Gymnasium's usual wrappers.
    Observations, rewards, flags and infos have the same bits and types as in Gymnasium. The
    parameters of the environment, such as ``gravity`` and ``state``, are attributes, which can be
    read and set. Actions are checked as in :class:`NativeVectorEnv`, which steps many environments
    at once.

    Args:
        env_id: A native environment, with or without the namespace ``cartwheel/``.
        render_mode: The kind of result of :meth:`render`, as for Gymnasium's environment.
        **options: Keywords of the environment, as in Gymnasium.

    Raises:
        TypeError: The keyword does not exist.
        ValueError: The environment or the render mode does not exist, or a value is invalid.
    """

    #: The default of the class; each object has the metadata of Gymnasium's environment of its id.
    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's attribute
        "render_modes": ["human", "rgb_array", "ansi", "depth_array", "rgbd_tuple"]
    }

    def __init__(self, env_id: str, *, render_mode: str | None = None, **options: Any) -> None:
        for name in _VECTOR_KEYWORDS & options.keys():
            raise TypeError(f"`{name}` is a keyword of vector environments, not of a single one.")
        env_id = as_env_id(env_id)
        check_keywords(
            env_id, options, "NativeEnv", ["render_mode"], "env.unwrapped.{name} = {value}"
        )
        self._as_reward, options = _reward_type(env_id, options)
        self._envs = _OneRow(
            env_id,
            1,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=-1,
            render_mode=render_mode,
            executor="inline",
            **options,
        )
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self.metadata = {
            key: value for key, value in self._envs.metadata.items() if key != "autoreset_mode"
        }
        self.render_mode = render_mode
        #: The generator that :attr:`np_random` returned, which shares the environment's numbers.
        self._generator: np.random.Generator | None = None
        # The last attribute: from here on, setting a parameter sets it in Rust.
        self._parameters = self._envs.parameters

    def __repr__(self) -> str:
        mode = "" if self.render_mode is None else f", render_mode={self.render_mode!r}"
        return f"{type(self).__name__}({self._envs.env_id!r}{mode})"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: An integer seeds the random numbers; ``None`` continues them.
            options: As for Gymnasium's environment, such as ``low`` and ``high``. Other entries are
                ignored, because a wrapper may use them.

        Returns:
            The observation and the info, with Gymnasium's types.

        Raises:
            TypeError: ``options`` is neither a dictionary nor ``None``.
            ValueError: The environment cannot use the value of an option.
            gymnasium.error.Error: The seed is negative or not an integer.
        """
        keeps_generator = seed is None and self._generator is not None
        if keeps_generator:
            self._write_generator()
        check_dictionary("options", options)
        if options is not None:  # a single environment has no rows to select
            options = options_of_reset(self._envs.env_id, options)
        observations, info = self._envs.reset(seed=[seed], options=options)
        if keeps_generator:
            self._read_generator()
        else:
            self._generator = None  # it keeps the old stream, and the environment gets a new one
        return _row(self.observation_space, observations), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment.

        Args:
            action: An action of :attr:`action_space`.

        Returns:
            Observation, reward, terminated, truncated and info, with Gymnasium's types.

        Raises:
            gymnasium.error.ResetNeeded: The episode is over.
            ValueError: The action is not in the action space.
            TypeError: The kind of the action's dtype differs from its space's.
        """
        if self._generator is not None:
            self._write_generator()
        try:
            result = self._envs.step(_batch(self.action_space, action))
        except EpisodeOverError:
            raise gym.error.ResetNeeded(
                "The episode is over: call `reset()` before the next `step()`."
            ) from None
        if self._generator is not None:
            self._read_generator()
        observations, rewards, terminations, truncations, info = result
        return (
            _row(self.observation_space, observations),
            self._as_reward(rewards.item()),
            terminations.item(),
            truncations.item(),
            info,
        )

    def render(self) -> Any:
        """Renders the environment, see :meth:`NativeVectorEnv.render`."""
        return self._envs.render()[0]

    def close(self) -> None:
        """Closes the environment and its window."""
        self._envs.close()

    def __reduce__(self) -> NoReturn:
        """Raises: the environment cannot be copied or pickled.

        Raises:
            TypeError: Always: Python cannot read the whole state of the environment.
        """
        name = self._envs.env_id
        # Environments of plugins are not Gymnasium's under the same name.
        other = f"; or use gymnasium.make({name!r}), which gives the same results"
        raise TypeError(
            f"a native {name} can be neither copied nor pickled: its state is not Python's. Make "
            "another one by gymnasium.make(env.spec), seed both alike by reset(seed=…) and repeat "
            f"the actions{'' if registered_id(name) == name else other}"
        )

    # Random numbers

    @property
    def np_random(self) -> np.random.Generator:
        """The random number generator of the environment; drawing from it advances both.

        After the first access, every step copies the state of the generator to the environment and
        back, until the next seed.

        Raises:
            TypeError: The new generator does not draw from a ``PCG64``.
        """
        if self._generator is None:
            self._generator = as_generator(self._envs.stream)
        return self._generator

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        if not isinstance(value.bit_generator, np.random.PCG64):
            raise TypeError(
                "native environments draw from a PCG64 generator, "
                f"got {type(value.bit_generator).__name__}"
            )
        self._generator = value
        self._envs.stream = (-1, value.bit_generator.state)

    @property
    def np_random_seed(self) -> int:
        """The seed of the random numbers; ``-1`` when the generator was set."""
        return self._envs.np_random_seed[0]

    @property
    def _np_random(self) -> np.random.Generator:  # type: ignore[override]
        """The generator, under the name that Gymnasium's checks read."""
        return self.np_random

    def _write_generator(self) -> None:
        """Copies the state of the generator to the environment."""
        assert self._generator is not None
        self._envs.stream = (self.np_random_seed, self._generator.bit_generator.state)

    def _read_generator(self) -> None:
        """Copies the state of the environment to the generator."""
        assert self._generator is not None
        _, self._generator.bit_generator.state = self._envs.stream

    # Parameters

    def __getattr__(self, name: str) -> Any:
        """Reads a parameter, if there is no other attribute of this name.

        Raises:
            AttributeError: The environment has no such parameter.
        """
        parameters = self.__dict__.get("_parameters", ())
        if name not in parameters and not (parameters and self._envs.is_mujoco_attribute(name)):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; the parameters of the "
                f"environment are {', '.join(parameters) or 'none'}"
            )
        return as_attribute(self._envs.get_attr(name)[0])

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a parameter, or any other attribute of this object.

        Raises:
            ValueError: The value is invalid for this parameter.
        """
        parameters = self.__dict__.get("_parameters", ())
        if name in parameters or (parameters and self._envs.is_mujoco_attribute(name)):
            self._envs.set_attr(name, [value])
        else:
            super().__setattr__(name, value)


class _PluginEnv(NativeEnv):
    """An environment of a plugin, as ``gymnasium.make`` makes it.

    It draws no windows, so Gymnasium shows its frames in one for ``render_mode="human"``.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"]}  # noqa: RUF012 - Gymnasium's attribute


#: Gymnasium shows it in the texts of environments.
_PluginEnv.__name__ = NativeEnv.__name__


class _OneRow(NativeVectorEnv):
    """A vector environment of one row, whose infos are those of the row and are not batched."""

    _class_name = NativeEnv.__name__

    @property
    def stream(self) -> Stream:
        """The random number stream of the row."""
        return self._streams("np_random")[0]

    @stream.setter
    def stream(self, value: Stream) -> None:
        self._set_streams([value])

    def is_mujoco_attribute(self, name: str) -> bool:
        """Whether an attribute belongs to MuJoCo, such as ``model`` and ``data``."""
        return self._mujoco is not None and self._mujoco.has(name)

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int
    ) -> dict[str, Any]:
        del env_num
        return {**vector_infos, **env_info}


_VECTOR_KEYWORDS = keywords_of(NativeVectorEnv) | keywords_of(VectorEnv)


def _row(space: Space[Any], batch: Any) -> Any:
    """Returns the only row of a batch, in the types of Gymnasium's environments."""
    if isinstance(space, Discrete):
        return batch.item()
    if isinstance(space, Tuple):
        return tuple(map(_row, space.spaces, batch))
    if isinstance(space, Dict):
        return {key: _row(part, batch[key]) for key, part in space.spaces.items()}
    # A `Box` without dimensions has arrays, too, where an index alone returns a number.
    return batch[0] if isinstance(space, Text) else batch[0, ...]


def _batch(space: Space[Any], row: Any) -> Any:
    if isinstance(space, Tuple):
        return tuple(map(_batch, space.spaces, row))
    if isinstance(space, Dict):
        return {key: _batch(part, row[key]) for key, part in space.spaces.items()}
    return [row]


def _reward_type(
    env_id: str, options: dict[str, Any]
) -> tuple[Callable[[float], Any], dict[str, Any]]:
    """Returns the function that converts a reward to Gymnasium's, and the keywords for Rust."""
    name = env_id.split("-")[0]
    if name in ("FrozenLake", "FrozenLake8x8"):
        NativeEnvs(env_id, as_json(options), [(0, 1)], autoreset_mode="Disabled", freeze=False)
        # Rewards may be equal and of different types, which Rust does not have: it gives their
        # places. A step of a walker that is in a hole or at the goal already gives 0.
        rewards = (0, *options.get("reward_schedule", (1, 0, 0)))
        return lambda place: rewards[int(place)], {**options, "reward_schedule": (1, 2, 3)}
    if name in ("CliffWalking", "CliffWalkingSlippery", "InvertedPendulum", "Taxi"):
        return int, options
    return np.float64 if name == "Pendulum" or is_mujoco(env_id) else float, options
