"""Native episodes end, restart and freeze as Gymnasium's do, in every mode."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from tests.support.cases import SHORT
from tests.support.comparison import assert_identical
from tests.support.executors import EVERY_NATIVE
from tests.support.oracle import MODE, D, N, assert_same_reset, assert_same_steps, flags

SHORT_CASES = pytest.mark.parametrize("case", SHORT, ids=str)


@pytest.mark.parametrize(
    "env_id",
    [env_id for env_id, *_ in cartwheel._cartwheel.native_envs() if env_id != "CartPole-v0"],
)
def test_rows_that_were_never_reset_are_zeros_after_a_partial_reset(env_id):
    envs = cartwheel.NativeVectorEnv(env_id, 2)
    observations, _ = envs.reset(seed=1, options={"reset_mask": flags(1, 0)})
    for leaf in observations if isinstance(observations, tuple) else [observations]:
        assert not leaf[1].any(), observations
    envs.close()


@pytest.mark.parametrize(
    ("env_id", "name", "value"),
    [
        ("Pendulum-v1", "state", np.array([1.0, 1.0])),
        ("CliffWalking-v1", "s", 5),
        ("Acrobot-v1", "dt", 0.2),  # the value that it has already
    ],
)
def test_a_row_outside_the_mask_repeats_its_observation_after_set_attr(
    build_pair, env_id, name, value
):
    envs, oracle = build_pair(env_id, 20)
    for each in (envs, oracle):
        each.reset(seed=1, options={"low": -3, "high": 3} if env_id == "Acrobot-v1" else None)
        each.set_attr(name, value)
    assert_same_reset(envs, oracle, options={"reset_mask": np.arange(20) == 0})
    assert_same_steps(envs, oracle, 3)


def test_a_frozen_row_repeats_its_last_observation_after_set_attr():
    """A parameter affects later steps, not the observation that was already returned."""
    envs = cartwheel.NativeVectorEnv(
        "Pendulum-v1", 4, autoreset_mode=D, on_done="freeze", max_episode_steps=2
    )
    actions = np.ones((4, 1), np.float32)
    envs.reset(seed=1)
    envs.step(actions)
    envs.reset(options={"reset_mask": flags(0, 1, 1, 0)})
    shown = envs.step(actions)[0]
    for turn in range(3):
        envs.set_attr("state", np.array([turn, 1.0]))
        observations = envs.step(actions)[0]
        assert_identical(observations[[0, 3]], shown[[0, 3]])
        assert (observations[[1, 2]] != shown[[1, 2]]).any(axis=1).all() == (turn == 0)
        shown = observations
    envs.close()


@MODE
@SHORT_CASES
@pytest.mark.parametrize("num_workers", [1, 2, 7])
def test_episodes_of_one_step_end_in_all_rows_at_once(build_pair, case, num_workers, mode):
    keywords = {**case.keywords, "max_episode_steps": 1}
    envs, oracle = build_pair(case.env_id, 33, mode, num_workers=num_workers, **keywords)
    results = assert_same_steps(envs, oracle, 8)
    for step, result in enumerate(results):
        assert result[3].all() == (mode is not N or step % 2 == 0)
        assert result[3].any() == result[3].all()


@MODE
@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11])
def test_an_episode_is_truncated_at_its_limit(build_pair, limit, mode):
    envs, oracle = build_pair("CartPole-v1", 20, mode, max_episode_steps=limit)
    results = assert_same_steps(envs, oracle, 60)
    assert any(result[3].any() for result in results)
    if limit > 8:
        assert any((result[2] & result[3]).any() for result in results), "both in one step"


@MODE
def test_a_reset_restarts_the_step_count_of_its_rows(build_pair, mode):
    envs, oracle = build_pair("Pendulum-v1", 3, mode, max_episode_steps=7)
    for turn in range(6):
        assert_same_steps(envs, oracle, turn)
        assert_same_reset(envs, oracle, options={"reset_mask": flags(turn % 2, 1, 0)})
    results = assert_same_steps(envs, oracle, 12)
    assert len({tuple(result[3]) for result in results}) > 2


def test_limits_and_thresholds_equal_those_of_gymnasiums_registry():
    for env_id, limit, threshold, _ in cartwheel._cartwheel.native_envs():
        if env_id == "Null-v0":
            assert limit is None
            continue
        spec = gym.registry[env_id]
        assert (limit, threshold) == (spec.max_episode_steps, spec.reward_threshold)


def test_the_default_limit_is_that_of_the_registry(build_pair):
    envs, oracle = build_pair("Pendulum-v1", 2)
    results = assert_same_steps(envs, oracle, 201)
    assert [step for step, result in enumerate(results) if result[3].any()] == [199]


def test_without_a_limit_nothing_is_truncated():
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", 2, max_episode_steps=-1)
    envs.reset(seed=1)
    actions = np.zeros((2, 1), np.float32)
    assert not any(envs.step(actions)[3].any() for _ in range(1000))
    envs.close()


def run(build, mode, case):
    """All results of a fixed run."""
    envs = build([case] * 23, autoreset_mode=mode, on_done="freeze")
    envs.action_space.seed(3)
    results = [envs.reset(seed=5)]
    for step in range(40):
        results.append(envs.step(envs.action_space.sample()))
        if step % 11 == 10:
            results.append(envs.reset(options={"reset_mask": np.arange(23) % 4 == step % 4}))
    envs.close()
    return results


@MODE
@SHORT_CASES
def test_results_do_not_depend_on_the_executor_or_the_number_of_workers(case, mode):
    expected, *others = (run(build, mode, case) for build in EVERY_NATIVE)
    for build, results in zip(EVERY_NATIVE[1:], others, strict=True):
        assert_identical(results, expected, str(build))
