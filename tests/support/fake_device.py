"""A device whose copies happen when a test says so, and that reads their source only then."""

import ctypes
import weakref
from collections import deque

import torch


class FakeEvent:
    """A point after the first ``number`` copies of a device."""

    def __init__(self, device, number):
        self.device, self.number = device, number

    def query(self):
        if self.device.is_lost:
            raise RuntimeError("the device is lost")
        return self.device.done >= self.number

    def synchronize(self):
        self.device.waits += 1
        self.device.finish(self.number - self.device.done)


class FakeDevice:
    """Memory of the CPU as that of a device; counts everything that is asked of it.

    Attributes:
        registered: Sizes of registered memory by address.
        registrations: How often memory was registered.
        refuses: Whether registering fails.
        free: Bytes that can still be allocated.
        is_lost: Whether events raise.
        is_stuck: Whether no copy ends until the test says so.
        copies, waits, fetches, follows: How often each was asked for.
        staged: The bytes of all staging memory.
        done: How many copies are over.
    """

    name = "cpu"

    def __init__(self):
        self.registered = {}
        self.refuses = self.is_lost = self.is_stuck = False
        self.free = 1 << 40
        self.registrations = self.copies = self.waits = self.fetches = self.follows = 0
        self.staged = self.done = 0
        self.fails_to_copy = False
        self._pending = deque()

    def register(self, address, nbytes):
        if self.refuses:
            return False
        for other, size in self.registered.items():
            assert address + nbytes <= other or other + size <= address, "registered twice"
        self.registered[address] = nbytes
        self.registrations += 1
        return True

    def unregister(self, address):
        end = address + self.registered.pop(address)
        for _, _, source, _ in self._pending:
            assert not address <= source < end, "unregistered while a copy reads it"

    def empty(self, nbytes):
        if nbytes > self.free:
            raise RuntimeError("out of memory")
        return torch.full((nbytes,), 0xAA, dtype=torch.uint8)

    def staging(self, nbytes):
        self.staged += nbytes
        return torch.full((nbytes,), 0xBB, dtype=torch.uint8)

    def copy(self, target, source):
        if self.fails_to_copy:
            raise RuntimeError("the copy fails")
        assert target.shape == source.shape
        assert source.is_contiguous()
        self.copies += 1
        # Like a device, the fake keeps an address and not the memory.
        self._pending.append((target, weakref.ref(source), source.data_ptr(), source.numel()))

    def record(self):
        return FakeEvent(self, self.done + len(self._pending))

    def deliver(self, event, memories):
        assert event.number == self.done + len(self._pending)
        assert memories

    def follow(self):
        self.follows += 1

    def fetch(self, tensors):
        self.fetches += 1
        return [tensor.detach().clone() for tensor in tensors]

    @property
    def pending(self):
        """The number of copies that have begun and are not over."""
        return len(self._pending)

    def make_progress(self):
        """Makes the next copy, if there is one."""
        if self._pending and not self.is_stuck:
            self.finish(1)

    def finish(self, count=None):
        """Makes the next ``count`` copies, or all."""
        for _ in range(len(self._pending) if count is None else count):
            target, source, address, nbytes = self._pending.popleft()
            assert source() is not None, "freed while a copy reads it"
            ctypes.memmove(target.data_ptr(), address, nbytes)
            self.done += 1


class ImmediateDevice(FakeDevice):
    """Makes each copy at once."""

    def copy(self, target, source):
        super().copy(target, source)
        self.finish()
