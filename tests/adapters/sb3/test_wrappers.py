"""Stable-Baselines3's own wrappers and evaluation, over CartwheelVecEnv and over DummyVecEnv."""

import importlib
import warnings
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import samplers
from tests.support.vec_envs import assert_same_reset, assert_same_steps, native, theirs

pytestmark = pytest.mark.torch

POLE = Case("CartPole-v1", {"max_episode_steps": 9})
IMAGE = Box(0, 255, (12, 8, 3), np.uint8)
WRAPPERS = {
    "VecNormalize": {},
    "VecFrameStack": {"n_stack": 3},
    "VecMonitor": {},
    "VecCheckNan": {"raise_exception": True},
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_return_what_they_return_over_DummyVecEnv(build, dummy, name):
    wrapper = partial(theirs(name), **WRAPPERS[name])
    check(wrapper(build([POLE] * 3)), wrapper(dummy([POLE] * 3)))


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_over_native_rows_return_what_they_return_over_DummyVecEnv(dummy, name):
    wrapper = partial(theirs(name), **WRAPPERS[name])
    envs = wrapper(native(POLE, 3))
    check(envs, wrapper(dummy([POLE] * 3)))
    envs.close()


@pytest.mark.parametrize("space", [IMAGE, Dict(image=IMAGE, speed=Box(-1, 1, (2,)))], ids=str)
def test_images_are_stacked_and_transposed(build, dummy, space):
    envs, oracle = (
        theirs("VecTransposeImage")(theirs("VecFrameStack")(make(samplers(space, 3)), n_stack=2))
        for make in (build, dummy)
    )
    check(envs, oracle)


def check(envs, oracle):
    for each in (envs, oracle):
        each.seed(7)
    for _ in range(2):
        assert_same_reset(envs, oracle)
        assert assert_same_steps(envs, oracle, 25)


def test_policies_are_evaluated_by_the_episodes_that_native_rows_report(dummy):
    torch = importlib.import_module("torch")
    evaluation = importlib.import_module("stable_baselines3.common.evaluation")
    monitor = importlib.import_module("stable_baselines3.common.monitor").Monitor
    model = importlib.import_module("stable_baselines3").PPO("MlpPolicy", "CartPole-v1", seed=3)
    rows, oracle = native(POLE, 3, monitor=True), dummy([lambda: monitor(POLE())] * 3)
    results = []
    for envs in (rows, oracle):
        torch.manual_seed(5)  # the policy draws actions
        envs.seed(5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # there would be one without a monitor
            results.append(
                evaluation.evaluate_policy(
                    model, envs, 7, deterministic=False, return_episode_rewards=True
                )
            )
    assert_identical(*results)
    assert len(results[0][0]) == 7
    rows.close()


def test_normalization_can_be_saved_and_loaded_with_other_rows(tmp_path, build):
    path = tmp_path / "statistics.pkl"
    envs = theirs("VecNormalize")(build([POLE] * 2))
    envs.seed(3)
    envs.reset()
    for _ in range(10):
        envs.step(np.zeros(2, np.int64))
    envs.save(path)
    loaded = theirs("VecNormalize").load(path, build([POLE] * 2))
    assert_identical(loaded.obs_rms.mean, envs.obs_rms.mean)
    assert loaded.reset().shape == (2, 4)
