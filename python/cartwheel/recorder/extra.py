"""Libraries that the recorder needs."""

from __future__ import annotations

from typing import Any

from cartwheel.extras import load as load_from_extra


def load(name: str) -> Any:
    """Imports a library of the extra ``record``, or PyTorch.

    Raises:
        ImportError: It is not installed.
    """
    return load_from_extra(name, "torch" if name == "torch" else "record", "the recorder")
