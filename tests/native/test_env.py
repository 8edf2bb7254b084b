"""A single native environment equals Gymnasium's of the same id, to the last bit and type."""

import copy
import pickle
import warnings
from copy import deepcopy
from unittest.mock import Mock

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env

import cartwheel
from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.gymnasium_versions import metadata_of_class
from tests.support.native_ids import OF_MUJOCO
from tests.support.oracle import assert_same_spaces
from tests.support.parameters import OTHER_VALUES
from tests.support.platforms import needs_pygame

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")

IDS = [env_id for env_id, *_ in cartwheel._cartwheel.native_envs() if env_id != "Null-v0"]
BY_ID = pytest.mark.parametrize("env_id", IDS)


@pytest.fixture
def build(closes):
    """Makes a native environment and Gymnasium's, both closed after the test."""

    def build(env_id, **keywords):
        ids = (f"cartwheel/{env_id}", env_id)
        return [closes(gym.make(one, **keywords)) for one in ids]

    return build


def assert_same_steps(env, twin, steps, *, seed=5, **reset):
    """Steps both through several episodes, compares, and returns how many episodes ended."""
    twin.action_space.seed(seed)
    over = 0
    for _ in range(steps):
        action = twin.action_space.sample()
        result = env.step(action)
        assert_identical(result, twin.step(action))
        if result[2] or result[3]:
            over += 1
            assert_identical(env.reset(**reset), twin.reset(**reset))
    return over


@pytest.mark.parametrize(
    ("env_id", "keywords"),
    [
        *[(env_id, {}) for env_id in IDS],
        ("CartPole-v1", {"sutton_barto_reward": True}),
        ("CartPole-v1", {"max_episode_steps": 4}),
        ("MountainCarContinuous-v0", {"goal_velocity": 0.01, "max_episode_steps": 40}),
        ("Pendulum-v1", {"g": 9.81}),
        ("Blackjack-v1", {"natural": True, "sab": False}),
        ("FrozenLake-v1", {"reward_schedule": (2, -0.5, np.float32(0.25)), "is_slippery": False}),
        ("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.5}),
        ("CliffWalking-v1", {"is_slippery": True, "max_episode_steps": 30}),
        ("Taxi-v4", {"is_rainy": True, "fickle_passenger": True}),
    ],
    ids=str,
)
def test_episodes_equal_those_of_gymnasium(build, env_id, keywords):
    if env_id in OF_MUJOCO and not repetitions.full:
        keywords = {"max_episode_steps": 40}
    env, twin = build(env_id, **keywords)
    assert_identical(env.reset(seed=2**70 + 3), twin.reset(seed=2**70 + 3))
    limit = twin.spec.max_episode_steps or 200
    assert assert_same_steps(env, twin, limit + 5) > 0 or env_id.startswith("Cliff")
    for seed in (0, None, 41):
        assert_identical(env.reset(seed=seed), twin.reset(seed=seed))
        assert_same_steps(env, twin, 20, seed=seed)


@BY_ID
def test_spaces_and_metadata_equal_those_of_gymnasium(build, env_id):
    env, twin = build(env_id)
    assert_same_spaces(env, twin, prefixes=[""])
    assert env.metadata == metadata_of_class(twin)
    assert (env.render_mode, env.unwrapped.render_mode) == (None, None)


@BY_ID
def test_wrappers_and_spec_equal_those_of_gymnasium(build, env_id):
    env, twin = build(env_id)
    assert str(env) == str(twin).replace(str(twin.unwrapped), f"<NativeEnv<cartwheel/{env_id}>>")
    for field in ("reward_threshold", "nondeterministic", "max_episode_steps", "order_enforce"):
        assert getattr(env.spec, field) == getattr(twin.spec, field)
    assert env.spec.disable_env_checker == twin.spec.disable_env_checker
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert again.spec == env.spec
    again.close()


def checked(env_id):
    """The warnings of Gymnasium's environment checker."""
    env = gym.make(env_id).unwrapped
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=env_id.removeprefix("cartwheel/") in OF_MUJOCO)
    env.close()
    return sorted(str(warning.message).replace("cartwheel/", "") for warning in warned)


