"""Rows of vector environments for Stable-Baselines3."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from cartwheel._internal import nested
from cartwheel._internal.adapters import (
    check_given,
    check_mode,
    check_names,
    check_one_agent,
    check_whole_batches,
)
from cartwheel._internal.arguments import (
    as_autoreset_mode,
    as_bool,
    as_env_fns,
    as_num_envs,
    as_rows,
)
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import as_seeds
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.spaces import batch_of_actions, describe
from cartwheel._internal.suggestions import keywords_of, shown
from cartwheel._make import make_vec
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.sb3.attributes import NativeRows, PythonRows
from cartwheel.vector.action_masks import DEFAULT
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env.base_vec_env import (
        VecEnvIndices,
        VecEnvObs,
        VecEnvStepReturn,
    )

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.vector.base import PoolVectorEnv


class CartwheelVecEnv(ClosesAfterWith, VecEnv):
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

    Arrays belong to the caller, as those of :class:`cartwheel.VectorEnv`, and are not overwritten.
    The list and the dictionaries of infos are new in every step. ``TimeLimit.truncated`` is there
    in every step, a Python ``bool``. In steps that end an episode, ``terminal_observation`` is the
    episode's last observation; the infos of the reset after it are in :attr:`reset_infos`.

    ``MaskablePPO`` of sb3-contrib finds masks of actions if environments have them in infos or
    observations (``action_mask``), without a wrapper ``ActionMasker``.

    Args:
        envs: A list of functions that make Gymnasium environments, one for each row,
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
        TypeError: ``envs`` is none of these, there are keywords for a vector environment, or
            ``monitor`` is not a ``bool``.
        ValueError: The mode is not ``SAME_STEP``, batches do not have all rows, observations are
            nested deeper than one ``Dict`` or ``Tuple``, or several rows have the same
            environment.
        gymnasium.error.ClosedEnvironmentError: ``envs`` is closed.
        Exception: As for :class:`cartwheel.VectorEnv`.
    """

    #: For evaluations and collectors, which step it.
    _vector_env_instead = "pass its `vector_env`"

    def __init__(
        self,
        envs: Iterable[EnvFn] | str | EnvSpec | PoolVectorEnv[Any, Any],
        num_envs: int | None = None,
        *,
        monitor: bool = False,
        **keywords: Any,
    ) -> None:
        self._is_monitored = as_bool("monitor", monitor)
        #: The vector environment that steps them.
        self.vector_env = own = as_vector_env(envs, num_envs, keywords)
        try:
            check_rewards_are_numbers(own, "Stable-Baselines3")
            _check_space(own.single_observation_space)
            self._rows: NativeRows | PythonRows = (
                NativeRows(own) if isinstance(own, NativeVectorEnv) else PythonRows(own)
            )
            space = own.single_action_space
            self._pool = own._pool
            self._timeout = own._callbacks.timeout
            self._was_reset = False
            #: Whether environments have a method ``action_masks``; ``None``: not known yet.
            self._has_mask_method: bool | None = None
            self._as_batch = batches_of(space, own.num_envs)
            if self._is_monitored:
                self._pool.record_episodes()
            super().__init__(own.num_envs, own.single_observation_space, space)
        except BaseException:
            if own is not envs:
                own.close()
            raise
        self.metadata = dict(own.metadata)

    def __repr__(self) -> str:
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
        self._was_reset = True
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

    def state_dict(self) -> dict[str, Any]:
        """Saves the environments, as :meth:`cartwheel.VectorEnv.state_dict` does.

        Wrappers of Stable-Baselines3 around this object, such as ``VecNormalize``, save themselves.
        """
        return self.vector_env.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> VecEnvObs:
        """Continues from a state of :meth:`state_dict`.

        Returns:
            What the rows last showed, for ``model._last_obs``. With ``monitor``, returns,
            lengths and seconds of episodes begin anew.

        Raises:
            Exception: As for :meth:`cartwheel.VectorEnv.load_state_dict`.
        """
        observations: VecEnvObs = self.vector_env.load_state_dict(state)
        if self._is_monitored:
            self._pool.record_episodes()
        return observations

    @property
    def envs(self) -> list[Any]:
        """The environments themselves, for the executor ``"inline"``.

        Raises:
            AttributeError: The environments are native, or in other threads or processes.
        """
        if isinstance(self.vector_env, NativeVectorEnv):
            raise AttributeError(  # noqa: TRY004 - as for other rows without objects
                "native environments are not Python objects; use get_attr, set_attr and env_method"
            )
        return self.vector_env.envs

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Renders every environment.

        Returns:
            For each row an array ``(height, width, 3)`` of ``uint8``. Without the render mode
            ``"rgb_array"`` there is a warning, and ``None`` for each row.
        """
        if not has_images(self.render_mode):
            return [None] * self.num_envs
        return self.vector_env.render()

    # Attributes of rows. `indices` are row numbers in any order, also negative ones, or one number;
    # by default all rows. Results are in their order.

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment, or a wrapper of it, has an attribute."""
        if attr_name == MASKS and self._has_masks():
            return True
        return self._rows.has(attr_name, rows_of(None, self.num_envs))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of environments, or of their wrappers; a method is not called."""
        rows = rows_of(indices, self.num_envs)
        if attr_name == MASKS and self._has_masks():
            return [functools.partial(self._mask_of, row) for row in rows]
        return self._rows.get(attr_name, rows)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of environments (of their outermost wrappers) to one value."""
        self._rows.set(attr_name, value, rows_of(indices, self.num_envs))

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of environments, or of their wrappers.

        ``action_masks`` calls no environment, unless environments have a method of this name: the
        masks are those of :meth:`cartwheel.VectorEnv.action_masks`.
        """
        rows = rows_of(indices, self.num_envs)
        if method_name == MASKS and self._has_masks():
            return list(self.vector_env.action_masks(rows)) if rows else []
        return self._rows.call(method_name, method_args, method_kwargs, rows)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether environments have a wrapper of a class, or of one that derives from it."""
        rows = rows_of(indices, self.num_envs)
        if self._is_monitored and issubclass(Monitor, wrapper_class):
            return [True] * len(rows)
        return self._rows.are_wrapped(wrapper_class, rows)

    def _has_masks(self) -> bool:
        """Whether the vector environment has masks of actions; before a reset, it may have some.

        A method of the environments comes first, unless the caller named the key of masks.
        """
        has_masks = self._pool.has_action_masks()
        if has_masks is False or (has_masks is None and self._was_reset):
            return False
        if self.vector_env.action_mask != DEFAULT:
            return True
        if self._has_mask_method is None:
            self._has_mask_method = self._rows.has(MASKS, list(range(self.num_envs)))
        return not self._has_mask_method

    def _mask_of(self, row: int) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self.vector_env.action_masks([row])[0]
        return mask


