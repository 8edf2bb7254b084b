"""MuJoCo's environments give the same bits as Gymnasium's with the MuJoCo that is installed."""

from dataclasses import replace
from itertools import cycle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel._cartwheel import native_envs
from tests.support.cases import choose, twins
from tests.support.comparison import assert_identical
from tests.support.executors import EVERY_NATIVE, NATIVE
from tests.support.mujoco_cases import MUJOCO, MUJOCO_FLOAT64, MUJOCO_VARIANTS
from tests.support.native_ids import OF_RUST
from tests.support.oracle import MODE, N, assert_same_reset, assert_same_spaces, assert_same_steps
from tests.support.repetitions import times
from tests.support.runs import assert_same_run, endings, recording

#: Rows of a run, and of one with other keywords. To make Gymnasium's takes most of the time.
ROWS, FEWER_ROWS = times((3, 2), with_full=(5, 5))
FLOAT32 = np.finfo(np.float32).min, np.finfo(np.float32).max
CASE = pytest.mark.parametrize("case", MUJOCO, ids=str)
#: For code that all environments share: one that falls, one with a goal and one that never ends.
SHARED = {"Ant-v5", "Reacher-v5", "HalfCheetah-v5"}


def shared_first(cases):
    """The cases, of which those of the environments in ``SHARED`` run by default."""
    for case in cases:
        yield pytest.param(case, marks=() if case.env_id in SHARED else pytest.mark.slow)


ANY_CASE = pytest.mark.parametrize("case", list(shared_first(MUJOCO)), ids=str)


def each_in_a_mode(cases, by_default=lambda _: True):
    """Every case in one of the modes, in turn: ``make parity`` plays each in all of them."""
    return pytest.mark.parametrize(
        ("case", "mode"),
        [
            pytest.param(
                case,
                mode,
                id=f"{case.title}-{mode.value}",
                marks=() if by_default(case) else pytest.mark.slow,
            )
            for case, mode in zip(cases, cycle(AutoresetMode), strict=False)
        ],
    )


def assert_equals_gymnasium(case, mode, num_envs, builders):
    """Compares a run, and checks that episodes end in it; else the comparison proves little."""
    terminations, truncations = endings(recording(case, num_envs, mode, case.steps))
    assert not case.terminates or terminations
    assert not case.truncates or truncations
    for build in builders:
        envs = build([case] * num_envs, autoreset_mode=mode)
        assert_same_run(envs, case, mode, case.steps)


@MODE
@CASE
def test_every_result_equals_that_of_gymnasium(case, mode):
    """By default with two workers, and with one of the other ways to run, in turn."""
    others = [each for each in EVERY_NATIVE if each is not NATIVE]
    turn = MUJOCO.index(case) % len(others)
    others = times([others[turn]], with_full=others)
    assert_equals_gymnasium(case, mode, ROWS, [NATIVE, *others])


@each_in_a_mode(MUJOCO_FLOAT64, lambda case: case.env_id in SHARED)
def test_float64_actions_stay_float64(case, mode):
    assert_equals_gymnasium(case, mode, FEWER_ROWS, [NATIVE])


@each_in_a_mode(MUJOCO_VARIANTS)
def test_keywords_act_as_in_gymnasium(case, mode):
    assert_equals_gymnasium(case, mode, FEWER_ROWS, [NATIVE])


@ANY_CASE
def test_results_of_one_environment_equal_those_of_gymnasium(case):
    unpromised = replace(case, terminates=False)  # one row need not fall
    assert_equals_gymnasium(unpromised, N, 1, [NATIVE])


@pytest.mark.parametrize("case", [*MUJOCO, *MUJOCO_VARIANTS], ids=lambda case: case.title)
def test_the_spaces_equal_those_of_gymnasium(case):
    envs, oracle = NATIVE([case] * 2), twins(case, 2)
    assert_same_spaces(envs, oracle)
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    ours, theirs = dict(envs.metadata), dict(oracle.metadata)
    assert ours == {**theirs, "autoreset_mode": N}
    envs.close()
    oracle.close()


@pytest.mark.parametrize("seed", [0, 2**32, 2**64 - 1, 2**100 + 12345], ids=hex)
def test_every_seed_gives_the_same_stream_as_in_gymnasium(build_pair, seed):
    for env_id in ("Ant-v5", "Pusher-v5", "Reacher-v5"):  # normals; numbers drawn until one fits
        envs, oracle = build_pair(env_id, 3, seed=seed)
        assert_same_reset(envs, oracle)
        assert_same_steps(envs, oracle, 3)
        assert_same_reset(envs, oracle, seed=seed)