@BY_ID
@needs_pygame
def test_gymnasiums_checker_gives_the_same_warnings_as_for_its_own(env_id, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("pygame.time.Clock", Mock)  # so that windows do not wait for the frame rate
    assert checked(f"cartwheel/{env_id}") == checked(env_id)


def test_the_null_environment_passes_gymnasiums_checker():
    env = gym.make("cartwheel/Null-v0", shape=[2, 3], episode_steps=3)
    check_env(env.unwrapped)
    env.reset(seed=1)
    assert_identical(env.step(0), (np.ones((2, 3), np.uint8), 0.0, False, False, {}))
    env.close()


# Random numbers


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4", "Blackjack-v1"])
def test_the_generator_is_the_environments_own(build, env_id):
    """Caller and environment draw from the same stream of random numbers."""
    env, twin = build(env_id)
    for seed in (5, None, 2**200):
        for each in (env, twin):
            each.reset(seed=seed) if seed else each.reset()
        assert env.np_random_seed == twin.np_random_seed
        ours, theirs = env.np_random, twin.np_random
        assert env.np_random is ours
        for _ in range(4):
            assert_identical(ours.integers(5, size=3), theirs.integers(5, size=3))
            assert_same_steps(env, twin, 7)
            assert_identical(ours, theirs)
            assert_identical(env.reset(), twin.reset())
        assert_identical(env.unwrapped._np_random, twin.unwrapped._np_random)
    env.reset(seed=1)
    assert env.np_random is not ours
    assert_identical(ours, theirs)


def test_wrappers_may_draw_from_the_generator(build):
    env, twin = (
        gym.wrappers.StickyAction(each, repeat_action_probability=0.5) for each in build("Taxi-v4")
    )
    assert_identical(env.reset(seed=3), twin.reset(seed=3))
    assert_same_steps(env, twin, 250)


def test_a_generator_may_be_set(build):
    env, twin = build("FrozenLake-v1")
    for each in (env, twin):
        each.reset(seed=1)
        each.np_random = np.random.default_rng(7)
    assert env.np_random_seed == twin.np_random_seed == -1
    assert_same_steps(env, twin, 60)
    assert_identical(env.np_random, twin.np_random)
    with pytest.raises(TypeError, match="draw from a PCG64 generator, got MT19937"):
        env.np_random = np.random.Generator(np.random.MT19937(1))
    assert_same_steps(env, twin, 5)
    assert_identical(env.reset(seed=3), twin.reset(seed=3))
    assert env.np_random_seed == 3


def test_without_a_seed_the_chosen_seed_is_an_attribute():
    env, again = (gym.make("cartwheel/CartPole-v1") for _ in "ab")
    observation, _ = env.reset()
    assert env.np_random_seed > 2**64
    assert_identical(again.reset(seed=env.np_random_seed)[0], observation)
    env.close()
    again.close()


def test_a_numpy_integer_is_a_seed(build):
    env, twin = build("CartPole-v1")
    assert_identical(env.reset(seed=np.int64(3)), twin.reset(seed=3))
    assert env.unwrapped.np_random_seed == 3


@pytest.mark.parametrize("seed", [-1, "7", 1.5, np.bool_(True)], ids=repr)
def test_seeds_that_gymnasium_refuses_are_refused(build, seed):
    env, twin = build("CartPole-v1")
    with pytest.raises(gym.error.Error) as theirs:
        twin.reset(seed=seed)
    with pytest.raises(gym.error.Error) as ours:
        env.reset(seed=seed)
    assert str(ours.value) == str(theirs.value)


# Attributes


@pytest.mark.parametrize("env_id", OTHER_VALUES)
def test_parameters_are_attributes(build, env_id):
    env, twin = build(env_id)
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    assert_same_steps(env, twin, 3)
    for name in OTHER_VALUES[env_id]:
        for read in (getattr, gym.Env.get_wrapper_attr):
            ours, theirs = read(env.unwrapped, name), read(twin.unwrapped, name)
            assert np.asarray(ours).tolist() == np.asarray(theirs).tolist(), name
        assert env.has_wrapper_attr(name)


def attributes():
    """Every parameter; of those of MuJoCo's, which share their setter, one of each by default."""
    for env_id, values in OTHER_VALUES.items():
        for number, name in enumerate(values):
            is_slow = env_id in OF_MUJOCO and number != len(env_id) % len(values)
            yield pytest.param(env_id, name, marks=pytest.mark.slow if is_slow else ())


@pytest.mark.parametrize(("env_id", "name"), list(attributes()))
def test_setting_an_attribute_sets_the_parameter(build, env_id, name):
    env, twin = build(env_id)
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    value = OTHER_VALUES[env_id][name]
    value = value[0] if isinstance(value, list) else value
    setattr(env.unwrapped, name, deepcopy(value))
    setattr(twin.unwrapped, name, deepcopy(value))
    assert_same_steps(env, twin, repetitions.times(15, with_full=40))
    env.set_wrapper_attr(name, deepcopy(value))
    twin.set_wrapper_attr(name, deepcopy(value))
    assert_same_steps(env, twin, repetitions.times(15, with_full=40))


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "state"),
        ("MountainCarContinuous-v0", "state"),
        ("Pendulum-v1", "state"),
        ("Pendulum-v1", "last_u"),
        ("Acrobot-v1", "state"),
        ("Blackjack-v1", "dealer_top_card_suit"),
        ("Blackjack-v1", "dealer_top_card_value_str"),
        ("Taxi-v4", "taxi_orientation"),
    ],
)
def test_attributes_that_rendering_reads_have_the_dtype_of_gymnasiums(build, env_id, name):
    env, twin = build(env_id)
    for _ in range(3):
        assert_identical(env.reset(seed=5), twin.reset(seed=5))
        for _ in range(2):
            ours, theirs = getattr(env.unwrapped, name), getattr(twin.unwrapped, name)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype
            assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()
            action = twin.action_space.sample()
            result = env.step(action)
            assert_identical(result, twin.step(action))
            if result[2]:
                break


