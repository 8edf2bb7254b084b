"""Whether TorchRL is there, and new enough."""

from __future__ import annotations

import importlib.metadata
import re

#: The oldest TorchRL that this room was tested with.
_OLDEST = (0, 14)
_INSTALL = "pip install -U 'cartwheel[torchrl]'"


def check_versions() -> None:
    """Checks the version of TorchRL without importing it.

    Raises:
        ImportError: TorchRL is missing or too old.
    """
    try:
        found = importlib.metadata.version("torchrl")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(f"cartwheel.torchrl needs TorchRL: {_INSTALL}", name="torchrl") from error
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _OLDEST:
        raise ImportError(
            f"cartwheel.torchrl needs TorchRL {_OLDEST[0]}.{_OLDEST[1]} or newer, found {found}: "
            f"{_INSTALL}",
            name="torchrl",
        )