def rows_of(indices: VecEnvIndices, num_envs: int) -> list[int]:
    """Returns row numbers from 0 on; negative ones count from the end, and ``None`` means all.

    Raises:
        IndexError: A row does not exist.
        TypeError: ``indices`` are not integers.
        ValueError: A row is named twice.
    """
    if indices is None:
        return list(range(num_envs))
    rows = np.atleast_1d(np.asarray(indices))
    if not rows.size:
        return []
    if rows.dtype.kind in "iu":
        for row in rows.flat:
            if not -num_envs <= row < num_envs:
                raise IndexError(
                    f"`indices` names row {row}; there are rows {-num_envs} to {num_envs - 1}"
                )
        rows = rows % num_envs
    return as_rows(rows, num_envs, "indices")


def has_images(render_mode: str | None) -> bool:
    """Whether frames are images; otherwise there is a warning for the caller of the caller."""
    if render_mode != "rgb_array":
        warnings.warn(
            f"get_images() needs render_mode='rgb_array', got {render_mode!r}", stacklevel=3
        )
    return render_mode == "rgb_array"


#: The method by which sb3-contrib asks for masks of actions.
MASKS = "action_masks"
#: Keywords that are not those of the vector environment, also by Stable-Baselines3's names.
_OWN_KEYWORDS = {
    "monitor": "monitor",
    "num_envs": "num_envs",
    "n_envs": "num_envs",
    "start_method": "context",
}


