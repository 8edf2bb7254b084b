"""Exceptions for which Gymnasium has no class, and notes on any exception."""

from __future__ import annotations

import contextlib
import multiprocessing
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RaisedType = TypeVar("RaisedType", bound=BaseException)


#: The maximum number of rows that a message names, as in the engine.
_MAX_NAMED = 16


def named_rows(rows: Sequence[int]) -> str:
    """Returns rows in words for a message: the first ones, and the number of the others."""
    more = len(rows) - _MAX_NAMED
    return f"rows {list(rows[:_MAX_NAMED])}" + (f" and {more} more" if more > 0 else "")


def row_range(first: int, last: int) -> str:
    """Returns neighboring rows in words for a message."""
    return f"row {first}" if first == last else f"rows {first} to {last}"


def as_pickled(error: BaseException) -> tuple[Any, ...]:
    """Returns how an exception is pickled and copied: by its text and attributes.

    Python would call the constructor with the text. Exceptions whose constructor has other
    parameters use this function as their ``__reduce__``.
    """
    return _loaded, (type(error), error.args), vars(error)


def _loaded(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    error = kind.__new__(kind)
    error.args = args
    return error


class CartwheelError(Exception):
    """Base class of all exceptions that cartwheel defines.

    Each of them also derives from the standard exception, or Gymnasium's, that a program would
    catch. Wrong arguments raise the standard exceptions themselves, such as ``ValueError``, and
    misuse of asynchronous calls raises Gymnasium's.
    """


class EpisodeOverError(CartwheelError, gym.error.ResetNeeded, AssertionError):
    """Rows whose episode is over were stepped, and the autoreset mode is ``DISABLED``.

    It is also an ``AssertionError``, because Gymnasium's ``SyncVectorEnv`` raises one. Nothing was
    stepped. Reset the rows with ``reset(options={"reset_mask": mask})``, or make the
    vector environment with ``on_done="freeze"``.

    Attributes:
        env_index: The rows that are over.
    """

    __reduce__ = as_pickled

    def __init__(self, env_index: list[int], message: str | None = None) -> None:
        super().__init__(
            message
            or f"{named_rows(env_index)} are over and autoreset is disabled: reset them with "
            'reset(options={"reset_mask": mask}) before the next step, or use on_done="freeze"'
        )
        self.env_index = env_index


class WorkerDiedError(CartwheelError, RuntimeError):
    """A worker process ended before it answered.

    Attributes:
        worker: Index of the worker.
        env_index: The rows of the worker.
        pid: Its process id.
        exitcode: Its exit code; ``-n`` when signal ``n`` ended it; ``None`` when unknown.
        phase: The phase in which it ended: ``"construct"``, ``"reset"``, ``"step"``, ``"call"``, or
            ``"send"``, while it sent an exception, long infos or answers that it had announced.
        stderr: The last lines that it wrote to ``sys.stderr``, and the traceback of a crash. It
            does not include the direct output of C libraries.
    """

    __reduce__ = as_pickled

    def __init__(
        self,
        message: str,
        *,
        worker: int,
        env_index: list[int],
        pid: int,
        exitcode: int | None,
        phase: str,
        stderr: str = "",
    ) -> None:
        super().__init__(message)
        self.worker = worker
        self.env_index = env_index
        self.pid = pid
        self.exitcode = exitcode
        self.phase = phase
        self.stderr = stderr


class WorkerTimeoutError(CartwheelError, multiprocessing.TimeoutError, TimeoutError):
    """Workers did not answer in time. Nothing is lost: the call is still pending.

    If a process was stopped while it sent its results, those of this call are lost, and the message
    and ``results_lost`` say so.

    Wait for the results (``step_wait()``, ``recv()``), drop them with ``reset()``, or close the
    vector environment. With ``on_timeout="restart"`` workers are restarted instead of this error.

    It is a ``multiprocessing.TimeoutError``, as in Gymnasium, and Python's ``TimeoutError``.

    Attributes:
        env_index: The rows that have not answered.
        workers: The workers of these rows; empty for native environments, which have none.
        results_lost: Whether the results of the call are lost. There is nothing to wait for then.
    """

    __reduce__ = as_pickled

    def __init__(
        self,
        message: str,
        *,
        env_index: list[int],
        workers: list[int],
        results_lost: bool = False,
    ) -> None:
        super().__init__(message)
        self.env_index = env_index
        self.workers = workers
        self.results_lost = results_lost

    @classmethod
    def from_call(
        cls, call: str, seconds: float, env_index: list[int], workers: list[int]
    ) -> WorkerTimeoutError:
        """Makes the error of a call that has timed out, with Gymnasium's wording and the rows."""
        rows, seconds = named_rows(env_index).capitalize(), round(seconds, 3)
        return cls(
            f"The call to `{call}` has timed out after {seconds:g} second(s). {rows} have not "
            "answered; nothing is lost: wait again, reset or close.",
            env_index=env_index,
            workers=workers,
        )


class RemoteEnvError(CartwheelError, RuntimeError):
    """An environment in a worker process raised an exception that cannot be raised again here.

    The exception cannot be pickled, its class does not exist in this process, or it would end this
    program, as ``SystemExit`` does. The message has its type and text, and the cause has the
    worker's traceback.
    """


class EnvPanicError(CartwheelError, RuntimeError):
    """A native environment panicked; the message has file and line.

    Its row must be reset; the other rows were stepped.
    """


class EnvFailedError(CartwheelError, RuntimeError):
    """A native environment failed, for the reason that its author wrote.

    After a step or a reset its row must be reset; the other rows were stepped. A frame or a
    parameter that it does not give changes nothing.
    """


class PluginError(CartwheelError, RuntimeError):
    """A plugin violated its interface; the message names the plugin and the violation.

    It wrote infos that cannot be read or that belong to other rows, or it did not report the row
    that it reached. The rows of the call must be reset. Report it to the author of the plugin,
    because it may corrupt other memory, too. With ``CARTWHEEL_CHECK_PLUGINS=1`` in the environment
    of the program, a write outside of its rows also raises this error.
    """


class BrokenPoolError(CartwheelError, RuntimeError):
    """The vector environment is broken, and can only be closed.

    A call panicked outside of any environment, or a worker process wrote garbage into shared
    memory. That call and every later one raise this error, whose message has the cause: the
    message of the panic, or the worker and the value that it wrote.
    """


class RemoteTraceback(CartwheelError):
    """The traceback in the worker, which is the cause of the exception that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """The traceback, between two lines of quotes."""
        return f'\n"""\n{self.text}"""'


class ForkedProcessError(CartwheelError, RuntimeError):
    """A vector environment was used in a forked child of the process that made it."""


def add_note(error: RaisedType, note: str) -> RaisedType:
    """Adds a note to ``error``, if its class allows notes, and returns it.

    The return value lets a function raise an exception with a note without a variable for it. A
    frame of the traceback that has the exception in a variable is in a cycle with it, as are the
    vector environments of all frames, until a garbage collection.

    This does not use ``BaseException.add_note``. That method exists only from Python 3.11 on, and
    raises for frozen dataclasses, so that the original exception would be lost.
    """
    with contextlib.suppress(Exception):
        notes = getattr(error, "__notes__", None)
        object.__setattr__(error, "__notes__", [*(notes if isinstance(notes, list) else ()), note])
    return error


@contextlib.contextmanager
def noted(note: str) -> Iterator[None]:
    """Adds a note to an exception that leaves the block."""
    try:
        yield
    except Exception as error:
        add_note(error, note)
        raise


#: The beginning of the note with the row whose environment raised an exception.
RAISED_BY = "raised by the environment of row"


def is_raised_by_env(error: BaseException) -> bool:
    """Whether an environment raised ``error``, so that the results of the call are lost.

    An error without the note comes from checks before anything was stepped.
    """
    notes: list[Any] = getattr(error, "__notes__", [])
    return any(isinstance(note, str) and note.startswith(RAISED_BY) for note in notes)
