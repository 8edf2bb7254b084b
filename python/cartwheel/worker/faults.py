"""Exceptions of environments on their way from a worker to the caller."""

from __future__ import annotations

import dataclasses
import os
import pickle
import traceback

from cartwheel.errors import RemoteEnvError, RemoteTraceback, add_note
from cartwheel.worker.pickling import pickled_exception

#: Sets ``__cause__`` even of exceptions to which nothing may be assigned, as of frozen dataclasses.
_SET_CAUSE = vars(BaseException)["__cause__"].__set__


@dataclasses.dataclass(frozen=True)
class Fault:
    """An exception of one row's environment.

    Attributes:
        row: The row, or ``None`` when it concerns a whole worker.
        error: The exception itself, within one process.
        pickle: The pickled exception, between processes, if it survives pickling.
        causes: The pickled exceptions that caused it, up to one that does not survive pickling.
        summary: Type and text.
        trace: The formatted traceback, with those of the causes.
        pid: The worker's process.
    """

    row: int | None
    error: BaseException | None
    pickle: bytes | None
    causes: list[bytes]
    summary: str
    trace: str
    pid: int

    @classmethod
    def of(cls, row: int | None, error: BaseException, *, travels: bool) -> Fault:
        """Describes ``error``; with ``travels``, in a form that can be pickled whatever it is."""
        if not travels:
            return cls(row, error, None, [], "", "", os.getpid())
        # `SystemExit` and its like are reported, not obeyed.
        data = pickled_exception(error) if isinstance(error, Exception) else None
        return cls(row, None, data, _pickled_causes(error), *described(error), os.getpid())

    def to_exception(self) -> BaseException:
        """The exception to raise here: of its own type if at all possible."""
        error = self.error
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
            add_note(error, f"raised by the environment of row {self.row}{where}")
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
    """The exception, unless this process lacks its class."""
    if data is None:
        return None
    try:
        error = pickle.loads(data)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def described(error: BaseException) -> tuple[str, str]:
    """Type and text of an exception, and its formatted traceback."""
    kind, trace = type(error), error.__traceback__
    try:
        summary = "".join(traceback.format_exception_only(kind, error)).strip()
        return summary, "".join(traceback.format_exception(kind, error, trace))
    except BaseException:  # of the exception's own methods: any
        summary = f"{kind.__module__}.{kind.__qualname__}: <it cannot be printed>"
        return summary, "".join([*traceback.format_tb(trace), summary, "\n"])


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
