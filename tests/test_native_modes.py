"""When native environments end, restart and stand still: as Gymnasium's, in every mode.

Above 400 lines: the same promises for each mode, which share their environments.
"""

import re
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from tests.comparison import assert_identical
from tests.oracle import batched, outcome

MODE = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
N, S, D = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED

#: Environments whose episodes are short, or made so: with infos and without, with scalar, array
#: and tuple observations.
SHORT = {
    "CartPole-v1": {"max_episode_steps": 11},
    "Pendulum-v1": {"max_episode_steps": 4},
    "Blackjack-v1": {},
    "FrozenLake-v1": {"max_episode_steps": 9},
    "Taxi-v4": {"max_episode_steps": 6, "fickle_passenger": True},
}
SHORT_ENVS = pytest.mark.parametrize("env_id", SHORT)
WORKERS = [
    {"executor": "inline"},
    {"executor": "thread"},
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 7},
]


def without_address(value):
    """The name of a test that has this parameter, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def make_twin(env_id, **keywords):
    return gym.make(env_id, disable_env_checker=True, **keywords)


def twins(env_id, num_envs, mode=N, **keywords):
    return SyncVectorEnv([partial(make_twin, env_id, **keywords)] * num_envs, autoreset_mode=mode)


@pytest.fixture
def build():
    """Builds a native environment and Gymnasium's, both closed after the test."""
    built = []

    def build(env_id, num_envs, mode=N, *, num_workers=2, **keywords):
        envs = cartwheel.NativeVectorEnv(
            env_id, num_envs, autoreset_mode=mode, num_workers=num_workers, **keywords
        )
        oracle = twins(env_id, num_envs, mode, **keywords)
        built.extend([envs, oracle])
        return envs, oracle

    yield build
    for envs in built:
        envs.close()


def flags(*values):
    return np.array(values, np.bool_)


def assert_same_steps(envs, oracle, steps, *, seed=5):
    """Both go on alike for some steps; in ``DISABLED`` rows that are over are restarted."""
    oracle.action_space.seed(seed)
    results = []
    for _ in range(steps):
        actions = oracle.action_space.sample()
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        results.append(result)
        over = result[2] | result[3]
        if envs.autoreset_mode is D and over.any():
            options = {"reset_mask": over}
            assert_identical(envs.reset(options=dict(options)), oracle.reset(options=dict(options)))
    return results


# Resets of some rows


@MODE
@SHORT_ENVS
def test_a_mask_resets_the_rows_it_names(build, env_id, mode):
    """At any moment, also when rows are over and wait for their autoreset."""
    envs, oracle = build(env_id, 6, mode, **SHORT[env_id])
    random = np.random.default_rng(1)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    pending = 0
    for turn in range(60):
        frames = assert_same_steps(envs, oracle, int(random.integers(0, 8)), seed=turn)
        pending += bool(frames and (frames[-1][2] | frames[-1][3]).any())
        mask = random.random(6) < 0.4
        mask[turn % 6] = True
        seed = [None, turn, [None, 1, None, turn, 2, 3]][turn % 3]
        expected = oracle.reset(seed=seed, options={"reset_mask": mask.copy()})
        assert_identical(envs.reset(seed=seed, options={"reset_mask": mask}), expected)
    assert pending > 5
    assert_same_steps(envs, oracle, 20)


@MODE
def test_rows_outside_the_mask_repeat_their_observation_and_tell_nothing(build, mode):
    envs, _ = build("Taxi-v4", 4, mode)
    before, _ = envs.reset(seed=2)
    observations, infos = envs.reset(seed=90, options={"reset_mask": flags(0, 1, 0, 1)})
    assert_identical(observations[[0, 2]], before[[0, 2]])
    for name in ("prob", "action_mask"):
        assert_identical(infos[f"_{name}"], flags(0, 1, 0, 1))
    again, _ = envs.reset(seed=90, options={"reset_mask": flags(0, 1, 0, 1)})
    assert_identical(again, observations)


