"""The examples with trainers learn, and see what they would see of Gymnasium's environments."""

import importlib

import gymnasium as gym
import pytest

from tests.support.one_thread import one_thread

pytestmark = pytest.mark.torch


@pytest.fixture
def load():
    """Imports an example by its name."""
    one_thread()
    return lambda name: importlib.import_module(f"examples.trainers.{name}")


@pytest.mark.parametrize("num_envs", [1, 7])
def test_a_script_in_cleanrls_style_sees_the_episodes_of_gymnasiums_environments(load, num_envs):
    script = load("cleanrl_ppo")
    settings = script.Settings(num_envs=num_envs, num_steps=32, total_steps=32 * num_envs * 12)

    def make():
        return gym.wrappers.RecordEpisodeStatistics(gym.make(settings.env_id))

    theirs = gym.vector.SyncVectorEnv(
        [make] * num_envs, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )
    expected = script.train(theirs, settings)
    theirs.close()
    assert len(expected) > num_envs
    contenders = [
        script.python_envs(settings, executor="process", num_workers=min(3, num_envs)),
        script.python_envs(settings, executor="thread"),
        script.python_envs(settings, executor="inline"),
        script.native_envs(settings),
    ]
    for envs in contenders:
        assert script.train(envs, settings) == expected
        envs.close()


def test_ppo_in_cleanrls_style_learns(load):
    script = load("cleanrl_ppo")
    settings = script.Settings(total_steps=40_000)
    envs = script.native_envs(settings)
    returns = [each for each, _ in script.train(envs, settings)]
    envs.close()
    assert sum(returns[-10:]) > 4 * sum(returns[:10])


def test_ppo_of_skrl_learns(load):
    script = load("skrl_ppo")
    returns = script.train(script.Settings(timesteps=1_000))
    assert sum(returns[-10:]) > 4 * sum(returns[:10])


def test_dqn_of_tianshou_learns(load):
    means = load("tianshou_dqn").train(epochs=2)
    assert max(means) > 100 > 4 * means[0]
