"""Steps inside of functions that JAX compiles. Needs ``pip install 'cartwheel[jax]'``.

:func:`envs_to_jax` makes three functions of native environments, for ``jax.jit``, ``jax.lax.scan``
and ``jax.lax.while_loop``. ``docs/jax.md`` explains how to use them.
"""

from __future__ import annotations

from cartwheel._internal.versions import load

load("jax", "jax", "cartwheel.jax", "0.5")

# ruff: noqa: E402 - they import what was loaded

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal.reset_arguments import as_seeds
from cartwheel._internal.suggestions import shown
from cartwheel._xla import Calls, as_array, assembled, form
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Init", "Reset", "Step", "Timestep", "envs_to_jax"]

#: Seeds are below this number.
_SEEDS = 2**63
_WORD = 2**32 - 1
#: Beginnings of errors of a call that has run. JAX raises those of compiled functions that it calls
#: without Python as ``ValueError``.
_CODES = (
    "INVALID_ARGUMENT: ",
    "DEADLINE_EXCEEDED: ",
    "FAILED_PRECONDITION: ",
    "UNIMPLEMENTED: ",
    "INTERNAL: ",
)


class Timestep(NamedTuple):
    """The results of a step, in the order of ``envs.step``: arrays of JAX.

    Attributes:
        observations: As of ``envs.step``, also in dictionaries and tuples.
        rewards: One for each row; 0 where it was reset.
        terminations: Rows whose episode ended.
        truncations: Rows whose episode was cut short.
        infos: Empty, except in ``SAME_STEP``: ``final_obs``, the true next observations of all
            rows, and ``_final_obs``, the rows whose episode ended in the step. Other infos are left
            out.
    """

    observations: Any
    rewards: jax.Array
    terminations: jax.Array
    truncations: jax.Array
    infos: dict[str, Any]


class _Function:
    """One of the three functions. It keeps the environments."""

    _name: str

    def __init__(self, envs: NativeVectorEnv[Any, Any], calls: Calls) -> None:
        self._envs = envs
        self._calls = calls
        rows, leaves = envs.num_envs, len(calls.observation_leaves)
        is_dense = envs.autoreset_mode == AutoresetMode.SAME_STEP

        def results() -> list[jax.ShapeDtypeStruct]:
            flags = form((rows,), np.bool_)
            observations = calls.forms(rows)
            batch = [*observations, form((rows,), np.float64), flags, flags]
            finals = [flags, *observations] if is_dense else []
            return [form((), np.uint32), *batch, *finals]

        call = calls.call(self._name, results)

        def run(*arguments: Any) -> tuple[jax.Array, Timestep]:
            try:
                state, *batch = call(*arguments)
            except ValueError as error:
                if not str(error).startswith(_CODES):
                    raise
                raise jax.errors.JaxRuntimeError(str(error)) from None
            observations = assembled(calls.observations, iter(batch[:leaves]))
            rewards, terminations, truncations, *finals = batch[leaves:]
            infos = {}
            if finals:
                final_obs = assembled(calls.observations, iter(finals[1:]))
                infos = {"final_obs": final_obs, "_final_obs": finals[0]}
            return state, Timestep(observations, rewards, terminations, truncations, infos)

        self._run = run

    def __repr__(self) -> str:
        return f"<{self._name} of {self._envs!r} for JAX>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The function itself: environments are not copied."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: call `envs_to_jax` in the other process")


class Init(_Function):
    """Resets all rows and begins with a new state."""

    _name = "init"

    def __call__(self, seed: Any = None) -> tuple[jax.Array, Timestep]:
        """Resets all rows, whatever happened to an earlier state.

        Args:
            seed: ``None``: every row continues its random numbers. An integer ``s``: row ``i`` gets
                the seed ``s + i``. A list, or an array of shape ``(num_envs,)``: one seed for each
                row. Seeds are below ``2**63``. Arrays may be traced.

        Returns:
            A state, and a timestep whose rewards and flags are zero.

        Raises:
            TypeError: ``seed`` is something else.
            ValueError: There are more or fewer seeds than rows, or one is too large.
            gymnasium.error.Error: A seed is negative or not an integer.
            jax.errors.JaxRuntimeError: The environments are closed or in use, rows failed, or a
                traced seed is negative. Under ``jit``, JAX raises it when results are waited for,
                or at the call as ``ValueError``.
        """
        return self._run(_as_words(seed, self._envs.num_envs))


