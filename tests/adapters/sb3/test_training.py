"""Policies learn the same weights, bit for bit, as with DummyVecEnv."""

import importlib
from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.spaces import MultiBinary

from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.vec_envs import INLINE, PROCESS, native

pytestmark = pytest.mark.torch

#: Episodes of both kinds of ends in a short training.
POLE = Case("CartPole-v1", {"max_episode_steps": 25})
PENDULUM = Case("Pendulum-v1", {"max_episode_steps": 20})
SETTINGS = {
    "PPO": (POLE, 256, {"n_steps": 32, "batch_size": 64, "n_epochs": 2}),
    "A2C": (POLE, 160, {"n_steps": 8}),
    "DQN": (POLE, 160, {"learning_starts": 32, "batch_size": 16}),
    "SAC": (PENDULUM, 120, {"learning_starts": 40, "batch_size": 16}),
    "TD3": (PENDULUM, 120, {"learning_starts": 40, "batch_size": 16}),
}


def trained(name, make, steps, settings, policy="MlpPolicy"):
    """Weights of a policy that was trained, and the episodes that it played."""
    sb3 = importlib.import_module("stable_baselines3")
    envs = make()
    keywords = {"policy_kwargs": {"net_arch": [8]}, "seed": 11, "device": "cpu", **settings}
    model = getattr(sb3, name)(policy, envs, **keywords)
    model.learn(steps)
    weights = {key: value.numpy() for key, value in model.policy.state_dict().items()}
    episodes = [(episode["r"], episode["l"]) for episode in model.ep_info_buffer]
    envs.close()
    return weights, episodes


def made_by_make_vec_env(env_fn, kind=None):
    env_util = importlib.import_module("stable_baselines3.common.env_util")
    if kind is None:
        return env_util.make_vec_env(env_fn, 4)
    return env_util.make_vec_env(env_fn, 4, vec_env_cls=kind)


@pytest.mark.parametrize("name", SETTINGS)
def test_weights_and_returns_equal_those_with_DummyVecEnv(name):
    case, steps, settings = SETTINGS[name]
    expected = trained(name, partial(made_by_make_vec_env, case), steps, settings)
    assert expected[1], "no episode ended"
    rows = {
        "inline": partial(made_by_make_vec_env, case, INLINE),
        "process": partial(made_by_make_vec_env, case, PROCESS),
        "native": partial(native, case, 4, monitor=True),
    }
    for kind, make in rows.items():
        assert_identical(trained(name, make, steps, settings), expected, kind)


def test_actions_of_bits_train_as_with_DummyVecEnv():
    make_env = partial(BitsEnv, 4)
    settings = {"n_steps": 16, "batch_size": 32}
    expected = trained("PPO", partial(made_by_make_vec_env, make_env), 128, settings)
    ours = trained("PPO", partial(made_by_make_vec_env, make_env, PROCESS), 128, settings)
    assert_identical(ours, expected)


class BitsEnv(TranscriptEnv):
    """The reward counts the bits of the action."""

    action_space = MultiBinary(3)

    def step(self, action):
        return super().step(np.sum(action))


def test_hindsight_replay_trains_as_with_DummyVecEnv():
    """It asks environments in workers for the rewards of other goals."""
    buffer = importlib.import_module("stable_baselines3").HerReplayBuffer
    bits = importlib.import_module("stable_baselines3.common.envs").BitFlippingEnv
    make_env = partial(bits, n_bits=4, continuous=False, max_steps=6)
    settings = {"replay_buffer_class": buffer, "learning_starts": 50, "batch_size": 16}
    expected, ours = (
        trained(
            "DQN", partial(made_by_make_vec_env, make_env, kind), 150, settings, "MultiInputPolicy"
        )
        for kind in (None, PROCESS)
    )
    assert_identical(ours, expected)


def test_a_training_goes_on_after_an_interrupted_step_once_its_environments_are_set_again(build):
    sb3 = importlib.import_module("stable_baselines3")
    envs = build([POLE] * 2)
    model = sb3.PPO("MlpPolicy", envs, n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    model.learn(16)
    envs.step_async(np.zeros(2, int))  # Ctrl-C ended the wait for it
    with pytest.raises(AlreadyPendingCallError, match="pending call to `step`"):
        model.learn(16, reset_num_timesteps=False)
    model.set_env(envs)
    model.learn(16, reset_num_timesteps=False)
    assert model.num_timesteps == 32
