"""Arrays of a call begin at multiples of 64 bytes, as other libraries need them."""

from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.environments import NestedEnv, transcripts
from tests.support.executors import INLINE
from tests.support.wrapping import MODES, S

ALIGNMENT = 64


def arrays(value):
    """Every array of numbers in a result, with its path."""
    if isinstance(value, dict):
        value = value.items()
    elif isinstance(value, tuple):
        value = enumerate(value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        return [("", value)]
    else:
        return []
    return [(f"[{key!r}]{path}", array) for key, part in value for path, array in arrays(part)]


def unaligned(result):
    """The paths of the arrays of a result that begin elsewhere; there are some arrays."""
    found = arrays(result)
    assert found
    return [path for path, array in found if array.ctypes.data % ALIGNMENT]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [1, 3, 300])
def test_results_of_native_rows_are_aligned(mode, rows):
    """Of small batches, which are copied, and of large ones, which are views."""
    finals = {"final_obs": "dense"} if mode == S else {}
    envs = cartwheel.NativeVectorEnv(
        "CartPole-v1", rows, num_workers=1, autoreset_mode=mode, max_episode_steps=2, **finals
    )
    assert not unaligned(envs.reset(seed=1))
    for _ in range(2):
        result = envs.step(np.zeros(rows, np.int64))
        assert not unaligned(result)
    assert ("final_obs" in result[4]) == (mode == S)
    envs.close()


def test_nested_observations_and_infos_are_aligned():
    envs = INLINE([NestedEnv] * 3)
    assert not unaligned(envs.reset(seed=1))
    assert not unaligned(envs.step(envs.action_space.sample()))
    envs.close()
    envs = INLINE(transcripts(2, 3, 4))
    envs.reset(seed=1)
    result = envs.step(np.zeros(3, np.int64))
    assert arrays(result[4])
    assert not unaligned(result)
    envs.close()


def test_rows_that_were_sent_and_masks_are_aligned():
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 3, num_workers=1)
    envs.send_reset(seed=1)
    result = envs.recv()
    assert not unaligned(result)
    assert not unaligned((envs.action_masks(),))
    envs.send(np.zeros(3, np.int64), result[4]["env_index"])
    assert not unaligned(envs.recv())
    envs.close()


def test_batches_that_are_copied_because_many_are_kept_are_aligned():
    shape = (65, 70)
    make = partial(cartwheel.NativeVectorEnv, "Null-v0", 1, num_workers=1, shape=shape)
    envs = make(max_batches=2)
    kept = [envs.reset(seed=1)]
    with pytest.warns(RuntimeWarning, match="too many batches"):
        kept += [envs.step(envs.action_space.sample()) for _ in range(12)]
    for result in kept:
        assert not unaligned(result)
    envs.close()


def test_a_reward_keeps_its_number_when_the_other_arrays_are_gone():
    """The arrays of a small batch are one allocation."""
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", 2, num_workers=1)
    envs.reset(seed=1)
    steps = [envs.step(np.zeros((2, 1), np.float32)) for _ in range(50)]
    expected = [step[1].tolist() for step in steps]
    kept = [step[1] for step in steps]
    del steps
    for _ in range(50):
        envs.step(np.ones((2, 1), np.float32))
    assert [rewards.tolist() for rewards in kept] == expected
    envs.close()
