"""Libraries that come with an extra of cartwheel."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str) -> Any:
    """Imports a library of the extra ``record``, or PyTorch.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = "torch" if name == "torch" else "record"
        raise ImportError(
            f"the recorder needs {name}: pip install 'cartwheel[{extra}]' ({error})", name=name
        ) from error
