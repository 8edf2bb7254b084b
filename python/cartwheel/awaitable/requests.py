"""Requests to rows and their outcomes, settings, and the state of a row that is served."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from cartwheel.workers.restart_policy import RestartPolicy
    from cartwheel.workers.serving.awaited_env import Asked


@dataclasses.dataclass(eq=False, slots=True)
class Request:
    """A request to one row.

    Attributes:
        row: The row.
        asked: Its kind and arguments.
        future: Of the loop of the task that awaits it.
        continues: Whether it needs the environment in the state that the request before left.
        is_abandoned: Whether no task awaits it any more.
        attempts: How often it was repeated after a failure.
        makes: Whether it makes the environment of its process.
        deadline: When it takes too long, by the monotonic clock.
        is_late: Whether it has taken too long, and its row is still busy with it.
        limit: Ends its wait for a row that is late.
    """

    row: int
    asked: Asked
    future: Any = None
    continues: bool = False
    is_abandoned: bool = False
    attempts: int = 0
    makes: bool = False
    deadline: float = 0.0
    is_late: bool = False
    limit: asyncio.TimerHandle | None = None

    def awaits(self) -> bool:
        """Whether a task awaits it."""
        return not self.is_abandoned and not self.future.cancelled()


@dataclasses.dataclass(slots=True)
class Outcome:
    """The outcome of a request.

    Attributes:
        request: The request.
        value: The result of a request that succeeded.
        error: The exception of one that did not.
        is_late: Whether the row is still busy with it: the error is a time-out.
        is_refused: Whether it was not sent: the row is as it was before.
        spaces: The spaces of an environment that was just made.
    """

    request: Request
    value: Any = None
    error: BaseException | None = None
    is_late: bool = False
    is_refused: bool = False
    spaces: tuple[Any, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of awaited rows.

    Attributes:
        name: The class, for the names of processes and for errors.
        context: The ``multiprocessing`` context.
        daemon: Whether processes are daemonic.
        nice: The amount by which processes lower their priority.
        spaces: The spaces of all rows, if the caller gave them.
        lazy: Whether processes and environments are made when they are first used.
        start_concurrency: How many processes, and how many environments, are made at once.
        policy: The effects of failures, the seconds that a request may take, and the limits of a
            process, after which another one replaces it.
    """

    name: str
    context: Any
    daemon: bool
    nice: int
    spaces: tuple[Any, Any] | None
    lazy: bool
    start_concurrency: int
    policy: RestartPolicy


@dataclasses.dataclass(slots=True)
class ServedRow:
    """A row, as the thread that serves it knows it.

    Attributes:
        is_up: Whether its process serves.
        is_starting: Whether a process is being started.
        is_made: Whether the process has an environment.
        is_dropped: Whether the next result is that of a request that has its outcome already.
        is_hung: Whether its process was killed because it took too long.
        is_killed: Whether its process was killed on request.
        sent: The request in flight.
        held: The request that is sent when the row is up and idle.
        form: The form of its observations.
    """

    is_up: bool = False
    is_starting: bool = False
    is_made: bool = False
    is_dropped: bool = False
    is_hung: bool = False
    is_killed: bool = False
    sent: Request | None = None
    held: Request | None = None
    form: Any = None
