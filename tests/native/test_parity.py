"""Native environments give the same bits as Gymnasium's environments of the same id."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.cases import DEFAULTS, POLE, VARIANTS, Case, twins
from tests.support.comparison import assert_identical
from tests.support.executors import EVERY_NATIVE, NATIVE
from tests.support.native_ids import OF_RUST
from tests.support.oracle import MODE, N, assert_same_reset, assert_same_spaces, assert_same_steps
from tests.support.repetitions import times
from tests.support.runs import assert_same_run, endings, play, recording

#: Rows of a run: each of two threads has groups of four, which are stepped at once, and a rest.
ROWS = times(17, with_full=33)


def assert_ends(case, results):
    """Checks that episodes ended in the run; else the comparison proves little."""
    terminations, truncations = endings(results)
    assert not case.terminates or terminations
    assert not case.truncates or truncations


@MODE
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_every_result_equals_that_of_gymnasium(case, mode):
    assert_ends(case, recording(case, ROWS, mode, case.steps))
    for build in EVERY_NATIVE:
        assert_same_run(build([case] * ROWS, autoreset_mode=mode), case, mode, case.steps)


@MODE
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_results_of_one_environment_equal_those_of_gymnasium(case, mode):
    assert_same_run(NATIVE([case], autoreset_mode=mode), case, mode, case.steps)


@MODE
@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_keywords_act_as_in_gymnasium(case, mode):
    steps = 280
    assert_ends(case, recording(case, 5, mode, steps))
    assert_same_run(NATIVE([case] * 5, autoreset_mode=mode), case, mode, steps)


@pytest.mark.parametrize("case", [*DEFAULTS, *VARIANTS], ids=str)
def test_the_spaces_equal_those_of_gymnasium(case):
    envs, oracle = NATIVE([case] * 3), twins(case, 3)
    assert_same_spaces(envs, oracle)
    assert envs.metadata["autoreset_mode"] is N
    assert envs.num_envs == 3
    assert envs.render_mode is None
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    envs.close()
    oracle.close()


@pytest.mark.slow
@MODE
def test_long_runs_stay_equal(mode):
    for case in (POLE, Case("Blackjack-v1")):
        assert_same_run(NATIVE([case] * 3, autoreset_mode=mode), case, mode, 1000)


SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64, 2**100 + 12345, 2**127]


@pytest.mark.parametrize("seed", [*SEEDS, 2**128 - 2, 2**128, 2**200], ids=hex)
def test_every_seed_gives_the_same_stream_as_in_gymnasium(build_pair, seed):
    for env_id in ("CartPole-v1", "Taxi-v4"):
        envs, oracle = build_pair(env_id, 3, seed=seed)
        assert_same_reset(envs, oracle)
        assert_same_reset(envs, oracle, seed=seed)


def test_each_row_equals_the_single_environment_with_its_seed():
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 9, num_workers=2)
    observations, _ = envs.reset(seed=40)
    results = [envs.step(np.arange(9) % 3) for _ in range(20)]
    for row in range(9):
        twin = gym.make("Acrobot-v1")
        assert_identical(observations[row], twin.reset(seed=40 + row)[0])
        for observation, rewards, terminations, truncations, _ in results:
            expected = twin.step(row % 3)
            assert_identical(observation[row], expected[0])
            assert rewards[row] == expected[1]
            assert (terminations[row], truncations[row]) == expected[2:4]


def test_a_seeded_reset_repeats_a_run():
    case = Case("Taxi-v4")
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 4, num_workers=2)
    runs = [list(play(envs, case, N, 100)) for _ in range(2)]
    # From the middle on, rows continue streams that depend on the previous run.
    assert_identical(runs[0][:40], runs[1][:40])
    envs.close()


def test_without_a_seed_all_rows_differ():
    first, second = (cartwheel.NativeVectorEnv("CartPole-v1", 50) for _ in range(2))
    observations = np.concatenate([first.reset()[0], second.reset()[0], first.reset()[0]])
    assert len(np.unique(observations, axis=0)) == 150
    first.close()
    second.close()


@MODE
def test_every_row_has_its_own_random_map(mode):
    """Without a map, each row draws its own, and does what Gymnasium does on that map."""
    envs = cartwheel.NativeVectorEnv("FrozenLake-v1", 6, map_name=None, autoreset_mode=mode)
    assert envs.single_observation_space == Discrete(64)
    maps = envs.get_attr("desc")
    assert len({tuple(rows) for rows in maps}) == 6
    assert all(rows[0][0] == "S" and rows[7][7] == "G" for rows in maps)
    oracle = SyncVectorEnv(
        [partial(gym.make, "FrozenLake-v1", desc=rows) for rows in maps], autoreset_mode=mode
    )
    case = Case("FrozenLake8x8-v1")
    pairs = zip(play(envs, case, mode, 150), play(oracle, case, mode, 150), strict=True)
    for call, (result, expected) in enumerate(pairs):
        assert_identical(result, expected, f"call {call}")
    envs.close()


@MODE
@pytest.mark.parametrize("shape", [(1,), (), (3, 2), (84, 84, 3)], ids=str)
@pytest.mark.parametrize("episode_steps", [0, 1, 3])
def test_the_null_environment_counts_its_steps(shape, episode_steps, mode):
    case = Case("Null-v0", {"shape": shape, "episode_steps": episode_steps})
    work = {"work": 100, "work_spread": 0.5}  # takes time and changes no value
    envs, oracle = NATIVE([case] * 4, autoreset_mode=mode, **work), twins(case, 4, mode)
    assert envs.observation_space == oracle.observation_space
    assert envs.action_space == oracle.action_space
    assert_same_reset(envs, oracle, seed=3)
    assert_same_steps(envs, oracle, 9)
    envs.close()


def test_every_native_environment_is_tested_here():
    assert set(OF_RUST) == {case.env_id for case in DEFAULTS} | {"Null-v0"}


def test_floats_in_keywords_and_options_keep_every_bit():
    """Floats with 16 and 17 digits, as sweeps and computations produce them."""
    random = np.random.default_rng(0)
    for _ in range(times(50, with_full=200)):
        gravity, angle, velocity = (float(number) for number in random.uniform(0.1, 3, 3))
        ours = gym.make("cartwheel/Pendulum-v1", g=gravity)
        theirs = gym.make("Pendulum-v1", g=gravity)
        options = {"x_init": angle, "y_init": velocity}
        results = [
            (env.reset(seed=1, options=options), env.step(np.array([0.5], np.float32)))
            for env in (ours, theirs)
        ]
        assert ours.unwrapped.g == gravity
        assert_identical(*results)
    for _ in range(times(20, with_full=50)):
        rewards = tuple(random.uniform(-1, 1, 3).tolist())
        env = gym.make("cartwheel/FrozenLake-v1", is_slippery=False, reward_schedule=rewards)
        env.reset(seed=1)
        got = [env.step(action)[1] for action in (1, 1, 2, 1, 2, 2)]
        assert got == [rewards[2]] * 5 + [rewards[0]]
