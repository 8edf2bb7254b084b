"""Garbage that a worker process writes into shared memory is an exception in the caller."""

from pathlib import Path

import numpy as np
import pytest

import cartwheel
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
@pytest.mark.timeout(60)
def test_a_row_that_does_not_exist_is_named_and_the_pool_is_broken(gates):
    envs = cartwheel.VectorEnv(gates.env_fns(ROWS), executor="process", num_workers=1, batch_size=2)
    try:
        envs.async_reset(seed=1)
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
