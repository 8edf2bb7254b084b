"""Garbage that a worker process writes into shared memory is an exception in the caller."""

from pathlib import Path

import numpy as np
import pytest

import cartwheel
from cartwheel.workers.serving.worker import Worker
from tests.support.environments import TranscriptEnv
from tests.support.platforms import linux_only

ROWS = 64
#: A row number that occurs in a batch only where it names this row.
ROW = 61
GARBAGE = 77_777


def slabs():
    """The memory of all batches, which this process and its workers share."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and "cartwheel-slabs" in str(entry.readlink()):
            return np.memmap(entry, np.uint32, "r+")
    raise FileNotFoundError("no batches are shared")


@linux_only("shared memory has no name by which this test finds it")
def test_a_row_that_does_not_exist_is_named_and_the_pool_is_broken(gates):
    envs = cartwheel.VectorEnv(gates.env_fns(ROWS), executor="process", num_workers=1, batch_size=2)
    try:
        envs.send_reset(seed=1)
        for _ in range(ROWS // 2):
            envs.recv()
        envs.send([0, 1], env_index=[ROW, 3])
        gates.await_arrival(1)  # row 3 is stepped, so row 61 has its place in the batch
        batches = slabs()
        batches[batches == ROW] = GARBAGE
        gates.open(1)
        with pytest.raises(cartwheel.BrokenPoolError, match=f"worker 0 wrote row {GARBAGE}"):
            envs.recv()
        for call in (envs.reset, envs.recv, lambda: envs.get_attr("t")):
            with pytest.raises(cartwheel.BrokenPoolError, match=str(GARBAGE)):
                call()
    finally:
        envs.close()


def test_flags_of_a_rollout_are_truth_values_whatever_a_process_writes(gates):
    envs = cartwheel.VectorEnv(gates.env_fns(3), executor="process", num_workers=1)
    envs.reset(seed=1)
    rollout = envs.rollout(2)
    flags = [part.view(np.uint8) for part in (rollout.terminated, rollout.truncated)]
    envs.step_async([0, 0, 1])
    gates.await_arrival(1)  # row 2 is stepped, so the others have their flags
    for part in flags:
        part[0, 0] = 2  # as their process could, in the memory of both
    gates.open(1)
    step = envs.step_wait()
    for part, shown in zip(flags, step[2:4], strict=True):
        assert part[0].tolist() == shown.view(np.uint8).tolist() == [1, 0, 0]
    envs.close()


#: A list in a list, and so on; as a key of infos and an observation in a stream.
NESTED = b"\x0a\1\0\0\0" * 1_000_000


def record(kind, body):
    return bytes([kind]) + bytes(6) + len(body).to_bytes(4, "little") + body


class NestingEnv(TranscriptEnv):
    """Its worker sends a stream of another kind instead of large infos."""

    def __init__(self, stream):
        super().__init__(1000)
        pack = Worker.pack_rest
        Worker.pack_rest = lambda worker, _stream: pack(worker, stream)

    def step(self, action):
        *frame, info = super().step(action)
        return *frame, info | {"large": np.zeros(2_000_000)}


@pytest.mark.parametrize(
    "stream",
    [record(0, b"\1\0a" + NESTED), record(1, NESTED), record(3, b"\1\0a" + NESTED)],
    ids=["info", "one value", "irregular"],
)
def test_values_nested_without_end_are_refused(stream):
    envs = cartwheel.VectorEnv([lambda: NestingEnv(stream)] * 2, executor="process", num_workers=1)
    try:
        envs.reset()
        with pytest.raises(RuntimeError, match="malformed info stream at byte"):
            envs.step([1, 1])
    finally:
        envs.close()
