"""Tensors of large observations are views of the memory that workers write, and never change."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from tests.support.cases import Case
from tests.support.environments import samplers
from tests.support.platforms import linux_only

pytestmark = pytest.mark.torch

PIXELS = Box(0, 255, (84, 84, 3), np.uint8)
NULL = Case("Null-v0", {"shape": (84, 84, 3), "episode_steps": 3})


def mapping_of(address):
    """The line of this program's memory map that has the address."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            return line
    raise AssertionError(f"{address:x} is not mapped")


@linux_only("shared memory has no name by which this test finds it")
def test_tensors_lie_in_the_memory_that_is_shared_with_workers(runs, build_processes):
    space = Dict(eye=PIXELS, deep=Dict(hand=Box(0, 1, (64, 64), np.float32)))
    env = runs.CartwheelEnv(build_processes(samplers(space, 3), autoreset_mode="disabled"))
    root = env.reset()
    shown = [root]
    for _ in range(8):
        stepped, root = env.step_and_maybe_reset(env.rand_action(root))
        shown += [stepped["next"], root]
    for tensordict in shown:
        for key in ["eye", ("deep", "hand")]:
            assert "memfd" in mapping_of(tensordict[key].data_ptr()), key
    env.close()


def test_tensors_have_the_memory_of_the_arrays(runs, build_any, monkeypatch):
    envs = build_any([NULL] * 3, autoreset_mode="disabled")
    arrays = []

    def recorded(method, *args, **keywords):
        result = method(*args, **keywords)
        arrays.append(result[0])
        return result

    monkeypatch.setattr(envs, "step", partial(recorded, envs.step))
    monkeypatch.setattr(envs, "reset", partial(recorded, envs.reset))
    env = runs.CartwheelEnv(envs)
    root = env.reset()
    tensors = [root["observation"]]
    for _ in range(7):
        stepped, root = env.step_and_maybe_reset(env.rand_action(root))
        tensors.append(stepped["next", "observation"])
        if stepped["next", "done"].any():
            tensors.append(root["observation"])
        else:
            assert root["observation"] is tensors[-1]
    assert len(tensors) == len(arrays) == 10
    for tensor, array in zip(tensors, arrays, strict=True):
        assert tensor.data_ptr() == array.__array_interface__["data"][0]
    env.close()


def test_what_is_kept_never_changes(runs, build_any):
    env = runs.CartwheelEnv(build_any([NULL] * 3, autoreset_mode="disabled"))
    env.set_seed(1)
    kept = []
    for _ in range(4):
        rollout = env.rollout(10, break_when_any_done=False, return_contiguous=False)
        kept.append((rollout, rollout.clone()))
    env.close()
    for rollout, copy in kept:
        assert (rollout == copy).all()
    steps = kept[0][1]["next", "observation"][0, :, 0, 0, 0]
    assert steps.tolist() == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


def test_writing_into_a_tensor_changes_no_other_result(runs, build_any):
    env = runs.CartwheelEnv(build_any([NULL] * 3, autoreset_mode="disabled"))
    root = env.reset()
    first = root["observation"]
    stepped, _ = env.step_and_maybe_reset(env.rand_action(root))
    first.fill_(9)
    assert (stepped["next", "observation"] == 1).all()
    env.close()