def test_a_walker_that_is_in_a_hole_already_gets_gymnasiums_reward(build):
    env, twin = build("FrozenLake-v1", is_slippery=False, reward_schedule=(5, -1, -0.25))
    for each in (env, twin):
        each.reset(seed=1)
        each.unwrapped.s = 5
    assert_identical(env.step(0), twin.step(0))


@pytest.mark.parametrize(
    "rewards", [(0.0, 0, -0.0), (1, 1.0, np.float32(1)), (2**53 + 1, 2**53, 2.0**53)], ids=str
)
def test_equal_rewards_of_a_lake_keep_their_types_and_signs(build, rewards):
    env, twin = build("FrozenLake-v1", desc=["SF", "GH"], reward_schedule=rewards)
    assert_identical(env.reset(seed=3), twin.reset(seed=3))
    assert assert_same_steps(env, twin, 60) > 10


def test_maps_are_characters(build):
    env, twin = build("FrozenLake-v1")
    env.reset()
    assert_identical(env.unwrapped.desc, twin.unwrapped.desc)


def test_other_attributes_are_ordinary(build):
    env, _ = build("CartPole-v1")
    with pytest.raises(AttributeError, match=r"no attribute 'color'; the parameters .* gravity"):
        _ = env.unwrapped.color
    assert not hasattr(env.unwrapped, "color")
    assert not hasattr(env.unwrapped, "_color")
    env.unwrapped.color = "red"
    assert env.get_wrapper_attr("color") == "red"
    with pytest.raises(ValueError, match=r"^`gravity` must be a number, got 'heavy'"):
        env.unwrapped.gravity = "heavy"
    assert env.unwrapped.gravity == 9.8


# Order of calls, and bad calls


def test_calls_in_a_wrong_order_are_refused(build):
    env, twin = build("CartPole-v1")
    for each in (env, twin):
        with pytest.raises(ResetNeeded, match=r"env.step\(\) before calling env.reset"):
            each.step(0)
        with pytest.raises(ResetNeeded, match=r"before calling `env.reset"):
            each.render()
    env.reset(seed=1)
    while not env.step(0)[2]:
        pass
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=r"^The episode is over: call `reset\(\)` before"):
            env.step(0)
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    assert_same_steps(env, twin, 20)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(0), lambda: env.unwrapped.gravity):
        with pytest.raises(ClosedEnvironmentError, match="operate on `NativeEnv`, after a call"):
            call()
    assert not hasattr(env.unwrapped, "color")


