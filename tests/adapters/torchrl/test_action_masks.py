"""Tensordicts have masks of actions, as TorchRL's transforms and distributions take them."""

import importlib
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.masked import MaskedEnv, expected

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("shows", [False, True], ids=["infos", "observations"])
def test_masks_are_those_of_the_observations(runs, shows):
    envs = [partial(MaskedEnv, shows=shows)] * 3
    keywords = {"with_action_masks": True, "categorical_action_encoding": True}
    # The CPU with a number is another device than the one without, which is the default.
    env = runs.CartwheelEnv(envs, executor="inline", device="cpu:0", **keywords)
    importlib.import_module("torchrl.envs.utils").check_env_specs(env)
    assert {str(env.specs[leaf].device) for leaf in env.specs.keys(True, True)} == {"cpu:0"}
    env.set_seed(1)
    rollout = env.rollout(20, break_when_any_done=False)
    name = "count" if shows else "observation"
    for batch, done in ((rollout, None), (rollout["next"], rollout["next", "done"])):
        masks = batch["action_mask"].numpy()
        assert masks.dtype == np.bool_
        wanted = expected(batch[name]).reshape(masks.shape)
        if done is not None:
            wanted |= done.numpy()
        np.testing.assert_array_equal(masks, wanted)
    assert rollout["next", "done"].any()
    env.close()


@pytest.mark.parametrize("categorical", [False, True], ids=["one-hot", "categorical"])
def test_ActionMask_draws_allowed_actions_of_native_rows(runs, categorical):
    envs = importlib.import_module("torchrl.envs")
    rows = cartwheel.make_vec(
        "cartwheel/Taxi-v4", 4, autoreset_mode="disabled", max_episode_steps=9
    )
    inner = runs.CartwheelEnv(rows, with_action_masks=True, categorical_action_encoding=categorical)
    env = envs.TransformedEnv(inner, envs.ActionMask())
    env.set_seed(1)
    rollout = env.rollout(30, break_when_any_done=False)
    actions = rollout["action"] if categorical else rollout["action"].long().argmax(-1)
    allowed = rollout["action_mask"].gather(-1, actions[..., None])
    assert allowed.all()
    assert not rollout["action_mask"].all()
    env.close()


def test_environments_without_masks_are_refused(runs):
    rows = cartwheel.make_vec("cartwheel/Pendulum-v1", 2, autoreset_mode="disabled")
    with pytest.raises(ValueError, match="is not discrete"):
        runs.CartwheelEnv(rows, with_action_masks=True)
    rows.close()
    rows = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
    env = runs.CartwheelEnv(rows, with_action_masks=True)
    with pytest.raises(ValueError, match="has no masks of actions"):
        env.reset()
    with pytest.raises(TypeError, match="`with_action_masks` must be"):
        runs.CartwheelEnv(rows, with_action_masks="yes")
    env.close()
