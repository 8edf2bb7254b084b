"""Exceptions that Gymnasium has no class for, and notes on any exception."""

from __future__ import annotations

import contextlib

import gymnasium as gym


class EpisodeOverError(gym.error.ResetNeeded, AssertionError):
    """Rows whose episode is over were stepped, and the autoreset mode is ``DISABLED``.

    It is also an ``AssertionError``, which is what Gymnasium's ``SyncVectorEnv`` raises. Nothing
    has been stepped. Reset the rows with ``reset(options={"reset_mask": mask})``, or make the
    vector environment with ``on_done="freeze"``.

    Attributes:
        rows: The rows that are over.
    """

    def __init__(self, rows: list[int]) -> None:
        """Says which rows are over."""
        super().__init__(
            f"rows {rows} are over and autoreset is disabled: reset them with "
            'reset(options={"reset_mask": mask}) before the next step, or use on_done="freeze"'
        )
        self.rows = rows


class WorkerDiedError(RuntimeError):
    """A worker process ended although it owed an answer.

    Attributes:
        worker: Index of the worker.
        rows: The rows it owned.
        pid: Its process id.
        exitcode: Its exit code; ``-n`` when signal ``n`` ended it; ``None`` when unknown.
        phase: What it was doing: ``"construct"``, ``"reset"``, ``"step"`` or ``"call"``.
        stderr: The last lines that it wrote to ``sys.stderr``, and where it crashed if it did; what
            C libraries print themselves is not among them.
    """

    def __init__(
        self,
        message: str,
        *,
        worker: int,
        rows: list[int],
        pid: int,
        exitcode: int | None,
        phase: str,
        stderr: str = "",
    ) -> None:
        """Keeps what is known of the worker beside the message."""
        super().__init__(message)
        self.worker = worker
        self.rows = rows
        self.pid = pid
        self.exitcode = exitcode
        self.phase = phase
        self.stderr = stderr


class RemoteEnvError(RuntimeError):
    """An environment in a worker raised something that cannot be raised again here.

    That is an exception that cannot be pickled, one of a class that this process does not have, or
    one that would end this program, such as ``SystemExit``. The message holds its type and text,
    the cause the worker's traceback.
    """


class EnvPanicError(RuntimeError):
    """A native environment panicked; its row must be reset, the others were stepped."""


class BrokenPoolError(RuntimeError):
    """The vector environment is broken, and can only be closed.

    A call panicked outside of any environment, or a worker process wrote garbage into shared
    memory. That call and every later one raise this error, and say which of the two it was: the
    message of the panic, or the worker and what it wrote.
    """


class RemoteTraceback(Exception):
    """The traceback of an exception as the worker saw it: the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        """Keeps the formatted traceback."""
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """The traceback, between lines that set it off."""
        return f'\n"""\n{self.text}"""'


class ForkedProcessError(RuntimeError):
    """A vector environment is used in a child that was forked from the process that made it."""


def add_note(error: BaseException, note: str) -> None:
    """Adds a note to ``error``, unless its class has no room for notes.

    Not by ``BaseException.add_note``, which Python has from 3.11 on, and which assigns to an
    attribute: frozen dataclasses refuse that, and the exception would be lost to another one.
    """
    with contextlib.suppress(Exception):
        notes = getattr(error, "__notes__", None)
        object.__setattr__(error, "__notes__", [*(notes if isinstance(notes, list) else ()), note])