@ANY_CASE
def test_each_row_equals_the_single_environment_with_its_seed(case):
    envs = cartwheel.NativeVectorEnv(case.env_id, 3, num_workers=2)
    observations, _ = envs.reset(seed=40)
    random = np.random.default_rng(3)
    actions = [choose(case, observations, random, 3) for _ in range(5)]
    results = [envs.step(each) for each in actions]
    for row in range(3):
        twin = gym.make(case.env_id)
        assert_identical(observations[row], twin.reset(seed=40 + row)[0])
        for each, (observation, rewards, terminations, truncations, _) in zip(
            actions, results, strict=True
        ):
            expected = twin.step(each[row])
            assert_identical(observation[row], expected[0])
            assert rewards[row] == expected[1]
            assert (terminations[row], truncations[row]) == expected[2:4]
            if terminations[row]:
                break
        twin.close()
    envs.close()


@MODE
@CASE
def test_a_restored_row_goes_on_bit_for_bit(case, mode):
    """Also with a state that is older than an autoreset, in a row of another vector environment."""
    short = replace(case, keywords={"max_episode_steps": 12})
    envs = NATIVE([short] * 4, autoreset_mode=mode, on_done="freeze")
    observations, _ = envs.reset(seed=7)
    random = np.random.default_rng(5)
    actions = [choose(short, observations, random, 4) for _ in range(34)]
    for each in actions[:9]:
        envs.step(each)
    states = envs.get_state()
    expected = [envs.step(each) for each in actions[9:]]
    envs.set_state(None, states)
    assert_identical([envs.step(each) for each in actions[9:]], expected)
    envs.close()
    order = [2, 0, 3, 1]
    others = NATIVE([short] * 4, autoreset_mode=mode, on_done="freeze", num_workers=1)
    others.set_state(order, states)  # before the first reset
    for each, result in zip(actions[9:], expected, strict=True):
        moved = np.empty_like(each)
        moved[order] = each
        again = others.step(moved)
        assert_identical([part[order] for part in again[:4]], list(result[:4]))
    others.close()


def test_an_activation_is_a_part_of_a_state():
    """The push of this model lags behind its control."""
    case = next(each for each in MUJOCO_VARIANTS if "cart_pole" in str(each.keywords))
    envs = NATIVE([case] * 2)
    envs.reset(seed=1)
    hard, soft = np.full((2, 2), 2, np.float32), np.zeros((2, 2), np.float32)
    for _ in range(3):
        envs.step(hard)
    states = envs.get_state()
    expected = [envs.step(soft) for _ in range(4)]
    for _ in range(3):
        envs.step(soft)
    envs.set_state(None, states)
    assert_identical([envs.step(soft) for _ in range(4)], expected)
    envs.close()


@pytest.mark.parametrize("value", [float("inf"), -1e300, 1e11, -3e4], ids=str)
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Humanoid-v5", "Reacher-v5"])
def test_absurd_actions_do_what_they_do_in_gymnasium(build_pair, env_id, value):
    """MuJoCo clamps controls, but costs are computed of what was asked for."""
    envs, oracle = build_pair(env_id, 3)
    actions = np.full(envs.action_space.shape, 0.1, np.float32)
    actions[1, -1] = np.clip(value, *FLOAT32) if np.isfinite(value) else value
    with np.errstate(over="ignore"):
        for _ in range(3):
            assert_identical(envs.step(actions), oracle.step(actions))


@CASE
def test_a_nan_is_refused_before_anything_is_stepped(case):
    envs = NATIVE([case] * 2)
    envs.reset(seed=1)
    states = envs.get_state()
    actions = np.zeros(envs.action_space.shape, np.float32)
    actions[1, 0] = np.nan
    with pytest.raises(ValueError, match="action nan of row 1"):
        envs.step(actions)
    assert envs.get_state() == states
    envs.close()


@ANY_CASE
def test_a_model_for_each_row_gives_the_same_bits(case):
    envs = NATIVE([case] * 3, model_per_row=True)
    assert_same_run(envs, case, N, 65)


def test_every_environment_of_mujoco_is_tested_here():
    ids = {env_id for env_id, *_ in native_envs() if "/" not in env_id}
    assert ids - set(OF_RUST) == {case.env_id for case in MUJOCO}
    assert ids >= {case.env_id for case in MUJOCO_VARIANTS}
