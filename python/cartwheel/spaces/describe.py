"""Describes Gymnasium's spaces for the native code.

A space whose values have a fixed shape and dtype becomes *leaves*, arrays in shared memory. Any
other space is *opaque*: its values are encoded one by one. The functions that are registered for
the space with Gymnasium make the batch, also functions that users register for their own spaces.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

#: A space as nested tuples; ``rust/cartwheel-python/src/space.rs`` lists the forms.
Description: TypeAlias = "tuple[Any, ...]"

_LEAF_DTYPES = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
)
#: Gymnasium's own batch functions of the known spaces. If another function is registered for a
#: space or a subclass, the space is opaque, so that the other function is called.
_LEAVES = (Box, Discrete, MultiDiscrete, MultiBinary)
_OWN: dict[Any, Any] = {space: concatenate.dispatch(space) for space in (*_LEAVES, Dict, Tuple)}


def _is_known(space: Any, kind: type[Any]) -> bool:
    return isinstance(space, kind) and concatenate.dispatch(type(space)) is _OWN[kind]


def describe(space: Any) -> Description:
    """Describes a space by its leaves.

    Args:
        space: The space of one environment.

    Returns:
        Nested tuples, in the order in which Gymnasium batches the parts.
    """
    if any(_is_known(space, kind) for kind in _LEAVES) and str(space.dtype) in _LEAF_DTYPES:
        return ("leaf", str(space.dtype), tuple(space.shape or ()))
    if _is_known(space, Dict):
        return ("dict", [(key, describe(part)) for key, part in space.spaces.items()])
    if _is_known(space, Tuple):
        return ("tuple", [describe(part) for part in space.spaces])
    return ("opaque", space)


def describe_actions(space: Space[Any]) -> Description:
    """Describes an action space: by its leaves, or as one opaque part if any part is opaque."""
    description = describe(space)
    is_whole = _any_part(description, "opaque") or not _any_part(description, "leaf")
    return ("opaque", space) if is_whole else description


def check_fixed_shape(observations: Description, space: Space[Any]) -> None:
    """Checks that dense final observations are possible: every part has a fixed shape.

    Raises:
        ValueError: Some part has none.
    """
    if _any_part(observations, "opaque"):
        raise ValueError(
            "`final_obs='dense'` needs observations of fixed shape; the space has parts without "
            f"one: {space}. Use final_obs='object'."
        )


def _any_part(description: Description, kind: str) -> bool:
    if description[0] == kind:
        return True
    if description[0] == "dict":
        return any(_any_part(part, kind) for _, part in description[1])
    return description[0] == "tuple" and any(_any_part(part, kind) for part in description[1])


def row_bytes(description: Description) -> int:
    """Returns the bytes of the leaves of one row."""
    if description[0] == "leaf":
        return int(np.prod(description[2], dtype=np.int64)) * np.dtype(description[1]).itemsize
    if description[0] == "dict":
        return sum(row_bytes(part) for _, part in description[1])
    return sum(row_bytes(part) for part in description[1]) if description[0] == "tuple" else 0


def batch_opaque(space: Space[Any], found: dict[int, Any], num_envs: int) -> Any:
    """Batches values of a space without a fixed shape, by Gymnasium's own functions.

    Args:
        space: The space of one environment.
        found: Values by row; rows without a value were never reset.
        num_envs: Rows of the batch.

    Returns:
        The result of ``gymnasium.vector.utils.concatenate``.
    """
    empty: Any = create_empty_array(space, n=num_envs)
    if len(found) < num_envs:
        blank = list(empty) if isinstance(empty, tuple | list | np.ndarray) else [None] * num_envs
        found = {row: found.get(row, blank[row]) for row in range(num_envs)}
    return concatenate(space, [found[row] for row in range(num_envs)], empty)


def batch_of_actions(space: Space[Any], actions: Any, num_rows: int) -> Any:
    """Batches actions, one for each row, of a space whose batches are not single arrays.

    Args:
        space: The action space of one row.
        actions: The actions, in any iterable.
        num_rows: The number of actions.

    Returns:
        The result of ``gymnasium.vector.utils.concatenate``.

    Raises:
        ValueError: The number of actions is not ``num_rows``.
    """
    return batch_opaque(space, dict(enumerate(_counted(list(actions), num_rows))), num_rows)


def rows_of(action_space: Space[Any], actions: Any, num_envs: int) -> list[Any]:
    """Returns the actions of a batch as a list, by Gymnasium's ``iterate``.

    Raises:
        ValueError: The number of actions is not ``num_envs``.
        TypeError: ``actions`` is not a batch.
    """
    return _counted(list(iterate(action_space, actions)), num_envs)


def _counted(actions: list[Any], num_envs: int) -> list[Any]:
    if len(actions) != num_envs:
        raise ValueError(f"expected {num_envs} actions (one per environment), got {len(actions)}")
    return actions