@pytest.mark.parametrize(
    "env_id",
    [env_id for env_id, *_ in cartwheel._cartwheel.native_envs() if env_id != "CartPole-v0"],
)
def test_rows_that_were_never_reset_show_zeros_after_a_partial_reset(env_id):
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
        ("Acrobot-v1", "dt", 0.2),  # its own value
    ],
)
def test_a_row_outside_the_mask_repeats_its_observation_whatever_was_set(
    build, env_id, name, value
):
    envs, oracle = build(env_id, 20)
    for each in (envs, oracle):
        each.reset(seed=1, options={"low": -3, "high": 3} if env_id == "Acrobot-v1" else None)
        each.set_attr(name, value)
    options = {"reset_mask": np.arange(20) == 0}
    assert_identical(envs.reset(options=dict(options)), oracle.reset(options=dict(options)))
    assert_same_steps(envs, oracle, 3)


@MODE
def test_the_options_of_the_caller_are_not_changed(build, mode):
    envs, _ = build("CartPole-v1", 2, mode)
    mask = flags(1, 0)
    options = {"reset_mask": mask, "low": 0.01}
    envs.reset(seed=1, options=options)
    assert list(options) == ["reset_mask", "low"]
    assert options["reset_mask"] is mask
    assert_identical(mask, flags(1, 0))


BAD_MASKS = {
    "a list": ([True, False], TypeError, "must be a numpy array"),
    "of numbers": (np.array([1, 0]), TypeError, "must have `dtype=np.bool_`"),
    "too long": (flags(1, 0, 1), ValueError, r"must have shape `\(2,\)`"),
    "empty": (flags(0, 0), ValueError, "at least one True value"),
}


@MODE
@pytest.mark.parametrize("name", BAD_MASKS)
def test_a_bad_mask_is_refused_as_by_gymnasium(build, name, mode):
    mask, error, text = BAD_MASKS[name]
    envs, oracle = build("CartPole-v1", 2, mode)
    envs.reset(seed=1)
    oracle.reset(seed=1)
    with pytest.raises(error, match=text) as refusal:
        envs.reset(seed=9, options={"reset_mask": mask})
    _, expected = outcome(lambda: oracle.reset(seed=9, options={"reset_mask": mask}))
    assert str(refusal.value) == str(expected)
    assert_same_steps(envs, oracle, 5)


# DISABLED


def test_a_row_that_is_over_is_not_stepped(build):
    envs, oracle = build("CartPole-v1", 3, D)
    envs.reset(seed=1)
    oracle.reset(seed=1)
    actions = np.array([1, 0, 1])
    while not envs.step(actions)[2].any():
        oracle.step(actions)
    over = oracle.step(actions)[2]
    rows = np.flatnonzero(over).tolist()
    states = envs.get_attr("state")
    for call in (envs.step, envs.step_async):
        with pytest.raises(cartwheel.EpisodeOverError) as refusal:
            call(actions)
        assert refusal.value.rows == rows
        assert isinstance(refusal.value, AssertionError)
        assert isinstance(refusal.value, gym.error.ResetNeeded)
        assert str(rows) in str(refusal.value)
        assert_identical(envs.get_attr("state"), states)
    assert_identical(states, oracle.get_attr("state"))
    options = {"reset_mask": over}
    assert_identical(envs.reset(options=dict(options)), oracle.reset(options=dict(options)))
    assert_same_steps(envs, oracle, 40)


@pytest.mark.parametrize("truncates", [True, False])
def test_every_row_that_is_over_is_named(truncates):
    keywords = {"max_episode_steps": 1} if truncates else {"episode_steps": 1}
    env_id = "CartPole-v1" if truncates else "Null-v0"
    envs = cartwheel.NativeVectorEnv(env_id, 9, autoreset_mode=D, num_workers=3, **keywords)
    envs.reset(seed=1)
    envs.step(np.zeros(9, np.int64))
    with pytest.raises(cartwheel.EpisodeOverError) as refusal:
        envs.step(np.zeros(9, np.int64))
    assert refusal.value.rows == list(range(9))
    envs.reset(options={"reset_mask": np.arange(9) != 4})
    with pytest.raises(cartwheel.EpisodeOverError) as refusal:
        envs.step(np.zeros(9, np.int64))
    assert refusal.value.rows == [4]
    envs.reset(options={"reset_mask": np.arange(9) == 4})
    envs.step(np.zeros(9, np.int64))
    envs.close()


