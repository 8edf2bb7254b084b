"""Named tuples whose fields are known at run time only, and which can be pickled and copied."""

from __future__ import annotations

import collections
import functools
from typing import Any

_namedtuple: Any = collections.namedtuple  # noqa: PYI024 - fields known at run time only


def record(name: str, fields: dict[str, Any]) -> Any:
    """A named tuple of a type called ``name``; those of equal name and keys have one type.

    Args:
        name: Of the type.
        fields: Values by field, in their order.

    Raises:
        ValueError: A key cannot be a field: it is no identifier, or begins with an underscore.
    """
    return _type_of(name, tuple(fields))(*fields.values())


@functools.lru_cache(maxsize=256)
def _type_of(name: str, fields: tuple[str, ...]) -> Any:
    made = _namedtuple(name, fields)
    # No module holds the type by its name, so the values travel without it.
    made.__reduce__ = lambda self: (record, (name, self._asdict()))
    return made
