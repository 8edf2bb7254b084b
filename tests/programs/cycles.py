"""A program that builds, uses and closes vector environments again and again."""

import gc
import threading
from functools import partial
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box

import cartwheel
from tests.programs.registry import program, tell
from tests.support.environments import LargeEnv
from tests.support.faulty import FaultyEnv
from tests.support.processes import left_behind, resident_kib, residue

#: Cycles before the comparison, in which caches, the fork server and the allocator grow.
WARM_UP = 20


class ImageEnv(LargeEnv):
    """A batch of two has 80 kB and is not copied."""

    observation_space = Box(0, 255, (200, 200), np.uint8)


def cycle(executor, context, number):
    if executor == "native":
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 600, num_workers=2)
    else:
        env_fns = [partial(FaultyEnv, 0)] * 2 if number % 2 else [ImageEnv] * 2
        envs = cartwheel.VectorEnv(env_fns, executor=executor, context=context, num_workers=2)
    envs.reset(seed=number)
    kept = [envs.step([0] * envs.num_envs)[0] for _ in range(3)]
    envs.close()
    assert kept[0].shape == kept[2].shape


def kinds(entries):
    return sorted(entry.split()[0] for entry in entries)


def state(entries):
    """Measures that many cycles must not change; ``entries`` are those of the residue."""
    return {
        "residue": kinds(entries),
        "threads": threading.active_count(),
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
        "KiB": resident_kib(),
    }


@program
def make_and_close(executor, context, cycles):
    for number in range(min(WARM_UP, int(cycles) // 2)):
        cycle(executor, context or None, number)
    gc.collect()
    entries = residue()
    before = state(entries)
    for number in range(int(cycles)):
        cycle(executor, context or None, number)
    gc.collect()
    left_behind(entries)  # waits for what is ending
    now = residue()
    # The kernel ends a thread some time after the join, so `before` may have threads that ended.
    before["residue"] = kinds(entries - {gone for gone in entries - now if is_native(gone)})
    tell(before=before, after=state(now))


def is_native(entry):
    return entry.startswith("native thread")