def as_vector_env(
    envs: Any, num_envs: Any, keywords: dict[str, Any]
) -> VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]:
    """Returns what the arguments of ``CartwheelVecEnv`` name, in the form that it needs."""
    check_one_agent("CartwheelVecEnv", envs, "use CartwheelAgentsVecEnv")
    if isinstance(envs, GymnasiumVectorEnv):
        return _checked(envs, num_envs, keywords)
    is_id = isinstance(envs, str | EnvSpec)
    check_names("CartwheelVecEnv", keywords, keywords_of(VectorEnv), _OWN_KEYWORDS)
    if keywords.get("executor") == "ale":
        raise ValueError(
            "executor='ale' has no infos of single rows, which Stable-Baselines3 needs: use "
            "stable_baselines3.common.env_util.make_atari_env(…, vec_env_cls=CartwheelVecEnv)."
        )
    if is_id:
        num_envs = 1 if num_envs is None else as_num_envs(num_envs)
    elif isinstance(num_envs, str):  # the second argument of SubprocVecEnv is `start_method`
        raise TypeError(f"the second argument is `num_envs`: pass context={shown(num_envs)}.")
    elif num_envs is not None:
        raise TypeError(
            f"`num_envs` is for an id: repeat the function, `[function] * {shown(num_envs)}`."
        )
    else:
        envs = as_env_fns(envs)
        num_envs = len(envs)
    mode = keywords.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    finals = keywords.get("final_obs", "object")
    check_form(as_autoreset_mode(mode), keywords.get("batch_size"), num_envs, finals)
    made: VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]
    made = make_vec(envs, num_envs, **keywords) if is_id else VectorEnv(envs, **keywords)
    return made


def _checked(
    envs: GymnasiumVectorEnv[Any, Any, Any], num_envs: Any, keywords: dict[str, Any]
) -> VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]:
    """Returns a vector environment that the user made, after a check of its batches."""
    if not isinstance(envs, VectorEnv | NativeVectorEnv):
        raise TypeError(
            "`envs` must be a cartwheel.VectorEnv or a cartwheel.NativeVectorEnv without wrappers, "
            f"or functions that make environments, got {shown(envs)}."
        )
    given = keywords if num_envs is None else {"num_envs": num_envs, **keywords}
    check_given("CartwheelVecEnv", envs, given)
    check_form(envs.autoreset_mode, envs.batch_size, envs.num_envs, envs.final_obs)
    return envs


def check_form(
    mode: AutoresetMode, batch_size: Any, num_envs: int, final_obs: Any = "object"
) -> None:
    """Raises ``ValueError`` unless batches have the form that Stable-Baselines3 needs."""
    why = "Stable-Baselines3 needs environments that restart in the step that ends an episode"
    check_mode(mode, AutoresetMode.SAME_STEP, why)
    check_whole_batches("Stable-Baselines3", batch_size, num_envs)
    if final_obs != "object":
        raise ValueError(
            "Stable-Baselines3 needs final observations of single rows, got "
            f"final_obs={shown(final_obs)}: leave `final_obs` out."
        )


def _check_space(space: Any) -> None:
    """Raises ``ValueError`` if observations are nested more than once."""
    for name, part in nested.parts(space):
        if isinstance(part, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - the space has the right type, and a wrong form
                "Stable-Baselines3 has no nested observations: flatten the part "
                f"{name!r}, {shown(part)}, for example by wrapping each environment in "
                "gymnasium.wrappers.FlattenObservation, which makes one array of all parts."
            )


def batches_of(space: Space[Any], num_envs: int) -> Callable[[Any], Any]:
    """Returns a function that turns actions, one for each environment, into a batch.

    Policies of Stable-Baselines3 choose integer actions (of a ``MultiBinary``) as floats.
    """
    if describe(space)[0] != "leaf":
        return functools.partial(_batch, space, num_envs)
    dtype: np.dtype[Any] = np.dtype(space.dtype)
    return _unchanged if dtype.kind in "fc" else functools.partial(_whole, dtype)


def _batch(space: Space[Any], num_envs: int, actions: Any) -> Any:
    return batch_of_actions(space, actions, num_envs)


def _unchanged(actions: Any) -> Any:
    return actions


def _whole(dtype: np.dtype[Any], actions: Any) -> Any:
    """Returns actions that are whole numbers as numbers of an integer ``dtype``."""
    if not isinstance(actions, np.ndarray) or actions.dtype.kind != "f":
        return actions
    with np.errstate(invalid="ignore"):  # of NaN
        cast = actions.astype(dtype)
    if not np.array_equal(cast, actions):
        raise ValueError(
            f"actions of {dtype} must be whole numbers that fit it, got {shown(actions)}"
        )
    return cast
