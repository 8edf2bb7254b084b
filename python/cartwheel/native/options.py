"""Keywords and options of native environments as JSON, the form that Rust reads."""

from __future__ import annotations

import json
from typing import Any


def as_json(options: dict[str, Any]) -> str:
    """Returns keywords of an environment as a JSON object.

    Raises:
        ValueError: JSON has no form for a value.
    """
    return _object({name: _value_as_json(name, value) for name, value in options.items()})


def reset_as_json(options: dict[str, Any]) -> str:
    """Returns options of a reset as a JSON object.

    An environment ignores options that it does not have, so their values may be of any type. A
    value for which JSON has no form becomes a string, which is refused where a number is expected.
    """
    return _object({str(name): _any_as_json(name, value) for name, value in options.items()})


def _object(parts: dict[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name)}: {part}' for name, part in parts.items())}}}"


def _any_as_json(name: str, value: Any) -> str:
    try:
        return _value_as_json(name, value)
    except ValueError:
        return json.dumps(repr(value))


def _value_as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"option {name} cannot be passed to a native environment: {value!r}"
        ) from error


def _plain(value: Any) -> Any:
    """Converts an array or NumPy scalar to Python types; bytes, NumPy's characters, to ``str``."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
