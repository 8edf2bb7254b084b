"""Native environments give the same bits as Gymnasium's environments of the same id."""

from functools import cache, partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from tests.comparison import assert_identical
from tests.native_cases import DEFAULTS, VARIANTS, Case, choose, twins

MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)


def play(envs, case, mode, steps):
    """Yield every result of a run whose calls depend only on the results and on fixed seeds.

    Rows that are over are restarted by hand if nobody else does. Late in the run rows are reset in
    every other way: with some seeds and some ``None``, by a mask, with seeds and a mask, without.
    """
    num_envs = envs.num_envs
    random = np.random.default_rng(4321)
    rows = np.arange(num_envs)
    seeds = [None if row % 2 else 7 * row for row in range(num_envs)]
    resets = {
        steps - 60: {"seed": seeds},
        steps - 50: {"options": {"reset_mask": rows % 3 == 0}},
        steps - 40: {"seed": 2**40, "options": {"reset_mask": rows % 2 == 0}},
        steps - 30: {},
        steps - 20: {"seed": tuple(reversed(seeds)), "options": {}},
    }
    result = envs.reset(seed=100)
    yield result
    for step in range(steps):
        result = envs.step(choose(case, result[0], random, num_envs))
        yield result
        over = result[2] | result[3]
        if mode is AutoresetMode.DISABLED and over.any():
            result = envs.reset(options={"reset_mask": over})
            yield result
        if step in resets:
            result = envs.reset(**resets[step])
            yield result


@cache
def recording(case, num_envs, mode, steps):
    """What Gymnasium gives."""
    envs = twins(case.env_id, num_envs, mode, **case.keywords)
    results = list(play(envs, case, mode, steps))
    envs.close()
    return results


def assert_ends(case, results):
    """A run without the end of an episode shows nothing."""
    frames = [result for result in results if len(result) == 5]
    assert not case.terminates or any(result[2].any() for result in frames)
    assert not case.truncates or any(result[3].any() for result in frames)


def assert_same_run(envs, case, mode, steps):
    expected = recording(case, envs.num_envs, mode, steps)
    for call, result in enumerate(play(envs, case, mode, steps)):
        assert_identical(result, expected[call], f"{case}: call {call}")
    assert call == len(expected) - 1
    envs.close()


@MODES
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_every_result_equals_that_of_gymnasium(case, mode):
    assert_ends(case, recording(case, 33, mode, case.steps))
    for num_workers in (1, 2, 7):
        envs = cartwheel.NativeVectorEnv(
            case.env_id, 33, autoreset_mode=mode, num_workers=num_workers
        )
        assert_same_run(envs, case, mode, case.steps)


@MODES
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_one_environment_gives_what_gymnasium_gives(case, mode):
    envs = cartwheel.NativeVectorEnv(case.env_id, 1, autoreset_mode=mode)
    assert_same_run(envs, case, mode, case.steps)


@MODES
@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_keywords_do_what_they_do_in_gymnasium(case, mode):
    steps = 280
    assert_ends(case, recording(case, 5, mode, steps))
    envs = cartwheel.NativeVectorEnv(
        case.env_id, 5, autoreset_mode=mode, num_workers=2, **case.keywords
    )
    assert_same_run(envs, case, mode, steps)


@pytest.mark.parametrize("case", [*DEFAULTS, *VARIANTS], ids=str)
def test_the_spaces_are_those_of_gymnasium(case):
    envs = cartwheel.NativeVectorEnv(case.env_id, 3, **case.keywords)
    oracle = twins(case.env_id, 3, **case.keywords)
    for name in ("observation_space", "action_space"):
        for prefix in ("", "single_"):
            ours, theirs = getattr(envs, prefix + name), getattr(oracle, prefix + name)
            assert ours == theirs
            assert repr(ours) == repr(theirs)
            assert ours.dtype == theirs.dtype
            if isinstance(theirs, Box):
                assert_identical((ours.low, ours.high), (theirs.low, theirs.high))
            ours.seed(3)
            theirs.seed(3)
            assert_identical(ours.sample(), theirs.sample())
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.num_envs == 3
    assert envs.render_mode is None
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    envs.close()
    oracle.close()


