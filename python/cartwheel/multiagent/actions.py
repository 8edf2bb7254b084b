"""Actions by agent, checked and stacked by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


def check_agents(what: str, by_agent: Any, names: tuple[Any, ...], kind: str = "agents") -> None:
    """Checks that a dictionary has each agent, or each group.

    Raises:
        TypeError: It is not a dictionary.
        ValueError: An agent is missing or unknown.
    """
    if not isinstance(by_agent, dict):
        raise TypeError(
            f"`{what}` must be a dictionary with the {kind} {list(names)}, got {type(by_agent)}."
        )
    if by_agent.keys() == set(names):
        return
    missing = [name for name in names if name not in by_agent]
    unknown = [name for name in by_agent if name not in names]
    found = [f"{missing} are missing"] * bool(missing) + [f"{unknown} are unknown"] * bool(unknown)
    raise ValueError(
        f"`{what}` must have an entry for each of the {kind} {list(names)}, also for absent ones: "
        f"{' and '.join(found)}."
    )


def stacked_actions(
    space: Space[Any], values: list[Any], members: list[Any], count: int, path: str
) -> Any:
    """Returns the actions of a group, ``(count, members, ...)``, nested as their space.

    Args:
        space: The space of one agent's action.
        values: The actions of each member, ``(count, ...)``.
        members: The names of these agents, for errors.
        count: The rows.
        path: The place of the values within those of an agent, for errors.

    Raises:
        TypeError: Actions have another kind of dtype.
        ValueError: They are nested in another way, have another shape, or do not fit the dtype.
    """
    if isinstance(space, nested.ARRAY_SPACES):  # asked first: that is cheap, and the usual case
        return _stacked_arrays(space, values, members, count, path)
    parts = dict(nested.parts(space))
    for name, value in zip(members, values, strict=True):
        has_parts = isinstance(value, dict | tuple) and len(value) == len(parts)
        if not has_parts or (isinstance(value, dict) and value.keys() != parts.keys()):
            raise misshapen(name, path, f"the parts {list(parts)}", value)
    found = {
        key: stacked_actions(
            part, [value[key] for value in values], members, count, f"{path}[{key!r}]"
        )
        for key, part in parts.items()
    }
    return found if isinstance(values[0], dict) else tuple(found.values())


def _stacked_arrays(
    space: Space[Any], values: list[Any], members: list[Any], count: int, path: str
) -> NDArray[Any]:
    """Returns the actions of a group whose space has arrays."""
    dtype, shape = space.dtype, (count, *(space.shape or ()))
    assert dtype is not None, "spaces with arrays have a dtype"
    stacked = np.empty((count, len(values), *shape[1:]), dtype)
    for at, value in enumerate(values):
        array = value
        if type(value) is not np.ndarray:
            array = nested.as_array(f"actions[{members[at]!r}]{path}", value)
        if array.shape != shape:
            raise misshapen(members[at], path, f"the shape {shape}", array)
        if array.dtype != dtype:
            array = _as_dtype(f"actions[{members[at]!r}]{path}", array, dtype)
        stacked[:, at] = array
    return stacked


def _as_dtype(name: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns actions in the dtype of their space; no integer becomes another one."""
    is_integer = array.dtype.kind in "iu" and dtype.kind in "iu"
    if not is_integer and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"`{name}` must be {dtype}, got {array.dtype}.")
    cast = array.astype(dtype)
    if is_integer and not np.array_equal(cast, array):
        raise ValueError(f"`{name}` must fit into {dtype}, got {array[cast != array][0]}.")
    return cast


def misshapen(name: Any, path: str, wanted: str, value: Any) -> ValueError:
    """Returns the error for actions of an agent that do not have what is ``wanted``."""
    got = getattr(value, "shape", None)
    shown = f"the shape {got}" if got is not None else f"{type(value)}"
    return ValueError(f"`actions[{name!r}]{path}` must have {wanted}, got {shown}.")
