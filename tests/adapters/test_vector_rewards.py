"""Adapters for trainers refuse rewards that are arrays, and end environments that they made."""

import importlib
import re

import gymnasium as gym
import pytest

import cartwheel
from cartwheel.wrappers import TransformReward
from tests.support.objectives import OneObjective, TreasureEnv

#: The class of each adapter, the name in its error, and the mode that it needs.
ADAPTERS = {
    "sb3.CartwheelVecEnv": ("Stable-Baselines3", "same_step"),
    "torchrl.CartwheelEnv": ("CartwheelEnv", "disabled"),
    "tianshou.CartwheelVectorEnv": ("CartwheelVectorEnv", "disabled"),
}


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    """Its class, the name in its error and the mode."""
    module, name = request.param.split(".")
    made = importlib.import_module(f"cartwheel.{module}")
    return getattr(made, name), *ADAPTERS[request.param]


def text(name):
    return f"^{re.escape(name)} needs rewards that are numbers.*`reward_space` Box.*TransformReward"


@pytest.mark.torch
def test_an_adapter_refuses_arrays_of_its_own_environments_and_ends_them(adapter):
    make, name, _ = adapter
    ended = []

    class Ends(TreasureEnv):
        def close(self):
            ended.append(self)

    with pytest.raises(ValueError, match=text(name)) as raised:
        make([Ends] * 2, executor="inline")
    # Nothing has been collected: the error has frames, and they have the environments.
    assert len(ended) == 2, raised


@pytest.mark.torch
def test_an_adapter_refuses_arrays_of_given_environments_and_leaves_them_open(adapter):
    make, name, mode = adapter
    envs = cartwheel.VectorEnv([TreasureEnv] * 2, executor="inline", autoreset_mode=mode)
    with pytest.raises(ValueError, match=text(name)):
        make(envs)
    assert envs.reset()[0].shape == (2, 1)
    envs.close()


@pytest.mark.torch
def test_an_adapter_takes_numbers_of_such_environments(adapter):
    make, *_ = adapter
    adapted = make([lambda: OneObjective(TreasureEnv(), 1)] * 2, executor="inline")
    adapted.close()


@pytest.mark.torch
def test_torchrl_takes_what_the_advice_makes():
    envs = cartwheel.VectorEnv([TreasureEnv] * 2, executor="inline", autoreset_mode="disabled")
    numbers = TransformReward(envs, lambda rewards: rewards @ [1.0, 0.5])
    env = importlib.import_module("cartwheel.torchrl").CartwheelEnv(numbers)
    assert env.rollout(2)["next", "reward"].shape == (2, 2, 1)
    env.close()


@pytest.mark.ray
def test_rllib_refuses_arrays():
    registration = importlib.import_module("cartwheel.rllib.registration")
    with pytest.raises(ValueError, match=text("RLlib")):
        registration._of_function(lambda _: TreasureEnv(), 2, {"executor": "process"}, {})
    gym.register("Treasure-arrays-v0", TreasureEnv)
    spec = gym.spec("Treasure-arrays-v0")
    with pytest.raises(ValueError, match=text("RLlib")):
        registration._of_spec(spec, 2, {"executor": "inline"}, {})
    del gym.registry["Treasure-arrays-v0"]
