"""The operations of a device, which tests replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Event(Protocol):
    """A point in the order of a stream; ``torch.cuda.Event`` is one."""

    def query(self) -> bool:
        """Returns whether everything before this point is over."""

    def synchronize(self) -> None:
        """Waits until everything before this point is over."""


class Device(Protocol):
    """A device with a stream of its own for copies.

    All memory is in tensors of bytes. The calling thread has a current stream, in which its own
    kernels run; copies run in the stream of this object.

    Attributes:
        name: Of the device, such as ``cuda:0``.
    """

    name: str

    def register(self, address: int, nbytes: int) -> bool:
        """Pins host memory; returns whether that was possible."""

    def unregister(self, address: int) -> None:
        """Ends what :meth:`register` began; no copy from the memory may be in flight."""

    def empty(self, nbytes: int) -> Any:
        """Returns memory of the device that copies may write at once.

        Raises:
            RuntimeError: There is not enough memory.
        """

    def staging(self, nbytes: int) -> Any:
        """Returns pinned memory of the host, which is not used again while a copy reads it."""

    def copy(self, target: Any, source: Any) -> None:
        """Begins a copy of host memory; the caller keeps ``source`` until it is over."""

    def record(self) -> Event:
        """Returns a point after all copies that have begun."""

    def deliver(self, event: Event, memories: Sequence[Any]) -> None:
        """The current stream waits for the event, and may use ``memories`` from then on."""

    def follow(self) -> None:
        """Later copies wait for all work that the current stream has now."""

    def fetch(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns copies in host memory, which the current stream makes.

        The caller waits for these copies, and not for later work of the stream.
        """
