"""A batch that outlives its vector environment keeps its own memory, not that of all batches."""

import contextlib
import os
from pathlib import Path

import pytest

from cartwheel import VectorEnv
from tests.support.environments import LargeEnv
from tests.support.platforms import linux_only
from tests.support.processes import resident_kib

NUM_ENVS, BATCHES = 4, 20
BATCH_KIB = NUM_ENVS * 1024


def shared_memories():
    """Descriptors of our own for the shared memories of this process."""
    copies = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            if "memfd:cartwheel" in str(entry.readlink()):
                copies.append(os.dup(int(entry.name)))
    return copies


def held_kib(executor, memories):
    """The memory of the batches: blocks of shared memory, or resident memory."""
    if executor == "process":
        return sum(os.fstat(memory).st_blocks // 2 for memory in memories)
    return resident_kib()


@pytest.mark.parametrize(
    "executor",
    [
        "inline",
        "thread",
        pytest.param("process", marks=linux_only("shared memory is given back as a whole")),
    ],
)
@pytest.mark.parametrize("what", ["batches", "rollouts"])
def test_one_batch_of_a_closed_pool_keeps_the_memory_of_one_batch(executor, what):
    envs = VectorEnv([LargeEnv] * NUM_ENVS, executor=executor, num_workers=2)
    envs.reset()
    kept = envs.step([0] * NUM_ENVS)[0]
    others = []
    if what == "rollouts":
        others.append(envs.rollout(BATCHES))
    others += [envs.step([0] * NUM_ENVS)[0] for _ in range(BATCHES)]
    memories = shared_memories()
    before = held_kib(executor, memories)
    others.clear()
    envs.close()
    freed = before - held_kib(executor, memories)
    for memory in memories:
        os.close(memory)
    assert freed > (BATCHES - 3) * BATCH_KIB
    assert (kept == 1).all()


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("what", ["batches", "rollouts"])
def test_what_is_dropped_after_the_close_is_freed_although_a_batch_is_kept(executor, what):
    envs = VectorEnv([LargeEnv] * NUM_ENVS, executor=executor, num_workers=2)
    envs.reset()
    kept = envs.step([0] * NUM_ENVS)[0]
    others = [envs.rollout(BATCHES)] if what == "rollouts" else []
    others += [envs.step([0] * NUM_ENVS)[0] for _ in range(BATCHES)]
    envs.close()
    before = resident_kib()
    others.clear()
    assert before - resident_kib() > (BATCHES - 3) * BATCH_KIB
    assert (kept == 1).all()
