"""Libraries that come with an extra of cartwheel."""

from __future__ import annotations

import importlib
from typing import Any


def load(library: str, extra: str, user: str) -> Any:
    """Imports a library of an extra.

    Args:
        library: The module to import.
        extra: The extra that installs it.
        user: What needs it, for the error.

    Raises:
        ImportError: The library, or something that it imports, is not installed.
    """
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {library}: pip install 'cartwheel[{extra}]' ({error})",
            name=error.name,
            path=error.path,
        ) from error
