"""Exceptions of environments on their way from a worker to the caller."""

from __future__ import annotations

import dataclasses
import os
import pickle
import sys
import traceback

from cartwheel.errors import RemoteEnvError, RemoteTraceback


@dataclasses.dataclass(frozen=True)
class Fault:
    """An exception of one row's environment.

    Attributes:
        row: The row, or ``None`` when it concerns a whole worker.
        error: The exception itself, within one process.
        pickle: The pickled exception, between processes, if it survives pickling.
        summary: Type and text.
        trace: The formatted traceback.
        pid: The worker's process.
    """

    row: int | None
    error: BaseException | None
    pickle: bytes | None
    summary: str
    trace: str
    pid: int

    @classmethod
    def of(cls, row: int | None, error: BaseException, *, travels: bool) -> Fault:
        """Describes ``error``; with ``travels``, in a form that can be pickled whatever it is."""
        if not travels:
            return cls(row, error, None, "", "", os.getpid())
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        summary = "".join(traceback.format_exception_only(type(error), error)).strip()
        return cls(row, None, _round_trip(error), summary, trace, os.getpid())

    def to_exception(self) -> BaseException:
        """The exception to raise here: of its own type if at all possible."""
        error = self.error
        if error is None:
            error = pickle.loads(self.pickle) if self.pickle is not None else None
            if error is None:
                error = RemoteEnvError(self.summary)
            error.__cause__ = RemoteTraceback(self.trace)
        if self.row is not None:
            where = "" if self.pid == os.getpid() else f" (worker process {self.pid})"
            add_note(error, f"raised by the environment of row {self.row}{where}")
        return error


def _round_trip(error: BaseException) -> bytes | None:
    """The pickled exception, if it can be read again: some dump well and then fail to load."""
    if not isinstance(error, Exception):
        return None  # SystemExit and its like are reported, not obeyed
    try:
        data = pickle.dumps(error)
        return data if type(pickle.loads(data)) is type(error) else None
    except BaseException:
        return None


def add_note(error: BaseException, note: str) -> None:
    """``BaseException.add_note``, which Python has from 3.11 on."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", []), note]


def raise_first(faults: list[Fault], received: list[int] | None = None) -> None:
    """Raises the exception of the lowest row and mentions the others in a note.

    Args:
        faults: At least one.
        received: The rows of the batch, if it is one of rows that were sent.
    """
    faults = sorted(faults, key=lambda fault: -1 if fault.row is None else fault.row)
    error = faults[0].to_exception()
    others = [fault.row for fault in faults[1:]]
    if others:
        add_note(error, f"the environments of rows {others} raised too")
    if received is not None:
        add_note(error, f"it came with the batch of rows {received}, whose results are dropped")
    raise error
