"""The records of the logger ``cartwheel``.

============  ==================================================================================
level         record
============  ==================================================================================
``DEBUG``     a vector environment was made: its executor, workers and process ids
``WARNING``   a worker process died, and whether it is replaced
              (``on_worker_death="restart"``), or ended badly when it was closed
``WARNING``   the environment of a row failed and is replaced (``on_error="restart"``), with the
              exception; failures of native ones are reported only in their infos
``WARNING``   a call is still waiting, and for which workers
``INFO``      a worker process was replaced and serves again
``WARNING``   a worker of ``cartwheel.ray`` died and is restarted
``INFO``      ``num_workers="auto"`` chose a number of workers, with the reason; ``WARNING`` if the
              environment that was measured failed
``WARNING``   the first of the awaited rows could not tell the spaces, so all rows are slower
``WARNING``   a collector starts over, because another caller stepped or reset its environments
``ERROR``     an environment raised when it was closed, or before it is replaced
``ERROR``     a fork of this program still shares batches with it, for lack of memory
============  ==================================================================================

Records about failures have an attribute ``cartwheel``, a dictionary for programs that count or send
them on: ``event`` (``"death"``, ``"hang"``, ``"restart"``, ``"error"`` or ``"slow"``),
``env_index`` (the rows), and as far as they apply ``worker``, ``pid``, ``phase``, ``exitcode`` and
``seconds``. That of ``num_workers="auto"`` has the ``event`` ``"workers"`` and the attributes of
:class:`~cartwheel.WorkerChoice`.

Records about a single environment are logged in its own process: a worker process if the executor
is ``"process"``.
"""

from __future__ import annotations

import logging
import math
import os
from typing import TYPE_CHECKING, Any

from cartwheel.errors import named_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGGER = logging.getLogger("cartwheel")

#: Seconds between two records about a call that waits and its workers; the environment variable
#: ``CARTWHEEL_REMINDER_S`` sets another number for vector environments made later, 0 for never.
REMINDER_S = 60.0
#: Intervals of this many seconds (31 years) or more mean no reminders, as for time-outs.
_NEVER_S = 1e9


def reminder_s() -> float | None:
    """Returns the seconds between two reminders, or ``None`` for none.

    Raises:
        ValueError: ``CARTWHEEL_REMINDER_S`` is not such a number.
    """
    text = os.environ.get("CARTWHEEL_REMINDER_S")
    try:
        seconds = REMINDER_S if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"CARTWHEEL_REMINDER_S must be a number of seconds or 0, got {text!r}")
    return seconds if 0 < seconds < _NEVER_S else None


def log_event(level: int, message: str, *, exc_info: Any = None, **fields: Any) -> None:
    """Logs a record that programs can read: its attribute ``cartwheel`` has the ``fields``."""
    LOGGER.log(level, "%s", message, exc_info=exc_info, extra={"cartwheel": fields}, stacklevel=2)


def log_waiting(
    call: str,
    seconds: float,
    outstanding: Sequence[tuple[int, int]],
    shards: Sequence[tuple[int, int]],
    processes: Sequence[Any] = (),
) -> None:
    """Warns that ``call`` is still waiting.

    Args:
        call: The waiting call: ``"step"``, ``"recv"`` …
        seconds: Seconds that it has waited.
        outstanding: Ranges of rows that have not answered: first row, and row after the last.
        shards: For each worker, its first row and the row after its last.
        processes: The worker processes, if there are any.
    """
    rows = {row for first, last in outstanding for row in range(first, last)}
    waited_for, slow = [], []
    for worker, (first, last) in enumerate(shards):
        own = [row for row in range(first, last) if row in rows]
        pid = f", pid {processes[worker].pid}" if processes else ""
        if own:
            slow.append(worker)
            waited_for.append(f"{named_rows(own)} (worker {worker}{pid})")
    log_event(
        logging.WARNING,
        f"{call}: still waiting for {', '.join(waited_for)} after {seconds:.1f} s",
        event="slow",
        env_index=sorted(rows),
        workers=slow,
        call=call,
        seconds=seconds,
    )