class Step(_Function):
    """Steps all rows."""

    _name = "step"

    def __call__(self, state: jax.Array, actions: Any) -> tuple[jax.Array, Timestep]:
        """Steps all rows.

        Args:
            state: The state that the last call returned.
            actions: One action for each row, in the form of ``envs.action_space``: arrays, or
                dictionaries and tuples of them. Dtypes of the same kind are cast; a discrete action
                may have any integer dtype.

        Returns:
            The next state, and the timestep.

        Raises:
            TypeError: Actions are of another kind of dtype, or ``state`` is not a state; when the
                call is traced.
            ValueError: Actions have the wrong shape; when the call is traced.
            jax.errors.JaxRuntimeError: An action is out of range, the state is old, episodes are
                over in the mode ``DISABLED``, rows failed, a call took longer than ``timeout``, or
                the environments are closed or in use. Under ``jit``, JAX raises it when results are
                waited for, or at the call as ``ValueError``.
        """
        rows = self._envs.num_envs
        arrays = self._calls.as_actions(actions, rows, f"num_envs={rows}")
        return self._run(_as_state(state), *arrays)


class Reset(_Function):
    """Resets some rows."""

    _name = "reset"

    def __call__(self, state: jax.Array, mask: Any) -> tuple[jax.Array, Timestep]:
        """Resets the rows of a mask. The others repeat their last observation.

        Args:
            state: The state that the last call returned.
            mask: The rows, ``bool`` of shape ``(num_envs,)``. It may be false everywhere.

        Returns:
            The next state, and a timestep whose rewards and flags are zero.

        Raises:
            TypeError: ``mask`` is not ``bool``, or ``state`` is not a state.
            ValueError: ``mask`` has another shape.
            jax.errors.JaxRuntimeError: As for :meth:`Step.__call__`.
        """
        array = as_array(mask, "mask")
        if array.dtype != np.bool_:
            raise TypeError(f"`mask` must be bool, got {array.dtype.name}")
        if array.shape != (self._envs.num_envs,):
            raise ValueError(
                f"`mask` must have shape ({self._envs.num_envs},) (num_envs), got shape "
                f"{tuple(array.shape)}"
            )
        return self._run(_as_state(state), array)


def envs_to_jax(envs: NativeVectorEnv[Any, Any]) -> tuple[Init, Step, Reset]:
    """Returns functions that reset and step native environments inside of compiled functions.

    Results equal those of ``envs.reset`` and ``envs.step``, in every autoreset mode, with JAX's
    dtypes: without ``jax_enable_x64`` it has no 64-bit numbers, so rewards are ``float32``.

    Calls are ordered by the *state*, a number. Each call needs the state that the call before
    returned; an old state is an error. A step outside of these functions makes the state old, too.

    Example:
        >>> import cartwheel, jax
        >>> from cartwheel.jax import envs_to_jax
        >>> envs = cartwheel.make_vec("cartwheel/CartPole-v1", 64)
        >>> init, step, reset = envs_to_jax(envs)
        >>> @jax.jit
        ... def rollout(state, actions):
        ...     return jax.lax.scan(step, state, actions)
        >>> state, timestep = init(seed=7)
        >>> state, timesteps = rollout(state, jax.numpy.ones((100, 64), int))
        >>> timesteps.observations.shape
        (100, 64, 4)
        >>> envs.close()

    Args:
        envs: Native environments, of ``cartwheel.make_vec``, of MuJoCo or of a plugin, without
            wrappers. They run on the CPU. The functions keep them; functions that were compiled do
            not.

    Returns:
        ``init(seed=None)``, ``step(state, actions)`` and ``reset(state, mask)``, each of which
        returns a state and a :class:`Timestep`.

    Raises:
        TypeError: The environments are in Python or wrapped.
        ValueError: Batches have some of the rows, rewards are computed in Python (as those of
            ``cartwheel.mujoco.make``), environments are shown in windows, a space has no fixed
            shape, or the mode is ``SAME_STEP`` without ``final_obs="dense"``.
        gymnasium.error.ClosedEnvironmentError: They are closed.
    """
    _check(envs)
    calls = Calls(envs)
    return Init(envs, calls), Step(envs, calls), Reset(envs, calls)


