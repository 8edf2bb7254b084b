"""Environments with one agent: runners sample what they sample with Gymnasium's environments."""

import functools
import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.support.comparison import assert_identical

pytestmark = pytest.mark.ray
MODE = "vector_entry_point"


class CountingEnv(gym.Env):
    """Large observations that are filled with the number of the step; ``length`` steps."""

    observation_space = gym.spaces.Box(0, np.inf, (6_000,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config):
        self.length = config["length"]
        self.fails = config.get("fails", False)

    def _observation(self):
        return np.full(6_000, self.t, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.t = 0
        return self._observation(), {"began": True}

    def step(self, action):
        self.t += 1
        if self.fails and self.t == 3:
            raise RuntimeError("a wheel came off")
        over = self.t == self.length
        return self._observation(), float(action), over, False, {"t": self.t}


@pytest.mark.parametrize(
    ("num_envs", "keywords"),
    [
        (5, {"executor": "inline"}),
        (5, {"executor": "thread", "num_workers": 7}),
        (5, {"executor": "process", "num_workers": 2}),
        (1, {"executor": "process"}),
        (4, {"executor": "inline", "max_episode_steps": 1}),
    ],
)
def test_episodes_equal_those_with_gymnasiums_vectorization(rllib, runners, num_envs, keywords):
    limit = {name: keywords[name] for name in keywords if name == "max_episode_steps"}
    expected = runners.sampled(runners.single("CartPole-v1", "sync", num_envs, limit))
    rllib.register("ours", "CartPole-v1", **keywords)
    assert_identical(runners.sampled(runners.single("ours", MODE, num_envs)), expected)


@pytest.mark.parametrize("env", ["cartwheel/CartPole-v1", "cartwheel:cartwheel/CartPole-v1"])
def test_native_environments_give_the_episodes_of_gymnasiums(rllib, runners, env):
    expected = runners.sampled(runners.single("CartPole-v1", "sync", 6))
    rllib.register("ours", env, num_workers=2)
    assert_identical(runners.sampled(runners.single("ours", MODE, 6)), expected)


def test_an_id_with_a_vector_entry_point_needs_no_registration(runners):
    expected = runners.sampled(runners.single("CartPole-v1", "sync", 2))
    runner = runners.single("cartwheel:cartwheel/CartPole-v1", MODE, 2)
    assert isinstance(runner.env.unwrapped, cartwheel.NativeVectorEnv)
    assert_identical(runners.sampled(runner), expected)


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_a_fragment_keeps_every_observation_and_info_of_its_steps(rllib, runners, executor):
    rllib.register("ours", CountingEnv, executor=executor, num_workers=2)
    runner = runners.single("ours", MODE, 3, {"length": 20})
    runner.sample(num_timesteps=30)
    (fragment,) = runners.sampled(runner, num_timesteps=3 * 30, fragments=1)
    for observations, _, _, infos, *_ in fragment:
        steps = observations[:, 0]
        assert (observations == steps[:, None]).all()
        assert (np.diff(steps) == 1).all()
        assert [info.get("t", 0) for info in infos] == steps.tolist()
    assert any(len(observations) > 10 for observations, *_ in fragment)


def test_a_function_gets_the_env_config_and_keywords_go_to_the_vector_environment(rllib, runners):
    rllib.register("ours", CountingEnv, executor="thread", num_workers=2)
    runner = runners.single("ours", MODE, 3, {"length": 4})
    envs = runner.env.unwrapped
    assert (envs.executor, envs.num_workers, envs.num_envs) == ("thread", 2, 3)
    assert envs.get_attr("length") == (4, 4, 4)
    runner.stop()


def test_the_env_config_takes_precedence_over_the_keywords_of_an_id(rllib, runners):
    rllib.register("ours", gym.spec("CartPole-v1"), executor="thread", max_episode_steps=9)
    runner = runners.single("ours", MODE, 2, {"executor": "inline"})
    envs = runner.env.unwrapped
    assert (envs.executor, envs.get_attr("_max_episode_steps")) == ("inline", (9, 9))
    runner.stop()


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_an_environment_that_fails_is_replaced_and_its_episode_truncated(rllib, runners, executor):
    rllib.register("ours", CountingEnv, executor=executor, on_error="restart", max_restarts=None)
    runner = runners.single("ours", MODE, 2, {"length": 20, "fails": True})
    (fragment,) = runners.sampled(runner, num_timesteps=40, fragments=1)
    over = [episode for episode in fragment if episode[-1]]
    assert len(over) > 4
    for observations, *_, infos, terminated, _ in over:
        assert observations[:3, 0].tolist() == [0, 1, 2]
        assert "a wheel came off" in infos[-1]["env_error"]
        assert not terminated


@pytest.mark.parametrize("mode", ["same_step", "disabled", AutoresetMode.SAME_STEP])
def test_other_autoreset_modes_are_refused_at_once(rllib, mode):
    with pytest.raises(ValueError, match=r"must be 'next_step', got '\w+'\. Leave it out\.$"):
        rllib.register("ours", "CartPole-v1", autoreset_mode=mode)


def test_another_autoreset_mode_in_the_env_config_is_refused(rllib, runners):
    rllib.register("ours", "CartPole-v1")
    with pytest.raises(ValueError, match="autoreset_mode must be 'next_step', got '"):
        runners.single("ours", MODE, 2, {"autoreset_mode": "same_step"})


@pytest.mark.parametrize(
    ("env", "keywords", "error", "message"),
    [
        ("CartPole-v7", {}, gym.error.Error, "CartPole"),
        (3, {}, TypeError, r"`env` must be an id .*, got 3"),
        ("CartPole-v1", {"num_envs": 4}, TypeError, "num_envs_per_env_runner"),
        ("CartPole-v1", {"batch_size": 2}, ValueError, "leave `batch_size` out"),
        ("CartPole-v1", {"autoreset_mode": "never"}, ValueError, "must be one of"),
        (CountingEnv, {"num_worker": 2}, TypeError, r"did you mean `num_workers`\?"),
        (CountingEnv, {"executor": "proc"}, ValueError, "`executor` must be one of"),
        (lambda: CountingEnv({}), {}, TypeError, r"the env_config, such as .* takes \(\)"),
        (CountingEnv, {"length": 2}, TypeError, "`length` is not a keyword of VectorEnv"),
    ],
)
def test_arguments_are_refused_before_anything_is_registered(rllib, env, keywords, error, message):
    registry = importlib.import_module("ray.tune.registry")
    with pytest.raises(error, match=message):
        rllib.register("refused", env, **keywords)
    assert not registry._global_registry.contains(registry.ENV_CREATOR, "refused")


def test_a_name_that_is_not_a_string_is_refused(rllib):
    with pytest.raises(TypeError, match=r"`name` must be a string, .* got None"):
        rllib.register(None, CountingEnv)


def test_a_class_with_several_agents_is_refused_with_the_runner_that_steps_it(rllib, agents):
    with pytest.raises(TypeError, match=r"env_runner_cls=.*AsyncMultiAgentEnvRunner"):
        rllib.register("refused", agents.TurnsEnv)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_vectorization_of_gymnasium_is_refused_with_the_line_to_change(rllib, runners, mode):
    rllib.register("ours", functools.partial(CountingEnv), executor="inline")
    with pytest.raises(ValueError, match="gym_env_vectorize_mode='vector_entry_point'"):
        runners.single("ours", mode, 2, {"length": 4})