def test_a_full_reset_clears_rows_that_are_over(build):
    envs, oracle = build("FrozenLake-v1", 3, D, max_episode_steps=1)
    for seed in (1, None, 2):
        assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed))
        assert_identical(envs.step([0, 1, 2]), oracle.step(np.array([0, 1, 2])))


class FrozenTwin:
    """What ``on_done="freeze"`` is to give, by Gymnasium's single environments."""

    def __init__(self, env_id, num_envs, **keywords):
        self.envs = [make_twin(env_id, **keywords) for _ in range(num_envs)]
        self.last = [None] * num_envs  # observation, terminated, truncated

    def reset(self, mask, seed=None):
        infos = [{}] * len(self.envs)
        for row, env in enumerate(self.envs):
            if mask[row]:
                observation, infos[row] = env.reset(seed=None if seed is None else seed + row)
                self.last[row] = (observation, False, False)
        return self._observations(), batched(infos)

    def step(self, actions):
        infos, rewards = [{}] * len(self.envs), np.zeros(len(self.envs))
        for row, env in enumerate(self.envs):
            if not any(self.last[row][1:]):
                observation, rewards[row], *over, infos[row] = env.step(actions[row])
                self.last[row] = (observation, *over)
        terminations, truncations = (flags(*[last[at] for last in self.last]) for at in (1, 2))
        return self._observations(), rewards, terminations, truncations, batched(infos)

    def _observations(self):
        observations = [last[0] for last in self.last]
        if isinstance(observations[0], tuple):
            return tuple(np.array(leaf) for leaf in zip(*observations, strict=True))
        return np.array(observations)


@SHORT_ENVS
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_frozen_row_repeats_its_last_frame_until_it_is_reset(env_id, num_workers):
    keywords = SHORT[env_id]
    envs = cartwheel.NativeVectorEnv(
        env_id, 5, autoreset_mode=D, on_done="freeze", num_workers=num_workers, **keywords
    )
    twin = FrozenTwin(env_id, 5, **keywords)
    assert_identical(envs.reset(seed=3), twin.reset(np.ones(5, bool), seed=3))
    random = np.random.default_rng(7)
    frozen = all_frozen = 0
    for turn in range(60):
        for _ in range(random.integers(1, 15)):
            actions = envs.action_space.sample()
            result = envs.step(actions)
            assert_identical(result, twin.step(actions))
            over = result[2] | result[3]
            frozen, all_frozen = frozen + over.sum(), all_frozen + over.all()
        mask = random.random(5) < 0.6
        mask[turn % 5] = True
        assert_identical(envs.reset(options={"reset_mask": mask}), twin.reset(mask))
    assert frozen > 50
    assert all_frozen > 0
    envs.close()


def test_a_frozen_row_repeats_its_last_frame_whatever_was_set():
    """A parameter changes what a row does, not what it showed."""
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


@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
def test_freezing_changes_nothing_where_rows_restart_by_themselves(mode):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, autoreset_mode=mode, on_done="freeze")
    oracle = twins("CartPole-v1", 3, mode)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    assert_same_steps(envs, oracle, 60)
    envs.close()


# The shortest episodes, and time limits


@MODE
@SHORT_ENVS
@pytest.mark.parametrize("num_workers", [1, 2, 7])
def test_episodes_of_one_step_end_in_all_rows_at_once(build, env_id, num_workers, mode):
    keywords = {**SHORT[env_id], "max_episode_steps": 1}
    envs, oracle = build(env_id, 33, mode, num_workers=num_workers, **keywords)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    results = assert_same_steps(envs, oracle, 8)
    for step, result in enumerate(results):
        assert result[3].all() == (mode is not N or step % 2 == 0)
        assert result[3].any() == result[3].all()


