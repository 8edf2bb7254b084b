"""Wrappers keep no reference to themselves: what nobody refers to ends at once."""

import weakref

import pytest

import cartwheel
from cartwheel.wrappers import (
    AutoresetAdapter,
    ClipAction,
    ClipReward,
    FrameStack,
    NormalizeObservation,
    RecordEpisodeStatistics,
)

WRAPPERS = {
    "transforms": lambda envs: FrameStack(envs, 2),
    "acts": ClipAction,
    "both": lambda envs: ClipAction(ClipReward(NormalizeObservation(envs), 0, 1)),
    "makes calls": lambda envs: AutoresetAdapter(RecordEpisodeStatistics(envs), "same_step"),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_environments_that_are_dropped_end_without_a_garbage_collection(wrap):
    bare = cartwheel.make_vec("Pendulum-v1", 2, executor="inline", autoreset_mode="disabled")
    envs, inner = wrap(bare), weakref.ref(bare)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    del bare, envs
    assert inner() is None
