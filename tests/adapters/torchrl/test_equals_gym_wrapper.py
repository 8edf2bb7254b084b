"""Rollouts and collectors equal those of TorchRL's own wrapper around Gymnasium, bit for bit."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from tests.support.cases import POLE, SHORT, Case
from tests.support.environments import RecordingEnv, samplers, transcripts
from tests.support.executors import EVERY_EXECUTOR, EVERY_NATIVE, NATIVE
from tests.support.faulty import FaultyEnv, fault

pytestmark = pytest.mark.torch

#: Episodes end by themselves or by the limit, so rows are over one by one and together.
BRIEF = Case("CartPole-v1", {"max_episode_steps": 21})
BOX = Box(-1, 1, (2, 3), np.float64)
OBSERVATIONS = {
    "box": BOX,
    "scalar": Box(-1, 1, (), np.float32),
    "pixels": Box(0, 255, (4, 4, 3), np.uint8),
    "half": Box(-1, 1, (2,), np.float16),
    "discrete": Discrete(5),
    "multi-discrete": MultiDiscrete([3, 4]),
    "multi-binary": MultiBinary(4),
    "dict": Dict(a=Box(-1, 1, (2,), np.float32), b=Discrete(4)),
    "state": Dict(state=Box(-1, 1, (2,), np.float32), b=MultiBinary(2)),
    "nested": Dict(a=Dict(x=Box(-1, 1, (2,), np.float32), y=Discrete(3)), b=MultiBinary(2)),
}
ACTIONS = {
    "discrete": Discrete(3),
    "box": Box(-1, 1, (2,), np.float32),
    "scalar": Box(-1, 1, (), np.float32),
    "multi-discrete": MultiDiscrete([3, 4]),
    "multi-binary": MultiBinary(3),
}


@pytest.mark.parametrize("executor", [*EVERY_EXECUTOR, *EVERY_NATIVE], ids=str)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_rollouts_with_resets_of_some_rows_are_those_of_gym_wrapper(runs, executor, num_envs):
    expected = runs.rolled_out(runs.oracle([BRIEF] * num_envs))
    assert num_envs == 1 or runs.some_are_over(expected)
    envs = executor([BRIEF] * num_envs, autoreset_mode="disabled")
    env = runs.CartwheelEnv(envs)
    runs.assert_same(runs.rolled_out(env), expected)
    env.close()


@pytest.mark.parametrize("categorical", [False, True], ids=["one-hot", "categorical"])
def test_collectors_yield_the_batches_of_gym_wrapper(runs, build_any, categorical):
    expected = runs.collected(runs.oracle([BRIEF] * 3, categorical_action_encoding=categorical))
    envs = build_any([BRIEF] * 3, autoreset_mode="disabled")
    env = runs.CartwheelEnv(envs, categorical_action_encoding=categorical)
    runs.assert_same(runs.collected(env), expected)


# Observations of Blackjack are tuples of unequal parts, which TorchRL does not have.
@pytest.mark.parametrize("case", [case for case in SHORT if "jack" not in str(case)], ids=str)
def test_native_environments_are_those_of_gymnasium(runs, case):
    expected = runs.rolled_out(runs.oracle([case] * 5))
    env = runs.CartwheelEnv(NATIVE([case] * 5, autoreset_mode="disabled"))
    runs.assert_same(runs.rolled_out(env), expected)
    env.close()


@pytest.mark.parametrize("length", [1, 2])
def test_rows_that_are_all_over_at_once_are_reset_together(runs, build, length):
    expected = runs.collected(runs.oracle(transcripts(length, length, length)))
    done = expected["next", "done"]
    assert done.any()
    assert (done == done[:, :1]).all()
    envs = build(transcripts(length, length, length), autoreset_mode="disabled")
    runs.assert_same(runs.collected(runs.CartwheelEnv(envs)), expected)


@pytest.mark.parametrize("categorical", [False, True], ids=["one-hot", "categorical"])
@pytest.mark.parametrize(
    "spaces",
    [*((name, "discrete") for name in OBSERVATIONS), *(("box", name) for name in ACTIONS)],
    ids="-".join,
)
def test_specs_and_rollouts_are_those_of_gym_wrapper_for_each_space(runs, spaces, categorical):
    env_fns = samplers(OBSERVATIONS[spaces[0]], 3, action_space=ACTIONS[spaces[1]])
    expected = runs.oracle(env_fns, categorical_action_encoding=categorical)
    env = runs.CartwheelEnv(env_fns, executor="inline", categorical_action_encoding=categorical)
    assert env.specs == expected.specs
    assert env.batch_size == expected.batch_size
    env.check_env_specs()
    runs.assert_same(runs.rolled_out(env, 12), runs.rolled_out(expected, 12))
    env.close()


def test_a_device_is_that_of_every_tensordict_and_spec(runs):
    expected = runs.oracle([POLE] * 3, device="cpu")
    env = runs.CartwheelEnv([POLE] * 3, executor="inline", device="cpu")
    assert env.specs == expected.specs
    runs.assert_same(runs.rolled_out(env), runs.rolled_out(expected))
    runs.assert_same(runs.collected(env), runs.collected(expected))


def test_keys_of_the_policy_and_of_the_user_are_those_of_gym_wrapper(runs):
    """TorchRL writes zeros for rows that are reset to everything that the reset does not bring."""

    def policy(tensordict):
        noted = runs.TensorDict({"count": tensordict["observation"][..., :1] + 1}, [3])
        return tensordict.set("noted", noted).update(env.rand_action())

    given = runs.TensorDict({"task": runs.torch.arange(1, 4)}, [3])
    found = []
    for env in [runs.oracle([BRIEF] * 3), runs.CartwheelEnv([BRIEF] * 3, executor="inline")]:
        runs.torch.manual_seed(5)
        env.set_seed(5)
        start = env.reset().update(given.clone())
        rollout = env.rollout(
            40, policy, auto_reset=False, tensordict=start, break_when_any_done=False
        )
        found.append(rollout)
    assert (found[0]["task"] == 0).any()
    runs.assert_same(found[1], found[0])


def test_a_seed_resets_at_once_and_later_resets_go_on(runs, build_any):
    expected, env = (
        runs.oracle([POLE] * 3),
        runs.CartwheelEnv(build_any([POLE] * 3, autoreset_mode="disabled")),
    )
    assert env.set_seed(3) == expected.set_seed(3)
    env.set_seed(7, static_seed=True)
    expected.set_seed(7, static_seed=True)
    first = env.reset()
    runs.assert_same(first, expected.reset())
    again = env.reset()
    runs.assert_same(again, expected.reset())
    assert not runs.torch.equal(first["observation"], again["observation"])
    runs.assert_same(env.reset(seed=2), expected.reset(seed=2))
    env.close()


def test_tensordicts_that_do_not_show_the_last_step_keep_their_own_rows(runs):
    """A reset of some rows merges with the tensordict that is given, as TorchRL documents it."""
    found = []
    for env in [runs.oracle([BRIEF] * 4), runs.CartwheelEnv([BRIEF] * 4, executor="inline")]:
        runs.torch.manual_seed(5)
        env.set_seed(5)
        stepped = env.rand_step(env.reset())
        root = env.step_mdp(stepped).clone()
        root["observation"] += 100
        root["done"][1:3] = True
        found.append(env.maybe_reset(root))
        mask = runs.torch.tensor([[True], [False], [False], [True]])
        found.append(env.reset(found[-1].clone().set("_reset", mask)))
    assert (found[0]["observation"] > 50).any(1).tolist() == [True, False, False, True]
    runs.assert_same(found[2], found[0])
    runs.assert_same(found[3], found[1])


@pytest.mark.parametrize("over", [False, True])
def test_a_reset_of_no_row_changes_nothing_as_with_serial_env(runs, over):
    keys = []
    for env in [runs.serial([BRIEF] * 4), runs.CartwheelEnv([BRIEF] * 4, executor="inline")]:
        stepped = env.rand_step(env.reset())["next"]
        stepped["done"][1:3] = stepped["terminated"][1:3] = over
        none = runs.torch.zeros((4, 1), dtype=runs.torch.bool)
        kept = env.reset(stepped.clone().set("_reset", none))
        runs.assert_same(kept, stepped)
        keys.append(set(kept.keys()))
        kept["action"] = env.full_action_spec["action"].zero()
        following = env.step(kept)["next", "observation"]
        # One step of 0.02 s further: a reset would have moved the cart anywhere.
        moved = following[:, 0] - stepped["observation"][:, 0]
        assert runs.torch.allclose(moved, 0.02 * stepped["observation"][:, 1], atol=1e-6)
        env.close()
    assert keys[0] == keys[1]


def test_a_reset_of_no_row_needs_the_observations_that_it_returns(runs):
    env = runs.CartwheelEnv([BRIEF] * 2, executor="inline")
    env.reset()
    none = runs.torch.zeros((2, 1), dtype=runs.torch.bool)
    with pytest.raises(RuntimeError, match=r"`_reset` selects no environment.*'observation'"):
        env.reset(runs.TensorDict({"_reset": none}, batch_size=[2]))
    shown = env.reset()["observation"]
    kept = env.reset(runs.TensorDict({"_reset": none, "observation": shown}, batch_size=[2]))
    assert kept["observation"].equal(shown)
    assert not any(kept[flag].any() for flag in ("done", "terminated", "truncated"))
    env.close()


def test_options_reach_the_rows_that_are_reset(runs):
    env = runs.CartwheelEnv([RecordingEnv] * 2, executor="inline")
    some = env.reset().set("_reset", runs.torch.tensor([[False], [True]]))
    env.reset(some, options={"level": 1})
    assert env.get_attr("resets") == ([(None, None)], [(None, None), (None, {"level": 1})])
    env.close()


def test_entries_that_are_no_tensors_stay_through_resets_of_some_rows(runs):
    env = runs.CartwheelEnv([POLE] * 2, executor="inline")
    root = env.step_mdp(env.rand_step(env.reset()))
    root["done"][1] = True
    shown = root["observation"].clone()
    renewed = env.maybe_reset(root.set_non_tensor("note", "kept"))
    assert renewed["note"] == "kept"
    assert (renewed["observation"] == shown).all(1).tolist() == [True, False]
    env.close()


def test_a_step_that_was_followed_by_a_reset_keeps_its_own_rows(runs):
    """The vector environment shows the reset by then, and not what the tensordict shows."""
    found = []
    for env in [runs.oracle([BRIEF] * 4), runs.CartwheelEnv([BRIEF] * 4, executor="inline")]:
        runs.torch.manual_seed(5)
        env.set_seed(5)
        root = env.step_mdp(env.rand_step(env.reset()))
        root["done"][1:3] = True
        env.reset()
        found += [root["observation"], env.maybe_reset(root)]
    before, expected, _, renewed = found
    assert (before == expected["observation"]).all(1).tolist() == [True, False, False, True]
    runs.assert_same(renewed, expected)


@pytest.mark.parametrize("event", ["raised", "stepped", "loaded"])
def test_rows_that_are_not_reset_keep_their_tensors_if_the_environments_went_on(runs, event):
    """After a step that raised, one outside of TorchRL, or another state."""
    keywords = {"categorical_action_encoding": True, "states": "pickle"}
    env = runs.CartwheelEnv([FaultyEnv] * 3, executor="inline", **keywords)
    vector, none = env._env, runs.torch.tensor([fault("none")] * 3)
    root = env.reset()
    earlier = vector.state_dict()
    root = env.step_mdp(env.step(root.set("action", none)))
    shown = root["observation"].clone()
    root["done"][1] = True
    if event == "raised":
        failing = none.clone()
        failing[2] = fault("value error")
        with pytest.raises(ValueError, match="boom"):
            env.step(root.clone(recurse=False).set("action", failing))
    elif event == "stepped":
        vector.step(none.numpy())
    else:
        vector.load_state_dict(earlier)
    renewed = env.maybe_reset(root)["observation"]
    assert (renewed == shown).all(1).tolist() == [True, False, True]
    env.close()


def test_info_readers_find_what_they_find_in_gym_wrapper(runs, build):
    """Keys that infos lack are zero; rows that are not reset keep theirs."""
    found = []
    fns = transcripts(3, 4, 5)
    for env in [runs.oracle(fns), runs.CartwheelEnv(build(fns, autoreset_mode="disabled"))]:
        env = env.auto_register_info_dict(info_dict_reader=runs.reader("t", "ep"))
        found.append(runs.rolled_out(env))
        env.close()
    assert found[0]["next", "t"].max() > 2
    runs.assert_same(found[1], found[0])


def test_an_info_reader_may_change_the_tensordict_and_return_nothing(runs):
    env = runs.CartwheelEnv(transcripts(3, 4), executor="inline")

    def read(infos, found):
        found["ep"] = runs.torch.from_numpy(infos["ep"])

    env.set_info_dict_reader(read)
    assert env.reset()["ep"].tolist() == [1, 1]
    env.close()


@pytest.mark.parametrize("asked", [False, True])
def test_type_checks_are_made_if_they_are_asked_for(runs, monkeypatch, asked):
    env = runs.CartwheelEnv([POLE] * 2, executor="inline")
    env.run_type_checks = asked
    checked = []
    spec = type(env.observation_spec["observation"])
    monkeypatch.setattr(spec, "type_check", lambda _, value: checked.append(value.dtype))
    rollout = runs.rolled_out(env, 9)
    assert checked == [runs.torch.float32] * (9 if asked else 0)
    runs.assert_same(rollout, runs.rolled_out(runs.oracle([POLE] * 2), 9))
    env.close()
