"""The last lines that a worker process wrote to stderr, for the error that reports its death.

Output of Python code still goes to stderr at once, and a copy of its last lines is kept. When the
process crashes, ``faulthandler`` writes its report only to the copy, and the error shows it. Output
that C libraries write directly to descriptor 2 is not kept.

The copy is in anonymous memory, or in a file without a name where there is no such memory. It
outlives the worker and is freed with its last descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import PLATFORM, Descriptor

if TYPE_CHECKING:
    from collections.abc import Callable

#: The first words of a report of ``faulthandler``.
_CRASH = "Fatal Python error: "
#: The maximum number of characters that are shown, and of bytes kept before such a report.
_SHOWN, _KEPT = 4096, 65536


class Stderr:
    """The caller's view of the last lines that its worker keeps.

    Attributes:
        descriptor: The memory of the lines, which must be sent to the worker.
    """

    def __init__(self) -> None:
        self.descriptor = nameless_file("cartwheel-stderr")

    def last_lines(self) -> str:
        """Returns the last 4096 characters, in whole lines, and as many of a crash report."""
        lines = self.descriptor.fileno()
        text = os.pread(lines, os.fstat(lines).st_size, 0).decode(errors="replace")
        said, crash, report = text.partition(_CRASH)
        if len(said) > _SHOWN:
            said = said[-_SHOWN:]
            said = said.partition("\n")[2] or said
        # The report lists several threads; only the one that crashed matters.
        thread = re.search(r"^Current thread .*?(?=^$|\Z)", report, re.MULTILINE | re.DOTALL)
        if thread is not None:
            report = report.partition("\n")[0] + "\n" + thread[0]
        return f"{said}{crash}{report[:_SHOWN]}".strip()


def nameless_file(name: str) -> Descriptor:
    """Returns a new, empty file without a name, in memory where possible.

    macOS, old kernels, old C libraries and filters of system calls do not have files in memory.
    POSIX shared memory is not an option: macOS neither reads nor writes it through descriptors.
    ``name`` is shown among the open files of a process.
    """
    if PLATFORM == "linux" and hasattr(os, "memfd_create"):
        try:
            return _owned(os.memfd_create, name, os.MFD_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
    with tempfile.TemporaryFile(prefix=f"{name}-") as file:
        return _owned(os.dup, file.fileno())


def _owned(opened: Callable[..., int], *arguments: Any) -> Descriptor:
    """Returns the descriptor that a function opens.

    ``map`` leaves no time between the two calls, in which Ctrl-C would leave the file open.
    """
    return next(map(Descriptor, map(opened, *([argument] for argument in arguments))))


class _Kept:
    """A text stream that also keeps its last lines and delegates everything to another stream."""

    def __init__(self, stream: Any, lines: Descriptor) -> None:
        self._stream = stream
        self._lines = lines

    def write(self, text: str) -> int:
        with contextlib.suppress(Exception):  # if the text is wrong, the stream itself raises
            self._keep(text.encode(errors="backslashreplace"))
        if getattr(self._stream, "closed", False):
            return len(text)  # by an environment: a record of the logger must not raise
        written: int = self._stream.write(text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def _keep(self, written: bytes) -> None:
        lines = self._lines.fileno()
        if os.lseek(lines, 0, os.SEEK_CUR) + len(written) > _KEPT:
            written = (os.pread(lines, _KEPT, 0) + written)[-_SHOWN:]
            os.ftruncate(lines, 0)
            os.lseek(lines, 0, os.SEEK_SET)
        os.write(lines, written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)


def keep_stderr(lines: Descriptor) -> None:
    """Keeps the last lines that this worker process writes to stderr from now on.

    Args:
        lines: The descriptor of the caller's :class:`Stderr`.
    """
    faulthandler.enable(lines)
    if sys.stderr is not None:
        sys.stderr = _Kept(sys.stderr, lines)
