"""Ctrl-C at any moment."""

import sys
from pathlib import Path

import pytest

import cartwheel

#: For tests in which Ctrl-C may come at any moment. Python itself drops a KeyboardInterrupt in a
#: hook, a callback of a weak reference or a destructor, such as logging's hooks around a fork.
ANY_MOMENT = pytest.mark.filterwarnings(
    "ignore:(?s)Exception ignored.*KeyboardInterrupt:pytest.PytestUnraisableExceptionWarning"
)

_PACKAGE = Path(cartwheel.__file__).parent
#: The files that the calling thread runs during a call; no environment runs in them.
CALLERS = (
    "_internal/arguments",
    "native/attributes",
    "native/callbacks",
    "native/keywords",
    "native/vector_env",
    "vector/base",
    "vector/control_calls",
    "vector/resets",
    "vector/saved_rows",
    "vector/sent_rows",
    "vector/vector_env",
    "workers/callbacks",
)


def interrupted_at(line, run, files=CALLERS):
    """Runs ``run`` with a Ctrl-C before the ``line``-th line of ``files``; returns if it came."""
    paths = {str(_PACKAGE / f"{file}.py") for file in files}
    for path in paths:  # without this, a file that moved would silently not be traced
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