@MODE
@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11])
def test_an_episode_is_truncated_at_its_limit(build, limit, mode):
    envs, oracle = build("CartPole-v1", 20, mode, max_episode_steps=limit)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    results = assert_same_steps(envs, oracle, 60)
    assert any(result[3].any() for result in results)
    if limit > 8:
        assert any((result[2] & result[3]).any() for result in results), "both at once"


@MODE
def test_a_reset_begins_the_time_of_its_rows_anew(build, mode):
    envs, oracle = build("Pendulum-v1", 3, mode, max_episode_steps=7)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for turn in range(6):
        assert_same_steps(envs, oracle, turn)
        options = {"reset_mask": flags(turn % 2, 1, 0)}
        assert_identical(envs.reset(options=dict(options)), oracle.reset(options=dict(options)))
    results = assert_same_steps(envs, oracle, 12)
    assert len({tuple(result[3]) for result in results}) > 2


def test_limits_and_thresholds_are_those_of_gymnasiums_registry():
    for env_id, limit, threshold, _ in cartwheel._cartwheel.native_envs():
        if env_id == "Null-v0":
            assert limit is None
            continue
        spec = gym.registry[env_id]
        assert (limit, threshold) == (spec.max_episode_steps, spec.reward_threshold)


def test_by_default_the_limit_is_that_of_the_registry(build):
    envs, oracle = build("Pendulum-v1", 2)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    results = assert_same_steps(envs, oracle, 201)
    assert [step for step, result in enumerate(results) if result[3].any()] == [199]


def test_without_a_limit_nothing_is_truncated():
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", 2, max_episode_steps=None)
    envs.reset(seed=1)
    actions = np.zeros((2, 1), np.float32)
    assert not any(envs.step(actions)[3].any() for _ in range(1000))
    envs.close()


# Options of a reset

OPTIONS = [
    ("CartPole-v1", {"low": -0.2}),
    ("CartPole-v1", {"high": 0.01}),
    ("CartPole-v1", {"low": 0.1, "high": 0.1}),
    ("CartPole-v1", {"low": -3, "high": -2}),
    ("CartPole-v1", {"low": np.float32(0.01), "high": np.float64(0.02)}),
    ("MountainCar-v0", {"low": 0.1, "high": 0.2}),
    ("MountainCar-v0", {"low": -2, "high": 3}),
    ("MountainCarContinuous-v0", {"low": 0.3, "high": 0.44}),
    ("MountainCarContinuous-v0", {"low": -1.5, "high": 1}),
    ("Pendulum-v1", {"x_init": 0.1}),
    ("Pendulum-v1", {"y_init": 0}),
    ("Pendulum-v1", {"x_init": 50, "y_init": 12.5}),
    ("Acrobot-v1", {"low": -3, "high": 3}),
    ("Acrobot-v1", {"high": 1}),
    *[(env_id, {}) for env_id in ("CartPole-v1", "Pendulum-v1", "Taxi-v4", "Blackjack-v1")],
]


@MODE
@pytest.mark.parametrize(("env_id", "options"), OPTIONS, ids=str)
def test_options_of_a_reset_do_what_they_do_in_gymnasium(build, env_id, options, mode):
    """For that reset only: autoresets and later resets are ordinary ones."""
    envs, oracle = build(env_id, 4, mode, max_episode_steps=7)
    masked = {**options, "reset_mask": flags(0, 1, 1, 0)}
    for seed, chosen in [(3, options), (None, options), (None, masked), (None, None)]:
        expected = oracle.reset(seed=seed, options=None if chosen is None else dict(chosen))
        assert_identical(envs.reset(seed=seed, options=chosen), expected)
        assert_same_steps(envs, oracle, 10)


