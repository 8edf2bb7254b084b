"""States of single rows with what was set in their own MuJoCo models.

::

    state   := changes?, state of the engine
    changes := magic 8 bytes, length u32 (little-endian), BLAKE2b digest 16 bytes,
               pickled dictionary: values by the names of fields

A row in whose model nothing was set has the state of the engine alone.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any

from cartwheel.workers.serving.row_state import digest

_MAGIC = b"cartwmj\n"
_HEAD = struct.Struct("<8sI16s")


def with_changes(state: bytes, changes: dict[str, Any]) -> bytes:
    """Returns the state of a row together with what was set in its model."""
    if not changes:
        return state
    body = pickle.dumps(changes, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(_MAGIC, len(body), digest(body)) + body + state


def split_changes(state: bytes) -> tuple[bytes, dict[str, Any]]:
    """Returns the state of the engine, and what was set in the model.

    Raises:
        ValueError: The state was cut or changed.
    """
    if not isinstance(state, bytes) or not state.startswith(_MAGIC):
        return state, {}
    end = _HEAD.size
    if len(state) >= end:
        _, length, own = _HEAD.unpack_from(state)
        body = state[end : end + length]
        if len(body) == length and digest(body) == own:
            changes: dict[str, Any] = pickle.loads(body)
            return state[end + length :], changes
    raise ValueError(f"the state of {len(state)} bytes was cut or changed")
