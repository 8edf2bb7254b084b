"""The last lines that a worker process wrote to stderr, for the error that reports its death.

What Python code writes goes where it always went, and its end is kept beside it; nothing is
redirected, so no output is lost or late. The report of a crash, which ``faulthandler`` writes as
the process ends, is only kept: the error shows it. What C libraries write themselves to descriptor
2 is not kept.

The lines are in memory without a name, which outlives the worker and is gone with its last user.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import sys
from typing import Any

#: What a report of ``faulthandler`` begins with.
_CRASH = "Fatal Python error: "
#: Characters that are shown, and bytes that are kept at most before such a report.
_SHOWN, _KEPT = 4096, 65536


class Stderr:
    """The caller's view of what its worker keeps.

    Attributes:
        descriptor: What the worker has to be sent.
    """

    def __init__(self) -> None:
        """Makes room for it."""
        self.descriptor = os.memfd_create("cartwheel-stderr", os.MFD_CLOEXEC)

    def last_lines(self) -> str:
        """The last 4096 characters, in whole lines, and at most as many of where it crashed."""
        size = os.fstat(self.descriptor).st_size
        text = os.pread(self.descriptor, size, 0).decode(errors="replace")
        said, crash, report = text.partition(_CRASH)
        if len(said) > _SHOWN:
            said = said[-_SHOWN:]
            said = said.partition("\n")[2] or said
        # The newest calls come first; those of other threads do not matter.
        thread = re.search(r"^Current thread .*?(?=^$|\Z)", report, re.MULTILINE | re.DOTALL)
        if thread is not None:
            report = report.partition("\n")[0] + "\n" + thread[0]
        return f"{said}{crash}{report[:_SHOWN]}".strip()

    def close(self) -> None:
        """Gives the room up."""
        os.close(self.descriptor)


class _Kept:
    """A text stream that keeps what it writes, too; everything else is the stream's own."""

    def __init__(self, stream: Any, descriptor: int) -> None:
        self._stream = stream
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        with contextlib.suppress(Exception):  # the stream itself says what is wrong
            self._keep(text.encode(errors="backslashreplace"))
        written: int = self._stream.write(text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def _keep(self, written: bytes) -> None:
        if os.lseek(self._descriptor, 0, os.SEEK_CUR) + len(written) > _KEPT:
            written = (os.pread(self._descriptor, _KEPT, 0) + written)[-_SHOWN:]
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)


def keep_stderr(descriptor: int) -> None:
    """Keeps, in a worker process, what goes to stderr from now on.

    Args:
        descriptor: That of the caller's :class:`Stderr`, which is taken over.
    """
    faulthandler.enable(descriptor)
    if sys.stderr is not None:
        sys.stderr = _Kept(sys.stderr, descriptor)
