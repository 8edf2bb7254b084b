"""Trainers that look at direct bases find Gymnasium's, at the environment or at `unwrapped`."""

import gymnasium as gym
import pytest
from gymnasium.wrappers import vector as gymnasium_wrappers

import cartwheel
from cartwheel import envpool, wrappers
from tests.support.cases import POLE

CLASSES = [
    cartwheel.PoolVectorEnv,
    cartwheel.VectorEnv,
    cartwheel.AsyncVectorEnv,
    cartwheel.SyncVectorEnv,
    cartwheel.NativeVectorEnv,
    envpool.GymnasiumEnvPool,
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_vector_environment_has_gymnasiums_as_a_direct_base(kind):
    assert gym.vector.VectorEnv in kind.__bases__


def test_these_are_all_vector_environments_of_cartwheel():
    public = [getattr(cartwheel, name) for name in cartwheel.__all__]
    found = [
        one for one in public if isinstance(one, type) and issubclass(one, gym.vector.VectorEnv)
    ]
    wrapping = [one for one in found if issubclass(one, gym.vector.VectorWrapper)]
    assert {*found} - {*wrapping} == {*CLASSES} - {envpool.GymnasiumEnvPool}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: envs,
        wrappers.RecordEpisodeStatistics,
        gymnasium_wrappers.RecordEpisodeStatistics,
        lambda envs: wrappers.FrameStack(gymnasium_wrappers.RecordEpisodeStatistics(envs), 2),
    ],
)
def test_wrapped_ones_show_it_at_unwrapped(build_any, wrap):
    envs = build_any([POLE] * 2)
    assert gym.vector.VectorEnv in type(wrap(envs).unwrapped).__bases__
