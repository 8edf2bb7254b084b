"""A context that begins and ends with no call pending and no row in flight."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gymnasium.error import AlreadyPendingCallError

from cartwheel.vector.pool_owner import pool_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def nothing_in_flight(envs: Any, calling: str) -> Iterator[None]:
    """Checks at the beginning, and at the end if nothing was raised, that ``envs`` are idle.

    Args:
        envs: A vector environment, possibly in wrappers.
        calling: The method that the caller uses, for errors.

    Raises:
        gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
    """
    _check_idle(envs.unwrapped, calling)
    yield
    if not envs.unwrapped.closed:
        _check_idle(envs.unwrapped, calling)


def _check_idle(envs: Any, calling: str) -> None:
    pool = pool_of(envs)
    if pool is not None:
        pool.check(calling, idle=True)
        return
    pending = getattr(getattr(envs, "_state", None), "value", "default")  # Gymnasium's own
    if pending != "default":
        raise AlreadyPendingCallError(
            f"calling `{calling}` while waiting for a pending call to `{pending}` to complete",
            pending,
        )
