"""Rows that were sent and that nobody wants any more."""

from __future__ import annotations

from typing import Any


def drop_in_flight(envs: Any) -> None:
    """Receives what is in flight and drops it, also batches that are lost to an exception.

    Args:
        envs: Have ``recv``; their ``unwrapped`` has ``in_flight``.

    Raises:
        Exception: That of a receipt that brought nothing, because a worker died or is late.
    """
    pool = envs.unwrapped
    while flying := pool.in_flight:
        try:
            envs.recv()
        except Exception:  # noqa: PERF203 - the batch is lost, the next one may not be
            if pool.in_flight == flying:
                raise
