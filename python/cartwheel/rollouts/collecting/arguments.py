"""Checks of the environments and arguments of a :class:`~cartwheel.Collector`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cartwheel._device.sending import device_of
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer, mode_of
from cartwheel._internal.gymnasium_classes import SyncVectorEnv
from cartwheel._internal.suggestions import vector_env_instead
from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.multiagent.base import AgentsBase
from cartwheel.rollouts.recording import MAX_STEPS
from cartwheel.vector.pool_owner import owner_of
from cartwheel.wrappers.numpy_to_torch import NumpyToTorch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.wrappers._shared.conversion import ConvertsArrays


def conversion_to(device: Any, envs: Any, given: ConvertsArrays | None) -> NumpyToTorch:
    """Returns what shows observations on a device to the policy.

    Raises:
        ValueError: The wrapper that converts arrays already has another device.
        RuntimeError: PyTorch does not have the device.
    """
    if given is None:
        return NumpyToTorch(envs, device)
    place = device_of(device, is_checked=False)
    own = given.device or "cpu" if isinstance(given, NumpyToTorch) else None
    if isinstance(given, NumpyToTorch) and device_of(own, is_checked=False) == place:
        return given
    raise ValueError(
        f"`device` must be that of the wrapper around the environments, {given}, which is {own!r}; "
        f"got {device!r}: give both the same, or leave the wrapper out."
    )


def check_background(envs: Any) -> None:
    """Refuses environments that step in the thread that collects."""
    owner: Any = owner_of(envs.unwrapped)
    is_inline = owner is not None and owner.executor == "inline"
    if is_inline or isinstance(envs.unwrapped, SyncVectorEnv):
        raise ValueError(
            f"`background` needs executor='process' or 'thread', got {envs}: its environments "
            "would step in the collector's thread and hold up the learner."
        )


def checked_mode(envs: Any) -> AutoresetMode:
    """Returns the autoreset mode of vector environments.

    Raises:
        TypeError: ``envs`` is not a vector environment.
        ValueError: There is no mode, or ``batch_size`` is less than ``num_envs``.
    """
    if isinstance(envs, AgentsBase):
        raise TypeError(
            f"`envs` must be a vector environment, got {envs!r}: pass its `as_rows()`, which has a "
            "row for each agent."
        )
    if not isinstance(envs, VectorEnv):
        raise TypeError(
            f"`envs` must be a vector environment, got {type(envs)}: {vector_env_instead(envs)}."
        )
    mode = mode_of(envs)
    if isinstance(envs.unwrapped, AgentRows) and mode == AutoresetMode.DISABLED:
        raise ValueError(
            "rows of agents cannot be reset one by one, which a Collector does in the mode "
            "DISABLED: make the environments with autoreset_mode='same_step'."
        )
    batch_size = getattr(envs.unwrapped, "batch_size", envs.num_envs)
    if batch_size < envs.num_envs:
        raise ValueError(
            f"a rollout needs batches of all {envs.num_envs} rows, but batch_size is {batch_size}: "
            "make `envs` without it. With order='free' the policy gets the rows that are done."
        )
    return mode


def check_spaces(envs: VectorEnv[Any, Any, Any]) -> None:
    """Refuses spaces that have parts which are not arrays of fixed shape, by a ``TypeError``."""
    for space, name in (
        (envs.single_observation_space, "observations"),
        (envs.single_action_space, "actions"),
    ):
        nested.empty(batch_space(space, envs.num_envs), 1, name)


def checked_steps(num_steps: Any, *, by_episodes: bool) -> int | None:
    """Returns the steps of a rollout, or their upper bound.

    Raises:
        ValueError: They are out of range, or there are none, and rollouts do not end by episodes.
    """
    if num_steps is None and not by_episodes:
        raise ValueError(
            "a rollout needs a length: give `num_steps`, `until='all_done'` or `num_episodes`."
        )
    return None if num_steps is None else as_integer("num_steps", num_steps, 1, MAX_STEPS)


def quota(num_envs: int, until: Any, num_episodes: Any) -> NDArray[np.int64] | None:
    """Returns the number of episodes of each environment in one rollout; ``None``: no limit.

    Raises:
        ValueError: Both arguments are given, or one is invalid.
    """
    if until is not None and num_episodes is not None:
        raise ValueError("`until` and `num_episodes` exclude each other: give one of them.")
    if until not in (None, "all_done"):
        raise ValueError(f"`until` must be 'all_done' or None, got {until!r}.")
    if until is None and num_episodes is None:
        return None
    episodes = num_envs
    if num_episodes is not None:
        episodes = as_integer("num_episodes", num_episodes, num_envs)
    each, more = divmod(episodes, num_envs)
    return each + (np.arange(num_envs) < more).astype(np.int64)


def check_agents(envs: Any, *, by_episodes: bool) -> None:
    """Refuses what needs episodes of their own, if rows are those of several agents.

    Raises:
        ValueError: Rollouts end by episodes.
    """
    if by_episodes and isinstance(envs.unwrapped, AgentRows):
        raise ValueError(
            "`until` and `num_episodes` count episodes of rows, and rows of agents end with "
            "their environment: pass `num_steps`, or use `cartwheel.evaluate`."
        )
