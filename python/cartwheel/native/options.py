"""Keywords and options of native environments as JSON, as Rust reads them."""

from __future__ import annotations

import json
from typing import Any


def as_json(options: dict[str, Any]) -> str:
    """Keywords of an environment as a JSON object.

    Raises:
        ValueError: A value has no form there.
    """
    return _object({name: _value_as_json(name, value) for name, value in options.items()})


def reset_as_json(options: dict[str, Any]) -> str:
    """Options of a reset as a JSON object.

    An environment ignores options that it does not have, so they may be anything; what has no form
    there becomes a text, which is refused where a number is wanted.
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
            f"option {name} cannot be handed to a native environment: {value!r}"
        ) from error


def _plain(value: Any) -> Any:
    """An array or NumPy scalar as Python's own; letters that NumPy keeps as bytes as text."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
