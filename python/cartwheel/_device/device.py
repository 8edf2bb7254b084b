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

    def current(self) -> int:
        """Returns the number of the current stream."""

    def empty(self, nbytes: int, *, is_own: bool) -> Any:
        """Returns memory that copies may write at once; ``is_own``: in the stream of this object.

        Raises:
            RuntimeError: There is not enough memory.
        """

    def staging(self, nbytes: int) -> Any:
        """Returns pinned memory of the host, which is not used again while a copy reads it."""

    def copy(self, target: Any, source: Any, *, is_own: bool) -> None:
        """Begins a copy of host memory in the stream of this object, or in the current one.

        The caller keeps ``source`` until it is over, unless it is of :meth:`staging`.
        """

    def record(self, event: Event | None, *, is_own: bool) -> Event:
        """Returns a point after all work of the stream of this object, or of the current one.

        Args:
            event: A point that is not needed any more, to be used again; ``None`` makes another.
            is_own: Whether of the stream of this object.
        """

    def deliver(self, event: Event, memory: Any) -> None:
        """The current stream waits for the event, and may use ``memory`` from then on."""

    def share(self, memory: Any) -> None:
        """Later copies of this object's stream may write memory of the current stream."""

    def follow(self) -> None:
        """Later copies wait for all work that the current stream has now."""

    def fetch(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns copies in host memory, which the current stream makes.

        The caller waits for these copies, and not for later work of the stream.
        """
