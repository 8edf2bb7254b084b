"""Ctrl-C at any moment, as tests raise it."""

import sys
from pathlib import Path

import pytest

import cartwheel

#: For tests whose Ctrl-C may come at any moment. Python itself drops one that finds it in a hook, a
#: weak reference's callback or a destructor, such as logging's hooks around a fork.
ANY_MOMENT = pytest.mark.filterwarnings(
    "ignore:(?s)Exception ignored.*KeyboardInterrupt:pytest.PytestUnraisableExceptionWarning"
)

_PACKAGE = Path(cartwheel.__file__).parent
#: What the calling thread runs of a call, and no environment.
CALLERS = (
    "arguments",
    "native/link",
    "native/options",
    "native/vector_env",
    "vector/interruptible",
    "vector/pool_env",
    "vector/vector_env",
    "worker/link",
)


def interrupted_at(line, run, files=CALLERS):
    """Runs ``run`` with a Ctrl-C before the ``line``-th line of these files; whether it came."""
    paths = {str(_PACKAGE / f"{file}.py") for file in files}
    for path in paths:  # a file that moved would not be traced, and nothing else would say so
        assert Path(path).is_file(), path
    left = line

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in paths:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return left <= 0
