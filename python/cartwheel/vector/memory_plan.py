"""The sizes of a pool's memory, and whether its threads spin before they sleep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import require_memory
from cartwheel._internal.spaces import check_fixed_shape, describe, describe_actions, row_bytes

if TYPE_CHECKING:
    from gymnasium.spaces import Box, Space

#: The minimum memory of a row without its observations: random numbers, seed, episode state.
_ROW_BYTES = 96
#: The minimum memory of an environment that is written in Python.
_PYTHON_ROW_BYTES = 1024


def plan_memory(
    spaces: tuple[Space[Any], Space[Any]],
    shards: list[tuple[int, int]],
    batch_size: int,
    max_batches: int | None,
    *,
    dense_finals: bool = False,
    reward_space: Box | None = None,
    native: bool = False,
) -> dict[str, Any]:
    """Returns the keywords of ``Memory``: the spaces and sizes of a pool's memory.

    Args:
        spaces: The observation space and the action space of one row.
        shards: For each shard, its first row and the row after its last.
        batch_size: The number of rows of a batch.
        max_batches: As of ``Memory``.
        dense_finals: Whether batches have an array of final observations.
        reward_space: The space of one row's reward, if it is a vector.
        native: Whether the environments are native.

    Raises:
        ValueError: Final observations are dense, and observations have no fixed shape.
    """
    observation_space, action_space = spaces
    observations = describe(observation_space, native=native)
    if dense_finals:
        check_fixed_shape(observations, observation_space)
    return {
        "observations": observations,
        "actions": describe_actions(action_space),
        "shards": shards,
        "batch_size": batch_size,
        "max_batches": max_batches,
        "dense_finals": dense_finals,
        "reward_width": None if reward_space is None else reward_space.shape[0],
    }


def require_native_rows(plan: dict[str, Any], num_envs: int) -> None:
    """Raises ``MemoryError`` if native environments, and spaces for all of them, do not fit."""
    # A batched box has the bounds of every row.
    of_spaces = 2 * row_bytes(plan["observations"]) * plan["batch_size"]
    require_memory(min(of_spaces + _ROW_BYTES * num_envs, 2**63))  # fits 64 bits


def require_python_rows(num_envs: int) -> None:
    """Raises ``MemoryError`` if ``num_envs`` environments in Python do not fit into memory."""
    require_memory(_PYTHON_ROW_BYTES * num_envs)


def spins() -> bool:
    """Whether waiting threads may spin before they sleep: yes, unless ``CARTWHEEL_SPIN=0``."""
    return os.environ.get("CARTWHEEL_SPIN", "1") != "0"
