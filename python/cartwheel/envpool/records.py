"""Named tuples with fields that are only known at run time; they can be pickled and copied."""

from __future__ import annotations

import collections
import functools
from typing import Any

_namedtuple: Any = collections.namedtuple  # noqa: PYI024 - fields known at run time only


def record(name: str, fields: dict[str, Any]) -> Any:
    """Makes a named tuple; equal names and keys give the same type.

    Args:
        name: The name of the type.
        fields: Values by field, in the order of the fields.

    Raises:
        ValueError: A key is not an identifier, or begins with an underscore.
    """
    return _type_of(name, tuple(fields))(*fields.values())


@functools.lru_cache(maxsize=256)
def _type_of(name: str, fields: tuple[str, ...]) -> Any:
    made = _namedtuple(name, fields)
    # The type is in no module, so values are pickled without it.
    made.__reduce__ = lambda self: (record, (name, self._asdict()))
    return made
