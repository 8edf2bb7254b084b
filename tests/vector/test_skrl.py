"""skrl's `wrap_env` finds its wrapper by itself, and steps as it steps Gymnasium's."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from cartwheel.wrappers import RecordEpisodeStatistics
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.oracle import N, S

pytestmark = pytest.mark.torch

POLE = Case("CartPole-v1", {"max_episode_steps": 7})


@pytest.mark.parametrize(
    "wrap",
    [lambda envs: envs, RecordEpisodeStatistics, gym.wrappers.vector.RecordEpisodeStatistics],
    ids=["bare", "in ours", "in Gymnasium's"],
)
@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
def test_it_shows_what_it_shows_of_gymnasiums_environments(build_any, mode, wrap):
    torch = importlib.import_module("torch")
    skrl = importlib.import_module("skrl.envs.wrappers.torch")
    torch.manual_seed(0)
    oracle = SyncVectorEnv([POLE] * 3, autoreset_mode=mode)
    both = [wrap(build_any([POLE] * 3, autoreset_mode=mode)), oracle]
    ours, theirs = (skrl.wrap_env(envs, verbose=False) for envs in both)
    assert type(ours) is type(theirs)
    assert (ours.num_envs, ours.observation_space) == (3, theirs.observation_space)
    for wrapped in (ours, theirs):
        wrapped._seed = 3
    assert_identical(ours.reset()[0].numpy(), theirs.reset()[0].numpy())
    for _ in range(20):
        actions = torch.randint(2, (3, 1))
        results = [wrapped.step(actions)[:4] for wrapped in (ours, theirs)]
        for own, expected in zip(*results, strict=True):
            assert_identical(own.numpy(), expected.numpy())
    assert np.isfinite(ours.reset()[0].numpy()).all()
    oracle.close()