@MODES
def test_long_runs_stay_equal(mode):
    for env_id in ("CartPole-v1", "Blackjack-v1"):
        envs = cartwheel.NativeVectorEnv(env_id, 3, autoreset_mode=mode, num_workers=2)
        assert_same_run(envs, Case(env_id), mode, steps=1000)


SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64, 2**100 + 12345, 2**127]


@pytest.mark.parametrize("seed", [*SEEDS, 2**128 - 2, 2**128, 2**200], ids=hex)
def test_every_seed_gives_the_stream_that_it_gives_in_gymnasium(seed):
    for env_id in ("CartPole-v1", "Taxi-v4"):
        envs, oracle = cartwheel.NativeVectorEnv(env_id, 3), twins(env_id, 3)
        for _ in range(2):
            assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed))
            assert_identical(envs.reset(), oracle.reset())
        envs.close()


def test_each_row_is_the_single_environment_with_its_seed():
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


def test_a_run_may_be_seeded_anew_at_any_time():
    case = Case("Taxi-v4")
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 4, num_workers=2)
    runs = [list(play(envs, case, AutoresetMode.NEXT_STEP, 100)) for _ in range(2)]
    # Half-way rows go on with streams that depend on what came before: only until then.
    assert_identical(runs[0][:40], runs[1][:40])
    envs.close()


def test_without_a_seed_no_two_rows_are_alike():
    first, second = (cartwheel.NativeVectorEnv("CartPole-v1", 50) for _ in range(2))
    observations = np.concatenate([first.reset()[0], second.reset()[0], first.reset()[0]])
    assert len(np.unique(observations, axis=0)) == 150
    first.close()
    second.close()


@MODES
def test_random_maps_are_lakes_of_their_own(mode):
    """Without a map there is one a row; a row does what Gymnasium does on its map."""
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


class NullTwin(gym.Env):
    """What ``Null-v0`` says of itself."""

    def __init__(self, shape, episode_steps):
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = Discrete(1)
        self.episode_steps = episode_steps
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self._observation(), {}

    def step(self, _):
        self.steps += 1
        return self._observation(), 0.0, self.steps == self.episode_steps, False, {}

    def _observation(self):
        return np.full(self.observation_space.shape, self.steps % 256, np.uint8)


@MODES
@pytest.mark.parametrize("shape", [(1,), (), (3, 2), (84, 84, 3)], ids=str)
@pytest.mark.parametrize("episode_steps", [0, 1, 3])
def test_the_environment_that_does_nothing_counts_its_steps(shape, episode_steps, mode):
    keywords = {"shape": shape, "episode_steps": episode_steps}
    work = {"work": 100, "work_spread": 0.5}  # takes time and changes nothing
    envs = cartwheel.NativeVectorEnv("Null-v0", 4, autoreset_mode=mode, **keywords, **work)
    oracle = SyncVectorEnv([partial(NullTwin, **keywords)] * 4, autoreset_mode=mode)
    assert envs.observation_space == oracle.observation_space
    assert envs.action_space == oracle.action_space
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    for _ in range(9):
        actions = np.zeros(4, np.int64)
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        over = result[2] | result[3]
        if mode is AutoresetMode.DISABLED and over.any():
            mask = {"reset_mask": over}
            assert_identical(envs.reset(options=dict(mask)), oracle.reset(options=dict(mask)))
    envs.close()


def test_every_native_environment_is_tested_here():
    ids = {env_id for env_id, *_ in cartwheel._cartwheel.native_envs()}
    assert ids == {case.env_id for case in DEFAULTS} | {"Null-v0"}


def test_every_bit_of_a_float_in_a_keyword_or_an_option_counts():
    """Floats of 16 and 17 digits, as sweeps and computations give them."""
    random = np.random.default_rng(0)
    for _ in range(200):
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
    for _ in range(50):
        rewards = tuple(random.uniform(-1, 1, 3).tolist())
        env = gym.make("cartwheel/FrozenLake-v1", is_slippery=False, reward_schedule=rewards)
        env.reset(seed=1)
        got = [env.step(action)[1] for action in (1, 1, 2, 1, 2, 2)]
        assert got == [rewards[2]] * 5 + [rewards[0]]
