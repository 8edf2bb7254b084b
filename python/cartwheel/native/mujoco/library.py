"""The library of MuJoCo that Python has loaded, and the addresses of the symbols that Rust uses.

Functions and data are found by their names, which MuJoCo documents. Layouts of its structs are not
used, because they change between releases.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cartwheel._internal.logging import LOGGER
from cartwheel._internal.process import process_lock
from cartwheel._internal.versions import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

#: The oldest version whose results were compared with Gymnasium's, as in the extra ``mujoco``.
OLDEST = "3.2"
#: The functions that Rust calls, and the variables that it sets while a simulation exists.
SYMBOLS = (
    "mj_step",
    "mj_forward",
    "mj_resetData",
    "mj_rnePostConstraint",
    "mj_setConst",
    "mj_stateSize",
    "mj_getState",
    "mj_setState",
    "mju_error",
    "mju_writeLog",
    "mju_user_error",
    "mju_user_warning",
    "mjcb_time",
)
#: The library's file in the package, by ``sys.platform``.
_FILES = {"linux": "libmujoco.so*", "darwin": "libmujoco*.dylib"}


def load_mujoco(user: str) -> ModuleType:
    """Imports MuJoCo.

    Args:
        user: The module or environment that needs it, for the error.

    Raises:
        ImportError: It is not installed, or is older than :data:`OLDEST`; the error names the
            extra.
    """
    mujoco: ModuleType = load("mujoco", "mujoco", user, OLDEST)
    return mujoco


def addresses(mujoco: ModuleType) -> dict[str, int]:
    """Returns the address of each of :data:`SYMBOLS` in the library that this process has loaded.

    Args:
        mujoco: The imported package.

    Raises:
        ImportError: The package has no such library, or the library lacks a symbol.
    """
    library = _loaded(mujoco)
    found = {}
    for name in SYMBOLS:
        try:
            symbol = ctypes.c_char.in_dll(library, name)
        except ValueError as error:
            raise ImportError(
                f"the library of mujoco {mujoco.__version__}, {library._name}, has no symbol "
                f"`{name}`: cartwheel knows MuJoCo {OLDEST} to 4",
                name="mujoco",
            ) from error
        found[name] = ctypes.addressof(symbol)
    return found


#: The level of warnings in this thread.
_LEVEL = contextvars.ContextVar("_LEVEL", default=logging.WARNING)


def _log(text: bytes) -> None:
    LOGGER.log(_LEVEL.get(), "MuJoCo: %s", text.decode(errors="replace"))


#: The function for C, kept forever: another thread may be in it when it is replaced.
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_log)


class _Loading:
    """The models that any threads are loading, and MuJoCo's handler before the first of them."""

    lock = process_lock()
    models = 0
    before: int | None = None


@contextlib.contextmanager
def logged_warnings(mujoco: ModuleType, level: int) -> Iterator[None]:
    """Passes MuJoCo's warnings to cartwheel's log while a model is loaded.

    By default MuJoCo prints them and writes them into ``MUJOCO_LOG.TXT`` in the working directory.
    """
    handler = ctypes.c_void_p.in_dll(_loaded(mujoco), "mju_user_warning")
    address = ctypes.cast(_LOG, ctypes.c_void_p).value
    with _Loading.lock:
        if not _Loading.models:
            _Loading.before, handler.value = handler.value, address
        _Loading.models += 1
    token = _LEVEL.set(level)
    try:
        yield
    finally:
        _LEVEL.reset(token)
        with _Loading.lock:
            _Loading.models -= 1
            if not _Loading.models and handler.value == address:
                handler.value = _Loading.before


def _loaded(mujoco: ModuleType) -> ctypes.CDLL:
    """Returns the library; opening it by its path counts a use of the one that is loaded."""
    pattern = _FILES.get(sys.platform, _FILES["linux"])
    files = [file for folder in mujoco.__path__ for file in sorted(Path(folder).glob(pattern))]
    for file in files:
        with contextlib.suppress(OSError):  # another copy, which is not loaded
            return ctypes.CDLL(str(file), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    shown = ", ".join(map(str, files)) or f"no {pattern} in {', '.join(mujoco.__path__)}"
    raise ImportError(
        f"the package mujoco {mujoco.__version__} is loaded without its library ({shown}): "
        "pip install --force-reinstall mujoco",
        name="mujoco",
    )
