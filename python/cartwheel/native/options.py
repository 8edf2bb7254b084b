"""Keywords and options of native environments as JSON, the form that Rust reads."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np

from cartwheel.arguments import ROW_OPTIONS
from cartwheel.near_misses import near_miss, shown


def as_json(options: dict[str, Any]) -> str:
    """Returns keywords of an environment as a JSON object.

    Raises:
        ValueError: JSON has no form for a value.
    """
    return _object({name: _value_as_json(name, value) for name, value in options.items()})


#: The options of resets of native environments; all are numbers.
OPTIONS_OF_RESETS = {
    **dict.fromkeys(
        (
            "CartPole-v0",
            "CartPole-v1",
            "MountainCar-v0",
            "MountainCarContinuous-v0",
            "Acrobot-v1",
        ),
        ("low", "high"),
    ),
    "Pendulum-v1": ("x_init", "y_init"),
}
#: Names that mean rows elsewhere, and cartwheel's name.
_ROWS_ELSEWHERE = {
    "mask": "reset_mask",
    "env_mask": "reset_mask",
    **dict.fromkeys(
        ("env_id", "env_ids", "env_indices", "index", "indices", "idx", "ids", "row", "rows"),
        "env_index",
    ),
}


def reset_as_json(env_id: str, options: dict[str, Any]) -> str:
    """Returns the environment's own options of a reset as a JSON object.

    Options that only other native environments have are left out: environments may share one
    dictionary.

    Raises:
        ValueError: No native environment has an option of this name, or a value is no number.
    """
    own, known = OPTIONS_OF_RESETS.get(env_id, ()), set().union(*OPTIONS_OF_RESETS.values())
    for name in options:
        if name not in known:
            raise ValueError(_no_such_option(env_id, name, own))
    return json.dumps({name: _as_number(name, options[name]) for name in own if name in options})


def _no_such_option(env_id: str, name: Any, own: tuple[str, ...]) -> str:
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


def _object(parts: dict[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name)}: {part}' for name, part in parts.items())}}}"


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
