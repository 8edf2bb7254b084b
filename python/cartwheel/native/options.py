"""Keywords and options of native environments as JSON, the form that Rust reads."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import native_envs, reset_option_names
from cartwheel.arguments import ROW_OPTIONS
from cartwheel.native.registration import registered_id
from cartwheel.near_misses import near_miss, shown

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_json(options: Mapping[str, Any]) -> str:
    """Returns keywords of an environment as a JSON object.

    Raises:
        ValueError: JSON has no form for a value.
    """
    parts = (f"{json.dumps(name)}: {_value_as_json(name, options[name])}" for name in options)
    return f"{{{', '.join(parts)}}}"


#: Names that mean rows elsewhere, and cartwheel's name.
_ROWS_ELSEWHERE = {
    "mask": "reset_mask",
    "env_mask": "reset_mask",
    **dict.fromkeys(
        ("env_id", "env_ids", "env_indices", "index", "indices", "idx", "ids", "row", "rows"),
        "env_index",
    ),
}


def reset_as_json(env_id: str, options: Mapping[str, Any], shown_id: str | None = None) -> str:
    """Returns the environment's own options of a reset as a JSON object.

    Options that only other native environments have are left out: environments may share one
    dictionary. A plugin that does not name its options gets them all, and refuses what it does not
    have. ``shown_id`` is the id in errors, if it is another one.

    Raises:
        ValueError: No native environment has an option of this name, or a value is no number. (For
            a plugin: JSON has no form for the value.)
    """
    own = reset_option_names(env_id)
    if own is None:
        return as_json(options)
    if not options.keys() <= set(own):
        others = (reset_option_names(other) or () for other, *_ in native_envs())
        known = set(own).union(*others)
        for name in options:
            if name not in known:
                raise ValueError(_no_such_option(shown_id or env_id, name, own))
    chosen = {name: options[name] for name in own if name in options}
    if registered_id(env_id) == env_id:
        return as_json(chosen)
    return json.dumps({name: _as_number(name, value) for name, value in chosen.items()})


def options_of_reset(env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that the environment has, for a reset that ignores all others."""
    own = reset_option_names(env_id)
    return {name: options[name] for name in (options if own is None else own) if name in options}


def _no_such_option(env_id: str, name: Any, own: list[str]) -> str:
    start = f"{env_id} has no option {name!r} of a reset"
    meant = _ROWS_ELSEWHERE.get(name) or near_miss(
        str(name), (*own, *ROW_OPTIONS, *_ROWS_ELSEWHERE)
    )
    if meant is not None:
        return f"{start}: did you mean {_ROWS_ELSEWHERE.get(meant, meant)!r}?"
    has = f"only {' and '.join(map(repr, own))}" if own else "and no others"
    return f"{start}, {has}; 'reset_mask' and 'env_index' select rows."


def _as_number(name: str, value: Any) -> int | float:
    number = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not isfinite(number):
        raise ValueError(f"`options[{name!r}]` must be a finite number, got {shown(value)}.")
    return number


def _value_as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"`{name}` cannot be passed to a native environment: {shown(value)}"
        ) from error


def _plain(value: Any) -> Any:
    """Converts an array or NumPy scalar to Python types; bytes, NumPy's characters, to ``str``."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
