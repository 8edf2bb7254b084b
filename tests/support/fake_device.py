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
        self.device.waits += self.number > self.device.done
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
        copies, waits, fetches, follows, deliveries: How often each was asked for.
        own_copies: How many of the copies were in the stream of the device itself.
        events: How many events were made, and not used again.
        stream: The number of the caller's stream.
        staged: The bytes of all staging memory.
        done: How many copies are over.
    """

    name = "cpu"

    def __init__(self):
        self.registered = {}
        self.refuses = self.is_lost = self.is_stuck = False
        self.free = 1 << 40
        self.registrations = self.copies = self.waits = self.fetches = self.follows = 0
        self.staged = self.done = self.deliveries = 0
        self.own_copies = self.events = self.stream = 0
        self.fails_to_copy = False
        self._pending = deque()
        self._staging = {}

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

    def current(self):
        return self.stream

    def empty(self, nbytes, *, is_own):
        assert isinstance(is_own, bool)
        if nbytes > self.free:
            raise RuntimeError("out of memory")
        return torch.full((nbytes,), 0xAA, dtype=torch.uint8)

    def staging(self, nbytes):
        self.staged += nbytes
        memory = torch.full((nbytes,), 0xBB, dtype=torch.uint8)
        self._staging[memory.untyped_storage().data_ptr()] = None
        return memory

    def copy(self, target, source, *, is_own):
        if self.fails_to_copy:
            raise RuntimeError("the copy fails")
        assert target.shape == source.shape
        assert source.is_contiguous()
        self.copies += 1
        self.own_copies += is_own
        # Like a device, the fake keeps an address and not the memory; that of `staging` is kept.
        is_staging = source.untyped_storage().data_ptr() in self._staging
        kept = (lambda: source) if is_staging else weakref.ref(source)
        assert is_staging or not self.is_pageable(source), "the host would wait"
        self._pending.append((target, kept, source.data_ptr(), source.numel()))

    def is_pageable(self, source):
        """Whether memory is not registered."""
        first = source.data_ptr()
        return not any(
            at <= first and first + source.numel() <= at + size
            for at, size in self.registered.items()
        )

    def record(self, event, *, is_own):
        assert isinstance(is_own, bool)
        self.events += event is None
        return FakeEvent(self, self.done + len(self._pending))

    def deliver(self, event, memory):
        assert event.number <= self.done + len(self._pending)
        assert isinstance(memory, torch.Tensor)
        self.deliveries += 1

    def share(self, memory):
        assert memory.numel()

    def follow(self):
        self.follows += 1

    def fetch(self, tensors):
        self.fetches += 1
        return [tensor.detach().clone() for tensor in tensors]

    @property
    def pending(self):
        """The number of copies that have begun and are not over."""
        return len(self._pending)

    @property
    def reads_slabs(self):
        """Whether a copy that is not over reads other memory than that of `staging`."""
        return any(isinstance(kept, weakref.ref) for _, kept, _, _ in self._pending)

    def make_progress(self):
        """Makes the next copy, if there is one."""
        if self._pending and not self.is_stuck:
            self.finish(1)

    def finish(self, count=None):
        """Makes the next ``count`` copies, or all."""
        for _ in range(len(self._pending) if count is None else count):
            target, source, address, nbytes = self._pending.popleft()
            assert source() is not None, "freed while a copy reads it"
            target.zero_()  # counts as a change for autograd, as a copy does
            ctypes.memmove(target.data_ptr(), address, nbytes)
            self.done += 1


class ImmediateDevice(FakeDevice):
    """Makes each copy at once."""

    def copy(self, target, source, *, is_own):
        super().copy(target, source, is_own=is_own)
        self.finish()
