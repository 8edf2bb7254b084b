"""How much memory a pool gets, and whether its threads may spin before they sleep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import require_memory
from cartwheel._internal.spaces import check_fixed_shape, describe, describe_actions, row_bytes

if TYPE_CHECKING:
    from cartwheel.vector.base import PoolVectorEnv

#: The default memory of slabs, and the bounds of their number; see `docs/decisions/slabs.md`.
_SLAB_BYTES, _FEWEST_SLABS, _MOST_SLABS = 1 << 30, 8, 1024
#: Bounds of the memory for one shard's infos; larger infos go through the channel.
_LEAST_INFO_BYTES, _MOST_INFO_BYTES = 1 << 16, 1 << 24
#: Memory for one row's infos, not counting a final observation.
_INFO_BYTES_A_ROW = 2048

#: The least memory of a row, besides its observations: random numbers, seed, place in the episode.
_BYTES_A_ROW = 96
#: The least memory of an environment that is written in Python.
_PYTHON_BYTES_A_ROW = 1024


def plan_memory(
    envs: PoolVectorEnv[Any, Any], shards: list[tuple[int, int]], max_batches: int | None
) -> dict[str, Any]:
    """Computes the keywords of ``Memory``: what a pool's memory is for, and its sizes.

    Args:
        envs: The vector environment, which has its spaces.
        shards: For each shard, its first row and the row after its last.
        max_batches: The most batches that may be kept as views; ``None`` for as many as fit in
            1 GiB, at least 8 and at most 1024.

    Raises:
        ValueError: Final observations are dense, and observations have no fixed shape.
    """
    observations = describe(envs.single_observation_space)
    batch_size, dense_finals = envs.batch_size, envs.final_obs == "dense"
    if dense_finals:
        check_fixed_shape(observations, envs.single_observation_space)
    bytes_a_row = row_bytes(observations)
    if max_batches is None:
        halves = 2 if dense_finals else 1
        fitting = _SLAB_BYTES // max(1, bytes_a_row * batch_size * halves)
        max_batches = min(max(fitting, _FEWEST_SLABS), _MOST_SLABS)
    rows = max(last - first for first, last in shards)
    info_bytes = rows * (bytes_a_row + _INFO_BYTES_A_ROW)
    # More slabs are needed than can be kept: one for each other batch that is filled at the same
    # time, and for each batch one in reserve, from which copies are made.
    filled = -(-envs.num_envs // batch_size)
    return {
        "observations": observations,
        "actions": describe_actions(envs.single_action_space),
        "shards": shards,
        "batch_size": batch_size,
        "max_batches": max_batches + 2 * filled - 1,
        "info_bytes": min(max(info_bytes, _LEAST_INFO_BYTES), _MOST_INFO_BYTES),
        "dense_finals": dense_finals,
    }


def require_native_rows(plan: dict[str, Any], num_envs: int) -> None:
    """Raises ``MemoryError`` if native environments, and spaces for all of them, do not fit."""
    # A batched box has the least and the greatest value of every row.
    of_spaces = 2 * row_bytes(plan["observations"]) * plan["batch_size"]
    require_memory(min(of_spaces + _BYTES_A_ROW * num_envs, 2**63))  # what a register holds


def require_python_rows(num_envs: int) -> None:
    """Raises ``MemoryError`` if so many environments in Python do not fit into memory."""
    require_memory(_PYTHON_BYTES_A_ROW * num_envs)


def spins() -> bool:
    """Whether waiting threads may spin before they sleep: yes, unless ``CARTWHEEL_SPIN=0``."""
    return os.environ.get("CARTWHEEL_SPIN", "1") != "0"
