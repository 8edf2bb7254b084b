"""Stable-Baselines3's interface of vector environments."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from cartwheel.arguments import as_bool, as_rows, as_seeds
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.sb3.actions import batches_of
from cartwheel.sb3.rows import NativeRows, PythonRows
from cartwheel.sb3.vector_env import as_vector_env

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gymnasium.envs.registration import EnvSpec
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env.base_vec_env import (
        VecEnvIndices,
        VecEnvObs,
        VecEnvStepReturn,
    )

    from cartwheel.arguments import EnvFn
    from cartwheel.vector.pool_env import PoolVectorEnv


class CartwheelVecEnv(VecEnv):
    """Environments of cartwheel for Stable-Baselines3; replaces ``DummyVecEnv``, ``SubprocVecEnv``.

    Example:
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> from cartwheel.sb3 import CartwheelVecEnv
        >>> envs = make_vec_env("CartPole-v1", 8, vec_env_cls=CartwheelVecEnv)
        >>> envs.reset().shape  # or PPO("MlpPolicy", envs)
        (8, 4)
        >>> envs.close()
        >>> native = CartwheelVecEnv("cartwheel/CartPole-v1", num_envs=8, monitor=True)
        >>> native.reset().shape
        (8, 4)
        >>> native.close()

    Observations, rewards, flags, infos, seeds and options are those of ``DummyVecEnv``, bit for
    bit, and so are the weights of a policy that is trained with them.

    Arrays belong to the caller, as those of :class:`cartwheel.VectorEnv`: nobody overwrites them.
    The list and the dictionaries of infos are new in every step. ``TimeLimit.truncated`` is there
    in every step, a Python ``bool``. In steps that end an episode, ``terminal_observation`` is the
    episode's last observation; the infos of the reset after it are in :attr:`reset_infos`.

    Args:
        envs: What to step. A list of functions that make Gymnasium environments, one for each row,
            as for :class:`cartwheel.VectorEnv`. Or an id or ``EnvSpec``, as for
            :func:`cartwheel.make_vec`: ids in the namespace ``cartwheel/`` are native. Or a
            :class:`cartwheel.VectorEnv` or :class:`cartwheel.NativeVectorEnv` in the mode
            ``SAME_STEP``, which is closed together with this object.
        num_envs: Number of environments of an id, 1 by default.
        monitor: Whether infos of steps that end an episode have ``episode``: its return ``r``
            (rounded to six decimals), its length ``l`` and the seconds ``t`` since the beginning,
            as from the wrapper ``Monitor``. This costs much less than ``VecMonitor``, and
            :meth:`env_is_wrapped` says that rows have a ``Monitor``. ``make_vec_env`` wraps
            environments of Python in a ``Monitor`` itself.
        **keywords: As for :class:`cartwheel.VectorEnv` or :func:`cartwheel.make_vec`, such as
            ``executor`` and ``num_workers``. ``SubprocVecEnv``'s ``start_method`` is ``context``.

    Raises:
        TypeError: ``envs`` is nothing of that, there are keywords for a vector environment, or
            ``monitor`` is no truth value.
        ValueError: The mode is not ``SAME_STEP``, batches do not have all rows, observations are
            nested deeper than one ``Dict`` or ``Tuple``, or several rows have the same
            environment.
        gymnasium.error.ClosedEnvironmentError: ``envs`` is closed.
        Exception: As for :class:`cartwheel.VectorEnv`.
    """

    def __init__(
        self,
        envs: Iterable[EnvFn] | str | EnvSpec | PoolVectorEnv[Any, Any],
        num_envs: int | None = None,
        *,
        monitor: bool = False,
        **keywords: Any,
    ) -> None:
        """Makes the environments, unless ``envs`` has them."""
        self._is_monitored = as_bool("monitor", monitor)
        #: The vector environment that steps them.
        self.vector_env = as_vector_env(envs, num_envs, keywords)
        self._rows: NativeRows | PythonRows
        if isinstance(self.vector_env, NativeVectorEnv):
            self._rows = NativeRows(self.vector_env)
        else:
            self._rows = PythonRows(self.vector_env)
        space = self.vector_env.single_action_space
        self._pool = self.vector_env._pool
        self._timeout = self.vector_env._link.timeout
        self._as_batch = batches_of(space, self.vector_env.num_envs)
        if self._is_monitored:
            self._pool.record_episodes()
        super().__init__(self.vector_env.num_envs, self.vector_env.single_observation_space, space)
        self.metadata = dict(self.vector_env.metadata)

    def __repr__(self) -> str:
        """The vector environment, in one line."""
        return f"{type(self).__name__}({self.vector_env!r})"

    def step(self, actions: Any) -> VecEnvStepReturn:
        """Steps every environment: :meth:`step_async` and :meth:`step_wait` in one.

        Args:
            actions: As for :meth:`step_async`.

        Returns:
            As for :meth:`step_wait`.

        Raises:
            Exception: As for :meth:`step_async` and :meth:`step_wait`.
        """
        return self._pool.step_by_row(self._as_batch(actions), self.reset_infos)

    def step_async(self, actions: Any) -> None:
        """Begins a step of every environment.

        Args:
            actions: One action for each: an array, or a list of actions. Of an action space with
                integers they may be floats that are whole numbers.

        Raises:
            ValueError: Number, shape or values of the actions are wrong; nothing was stepped.
            TypeError: The kind of their dtype differs from that of the action space.
            Exception: As for :meth:`cartwheel.VectorEnv.step`.
        """
        self._pool.step_async(self._as_batch(actions))

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for a step.

        Returns:
            Observations; rewards, ``float32`` of shape ``(num_envs,)``; whether episodes ended,
            ``bool`` of the same shape; and a list with one dictionary of infos for each row.

        Raises:
            Exception: As for :meth:`cartwheel.VectorEnv.step_wait`.
        """
        return self._pool.step_wait_by_row(self.reset_infos, self._timeout)

    def reset(self) -> VecEnvObs:
        """Resets every environment, with the seeds of :meth:`seed` and the options that were set.

        A step that was begun and not waited for is waited for and dropped.

        Returns:
            Observations. The infos are in :attr:`reset_infos`.

        Raises:
            Exception: As for :meth:`cartwheel.VectorEnv.reset`.
        """
        options = [own or None for own in self._options] if any(self._options) else None
        self._pool.give_up()
        prepared = self.vector_env._prepared("reset", self._seeds, options)
        assert prepared is not None, "batches have all rows"
        observations, self.reset_infos = self._pool.reset_by_row(*prepared, self._timeout)
        self._reset_seeds()
        self._reset_options()
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds of the next reset.

        Args:
            seed: Row ``i`` gets ``seed + i``. ``None``: a random number instead.

        Returns:
            The seed of each row.

        Raises:
            TypeError: ``seed`` is not an integer.
            gymnasium.error.Error: It is negative.
        """
        as_seeds(seed, range(1), 1)
        seeds: Sequence[int | None] = super().seed(seed)
        return seeds

    def close(self) -> None:
        """Closes the environments and ends their workers; a second call does nothing."""
        self.vector_env.close()

    @property
    def envs(self) -> list[Any]:
        """The environments themselves, for the executor ``"inline"``.

        Raises:
            AttributeError: The environments are native, or in other threads or processes.
        """
        if isinstance(self.vector_env, NativeVectorEnv):
            raise AttributeError(  # noqa: TRY004 - as for other rows without objects
                "native environments are no objects of Python; use get_attr, set_attr and "
                "env_method"
            )
        return self.vector_env.envs

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Renders every environment.

        Returns:
            For each row an array ``(height, width, 3)`` of ``uint8``. Without the render mode
            ``"rgb_array"`` there is a warning, and ``None`` for each row.
        """
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"get_images() needs render_mode='rgb_array', got {self.render_mode!r}",
                stacklevel=2,
            )
            return [None] * self.num_envs
        frames: tuple[NDArray[np.uint8], ...] = self.vector_env.render()
        return frames

    # Attributes of rows. `indices` are row numbers in any order, also negative ones, or one number;
    # by default all rows. Results are in their order.

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment, or a wrapper of it, has an attribute."""
        return self._rows.has(attr_name, self._as_rows(None))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of environments, or of their wrappers; a method is not called."""
        return self._rows.get(attr_name, self._as_rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of environments (of their outermost wrappers) to one value."""
        self._rows.set(attr_name, value, self._as_rows(indices))

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of environments, or of their wrappers."""
        return self._rows.call(method_name, method_args, method_kwargs, self._as_rows(indices))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether environments have a wrapper of a class, or of one that derives from it."""
        rows = self._as_rows(indices)
        if self._is_monitored and issubclass(Monitor, wrapper_class):
            return [True] * len(rows)
        return self._rows.are_wrapped(wrapper_class, rows)

    def _as_rows(self, indices: VecEnvIndices) -> list[int]:
        """Returns row numbers from 0 on.

        Raises:
            IndexError: A row does not exist.
            TypeError: ``indices`` are no integers.
            ValueError: A row is named twice.
        """
        if indices is None:
            return list(range(self.num_envs))
        rows = np.atleast_1d(np.asarray(indices))
        if not rows.size:
            return []
        if rows.dtype.kind in "iu":
            for row in rows.flat:
                if not -self.num_envs <= row < self.num_envs:
                    raise IndexError(
                        f"`indices` names row {row}; there are rows {-self.num_envs} to "
                        f"{self.num_envs - 1}"
                    )
            rows = rows % self.num_envs
        return as_rows(rows, self.num_envs, "indices")
