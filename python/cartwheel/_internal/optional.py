"""Libraries that come with an extra of cartwheel."""

from __future__ import annotations

import importlib
from typing import Any

from cartwheel._internal.gymnasium_versions import numbers


def load(library: str, extra: str, user: str, oldest: str | None = None) -> Any:
    """Imports a library of an extra.

    Args:
        library: The module to import.
        extra: The extra that installs it.
        user: What needs it, for the error.
        oldest: The oldest version that will do, if an older one would fail later.

    Raises:
        ImportError: The library, or something that it imports, is not installed, or it is too old.
    """
    if oldest is not None:
        _check_version(library, extra, user, oldest)
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {library}: pip install 'cartwheel[{extra}]' ({error})",
            name=error.name,
            path=error.path,
        ) from error


def _check_version(library: str, extra: str, user: str, oldest: str) -> None:
    """Raises ``ImportError`` if a library is too old; it need not be imported."""
    metadata: Any = importlib.import_module("importlib.metadata")  # slow to import
    try:
        found = metadata.version(library)
    except metadata.PackageNotFoundError:
        return  # not installed, or without metadata: the import tells
    if numbers(found) < numbers(oldest):
        raise ImportError(
            f"{user} needs {library} {oldest} or newer, but {found} is installed: "
            f"pip install -U 'cartwheel[{extra}]'",
            name=library,
        )
