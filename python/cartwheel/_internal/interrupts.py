"""Keeps Ctrl-C out of calls to others that are noted here."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Handles Ctrl-C after the block, not between a call and what is noted of it.

    Otherwise results of ale-py could be received and not counted, and waited for once more, for
    ever; rollouts of Ray's actors could be asked for twice; and a process that was started could
    belong to nobody. Only the main thread handles signals.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[Any] = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: received.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[0])
