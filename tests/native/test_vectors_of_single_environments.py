"""Single native environments in vector environments that step them one by one."""

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import cartwheel
from tests.support.comparison import assert_identical


@pytest.mark.parametrize(
    ("mode", "vector", "keywords"),
    [("sync", SyncVectorEnv, {}), ("async", AsyncVectorEnv, {"shared_memory": False})],
    ids=["sync", "async"],
)
def test_gymnasiums_vector_environments_step_single_native_environments(mode, vector, keywords):
    envs = gym.make_vec(
        "cartwheel/Taxi-v4",
        2,
        vectorization_mode=mode,
        vector_kwargs=keywords,
        max_episode_steps=5,
    )
    oracle = gym.make_vec("Taxi-v4", 2, vectorization_mode="sync", max_episode_steps=5)
    assert type(envs) is vector
    assert_same_vectors(envs, oracle)


@pytest.mark.parametrize(("mode", "executor"), [("sync", "inline"), ("async", "process")])
def test_cartwheels_vector_environments_step_single_native_environments(mode, executor):
    """Each has its own wrappers, which native vector environments cannot have."""
    wrap = gym.wrappers.RecordEpisodeStatistics
    keywords = {"vectorization_mode": mode, "wrappers": [wrap], "max_episode_steps": 5}
    envs = cartwheel.make_vec("cartwheel/Taxi-v4", 2, **keywords, autoreset_mode="same_step")
    assert (type(envs), envs.executor) == (cartwheel.VectorEnv, executor)
    assert envs.spec.id == "cartwheel/Taxi-v4"
    again = cartwheel.make_vec(envs.spec)
    assert (type(again), again.executor, again.spec) == (type(envs), executor, envs.spec)
    again.close()
    keywords |= {"vectorization_mode": "sync"}
    vector = {"autoreset_mode": AutoresetMode.SAME_STEP}
    assert_same_vectors(envs, gym.make_vec("Taxi-v4", 2, **keywords, vector_kwargs=vector))


def assert_same_vectors(envs, oracle):
    """The same results, except for the time in the statistics; closes both."""
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    oracle.action_space.seed(1)
    for _ in range(13):
        actions = oracle.action_space.sample()
        result, expected = envs.step(actions), oracle.step(actions)
        for infos in (result[4], expected[4]):
            infos.get("final_info", {}).get("episode", {}).pop("t", None)
        assert_identical(result, expected)
    assert_identical(envs.get_attr("s"), oracle.get_attr("s"))
    assert_identical(envs.np_random_seed, oracle.np_random_seed)
    assert_identical(envs.np_random, oracle.np_random)
    envs.close()
    oracle.close()


def test_by_default_the_vector_environment_is_native():
    for make in (gym.make_vec, cartwheel.make_vec):
        for mode in (None, "vector_entry_point"):
            envs = make("cartwheel/CartPole-v1", 2, vectorization_mode=mode)
            assert type(envs) is cartwheel.NativeVectorEnv
            envs.close()