def _check(envs: Any) -> None:
    """Raises unless compiled functions can step these environments."""
    if not isinstance(envs, NativeVectorEnv):
        name = type(envs).__name__
        if isinstance(envs, gym.vector.VectorWrapper):
            raise TypeError(
                f"compiled functions do not run wrappers, got {name}: pass `envs.unwrapped`, and "
                "write in JAX what the wrapper does"
            )
        if callable(getattr(envs, "xla", None)):
            raise TypeError(f"{name} has functions of its own for JAX: `envs.xla()`")
        if isinstance(envs, gym.vector.VectorEnv):
            raise TypeError(
                f"compiled functions need native environments, got {name}, whose environments are "
                "in Python: step them outside of `jit`"
            )
        raise TypeError(
            "`envs_to_jax` takes native environments, as from "
            f"`cartwheel.make_vec('cartwheel/CartPole-v1', 64)`, got {shown(envs)}"
        )
    envs._pool.check("envs_to_jax", idle=False)
    if envs.batch_size < envs.num_envs:
        raise ValueError(
            f"compiled functions step all rows at once, and batch_size={envs.batch_size} is below "
            f"num_envs={envs.num_envs}: make the environments without `batch_size`"
        )
    if envs.autoreset_mode == AutoresetMode.SAME_STEP and envs.final_obs != "dense":
        raise ValueError(
            "in the mode SAME_STEP, compiled functions need final observations as arrays: make the "
            "environments with final_obs='dense'"
        )
    if envs._external_rewards is not None:
        raise ValueError(
            "the environments of `cartwheel.mujoco.make` compute rewards in Python, which compiled "
            "functions cannot do: use a native id, such as cartwheel/Hopper-v5, or write a plugin"
        )
    if envs.render_mode == "human":
        raise ValueError(
            "compiled functions do not draw windows: make the environments without "
            "render_mode='human'"
        )


def _as_state(state: Any) -> Any:
    """Raises unless it can be a state."""
    if getattr(state, "shape", None) == () and getattr(state, "dtype", None) == np.uint32:
        return state
    raise TypeError(
        "the first argument is the state, the first result of `init`, `step` or `reset`, got "
        f"{shown(state)}"
    )


def _as_words(seed: Any, rows: int) -> Any:
    """Returns the low and the high half of each seed; none to continue the random numbers."""
    if isinstance(seed, jax.Array):
        return _traced_words(seed, rows)
    seeds = as_seeds(seed, range(rows), rows)
    given = [own for own in seeds if own is not None]
    if not given:
        return jnp.zeros((0, 2), np.uint32)
    if len(given) < rows:
        raise ValueError(
            f"`seed` must be None, an integer or {rows} integers, one for each row, got "
            f"{shown(seed)}"
        )
    if max(given) >= _SEEDS:
        raise ValueError(f"seeds of compiled functions are below 2**63, got {max(given)}")
    return jnp.array([(own & _WORD, own >> 32) for own in given], np.uint32)


def _traced_words(seed: jax.Array, rows: int) -> Any:
    """The same, of an array of JAX."""
    if not jnp.issubdtype(seed.dtype, jnp.integer) or seed.shape not in ((), (rows,)):
        raise TypeError(
            f"`seed` must be an integer, or integers of shape ({rows},) (num_envs), got an array "
            f"of {seed.dtype.name} of shape {tuple(seed.shape)}"
        )
    low = seed.astype(np.uint32)
    # Of a negative seed, the high half is all ones, which the environments refuse.
    high = jnp.where(seed < 0, np.uint32(_WORD), np.uint32(0))
    if seed.dtype.itemsize > 4:
        high = (seed >> 32).astype(np.uint32)
    if seed.shape == ():
        offsets = jnp.arange(rows, dtype=np.uint32)
        low, first = low + offsets, low
        high = high + (low < first)
    return jnp.stack([low, high], axis=-1).astype(np.uint32)