BAD_OPTIONS = [
    ("CartPole-v1", {"low": 0.3}),
    ("CartPole-v1", {"low": 1, "high": -1}),
    ("CartPole-v1", {"low": "x"}),
    ("CartPole-v1", {"low": None}),
    ("CartPole-v1", {"low": [1]}),
    ("CartPole-v1", {"high": np.zeros(2)}),
    ("MountainCar-v0", {"low": -0.3}),
    ("MountainCarContinuous-v0", {"high": -0.7}),
    ("Acrobot-v1", {"low": 0.2}),
    ("Pendulum-v1", {"x_init": -1.0}),
    ("Pendulum-v1", {"y_init": "fast"}),
]


@pytest.mark.parametrize(("env_id", "options"), BAD_OPTIONS, ids=str)
def test_options_that_gymnasium_refuses_are_refused_before_any_row_is_reset(build, env_id, options):
    envs, oracle = build(env_id, 3)
    with pytest.raises(ValueError, match=r"\w"):
        oracle.reset(options=dict(options))
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    with pytest.raises(ValueError, match=r"\w"):
        envs.reset(seed=2, options=dict(options))
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"low": 0.06}, r"^Lower bound \(0.06\) must be lower than higher bound"),
        ({"low": None}, "^invalid type: null, expected f64"),
        ({"low": object()}, '^invalid type: string "<object object at .*expected f64'),
        ({"high": np.nan}, '^invalid type: string "nan", expected f64'),
        *[
            ({name: flags(1, 0, 1)}, f'^there is no option "{name}": .* are `reset_mask`')
            for name in ("mask", "reset_masks", "Reset-Mask")
        ],
    ],
    ids=without_address,
)
def test_refused_options_are_named_or_shown(build, options, text):
    envs, oracle = build("CartPole-v1", 3)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    with pytest.raises(ValueError, match=text):
        envs.reset(seed=2, options=options)
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize(
    "options",
    [
        {"lo": 1},
        {"x_init": "far", "high": 0.3},
        {"y_init": None, "low": -0.3},
        {"x": object(), "y": np.nan, 3: {4: 5}, "z": [flags(1, 0)]},
        {"x": 1, "reset_mask": flags(1, 0, 1)},
    ],
    ids=without_address,
)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "Taxi-v4", "Blackjack-v1"])
def test_options_that_an_environment_does_not_have_are_ignored(build, env_id, options):
    envs, oracle = build(env_id, 3)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    expected = oracle.reset(seed=2, options=dict(options))
    assert_identical(envs.reset(seed=2, options=options), expected)
    assert_same_steps(envs, oracle, 5)


# The random streams


@MODE
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4", "Blackjack-v1", "FrozenLake-v1"])
def test_without_a_seed_the_streams_go_on(build, env_id, mode):
    envs, oracle = build(env_id, 4, mode, max_episode_steps=5)
    assert_identical(envs.reset(seed=11), oracle.reset(seed=11))
    for turn in range(4):
        assert_identical(envs.reset(), oracle.reset())
        assert_same_steps(envs, oracle, 7)
        seeds = [None, turn, None, 3]
        assert_identical(envs.reset(seed=seeds), oracle.reset(seed=seeds))


def run(mode, env_id, workers):
    """All results of a fixed run."""
    envs = cartwheel.NativeVectorEnv(
        env_id, 23, autoreset_mode=mode, on_done="freeze", **SHORT[env_id], **workers
    )
    envs.action_space.seed(3)
    results = [envs.reset(seed=5)]
    for step in range(40):
        results.append(envs.step(envs.action_space.sample()))
        if step % 11 == 10:
            results.append(envs.reset(options={"reset_mask": np.arange(23) % 4 == step % 4}))
    envs.close()
    return results


@MODE
@SHORT_ENVS
def test_results_do_not_depend_on_the_executor_or_the_number_of_workers(env_id, mode):
    expected = run(mode, env_id, {})
    for workers in WORKERS:
        assert_identical(run(mode, env_id, workers), expected, str(workers))


@MODE
def test_modes_have_three_spellings(mode):
    for spelling in (mode, mode.value, mode.name.lower(), mode.name):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode=spelling)
        assert envs.autoreset_mode is mode
        assert envs.metadata["autoreset_mode"] is mode
        envs.close()
