"""Real environments give the same bits as Gymnasium's own vector environments."""

import warnings
from functools import partial

import gymnasium as gym
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import TimeAwareObservation

from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, NestedEnv, samplers
from tests.support.executors import EVERY_EXECUTOR, INLINE, PROCESS, THREAD, Executor
from tests.support.oracle import MODE, N, S
from tests.support.repetitions import times
from tests.support.runs import assert_same_run, endings, play, recording

pytestmark = pytest.mark.usefixtures("spinning")

STEPS = times(120, with_full=250)


def dict_cart_pole():
    return TimeAwareObservation(gym.make("CartPole-v1"), flatten=False)


ENVIRONMENTS = {
    "CartPole": partial(gym.make, "CartPole-v1"),
    "Pendulum": partial(gym.make, "Pendulum-v1", max_episode_steps=30),
    "Taxi": partial(gym.make, "Taxi-v4", max_episode_steps=40),
    "Blackjack": partial(gym.make, "Blackjack-v1"),
    "FrozenLake": partial(gym.make, "FrozenLake-v1"),
    "LunarLander": partial(gym.make, "LunarLander-v3"),
    "CartPole with Dict observations": dict_cart_pole,
    "nested": NestedEnv,
    "large and nested": LargeNestedEnv,
}
CHEAP = ["CartPole", "Taxi", "CartPole with Dict observations", "nested"]
CASES = [
    *[(name, executor, 5) for name in CHEAP for executor in EVERY_EXECUTOR],
    *[(name, executor, 1) for name in CHEAP[:2] for executor in (INLINE, THREAD, PROCESS)],
    *[("CartPole", executor, 17) for executor in EVERY_EXECUTOR[-2:]],
    *[
        (name, executor, 3)
        for name in ENVIRONMENTS.keys() - set(CHEAP)
        for executor in (INLINE, THREAD, PROCESS)
    ],
]


def env_of(name):
    if name == "LunarLander":
        pytest.importorskip("Box2D")
    return ENVIRONMENTS[name]


@MODE
@pytest.mark.parametrize(("name", "executor", "num_envs"), sorted(CASES, key=str), ids=str)
def test_every_result_equals_that_of_sync_vector_env(name, executor, num_envs, mode):
    env_fn = env_of(name)
    assert any(endings(recording(env_fn, num_envs, mode, STEPS))), "no episode ends"
    assert_same_run(executor([env_fn] * num_envs, autoreset_mode=mode), env_fn, mode, STEPS)


@pytest.mark.parametrize("dimensions", [4, 5, 6, 31])
def test_observations_may_have_many_dimensions(dimensions):
    env_fns = samplers(Box(-1, 1, (1, 2, *[1] * (dimensions - 2))), 3)
    oracle = SyncVectorEnv(env_fns)
    envs = INLINE(env_fns)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(4):
        assert_identical(envs.step([0, 1, 2]), oracle.step([0, 1, 2]))


@MODE
def test_every_result_equals_that_of_async_vector_env(build, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on some versions of Python, about fork and threads
        oracle = AsyncVectorEnv([NestedEnv] * 3, shared_memory=False, autoreset_mode=mode)
    try:
        envs, steps = build([NestedEnv] * 3, autoreset_mode=mode), times(40, with_full=100)
        pairs = zip(play(envs, None, mode, steps), play(oracle, None, mode, steps), strict=True)
        for call, (result, expected) in enumerate(pairs):
            assert_identical(result, expected, f"call {call}")
    finally:
        oracle.close()


def test_the_spaces_and_the_metadata_equal_those_of_the_oracle(build):
    starts_processes = build.executor == "process" and not repetitions.full
    for name in CHEAP[1:] if starts_processes else ENVIRONMENTS:
        envs = build([env_of(name)] * 3)
        oracle = SyncVectorEnv([env_of(name)] * 3)
        assert isinstance(envs, gym.vector.VectorEnv)
        for attribute in (
            "num_envs",
            "observation_space",
            "action_space",
            "single_observation_space",
            "single_action_space",
            "metadata",
            "render_mode",
            "spec",
            "closed",
        ):
            assert getattr(envs, attribute) == getattr(oracle, attribute), attribute
        assert envs.unwrapped is envs
        oracle.close()
        envs.close()


def test_results_do_not_depend_on_the_executor_or_the_number_of_workers():
    crowded = [each for each in EVERY_EXECUTOR if each.keywords.get("num_workers") == 7]
    for executor in (*times(crowded, with_full=EVERY_EXECUTOR), Executor("auto")):
        assert_same_run(executor([NestedEnv] * 6), NestedEnv, N, times(40, with_full=100))


@pytest.mark.slow
@pytest.mark.parametrize("executor", [PROCESS, THREAD], ids=str)
def test_thousands_of_steps_of_many_environments_stay_equal(executor):
    for name, num_envs, steps in (("CartPole", 4, 4000), ("nested", 70, 60)):
        envs = executor([env_of(name)] * num_envs, autoreset_mode=S)
        assert_same_run(envs, env_of(name), S, steps)
