"""A fake of a device with memory of its own, for the tests of copies to it."""

import importlib
import time
from types import SimpleNamespace

import pytest

from cartwheel._device import batches, transfers
from cartwheel.wrappers import numpy_to_torch


@pytest.fixture
def device(monkeypatch):
    """A fake for `device="cuda"`; at the end nothing may be registered.

    Batches of 300 rows of CartPole count as large ones, which have a stream of their own.
    """
    fake = importlib.import_module("tests.support.fake_device").FakeDevice()  # needs torch
    monkeypatch.setattr(batches, "PACKED", 4_096)
    monkeypatch.setattr(batches, "IN_STREAM", 4_096)
    monkeypatch.setattr(numpy_to_torch, "Cuda", lambda _: fake)
    # A wait for copies lets the device make one.
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: fake.make_progress())
    monkeypatch.setattr(transfers, "time", clock)
    yield fake
    assert not fake.registered
    assert not transfers._never_over
