"""Command-line arguments that are checked before anything is measured, not after it."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def positive(number: type[int | float]) -> Callable[[str], float]:
    """An argument that must be a number above zero."""

    def convert(text: str) -> float:
        value = number(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be above zero, got {text}")
        return value

    convert.__name__ = number.__name__  # what argparse calls it when the text is no number
    return convert


def output_file(text: str) -> Path:
    """An argument that must be a file which can be written."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be written")
    return path
