"""EnvPool's functions for JAX: ``handle, recv, send, step = pool.xla()``."""

from __future__ import annotations

from cartwheel._internal.versions import load

load("jax", "jax", "EnvPool.xla", "0.5")

# ruff: noqa: E402 - they import what was loaded

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector import AutoresetMode

from cartwheel._internal.suggestions import shown
from cartwheel._xla import Calls, as_array, assembled, form
from cartwheel.envpool.formats import is_narrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space

    from cartwheel.envpool.pool import EnvPool

#: Bytes of a handle.
_BYTES = 8


def functions(
    pool: EnvPool[Any],
) -> tuple[jax.Array, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Returns the handle and the functions of a pool, see :meth:`EnvPool.xla`."""
    _check_available(pool)
    pool._pool.check("xla", idle=False)
    envs: Any = pool._envs
    calls = Calls(envs)
    space, rows, size = envs.single_observation_space, pool.num_envs, pool.batch_size

    def results() -> list[jax.ShapeDtypeStruct]:
        flags, numbers = form((size,), np.bool_), form((size,), np.int32)
        rewards = form((size,), np.float32)
        token = form((_BYTES,), np.uint8)
        return [token, *calls.forms(size), rewards, flags, flags, numbers, numbers]

    # Scripts use a handle twice, and do not use those that `send` returns.
    receive = calls.call("recv", results, has_effect=True)
    begin = calls.call("send", lambda: [form((_BYTES,), np.uint8)], has_effect=True)

    def recv(handle: Any) -> tuple[Any, Any]:
        """Receives the next ``batch_size`` environments: the handle, and five results."""
        handle, *batch, rewards, terminated, truncated, ids, elapsed = receive(_as_handle(handle))
        observations = _in_form(space, assembled(calls.observations, iter(batch)))
        info = {"env_id": ids, "players": {"env_id": ids}, "elapsed_step": elapsed}
        return handle, (observations, rewards, terminated, truncated, info)

    def send(handle: Any, action: Any, env_id: Any = None) -> Any:
        """Sends actions to environments, by default to all, and returns the handle."""
        action, env_id, _ = pool._read(action, env_id)
        ids = jnp.zeros(0, np.int32) if env_id is None else _as_ids(env_id)
        count = rows if env_id is None else len(ids)
        expected = f"num_envs={rows}" if env_id is None else f"{count} entries of `env_id`"
        (handle,) = begin(_as_handle(handle), ids, *calls.as_actions(action, count, expected))
        return handle

    def step(handle: Any, action: Any, env_id: Any = None) -> tuple[Any, Any]:
        """Sends and receives: ``send`` followed by ``recv``."""
        return recv(send(handle, action, env_id))

    # The functions keep the pool, so that it is not collected before them.
    for function in (recv, send, step):
        function.__dict__["pool"] = pool
    return jnp.zeros(_BYTES, np.uint8), recv, send, step


def _check_available(pool: EnvPool[Any]) -> None:
    """Raises ``RuntimeError`` unless compiled functions can step the environments."""
    if not pool._native:
        raise RuntimeError(
            f"XLA is unavailable for {pool.spec.task_id!r}: its environments are in Python, and "
            "cannot run inside of a compiled function. Native ones can, such as "
            "cartwheel/CartPole-v1."
        )
    if pool.autoreset_mode == AutoresetMode.SAME_STEP:
        raise RuntimeError(
            "XLA is unavailable in the mode SAME_STEP, whose final observations are not arrays: "
            "use NEXT_STEP, or cartwheel.jax.envs_to_jax"
        )
    if pool.render_mode == "human":
        raise RuntimeError(
            "XLA is unavailable with render_mode='human': compiled functions do not draw windows"
        )


def _as_handle(handle: Any) -> Any:
    """Raises unless it can be a handle."""
    if getattr(handle, "shape", None) == (_BYTES,) and getattr(handle, "dtype", None) == np.uint8:
        return handle
    raise TypeError(
        "the first argument is the handle, the first result of `xla()` and of its functions, got "
        f"{shown(handle)}"
    )


def _as_ids(env_id: Any) -> Any:
    ids = as_array(env_id, "env_id")
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise TypeError(f"`env_id` must be integers, got {ids.dtype.name}")
    if ids.ndim != 1 or not len(ids):
        raise ValueError(f"`env_id` must be a list of environments, got shape {tuple(ids.shape)}")
    return ids.astype(np.int32)


def _in_form(space: Space[Any], batch: Any) -> Any:
    """Returns a batch of observations in EnvPool's form, see ``formats.form_of``."""
    if is_narrow(space):
        return batch.astype(np.int32)
    if isinstance(space, Dict):
        return {key: _in_form(part, batch[key]) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        parts = tuple(_in_form(part, own) for part, own in zip(space.spaces, batch, strict=True))
        is_array = bool(parts) and all(map(is_narrow, space.spaces))
        return jnp.stack(parts, axis=-1) if is_array else parts
    return batch
