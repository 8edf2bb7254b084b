"""Memory that a device reads is freed after its copies, however a pool or a program ends.

The fake device of ``conftest.py`` copies when a test says so.
"""

import gc
import os
import weakref

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel._device import transfers
from tests.support.environments import samplers
from tests.support.executors import INLINE, PROCESS
from tests.wrappers.test_numpy_to_torch import assert_converted

torch = pytest.importorskip("torch")
from tests.wrappers.test_batches_on_a_device import after, on_device, wide  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch


def test_pinned_memory_has_a_limit(device, monkeypatch):
    monkeypatch.setattr(transfers, "MAX_PINNED", 30_000)
    envs = on_device(wide())
    envs.reset(seed=1)
    for _ in range(9):
        envs.step(torch.ones(300, dtype=torch.int64))
    assert sum(device.registered.values()) <= 30_000
    assert device.staged > 0
    envs.close()


@pytest.mark.parametrize("end", ["close", "collected", "unwrapped"])
@pytest.mark.parametrize("build_wide", [wide, lambda: PROCESS(wide_rows())])
def test_the_end_of_a_pool_waits_for_copies_and_unpins(device, build_wide, end):
    envs = on_device(build_wide())
    observations = envs.reset(seed=1)[0]
    results = envs.step(torch.zeros(envs.num_envs, dtype=torch.int64))
    expected = [part.clone() for part in after(device, (observations, results[0]))]
    results = envs.step(torch.zeros(envs.num_envs, dtype=torch.int64))
    assert device.pending
    assert device.registered
    if end == "close":
        envs.close()
    elif end == "unwrapped":
        envs.unwrapped.close()
    else:
        kept = weakref.ref(envs.unwrapped)
        del envs
        gc.collect()
        assert kept() is None
    assert not device.reads_slabs
    assert not device.registered
    assert torch.equal(observations, expected[0])
    assert results[0].isfinite().all()


def wide_rows():
    return samplers(Box(-1, 1, (700,), np.float64), 2)


def test_copies_that_never_end_keep_their_memory_and_are_logged(device, monkeypatch, caplog):
    monkeypatch.setattr(transfers, "DRAIN_S", 0.01)
    device.is_stuck = True
    envs = on_device(wide())
    observations = envs.reset(seed=1)[0]
    envs.close()
    assert device.pending
    assert device.registered
    assert "did not end within 0.01 s" in caplog.text
    device.finish()  # reads memory that is still there
    assert observations.isfinite().all()
    device.registered.clear()
    transfers._never_over.clear()


def test_a_lost_device_does_not_delay_the_end(device, caplog):
    envs = on_device(wide())
    envs.reset(seed=1)
    device.is_lost = True
    with pytest.raises(RuntimeError, match="the device is lost"):
        envs.step(torch.ones(300, dtype=torch.int64))
    envs.close()
    assert "what they read is never freed" in caplog.text
    device.registered.clear()
    transfers._never_over.clear()


def test_without_device_memory_nothing_is_stepped(device):
    envs, bare = on_device(wide()), wide()
    first = envs.reset(seed=1)[0]
    bare.reset(seed=1)
    device.free = 0
    for call in (
        lambda: envs.step(torch.ones(300, dtype=torch.int64)),
        lambda: envs.send(torch.ones(300, dtype=torch.int64)),
        lambda: envs.reset(seed=2),
    ):
        with pytest.raises(RuntimeError, match="out of memory"):
            call()
    device.free = 1 << 40
    result = envs.step(torch.ones(300, dtype=torch.int64))
    assert_converted(after(device, result), bare.step(np.ones(300, np.int64)))
    assert first.isfinite().all()
    envs.close(), bare.close()


class Wide(gym.Env):
    """Infos that are larger than observations."""

    observation_space = Box(-1, 1, (3,), np.float32)
    action_space = Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return np.zeros(3, np.float32), {}

    def step(self, _action):
        self.steps += 1
        return np.ones(3, np.float32), 0.0, False, False, {"wide": np.ones(400, np.float32)}


def test_without_device_memory_for_infos_nothing_is_stepped(device):
    envs = on_device(INLINE([Wide] * 2))
    envs.reset(seed=1)
    actions = torch.ones(2, dtype=torch.int64)
    envs.step(actions)  # tells how large infos are
    device.free = 3_000  # enough for two batches without them
    with pytest.raises(RuntimeError, match="out of memory"):
        envs.step(actions)
    assert envs.get_attr("steps") == (1, 1)
    device.free = 1 << 40
    assert after(device, envs.step(actions))[4]["wide"].sum() == 800
    envs.close()


def test_an_exception_while_copies_fly_loses_no_memory(device):
    envs, bare = on_device(wide()), wide()
    envs.reset(seed=1), bare.reset(seed=1)
    device.fails_to_copy = True
    with pytest.raises(RuntimeError, match="the copy fails"):
        envs.step(torch.ones(300, dtype=torch.int64))
    device.fails_to_copy = False
    bare.step(np.ones(300, np.int64))
    result = envs.step(torch.ones(300, dtype=torch.int64))
    assert_converted(after(device, result), bare.step(np.ones(300, np.int64)))
    envs.close(), bare.close()


def test_a_forked_child_calls_no_device_and_the_parent_goes_on(device):
    envs, bare = on_device(wide()), wide()
    envs.reset(seed=1), bare.reset(seed=1)
    own = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")])  # a child may use it
    zeros = torch.zeros(1, dtype=torch.int64)
    collector = cartwheel.Collector(own, lambda _: zeros, 2, device="cuda")
    collector.reset(seed=1)
    assert device.pending
    assert device.registered
    child = os.fork()
    if child == 0:
        status = 1
        try:
            calls = device.copies, device.registrations, device.waits
            assert not device.registered
            device.free = 0
            for call in (lambda: envs.step(torch.ones(300, dtype=torch.int64)), collector.collect):
                with pytest.raises(cartwheel.ForkedProcessError, match="'spawn'"):
                    call()
            status = 0
            if calls != (device.copies, device.registrations, device.waits):
                status = 3
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not device.registered
    result = envs.step(torch.ones(300, dtype=torch.int64))
    assert_converted(after(device, result), bare.step(np.ones(300, np.int64)))
    assert device.registered
    envs.close(), bare.close(), own.close()
