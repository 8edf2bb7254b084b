"""Exceptions of environments, in the form in which workers send them to the caller."""

from __future__ import annotations

import bdb
import dataclasses
import os
import pickle
import threading
import traceback

from cartwheel.errors import RAISED_BY, RemoteEnvError, RemoteTraceback, add_note
from cartwheel.worker.pickling import pickled_exception

#: Sets ``__cause__`` even if the exception forbids assignment, as a frozen dataclass does.
_SET_CAUSE = vars(BaseException)["__cause__"].__set__
#: The note on the exception of a debugger that quits. A worker process has no terminal to read
#: from, and the threads of a process would share one.
_NO_TERMINAL = (
    '`breakpoint()` needs a terminal: use executor="inline", which runs the environments on the '
    "calling thread"
)


@dataclasses.dataclass
class Fault:
    """An exception on its way to another thread or process: of one row's environment, mostly.

    Attributes:
        row: The row; ``None`` when the exception concerns no single row.
        error: The exception itself, within one process, until it was taken.
        pickle: The pickled exception, between processes; ``None`` if it cannot be pickled.
        causes: The pickled causes of the exception, up to the first that cannot be pickled.
        summary: Type and text.
        trace: The formatted traceback, with the tracebacks of the causes.
        pid: The id of the worker's process.
        thread: The id of the worker's thread in its process.
    """

    row: int | None
    error: BaseException | None
    pickle: bytes | None
    causes: list[bytes]
    summary: str
    trace: str
    pid: int
    thread: int = dataclasses.field(default_factory=threading.get_ident)

    @classmethod
    def of(cls, row: int | None, error: BaseException, *, travels: bool) -> Fault:
        """Describes ``error``; with ``travels``, in a form that can always be pickled."""
        if not travels:
            return cls(row, error, None, [], "", "", os.getpid())
        # An exit such as `SystemExit` is reported to the caller, but does not end the caller.
        data = pickled_exception(error) if isinstance(error, Exception) else None
        return cls(row, None, data, _pickled_causes(error), *described(error), os.getpid())

    def take_exception(self) -> BaseException:
        """Returns the exception to raise here, of its original type if possible.

        The fault does not keep it: an exception refers to the frames that it passed, and a frame to
        its faults.
        """
        error, self.error = self.error, None
        if error is None:
            error = _loaded(self.pickle) or RemoteEnvError(self.summary)
            cause: BaseException = RemoteTraceback(self.trace)
            _SET_CAUSE(error, cause)
            for data in self.causes:
                earlier = _loaded(data)
                if earlier is None:
                    break
                _SET_CAUSE(cause, earlier)
                cause = earlier
        if self.row is not None:
            where = "" if self.pid == os.getpid() else f" (worker process {self.pid})"
            add_note(error, f"{RAISED_BY} {self.row}{where}")
        here = os.getpid(), threading.get_ident()
        if isinstance(error, bdb.BdbQuit) and (self.pid, self.thread) != here:
            add_note(error, _NO_TERMINAL)
        return error


def _pickled_causes(error: BaseException) -> list[bytes]:
    causes: list[bytes] = []
    known = [error]
    while (cause := known[-1].__cause__) is not None and all(cause is not one for one in known):
        data = pickled_exception(cause) if isinstance(cause, Exception) else None
        if data is None:
            break
        causes.append(data)
        known.append(cause)
    return causes


def _loaded(data: bytes | None) -> BaseException | None:
    """Loads an exception; ``None`` if that fails, as without its class."""
    if data is None:
        return None
    try:
        error = pickle.loads(data)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def described(error: BaseException) -> tuple[str, str]:
    """Returns type and text of an exception, and its formatted traceback."""
    kind, trace = type(error), error.__traceback__
    try:
        summary = "".join(traceback.format_exception_only(kind, error)).strip()
        return summary, "".join(traceback.format_exception(kind, error, trace))
    except BaseException:  # the exception's own methods may raise anything
        summary = f"{kind.__module__}.{kind.__qualname__}: <it cannot be printed>"
        return summary, "".join([*traceback.format_tb(trace), summary, "\n"])


def raise_first(faults: list[Fault], received: list[int] | None = None) -> None:
    """Raises the exception of the lowest row and mentions the others in a note.

    Args:
        faults: At least one.
        received: The rows of the batch, if the rows were sent by ``send``.
    """
    raise _first(faults, received)


def _first(faults: list[Fault], received: list[int] | None) -> BaseException:
    faults = sorted(faults, key=lambda fault: -1 if fault.row is None else fault.row)
    error = faults[0].take_exception()
    others = [fault.row for fault in faults[1:]]
    if others:
        add_note(error, f"the environments of rows {others} raised too")
    if received is not None:
        add_note(error, f"it came with the batch of rows {received}, whose results are dropped")
    return error