@pytest.mark.parametrize(
    ("env_id", "action", "error", "text"),
    [
        ("CartPole-v1", 2, ValueError, r"^action 2 .* is not in Discrete\(2\)$"),
        ("CartPole-v1", 0.0, TypeError, "float64 to .* int64 according to the rule"),
        ("CartPole-v1", [0, 1], ValueError, r"got shape \(1, 2\)"),
        ("Pendulum-v1", np.array([np.nan], np.float32), ValueError, "^action nan"),
        ("Pendulum-v1", np.array([1j]), TypeError, "complex128.* to .*float32.* 'same_kind'"),
    ],
)
def test_bad_actions_are_refused_and_change_nothing(build, env_id, action, error, text):
    env, twin = build(env_id)
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    with pytest.raises(error, match=text):
        env.step(action)
    assert_same_steps(env, twin, 10)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"gravity": 1}, TypeError, r"an attribute, not a keyword: `env.unwrapped.gravity = 1`"),
        ({"num_workers": 2}, TypeError, "`num_workers` is a keyword of vector environments"),
        ({"render_mode": "ansi"}, ValueError, "one of None, 'human', 'rgb_array', got 'ansi'"),
        ({"sutton_barto_reward": "yes"}, ValueError, "must be True or False, got 'yes'"),
    ],
)
def test_bad_keywords_are_refused(keywords, error, text):
    with pytest.raises(error, match=text):
        gym.make("cartwheel/CartPole-v1", **keywords)


@pytest.mark.parametrize("keyword", ["copy", "shared_memory", "timeout", "max_concurrency"])
def test_keywords_of_any_vector_environment_are_refused(keyword):
    with pytest.raises(TypeError, match=f"`{keyword}` is a keyword of vector environments"):
        gym.make("cartwheel/CartPole-v1", **{keyword: 1})


def test_copies_are_refused_with_advice(build):
    """The state cannot be copied exactly, and a copied wrapper must not share its environment."""
    env, _ = build("CartPole-v1")
    env.reset(seed=1)
    text = r"^a native CartPole-v1 can be neither copied nor pickled: .* by gymnasium.make\(env.sp"
    for duplicate in (
        lambda: copy.copy(env.unwrapped),
        lambda: deepcopy(env.unwrapped),
        lambda: deepcopy(env),
        lambda: pickle.dumps(env),
    ):
        with pytest.raises(TypeError, match=text):
            duplicate()
    assert env.step(1)[1] == 1.0


def test_options_of_a_reset_reach_the_environment(build):
    env, twin = build("Pendulum-v1")
    options = {"x_init": 0.5, "y_init": 0.1}
    assert_identical(env.reset(seed=1, options=options), twin.reset(seed=1, options=options))
    assert_identical(env.reset(options=options), twin.reset(options=options))
    assert options == {"x_init": 0.5, "y_init": 0.1}
    # Options without a meaning for this environment:
    others = {"low": 1, "reset_mask": None, "env_index": [5], "env_idx": [0]}
    assert_identical(env.reset(options=others), twin.reset(options=others))
    assert_same_steps(env, twin, 10)


# Rendering


@pytest.mark.parametrize(
    "render_mode",
    [
        pytest.param("rgb_array", marks=needs_pygame),
        "ansi",
        pytest.param("rgb_array_list", marks=needs_pygame),
        "ansi_list",
    ],
)
def test_it_renders_like_gymnasiums(build, render_mode):
    env, twin = build("FrozenLake-v1", render_mode=render_mode)
    assert_identical(env.reset(seed=4), twin.reset(seed=4))
    for _ in range(3):
        assert_same_steps(env, twin, 3)
        assert_identical(env.render(), twin.render())
    assert env.render_mode == twin.render_mode == render_mode
