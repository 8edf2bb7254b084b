"""Floating-point modes of this thread other than the standard one, for tests."""

import contextlib
import ctypes
import ctypes.util
import platform

import pytest

ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets the mode of x86")

_STANDARD = 0x1F80
#: Values of the register MXCSR: rounding up, down, to zero; numbers close to zero become zero.
_VALUES = {
    "standard": _STANDARD,
    "up": _STANDARD | 0x4000,
    "down": _STANDARD | 0x2000,
    "to zero": _STANDARD | 0x6000,
    "flushed": _STANDARD | 0x8040,
}
MODES = [name for name in _VALUES if name != "standard"]
_REGISTER_AT = 28  # in the structure `fenv_t` of x86-64


@contextlib.contextmanager
def mode_of_floats(name):
    """Changes the mode of this thread, which threads that it starts get, too.

    Tests ask for the standard one, too: a library that some other test has imported may have
    changed it.
    """
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    before, changed = (ctypes.create_string_buffer(32) for _ in range(2))
    library.fegetenv(before)
    library.fegetenv(changed)
    changed[_REGISTER_AT : _REGISTER_AT + 4] = _VALUES[name].to_bytes(4, "little")
    library.fesetenv(changed)
    try:
        yield
    finally:
        library.fesetenv(before)
