"""RLlib's multi-agent runner samples the same episodes when its environments step at once."""

import importlib
import multiprocessing
import warnings

import gymnasium as gym
import pytest

from tests.support.comparison import assert_identical
from tests.support.restarts import end

pytestmark = pytest.mark.ray


@pytest.fixture
def tune():
    return importlib.import_module("ray.tune")


@pytest.fixture
def theirs():
    return importlib.import_module("ray.rllib.env.multi_agent_env_runner").MultiAgentEnvRunner


def with_keywords(rllib, **keywords):
    """The runner with keywords of the vector environment, as a user sets them."""
    return type("Runner", (rllib.AsyncMultiAgentEnvRunner,), {"vector_kwargs": keywords})


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("env", "num_envs", "keywords"),
    [
        ("two_poles", 4, {"executor": "process", "num_workers": 2}),
        ("two_poles", 1, {}),
        ("countdown", 3, {"executor": "thread", "num_workers": 7}),
        ("countdown", 3, {"executor": "inline"}),
    ],
)
def test_episodes_equal_those_of_rllibs_runner(
    rllib, runners, agents, tune, theirs, env, num_envs, keywords, check
):
    tune.register_env("agents", getattr(agents, env))
    expected = runners.sampled(runners.multi(theirs, "agents", num_envs, check=check))
    ours = with_keywords(rllib, **keywords)
    found = runners.sampled(runners.multi(ours, "agents", num_envs, check=check))
    assert_identical(found, expected)


def test_environments_get_the_env_config_and_callbacks_get_the_environment(
    rllib, runners, agents, tune
):
    tune.register_env("poles", lambda config: agents.TwoPoles(dict(config)))
    runner = runners.multi(
        with_keywords(rllib, executor="process"), "poles", 2, env_config={"num_agents": 3}
    )
    assert runner.num_envs == 2
    assert [len(env.possible_agents) for env in runner.env.envs] == [3, 3]
    made = []
    runner.config = runner.config.copy(copy_frozen=False).callbacks(
        on_environment_created=lambda **keywords: made.append(keywords)
    )
    before = runner.env
    runner.make_env()
    assert before.closed
    assert made[0]["env"] is runner.env is not before
    assert made[0]["env_context"] == {"num_agents": 3}
    assert len(runner.sample(num_timesteps=20, random_actions=True)) > 0
    runner.stop()


def test_an_id_that_only_this_program_knows_reaches_the_workers(rllib, runners, agents):
    gym.register("LocalPoles-v0", agents.two_poles)
    try:
        runner = with_keywords(rllib, executor="process", context="spawn")
        assert runners.sampled(runners.multi(runner, "LocalPoles-v0", 1), fragments=1)
    finally:
        gym.registry.pop("LocalPoles-v0")


def test_a_class_is_an_environment_too(rllib, runners, agents):
    runner = runners.multi(
        with_keywords(rllib, executor="thread"), agents.TwoPoles, 2, env_config={"num_agents": 2}
    )
    assert runners.sampled(runner, fragments=1)


def test_a_config_without_environment_is_refused(rllib, runners):
    with pytest.raises(ValueError, match=r"config.environment\(name\)"):
        runners.multi(rllib.AsyncMultiAgentEnvRunner, None, 2)


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_rllib_replaces_environments_that_fail(rllib, runners, agents, tune, executor, tmp_path):
    fixed = tmp_path / "fixed"
    tune.register_env("failing", lambda _config: agents.FailingEnv({"fixed": fixed}))
    runner = with_keywords(rllib, executor=executor)
    with pytest.raises(RuntimeError):
        runners.sampled(runners.multi(runner, "failing", 2))
    assert fixed.exists()
    fixed.unlink()
    runner = runners.multi(runner, "failing", 2, restart_failed_sub_environments=True)
    before = runner.env
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert runners.sampled(runner, fragments=1)
    assert before.closed
    assert runner.env is not before


def test_rllib_replaces_environments_whose_worker_died(rllib, runners, agents, tune):
    tune.register_env("agents", agents.two_poles)
    runner = runners.multi(
        with_keywords(rllib, executor="process"),
        "agents",
        2,
        restart_failed_sub_environments=True,
    )
    runner.sample(num_timesteps=10)
    end(multiprocessing.active_children()[0].pid)
    assert runners.sampled(runner, fragments=1)
