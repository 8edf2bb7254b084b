"""Trainers' adapters show of native environments of several agents what they show of the twin."""

import importlib

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.native.plugins.test_agents import AGENTS, RELAY, twins
from tests.support.comparison import assert_identical
from tests.support.one_thread import one_thread

pytestmark = [pytest.mark.usefixtures("plugin"), pytest.mark.torch]

#: Infos of each row; the others are those of native rows, or of agents in Python.
INFOS = ("acted", "present", "episode_over", "TimeLimit.truncated", "state", "terminal_observation")


def test_steps_for_stable_baselines_are_those_of_the_twin():
    one_thread()
    ours = importlib.import_module("cartwheel.sb3").CartwheelAgentsVecEnv
    pair = [ours(envs) for envs in twins(3, AutoresetMode.SAME_STEP)]
    with pair[0] as native, pair[1] as twin:
        for envs in pair:
            envs.seed(4)
        assert_identical(native.reset(), twin.reset())
        rng, ended = np.random.default_rng(1), 0
        for _ in range(60):
            actions = rng.integers(0, 3, 9)
            (*found, infos), (*wanted, other_infos) = (envs.step(actions) for envs in pair)
            assert_identical(found, wanted)
            for info, other in zip(infos, other_infos, strict=True):
                shown, expected = (
                    {key: one[key] for key in INFOS if key in one} for one in (info, other)
                )
                assert_identical(shown, expected)
                ended += "terminal_observation" in info
            masks = [np.stack(envs.env_method("action_masks")) for envs in pair]
            np.testing.assert_array_equal(*masks)
        assert ended > 20


def test_maskable_ppo_takes_allowed_actions_of_native_agents_only():
    one_thread()
    ours = importlib.import_module("cartwheel.sb3").CartwheelAgentsVecEnv
    contrib = importlib.import_module("sb3_contrib")
    native = cartwheel.ParallelVectorEnv.native(RELAY, 4, autoreset_mode="same_step")
    with ours(native) as envs:
        model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=16, batch_size=48, seed=1)
        model.learn(4 * 3 * 16)
        buffer = model.rollout_buffer
        masks = buffer.action_masks.reshape(-1, 3)
        actions = buffer.actions.reshape(-1).astype(int)
        assert masks[np.arange(len(actions)), actions].all()
        assert not masks.all()


@pytest.mark.parametrize(
    "groups", [{"all": AGENTS}, {"first": ["left", "late"], "other": ["right"]}], ids=str
)
@pytest.mark.parametrize("done_on_any", [True, False])
def test_rollouts_of_torchrl_are_those_of_the_twin(groups, done_on_any):
    one_thread()
    torch = importlib.import_module("torch")
    module = importlib.import_module("cartwheel.torchrl")
    rollouts = []
    for envs in twins(3, AutoresetMode.DISABLED):
        env = module.CartwheelAgentsEnv(
            envs, group_map=groups, use_mask=True, done_on_any=done_on_any
        )
        torch.manual_seed(2)
        env.set_seed(4)
        rollouts.append(env.rollout(40, break_when_any_done=False))
        importlib.import_module("torchrl.envs.utils").check_env_specs(env)
        env.close()
    found, wanted = rollouts
    assert set(found.keys(True, True)) == set(wanted.keys(True, True))
    for key in wanted.keys(True, True):
        np.testing.assert_array_equal(found[key], wanted[key], str(key))
    assert found["next", "done"].sum() > 6
    assert not found[next(iter(groups)), "mask"].all()
