"""How worker processes ended, in words."""

from __future__ import annotations

import signal
import textwrap

from cartwheel.worker.start import NO_MAIN_GUARD

#: Exit codes of processes that ended well, were killed by their pool, or are explained elsewhere.
#: With SIGCHLD ignored there is none.
EXPECTED_EXITS = (0, -signal.SIGKILL, NO_MAIN_GUARD, None)
WITHOUT_MAIN_GUARD = (
    'is `if __name__ == "__main__":` missing? A worker process imported the main module of the '
    "program, and the module made the vector environment once more. Put the code that makes and "
    "steps environments under that line, or use context='fork'"
)


def quoted(stderr: str) -> str:
    """Returns the last lines on stderr, as the end of a message."""
    return f". Its last lines on stderr:\n{textwrap.indent(stderr, '  ')}" if stderr else ""


def described_exit(exitcode: int | None) -> str:
    """Describes how a process ended."""
    if exitcode is None:
        return "its exit code is unknown"
    if exitcode >= 0:
        return f"it exited with code {exitcode}"
    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    hints = {
        "SIGKILL": "; the system may have run out of memory, see the kernel's log",
        "SIGBUS": "; shared memory may have run out",
    }
    return f"it was ended by {name}{hints.get(name, '')}"
