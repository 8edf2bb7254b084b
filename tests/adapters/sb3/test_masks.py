"""MaskablePPO of sb3-contrib gets masks without a wrapper, and learns as with DummyVecEnv."""

import importlib
from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.masked import MaskedEnv, expected, mask_of

pytestmark = pytest.mark.torch

KINDS = ["inline", "process", "native"]


def adapter():
    return importlib.import_module("cartwheel.sb3").CartwheelVecEnv


def taxi(**keywords):
    return gym.make("Taxi-v4", max_episode_steps=20, **keywords)


def masked_taxi():
    maskable = importlib.import_module("sb3_contrib.common.wrappers")
    return maskable.ActionMasker(taxi(), lambda env: env.unwrapped.action_mask(env.unwrapped.s))


def rows(kind):
    if kind == "native":
        return adapter()("cartwheel/Taxi-v4", num_envs=4, max_episode_steps=20)
    return adapter()([taxi] * 4, executor=kind)


def trained(envs):
    contrib = importlib.import_module("sb3_contrib")
    with closing(envs):
        keywords = {"n_steps": 32, "batch_size": 64, "n_epochs": 2, "seed": 3, "device": "cpu"}
        model = contrib.MaskablePPO("MlpPolicy", envs, policy_kwargs={"net_arch": [8]}, **keywords)
        model.learn(256)
        weights = {key: value.numpy() for key, value in model.policy.state_dict().items()}
        return weights, model.rollout_buffer.action_masks


@pytest.fixture(scope="module")
def with_dummy():
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    return trained(vec_env.DummyVecEnv([masked_taxi] * 4))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_masks_of_MaskablePPO_equal_those_with_DummyVecEnv(kind, with_dummy):
    assert not with_dummy[1].all()
    assert_identical(trained(rows(kind)), with_dummy, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_read_without_a_call_of_the_environments(kind, monkeypatch):
    with closing(rows(kind)) as envs:
        assert envs.has_attr("action_masks")
        envs.reset()
        monkeypatch.setattr(envs, "_rows", None)
        masks = envs.env_method("action_masks")
        assert len(masks) == 4
        np.testing.assert_array_equal(masks, envs.vector_env.action_masks())
        again = envs.env_method("action_masks", indices=[-1, 0])
        np.testing.assert_array_equal(again, [masks[3], masks[0]])
        assert envs.env_method("action_masks", indices=[]) == []
        (last,) = envs.get_attr("action_masks", [3])
        for one, get in zip(
            [*masks, masks[3]], [*envs.get_attr("action_masks"), last], strict=True
        ):
            np.testing.assert_array_equal(get(), one)


def test_a_method_of_the_environments_comes_before_their_infos():
    class Own(MaskedEnv):
        def action_masks(self):
            return ~mask_of(self.count)

    with closing(adapter()([Own] * 2, executor="inline")) as envs:
        observations = envs.reset()
        masks = envs.env_method("action_masks")
        np.testing.assert_array_equal(masks, [~mask_of(count) for count in observations])
    own = partial(Own, key="legal")
    with closing(adapter()([own] * 2, executor="inline", action_mask="legal")) as envs:
        observations = envs.reset()
        np.testing.assert_array_equal(envs.env_method("action_masks"), expected(observations))


def test_environments_without_masks_are_not_maskable():
    utils = importlib.import_module("sb3_contrib.common.maskable.utils")
    with closing(adapter()("cartwheel/CartPole-v1", num_envs=2)) as envs:
        envs.reset()
        assert not utils.is_masking_supported(envs)
        with pytest.raises(AttributeError, match="action_masks"):
            envs.env_method("action_masks")


def test_a_collector_and_an_evaluation_mask_the_model():
    contrib = importlib.import_module("sb3_contrib")
    with closing(rows("native")) as envs:
        model = contrib.MaskablePPO("MlpPolicy", envs, n_steps=8, batch_size=8, device="cpu")
        collector = cartwheel.Collector(envs.vector_env, model, num_steps=8, seed=1)
        rollout = collector.collect()
        allowed = rollout.extras["action_masks"]
        taken = np.take_along_axis(allowed, rollout.actions[..., None], 2)
        assert taken.all()
        assert not allowed.all()
        cartwheel.evaluate(envs.vector_env, model, seed=1)
