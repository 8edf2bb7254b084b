"""Checks that cartwheel runs here, and loads the native module.

This is the package's first import, so it also has to load in older versions of Python.
"""

from __future__ import annotations

import importlib
import platform
import sys
import sysconfig
from pathlib import Path

#: The oldest version of Python, as in ``requires-python``.
OLDEST_PYTHON = (3, 10)
#: Names of ``sys.platform``.
SYSTEMS = {"linux": "Linux", "darwin": "macOS"}
NATIVE = "cartwheel._cartwheel"
#: The folder of the package.
PACKAGE = Path(__file__).parents[1]


def check() -> None:
    """Loads the native module.

    Raises:
        ImportError: Python is too old, the system is not one of :data:`SYSTEMS`, this Python cannot
            load the native module, or this is a subinterpreter.
    """
    if sys.version_info < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise ImportError(
            f"cartwheel needs Python {oldest} or newer; this is Python {platform.python_version()}."
        )
    if sys.platform not in SYSTEMS:
        advice = " Windows has Linux as WSL 2." if sys.platform == "win32" else ""
        systems = " and ".join(SYSTEMS.values())
        raise ImportError(f"cartwheel runs on {systems}, not on {sys.platform}.{advice}")
    try:
        importlib.import_module(NATIVE)
    except (ImportError, SystemError) as error:  # `SystemError`: another ABI
        raise ImportError(_reason(error), name=NATIVE) from error


def _reason(error: Exception) -> str:
    """Returns why the native module cannot be loaded, and the remedy."""
    if "subinterpreters" in str(error):
        return (
            "cartwheel can be imported by the main interpreter of a process alone, as NumPy, and "
            f"this is another one of {_python()}: use threads or processes."
        )
    found = sorted(file.name for file in PACKAGE.glob("_cartwheel*.so"))
    if not found:
        return (
            f"cartwheel has no native module in {PACKAGE}: in a clone, build it with "
            "`make build`; otherwise `pip install --force-reinstall cartwheel`."
        )
    return (
        f"cartwheel's native module {' or '.join(found)} cannot be loaded by {_python()}: {error}. "
        "Install the one that fits, with the pip of this Python: "
        "`pip install --force-reinstall cartwheel`."
    )


def _python() -> str:
    """Returns this Python and its machine, in the terms of the names of wheels."""
    threading = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    libc = " ".join(platform.libc_ver()).strip()
    libc = f", {libc}" if libc else ""
    return (
        f"{platform.python_implementation()} {platform.python_version()} "
        f"({SYSTEMS[sys.platform]} {platform.machine()}{libc}{threading})"
    )


check()
