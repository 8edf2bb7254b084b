"""Spaces that ``GymWrapper`` takes from single environments only, as ``SerialEnv`` has them."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple

from tests.support.environments import SamplingEnv

pytestmark = pytest.mark.torch

PAIR = Tuple([Box(-1, 1, (3,), np.float32), Box(-1, 1, (3,), np.float32)])
ACTION = Dict(turn=Discrete(3), arm=Dict(force=Box(-1, 1, (2,), np.float32), grip=MultiBinary(2)))
SPACES = {
    "tuple": (PAIR, Discrete(3)),
    "tuple in a dict": (Dict(pair=PAIR, flag=MultiBinary(1)), Discrete(3)),
    "dict of actions": (Box(-1, 1, (3,), np.float32), ACTION),
    "dict of one action": (Box(-1, 1, (3,), np.float32), Dict(turn=Discrete(3))),
}


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")  # by TorchRL
@pytest.mark.parametrize("spaces", SPACES)
@pytest.mark.parametrize("categorical", [False, True], ids=["one-hot", "categorical"])
def test_keys_and_shapes_are_those_of_serial_env(runs, spaces, categorical):
    observations, actions = SPACES[spaces]
    function = partial(SamplingEnv, observations, action_space=actions)
    expected = runs.serial([function] * 3, categorical_action_encoding=categorical)
    env = runs.CartwheelEnv(
        [function] * 3, executor="inline", categorical_action_encoding=categorical
    )
    env.check_env_specs()
    for kind in ["full_action_spec", "observation_spec", "full_reward_spec", "full_done_spec"]:
        ours, theirs = getattr(env, kind), getattr(expected, kind)
        assert set(ours.keys(True, True)) == set(theirs.keys(True, True))
        for key in theirs.keys(True, True):
            assert ours[key].shape == theirs[key].shape, key
            assert ours[key].dtype == theirs[key].dtype, key
    ours, theirs = env.rollout(3), expected.rollout(3)
    keys = set(theirs.keys(True, True))
    assert set(ours.keys(True, True)) == keys
    for key in keys:
        assert ours[key].shape == theirs[key].shape, key
        assert ours[key].dtype == theirs[key].dtype, key
    env.close()


def test_parts_of_a_tuple_are_stacked_in_their_order(runs, build):
    functions = [partial(SamplingEnv, PAIR, row=row) for row in range(3)]
    bare = build(functions, autoreset_mode="disabled")
    env = runs.CartwheelEnv(build(functions, autoreset_mode="disabled"))
    first, second = bare.reset(seed=3)[0]
    stacked = env.reset(seed=3)["observation"]
    assert stacked.shape == (3, 2, 3)
    assert np.array_equal(stacked[:, 0], first)
    assert np.array_equal(stacked[:, 1], second)
    env.close()


def test_each_environment_gets_its_part_of_every_action(runs, build):
    functions = [partial(SamplingEnv, Discrete(4), action_space=ACTION)] * 3
    env = runs.CartwheelEnv(build(functions, autoreset_mode="disabled"))
    tensordict = env.rand_action(env.reset())
    env.step(tensordict)
    for row, got in enumerate(env.get_attr("received")):
        assert got["turn"] == tensordict["turn"][row].argmax()
        assert np.array_equal(got["arm"]["force"], tensordict["arm", "force"][row])
        assert np.array_equal(got["arm"]["grip"], tensordict["arm", "grip"][row])
    env.close()
