"""Real environments give the same bits as Gymnasium's own vector environments."""

import warnings
from functools import cache, partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeAwareObservation

from tests.comparison import assert_identical
from tests.environments import LargeNestedEnv, NestedEnv
from tests.executors import EVERY_EXECUTOR, INLINE, PROCESS, THREAD, Executor

STEPS = 250
MODES = list(AutoresetMode)


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


def build_env(name):
    if name == "LunarLander":
        pytest.importorskip("Box2D")
    return [ENVIRONMENTS[name]]


def play(envs, mode, steps):
    """Yield every result of a run whose calls depend only on the results and on fixed seeds.

    Rows that are over are restarted by hand if nobody else does. Half-way all rows are reset, some
    of them without a seed, and again a few steps later without any.
    """
    num_envs = envs.num_envs
    envs.action_space.seed(1234)
    yield envs.reset(seed=100)
    for step in range(steps):
        result = envs.step(envs.action_space.sample())
        yield result
        over = result[2] | result[3]
        if mode is AutoresetMode.DISABLED and over.any():
            yield envs.reset(options={"reset_mask": over})
        if step == steps // 2:
            yield envs.reset(seed=[None if row % 2 else 7 * row for row in range(num_envs)])
        if step == steps // 2 + 5:
            yield envs.reset(options={"reset_mask": np.arange(num_envs) % 3 == 0})
        if step == steps // 2 + 9:
            yield envs.reset()


@cache
def recording(name, mode, num_envs):
    """What the oracle gives."""
    envs = SyncVectorEnv(build_env(name) * num_envs, autoreset_mode=mode)
    try:
        return list(play(envs, mode, STEPS))
    finally:
        envs.close()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("name", "executor", "num_envs"), sorted(CASES, key=str), ids=str)
def test_every_result_equals_that_of_sync_vector_env(name, executor, num_envs, mode):
    expected = recording(name, mode, num_envs)
    envs = executor(build_env(name) * num_envs, autoreset_mode=mode)
    try:
        episodes = 0
        for call, result in enumerate(play(envs, mode, STEPS)):
            assert_identical(result, expected[call], f"call {call}")
            episodes += int((result[2] | result[3]).sum()) if len(result) == 5 else 0
        assert call == len(expected) - 1
        assert episodes > 0, "a run without the end of an episode shows nothing"
    finally:
        envs.close()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_every_result_equals_that_of_async_vector_env(build, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on some versions of Python, about fork and threads
        oracle = AsyncVectorEnv([NestedEnv] * 3, shared_memory=False, autoreset_mode=mode)
    try:
        envs = build([NestedEnv] * 3, autoreset_mode=mode)
        pairs = zip(play(envs, mode, 100), play(oracle, mode, 100), strict=True)
        for call, (result, expected) in enumerate(pairs):
            assert_identical(result, expected, f"call {call}")
    finally:
        oracle.close()


def test_the_spaces_and_the_metadata_equal_those_of_the_oracle(build):
    for name in ENVIRONMENTS:
        envs = build(build_env(name) * 3)
        oracle = SyncVectorEnv(build_env(name) * 3)
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
    runs = []
    for executor in EVERY_EXECUTOR:
        envs = executor([NestedEnv] * 6)
        runs.append(list(play(envs, AutoresetMode.NEXT_STEP, 60)))
        envs.close()
    for run in runs[1:]:
        assert_identical(run, runs[0])


def test_the_automatic_executor_gives_the_same_results():
    envs = Executor("auto")([NestedEnv] * 6)
    try:
        pairs = zip(
            play(envs, AutoresetMode.NEXT_STEP, STEPS),
            recording("nested", AutoresetMode.NEXT_STEP, 6),
            strict=True,
        )
        for call, (result, expected) in enumerate(pairs):
            assert_identical(result, expected, f"call {call}")
    finally:
        envs.close()


@pytest.mark.parametrize("executor", [PROCESS, THREAD], ids=str)
def test_thousands_of_steps_of_many_environments_stay_equal(executor):
    for name, num_envs, steps in (("CartPole", 4, 4000), ("nested", 70, 60)):
        envs = executor(build_env(name) * num_envs, autoreset_mode="SameStep")
        oracle = SyncVectorEnv(build_env(name) * num_envs, autoreset_mode="SameStep")
        pairs = zip(
            play(envs, AutoresetMode.SAME_STEP, steps),
            play(oracle, AutoresetMode.SAME_STEP, steps),
            strict=True,
        )
        for call, (result, expected) in enumerate(pairs):
            assert_identical(result, expected, f"call {call}")
        envs.close()
        oracle.close()
