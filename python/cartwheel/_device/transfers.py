"""Copies in flight: their memory is kept until they are over, and slabs are pinned once.

A copy reads the memory of a batch while the host goes on. Until then a *flight* keeps that memory,
and with it the lease of a slab, so that no step fills it again. Flights are looked at before each
copy, and waited for only when too many are in flight.

Memory is unregistered before anything happens to it: before a pool ends, and before a fork. If a
device does not end its copies within a second by then, their memory is kept forever.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from cartwheel._internal.logging import LOGGER
from cartwheel._internal.weak_set import ConcurrentWeakSet
from cartwheel.errors import ForkedProcessError

if TYPE_CHECKING:
    from cartwheel._device.device import Device, Event

#: The maximum number of bytes that are pinned for one vector environment.
MAX_PINNED = 256 << 20
#: Seconds to wait for copies before their memory is unmapped or forked.
DRAIN_S = 1.0
#: Flights that did not end: freeing what they read would let a device read other data.
_never_over: list[Any] = []


class Registrations:
    """The slabs of one vector environment that are pinned for a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._sizes: dict[int, int] = {}
        self._is_refused = False

    def covers(self, address: int, nbytes: int) -> bool:
        """Pins memory if it is not pinned yet; returns whether it is."""
        if address in self._sizes:
            return True
        if self._is_refused:
            return False
        pinned = sum(self._sizes.values())
        if pinned + nbytes > MAX_PINNED or not self._device.register(address, nbytes):
            self._is_refused = True
            LOGGER.warning(
                "%d bytes of a batch cannot be pinned for %s, with %d bytes that are: batches are "
                "copied into other pinned memory first, which takes longer",
                *(nbytes, self._device.name, pinned),
            )
            return False
        self._sizes[address] = nbytes
        return True

    def end(self) -> None:
        """Unregisters all memory; the next copy registers it again."""
        while self._sizes:
            address, _ = self._sizes.popitem()
            self._device.unregister(address)


class Flight:
    """A copy that has begun, and the memory that it reads."""

    __slots__ = ("_device", "_event", "_is_marked", "is_own", "source")

    def __init__(self, device: Device, source: Any, event: Event | None, *, is_own: bool) -> None:
        """Notes a copy before it begins, so that an interrupt in between loses nothing.

        Args:
            device: Makes the copy.
            source: The memory that it reads.
            event: An event of an earlier flight, to be used again.
            is_own: Whether the copy is in the device's own stream, and not in the caller's.
        """
        self._device, self.source, self._event, self.is_own = device, source, event, is_own
        self._is_marked = False

    @property
    def event(self) -> Event:
        """A point after the copy."""
        if not self._is_marked:
            self._event = self._device.record(self._event, is_own=self.is_own)
            self._is_marked = True
        assert self._event is not None
        return self._event


class Transfers:
    """The copies of one vector environment to one device, in the order in which they begin.

    One thread uses an object at a time, like the vector environment.

    Attributes:
        device: Makes the copies.
        registrations: Of the memory that they read.
        has_slabs: Whether :meth:`end` is called before slabs are unmapped, so that they may be
            registered.
    """

    def __init__(self, device: Device, *, has_slabs: bool) -> None:
        self.device, self.has_slabs = device, has_slabs
        self.registrations = Registrations(device)
        self._flights: deque[Flight] = deque()
        #: The event of a flight that is over, for the next one.
        self._event: Event | None = None
        self._is_forked = False
        _open.add(self)

    def check_process(self) -> None:
        """Refuses a forked child, in which the device cannot be used.

        Raises:
            ForkedProcessError: This process was forked after the first use of the device.
        """
        if self._is_forked:
            raise ForkedProcessError(
                f"{self.device.name} cannot be used in a forked child of the process that used it "
                "first: make the vector environment and NumpyToTorch in the child, and start the "
                "child by 'spawn' or 'forkserver'."
            )

    def land(self) -> None:
        """Frees the memory that copies have read which are over.

        Raises:
            ForkedProcessError: In a forked child.
            RuntimeError: The device failed.
        """
        self.check_process()
        flights = self._flights
        while flights and flights[0].event.query():
            self._event = flights.popleft().event

    def put(self, target: Any, source: Any) -> None:
        """Copies pinned memory of :meth:`Device.staging` in the caller's stream.

        Raises:
            RuntimeError: The device failed.
        """
        self.device.copy(target, source, is_own=False)

    def send(self, copies: list[tuple[Any, Any]], memory: Any, depth: int, *, is_own: bool) -> None:
        """Begins copies, for which the current stream waits before its next work.

        Args:
            copies: Targets on the device, and sources on the host, which are kept until the copies
                are over.
            memory: The memory of the device that has the targets.
            depth: The maximum number of flights; the oldest are waited for.
            is_own: Whether they run in the device's own stream, and not in the caller's.

        Raises:
            RuntimeError: The device failed.
        """
        flights = self._flights
        while len(flights) >= depth:
            flights[0].event.synchronize()
            self._event = flights.popleft().event
        event, self._event = self._event, None
        flight = Flight(self.device, [source for _, source in copies], event, is_own=is_own)
        flights.append(flight)
        for target, source in copies:
            self.device.copy(target, source, is_own=is_own)
        event = flight.event
        if is_own:
            self.device.deliver(event, memory)

    def drain(self) -> bool:
        """Waits for all copies, for at most :data:`DRAIN_S`; returns whether they are over.

        If not, the memory that they read is kept forever.
        """
        deadline = time.monotonic() + DRAIN_S
        while self._flights:
            try:
                is_over = self._flights[0].event.query()
            except RuntimeError:  # the device is lost
                is_over, deadline = False, 0.0
            if is_over:
                self._flights.popleft()
            elif time.monotonic() > deadline:
                _never_over.extend(self._flights)
                self._flights.clear()
                LOGGER.error(
                    "copies to %s did not end within %g s: what they read is never freed",
                    *(self.device.name, DRAIN_S),
                )
                return False
            else:
                time.sleep(0.0005)
        return True

    def end(self) -> None:
        """Waits for all copies and unregisters the memory, before either is unmapped."""
        if not self._is_forked and self.drain():
            self.registrations.end()

    def forget(self) -> None:
        """Forgets copies in a forked child, without a call to the device."""
        self._is_forked = True
        _never_over.extend(self._flights)
        self._flights.clear()


#: The transfers of this process.
_open: ConcurrentWeakSet[Transfers] = ConcurrentWeakSet()


def _before_fork() -> None:
    for transfers in _open:
        transfers.end()


def _after_fork_in_child() -> None:
    for transfers in _open:
        transfers.forget()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
