"""Attributes of rows that are MuJoCo's own objects, or parts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.near_misses import near_miss, shown

if TYPE_CHECKING:
    from cartwheel.physics.rows import Row

_OWNERS = ("model", "data")


def is_of_row(name: Any) -> bool:
    """Whether a name is ``model`` or ``data``, or one of their fields: ``data.qpos``."""
    return isinstance(name, str) and name.partition(".")[0] in _OWNERS


def read(row: Row, name: str) -> Any:
    """Returns an attribute: MuJoCo's object, or the value of a field; of an array a copy.

    Args:
        row: The simulation.
        name: As for :func:`is_of_row`.

    Raises:
        AttributeError: There is no such field.
    """
    value = row
    for part in name.split("."):
        value = _part(value, part, name)
    return value.copy() if isinstance(value, np.ndarray) else value


def convert(row: Row, name: str, value: Any) -> Any:
    """Returns what :func:`write` would write: a value of the field's shape and dtype.

    Raises:
        AttributeError: There is no such field.
        ValueError: The field cannot be set, or the value does not fit.
    """
    if name in _OWNERS:
        raise ValueError(f"`{name}` cannot be replaced: set its fields, as in `{name}.qpos`.")
    present = read(row, name)
    if isinstance(present, np.ndarray):
        given = np.asarray(value)
        if given.shape != present.shape or not np.can_cast(given.dtype, present.dtype, "same_kind"):
            raise ValueError(
                f"`{name}` must have the shape {present.shape} of {present.dtype}, got the shape "
                f"{given.shape} of {given.dtype}."
            )
        return given.astype(present.dtype)
    if isinstance(present, int | float):
        try:
            return type(present)(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"`{name}` must be a number of type {type(present).__name__}, got {shown(value)}."
            ) from None
    raise ValueError(f"`{name}` is a {type(present).__name__}, which cannot be set.")


def write(row: Row, name: str, value: Any) -> None:
    """Sets a field to what :func:`convert` returned; MuJoCo computes nothing anew.

    Raises:
        ValueError: MuJoCo does not let the field be set.
    """
    if name.startswith("model."):
        row.original.setdefault(name, read(row, name))
    owner: Any = row
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    present = getattr(owner, last)
    if isinstance(present, np.ndarray):
        present[...] = value
        return
    try:
        setattr(owner, last, value)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"`{name}` cannot be set: MuJoCo fixes it.") from error


def changed(row: Row) -> list[str]:
    """Returns the fields of the row's model that :func:`write` has set to other values."""
    return [
        name for name, value in row.original.items() if not np.array_equal(read(row, name), value)
    ]


def _part(owner: Any, part: str, name: str) -> Any:
    try:
        return getattr(owner, part)
    except AttributeError:
        fields = [known for known in dir(owner) if not known.startswith("_")]
        meant = near_miss(part, fields)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise AttributeError(
            f"{name!r}: {type(owner).__name__} of MuJoCo has no field {part!r}{hint}"
        ) from None
