"""Other packages that take part in a race where they are installed; none is needed."""

from __future__ import annotations

import importlib
import multiprocessing
import warnings
from typing import Any


def load(package: str) -> Any:
    """Imports ``package``, which may take seconds and warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(package)


def why_not_loaded(package: str, hint: str = "") -> str | None:
    """Why ``package`` cannot be imported; ``None`` if it can.

    Args:
        package: The name by which it is imported.
        hint: How to install it, after the words that it is not.
    """
    try:
        load(package)
    except (ImportError, OSError) as error:  # such as a library of the system that it needs
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            return f"{package} is not installed{hint}"
        return f"{package} cannot be imported: {error}"
    return None


def quickest_start_method() -> str:
    """How contenders start processes that no clock times: steps do not depend on it.

    A forked process shares what is imported, such as torch, which each of many others would import
    for seconds.
    """
    methods = multiprocessing.get_all_start_methods()
    return "fork" if "fork" in methods else methods[0]
