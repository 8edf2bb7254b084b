"""What native environments are called with: refused if bad before anything happens, else obeyed.

Above 400 lines: a section for each argument and method, with one table of what is refused.
"""

import gc
import re
import threading
import time
from copy import deepcopy
from functools import partial
from multiprocessing import TimeoutError
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel import _cartwheel
from tests.comparison import assert_identical, assert_names_row, text_of
from tests.oracle import outcome


def twins(env_id, num_envs, **keywords):
    make = partial(gym.make, env_id, disable_env_checker=True, **keywords)
    return SyncVectorEnv([make] * num_envs)


@pytest.fixture
def build():
    """Builds a native environment and Gymnasium's, both reset alike and closed after the test."""
    built = []

    def build(env_id, num_envs, *, num_workers=2, **keywords):
        envs = cartwheel.NativeVectorEnv(env_id, num_envs, num_workers=num_workers, **keywords)
        oracle = twins(env_id, num_envs, **keywords)
        built.extend([envs, oracle])
        assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
        return envs, oracle

    yield build
    for envs in built:
        envs.close()


def assert_same_steps(envs, oracle, steps, *, seed=5):
    oracle.action_space.seed(seed)
    for _ in range(steps):
        actions = oracle.action_space.sample()
        assert_identical(envs.step(actions), oracle.step(actions))


# Bad and good actions

I64, F32 = np.int64, np.float32
UNSAFE = r"^cannot cast actions of dtype \w+ to .* space's \w+ according to the rule 'safe'$"
BAD_ACTIONS = [
    ("CartPole-v1", [0, 2, 1], ValueError, r"^action 2 of row 1 is not in Discrete\(2\)$"),
    ("CartPole-v1", np.array([0, 0, -1]), ValueError, "^action -1 of row 2 is not in"),
    ("CartPole-v1", np.array([5, 9, -1], np.int8), ValueError, "^action 5 of row 0 is not in"),
    ("CartPole-v1", np.array([0, 1, 2**63 - 1]), ValueError, "^action 9223372036854775807 of row"),
    ("FrozenLake-v1", [0, 3, 4], ValueError, r"^action 4 of row 2 is not in Discrete\(4\)$"),
    ("Taxi-v4", [6, 0, 0], ValueError, r"^action 6 of row 0 is not in Discrete\(6\)$"),
    ("Acrobot-v1", [2, 3, 0], ValueError, r"^action 3 of row 1 is not in Discrete\(3\)$"),
    ("Blackjack-v1", [1, 1, 2], ValueError, r"^action 2 of row 2 is not in Discrete\(2\)$"),
    ("CartPole-v1", [0, 1], ValueError, "^expected 3 actions .one per environment., got 2"),
    ("CartPole-v1", [0, 1, 0, 1], ValueError, "^expected 3 actions .one per environment., got 4"),
    ("CartPole-v1", np.zeros(4, I64), ValueError, "^expected 3 actions .* got 4: shape .4."),
    ("CartPole-v1", np.zeros(0, I64), ValueError, "^expected 3 actions .* got 0"),
    ("CartPole-v1", np.zeros((3, 1), I64), ValueError, r"shape \[3\] .int64., got shape \[3, 1\]"),
    ("CartPole-v1", [[0], [1], [0]], ValueError, r"shape \[3\] .int64., got shape \[3, 1\]"),
    ("CartPole-v1", np.zeros(3), TypeError, UNSAFE),
    ("CartPole-v1", np.zeros(3, F32), TypeError, UNSAFE),
    ("CartPole-v1", np.zeros(3, np.uint64), TypeError, UNSAFE),
    ("CartPole-v1", np.zeros(3, object), TypeError, UNSAFE),
    ("CartPole-v1", [0.0, 1.0, 0.0], TypeError, UNSAFE),
    ("CartPole-v1", [None] * 3, TypeError, UNSAFE),
    ("CartPole-v1", [0, 2**70, 0], OverflowError, "too large"),
    ("CartPole-v1", 1, TypeError, "Unable to iterate over"),
    ("CartPole-v1", None, TypeError, "Unable to iterate over"),
    ("CartPole-v1", "012", TypeError, "Unable to iterate over"),
    ("Pendulum-v1", np.array([[0], [np.nan], [0]], F32), ValueError, "^action nan of row 1"),
    ("Pendulum-v1", np.array([[np.nan]] * 3, F32), ValueError, r"^action nan of row 0 is not in"),
    ("MountainCarContinuous-v0", np.array([[1], [1], [np.nan]], F32), ValueError, "row 2"),
    ("Pendulum-v1", np.zeros((3, 1)), TypeError, UNSAFE),
    ("Pendulum-v1", [[0.0], [0.0], [0.0]], TypeError, UNSAFE),
    ("Pendulum-v1", np.zeros((3, 1), np.int32), TypeError, "dtype int32 to .* float32 .* 'safe'$"),
    ("Pendulum-v1", np.zeros((3, 1), np.complex64), TypeError, UNSAFE),
    ("Pendulum-v1", np.zeros(3, F32), ValueError, r"shape \[3, 1\] .float32., got shape \[3\]"),
    ("Pendulum-v1", np.zeros((3, 2), F32), ValueError, r"got shape \[3, 2\]"),
    ("Pendulum-v1", np.zeros((2, 1), F32), ValueError, "^expected 3 actions .* got 2"),
]


@pytest.mark.parametrize(("env_id", "actions", "error", "text"), BAD_ACTIONS)
def test_bad_actions_are_refused_before_anything_is_stepped(build, env_id, actions, error, text):
    envs, oracle = build(env_id, 3)
    assert_same_steps(envs, oracle, 3)
    for call in (envs.step, envs.step_async):
        with pytest.raises(error, match=text):
            call(actions)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    assert_same_steps(envs, oracle, 5)


SAFE_ACTIONS = [
    ("CartPole-v1", np.array([0, 1, 1], dtype))
    for dtype in (bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", ">i4", ">i8")
] + [
    ("CartPole-v1", [0, 1, 1]),
    ("CartPole-v1", (0, 1, 1)),
    ("CartPole-v1", [np.int8(0), np.uint16(1), np.int64(1)]),
    ("CartPole-v1", np.array([[0, 9], [1, 9], [1, 9]])[:, 0]),
    ("CartPole-v1", np.array([1, 1, 0])[::-1]),
    ("Pendulum-v1", np.array([[0], [1], [-1]], ">f4")),
    ("Pendulum-v1", np.array([[0, 9], [1, 9], [-1, 9]], F32)[:, :1]),
    ("Pendulum-v1", np.asfortranarray(np.array([[0], [1], [-1]], F32))),
    ("Pendulum-v1", np.array([[3], [np.inf], [-np.inf]], F32)),
    ("MountainCarContinuous-v0", np.array([[3], [np.inf], [-np.inf]], F32)),
]


@pytest.mark.parametrize(("env_id", "actions"), SAFE_ACTIONS)
def test_actions_that_can_be_cast_safely_are_those_of_the_space(build, env_id, actions):
    envs, oracle = build(env_id, 3)
    exact = np.array(actions, oracle.single_action_space.dtype)
    for _ in range(4):
        assert_identical(envs.step(actions), oracle.step(exact))


@pytest.mark.parametrize(
    "dtype", [bool, "i1", "i2", "u1", "u2", "f2"], ids=lambda dtype: np.dtype(dtype).name
)
def test_floats_take_what_is_cast_safely(build, dtype):
    envs, oracle = build("Pendulum-v1", 2)
    for _ in range(4):
        actions = np.array([[1], [0]], dtype)
        assert_identical(envs.step(actions), oracle.step(actions.astype(F32)))


def test_actions_may_be_changed_as_soon_as_the_step_has_begun(build):
    envs, oracle = build("Pendulum-v1", 3)
    for step in range(5):
        actions = np.full((3, 1), step / 4, F32)
        expected = oracle.step(actions.copy())
        envs.step_async(actions)
        actions[:] = np.nan
        assert_identical(envs.step_wait(), expected)


# Bad arguments of the constructor

CART_POLE = partial(dict[str, Any], env_id="CartPole-v1")
LAKE = partial(dict[str, Any], env_id="FrozenLake-v1")
BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"env_id": "Nowhere-v0"}, ValueError, '^there is no native environment "Nowhere-v0"$'),
    ({"env_id": "cartwheel/Nowhere-v0"}, ValueError, 'no native environment "Nowhere-v0"'),
    ({"env_id": "LunarLander-v3"}, ValueError, "no native environment"),
    ({"env_id": ""}, ValueError, "no native environment"),
    (CART_POLE(autoreset_mode="sometimes"), ValueError, "'sometimes' is not a valid Autoreset"),
    (CART_POLE(autoreset_mode=None), ValueError, "None is not a valid AutoresetMode"),
    (CART_POLE(executor="process"), ValueError, "^`executor` must be one of 'auto', 'inline', "),
    (CART_POLE(executor=None), ValueError, "^`executor` must be one of .* got None"),
    (CART_POLE(on_done="stop"), ValueError, "^`on_done` must be one of 'raise', 'freeze', got"),
    *[
        (
            CART_POLE(num_workers=number),
            ValueError,
            "^`num_workers` must be a positive integer, got",
        )
        for number in (0, -2, 1.0, "2", True, np.True_)
    ],
    *[
        (
            CART_POLE(max_episode_steps=limit),
            ValueError,
            "^`max_episode_steps` must be an integer fr",
        )
        for limit in (0, -2, 2.0, "many", 2**32, 2**70, True)
    ],
    *[
        (CART_POLE(num_envs=number), ValueError, "^`num_envs` must be a positive integer, got ")
        for number in (0, -1, 2.0, "2", None, True)
    ],
    (CART_POLE(timeout=-1), ValueError, "^`timeout` must not be negative, got -1"),
    (CART_POLE(timeout="long"), TypeError, "^`timeout` must be a number of seconds or None"),
    *[
        (CART_POLE(max_slabs=number), ValueError, "^`max_slabs` must be an integer from 2 on, got")
        for number in (1, 2.0, True)
    ],
    *[
        (CART_POLE(batch_size=number), ValueError, "^`batch_size` must be an integer from 1 to 2, ")
        for number in (0, 3, 1.0, True)
    ],
    *[
        (
            CART_POLE(thread_affinity_offset=number),
            ValueError,
            "`thread_affinity_offset` must be an",
        )
        for number in (-1, 0.0, False)
    ],
    *[
        (CART_POLE(max_restarts=number), ValueError, "`max_restarts` must be an integer from 0 on")
        for number in (-1, 1.5, True)
    ],
    (CART_POLE(worker=print), ValueError, "^`worker` of native environments must be None, got <b"),
    (
        CART_POLE(observation_mode="different"),
        ValueError,
        "^`observation_mode` .* must be 'same'",
    ),
    (
        CART_POLE(on_worker_death="restart"),
        ValueError,
        "^`on_worker_death` .* must be 'raise'",
    ),
    (
        CART_POLE(max_concurrency=0),
        ValueError,
        "^`max_concurrency` must be a positive or None",
    ),
    (CART_POLE(render_mode="ansi"), ValueError, "^`render_mode` of CartPole-v1 must be one of"),
    (
        CART_POLE(gravity=1),
        ValueError,
        "^CartPole-v1: unknown field `gravity`, expected `sutton_barto_reward`",
    ),
    (CART_POLE(sutton_barto_reward="yes"), ValueError, '^CartPole-v1: .* string "yes", expected a'),
    (CART_POLE(sutton_barto_reward=object()), ValueError, "cannot be handed to a native environme"),
    ({"env_id": "Acrobot-v1", "low": 0}, ValueError, "^Acrobot-v1: unknown field `low`"),
    ({"env_id": "Pendulum-v1", "g": "earth"}, ValueError, "^Pendulum-v1: .*earth"),
    ({"env_id": "Pendulum-v1", "g": np.nan}, ValueError, r"\bg\b"),
    (
        {"env_id": "Taxi-v4", "rainy_probability": 1.5},
        ValueError,
        r"^Taxi-v4: rainy_probability must be in \[0, 1\], got 1.5$",
    ),
    (
        {"env_id": "Taxi-v4", "fickle_probability": -0.5},
        ValueError,
        r"^Taxi-v4: fickle_probability must be in \[0, 1\], got -0.5$",
    ),
    ({"env_id": "Null-v0", "shape": [-1]}, ValueError, "^Null-v0: "),
    ({"env_id": "Null-v0", "shape": [2**33, 2**33]}, ValueError, "^Null-v0: shape .* too large"),
    (LAKE(map_name="5x5"), ValueError, '^FrozenLake-v1: there is no map "5x5", only 4x4 and 8x8$'),
    (LAKE(success_rate=1.01), ValueError, r"success_rate must be in \[0, 1\], got 1.01$"),
    (LAKE(success_rate=-0.1), ValueError, r"success_rate must be in \[0, 1\], got -0.1$"),
    (LAKE(reward_schedule=(1, 0)), ValueError, "expected a tuple of size 3"),
    (LAKE(desc=["SF", "G"]), ValueError, "malformed map: row 1 has 1 cells, row 0 has 2$"),
    (LAKE(desc=["SF", "XG"]), ValueError, "malformed map: row 1 has 'X', which is none of S, F"),
    (LAKE(desc=["FF", "FG"]), ValueError, "malformed map: it has no start S$"),
    (LAKE(desc=["SÄ", "FG"]), ValueError, "malformed map: row 0 has 'Ä'"),
    (LAKE(desc=[]), ValueError, "malformed map: it has no cells$"),
    (LAKE(desc=[""]), ValueError, "malformed map: it has no cells$"),
    (LAKE(desc=[["S", "FG"]]), ValueError, "^FrozenLake-v1: a row of a map is a text or a list of"),
    (LAKE(desc=[["S", 1]]), ValueError, "^FrozenLake-v1: a row of a map is a text or a list of"),
    (LAKE(desc=[["S", "X"]]), ValueError, "malformed map: row 0 has 'X', which is none of S, F"),
    (LAKE(desc=7), ValueError, "^FrozenLake-v1: "),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_and_leave_nothing_behind(arguments, error, text):
    before = threads()
    with pytest.raises(error, match=text):
        cartwheel.NativeVectorEnv(**{"num_envs": 2, **arguments})
    assert not left_of_threads(before)


@pytest.mark.parametrize("form", [list, tuple, np.array, partial(np.asarray, dtype="c")])
def test_a_map_is_texts_or_letters(form):
    rows = ["SFFH", "HFFF", "FFHG"]
    oracle = twins("FrozenLake-v1", 2, desc=rows)
    for desc in (form(rows), form([list(row) for row in rows])):
        envs = cartwheel.NativeVectorEnv("FrozenLake-v1", 2, desc=desc)
        assert envs.get_attr("desc") == (rows,) * 2
        assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
        assert_same_steps(envs, oracle, 30)
        envs.close()


def test_numpys_numbers_are_numbers():
    envs = cartwheel.NativeVectorEnv(
        "Pendulum-v1",
        np.int64(3),
        num_workers=np.int32(2),
        max_episode_steps=np.int64(2),
        g=np.float64(9.81),
    )
    oracle = twins("Pendulum-v1", 3, g=9.81, max_episode_steps=2)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    assert_same_steps(envs, oracle, 7)
    envs.close()


def test_seeds_that_gymnasium_refuses_are_refused_before_anything_is_reset(build):
    envs, oracle = build("CartPole-v1", 3)
    for seed, error, text in [
        (-1, gym.error.Error, "Seed must be greater or equal to zero, actual value: -1"),
        ([1, 2, -7], gym.error.Error, "Seed must be greater or equal to zero, actual value: -7"),
        ([1, "x", 3], gym.error.Error, "Seed must be a python integer, actual type: .*str"),
        ([1, 2], ValueError, "the length must match num_envs=3 but got length=2"),
        (1.5, TypeError, "float"),
    ]:
        with pytest.raises(error, match=text):
            envs.reset(seed=seed)
    assert_same_steps(envs, oracle, 5)


# Random numbers

MANY_SEEDS = [0, 41, 2**130, [3, None, 2**64], None]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Blackjack-v1", "Taxi-v4"])
def test_the_generators_are_where_those_of_gymnasium_are(env_id, mode):
    """And what is drawn from them is drawn from copies."""
    envs = cartwheel.NativeVectorEnv(env_id, 3, autoreset_mode=mode, num_workers=2)
    make = partial(gym.make, env_id, disable_env_checker=True)
    oracle = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    for seed in MANY_SEEDS:
        assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed))
        oracle.action_space.seed(5)
        for _ in range(4):
            actions = oracle.action_space.sample()
            result = envs.step(actions)
            assert_identical(result, oracle.step(actions))
            if mode == "Disabled" and (result[2] | result[3]).any():
                options = {"reset_mask": result[2] | result[3]}
                assert_identical(envs.reset(options=options), oracle.reset(options=dict(options)))
        assert_identical(envs.np_random_seed, oracle.np_random_seed)
        for generators in (envs.np_random, envs.get_attr("np_random"), envs.call("np_random")):
            assert_identical(generators, oracle.np_random)
            generators[0].random(9)
    assert_identical(envs.get_attr("np_random_seed"), oracle.get_attr("np_random_seed"))
    envs.close()
    oracle.close()


def test_the_seeds_that_nobody_chose_are_told():
    envs, again = (cartwheel.NativeVectorEnv("Taxi-v4", 5, num_workers=2) for _ in "ab")
    seeds = envs.np_random_seed
    assert len(set(seeds)) == 5
    expected = envs.reset()
    assert envs.np_random_seed == seeds
    assert_identical(again.reset(seed=seeds), expected)
    envs.close()
    again.close()


def test_generators_cannot_be_assigned(build):
    envs, oracle = build("CartPole-v1", 2)
    for each in (envs, oracle):
        with pytest.raises(AttributeError, match="np_random"):
            each.np_random = np.random.default_rng(1)


# Parameters

#: Another value for every parameter that Gymnasium's environments read again when they step or
#: reset; those of a list are for one row each.
OTHER_VALUES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "state": [np.array([0.1, -0.2, 0.05, 0.3]), np.zeros(4), np.full(4, -0.1)],
        "gravity": [9.81, 0, -3.7],
        "masscart": 2.5,
        "masspole": 0.35,
        "total_mass": [1.0, 2.0, 3.3],
        "length": 1.7,
        "polemass_length": 0.3,
        "force_mag": [1, 30.0, -10.0],
        "tau": 0.1,
        "theta_threshold_radians": 0.05,
        "x_threshold": 0.02,
        "kinematics_integrator": ["semi-implicit euler", "euler", "other"],
    },
    "MountainCar-v0": {
        "state": np.array([-0.3, 0.02]),
        "goal_velocity": 0.01,
        "min_position": -0.5,
        "max_position": -0.45,
        "max_speed": 0.001,
        "goal_position": [-0.4, -0.5, -0.6],
        "force": 0.1,
        "gravity": [0.0, 0.01, -0.0025],
    },
    "MountainCarContinuous-v0": {
        "state": [np.array([-0.3, 0.02]), np.array([-0.3, 0.02], F32), np.array([0.1, -0.07], F32)],
        "goal_velocity": 0.01,
        "min_action": [-0.5, 0.5, 0.0],
        "max_action": [0.5, -0.5, 0.1],
        "min_position": -0.5,
        "max_position": -0.45,
        "max_speed": 0.001,
        "goal_position": [-0.4, -0.5, -0.6],
        "power": 0.05,
    },
    "Pendulum-v1": {
        "state": [np.array([3.0, 7.5]), np.array([-300.0, 0.1]), np.zeros(2)],
        "max_speed": [1, 0.5, 100.0],
        "max_torque": [0.3, 5.0, 0.0],
        "dt": 0.01,
        "g": [0, 9.81, -5.0],
        "m": [0.1, 3.0, 1.7],
        "l": [0.7, 1.3, 2],
    },
    "Acrobot-v1": {
        "state": [np.array([3.0, -2.5, 12.0, -20.0]), np.zeros(4), np.full(4, 0.1)],
        "dt": 0.05,
        "LINK_LENGTH_1": 1.3,
        "LINK_LENGTH_2": 0.7,
        "LINK_MASS_1": 0.9,
        "LINK_MASS_2": 2.1,
        "LINK_COM_POS_1": 0.3,
        "LINK_COM_POS_2": 0.7,
        "LINK_MOI": 0.6,
        "MAX_VEL_1": 0.2,
        "MAX_VEL_2": 0.1,
        "AVAIL_TORQUE": [[-3.0, 0.5, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.5]],
        "torque_noise_max": [0.0, 1.5, 0.3],
        "book_or_nips": ["nips", "book", "nips"],
    },
    "FrozenLake-v1": {"s": [14, 3, 10], "lastaction": 2},
    "CliffWalking-v1": {"s": [0, 35, 11], "lastaction": 1},
    "Taxi-v4": {
        "s": [16, 479, 97],
        "lastaction": None,
        "fickle_passenger": [True, False, True],
        "fickle_probability": 1.0,
        "fickle_step": True,
    },
    "Blackjack-v1": {
        "player": [[1, 10], [5, 5, 1], [10, 10, 1]],
        "dealer": [[10, 6], [1, 10], [2, 2]],
        "natural": True,
        "sab": [False, True, False],
    },
}
PARAMETERS = [(env_id, name) for env_id, values in OTHER_VALUES.items() for name in values]


def plain(value):
    """A value without the type that holds it: lists, Python's numbers, text."""
    return np.asarray(value).tolist()


def assert_same_parameters(envs, oracle, names):
    for name in names:
        pairs = zip(envs.get_attr(name), oracle.get_attr(name), strict=True)
        for ours, theirs in pairs:
            assert plain(ours) == plain(theirs), name


@pytest.mark.parametrize("env_id", OTHER_VALUES)
def test_parameters_read_as_gymnasiums_attributes(build, env_id):
    envs, oracle = build(env_id, 3)
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])
    assert_same_steps(envs, oracle, 7)
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])
    for name in OTHER_VALUES[env_id]:
        assert_identical(envs.call(name), envs.get_attr(name))


@pytest.mark.parametrize(("env_id", "name"), PARAMETERS, ids=str)
def test_setting_a_parameter_does_what_setting_gymnasiums_attribute_does(build, env_id, name):
    envs, oracle = build(env_id, 3)
    assert_same_steps(envs, oracle, 3)
    value = OTHER_VALUES[env_id][name]
    for each in (envs, oracle):
        each.set_attr(name, deepcopy(value))
    assert_same_parameters(envs, oracle, [name])
    assert_same_steps(envs, oracle, 40)
    assert_identical(envs.reset(seed=9), oracle.reset(seed=9))
    assert_same_steps(envs, oracle, 40)
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])


def test_several_parameters_may_be_set(build):
    envs, oracle = build("CartPole-v1", 9, num_workers=3)
    random = np.random.default_rng(3)
    for turn in range(5):
        for name in ("gravity", "masspole", "force_mag", "tau"):
            value = (turn + 1) * random.uniform(0.01, 3, 9)
            for each in (envs, oracle):
                each.set_attr(name, value.tolist())
        assert_same_steps(envs, oracle, 10)
        assert_identical(envs.reset(), oracle.reset())


def test_a_passenger_is_fickle_only_where_that_is_switched_on(build):
    """Gymnasium looks at both attributes in every step."""
    envs, oracle = build("Taxi-v4", 3, fickle_passenger=True, fickle_probability=1.0)
    aboard = 4 * (5 * (5 * 2 + 2) + 4) + 1
    for each in (envs, oracle):
        each.set_attr("s", aboard)
        each.set_attr("fickle_passenger", False)
        assert each.get_attr("fickle_step") == (True,) * 3
    assert_same_steps(envs, oracle, 10)


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "state"),
        ("MountainCarContinuous-v0", "state"),  # of two widths
        ("Pendulum-v1", "state"),
        ("Pendulum-v1", "last_u"),
        ("Acrobot-v1", "state"),  # likewise
        ("Blackjack-v1", "player"),
        ("Blackjack-v1", "dealer"),
    ],
)
def test_what_has_several_forms_has_that_of_gymnasium(build, env_id, name):
    envs, oracle = build(env_id, 3)
    for _ in range(3):
        assert_identical(envs.get_attr(name), oracle.get_attr(name))
        assert_same_steps(envs, oracle, 1)


THAWED = ["SFFF", "FFFF", "FFFF", "FFFG"]


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("env_id", OTHER_VALUES)
def test_setting_a_parameter_to_its_own_value_changes_nothing(build, env_id, steps):
    envs, oracle = build(env_id, 7)
    assert_same_steps(envs, oracle, steps)
    for name in OTHER_VALUES[env_id]:
        envs.set_attr(name, list(envs.get_attr(name)))
    assert_same_steps(envs, oracle, 30)


@pytest.mark.parametrize(
    ("env_id", "name", "value"),
    [
        ("CartPole-v1", "gravity", 5),
        ("CartPole-v1", "gravity", np.float64(5)),
        ("CartPole-v1", "state", [[0, 0, 0, 0], (0, 1, 0, 1)]),
        ("CartPole-v1", "state", [[0.0, 0.1, 0.0, 0.0], (0.1, 0.2, 0.0, 0.0)]),
        ("CartPole-v1", "state", np.zeros(4, np.int64)),
        ("FrozenLake-v1", "s", np.int64(4)),
        ("Taxi-v4", "s", np.int32(4)),
        ("Acrobot-v1", "AVAIL_TORQUE", [[-1, 0, 1]] * 2),
    ],
    ids=str,
)
def test_parameters_take_every_kind_of_number(build, env_id, name, value):
    envs, oracle = build(env_id, 2)
    for each in (envs, oracle):
        each.set_attr(name, deepcopy(value))
    assert_same_steps(envs, oracle, 10)


def test_unknown_parameters_are_refused_by_name(build):
    envs, oracle = build("CartPole-v1", 3)
    for call in (
        lambda: envs.get_attr("colour"),
        lambda: envs.set_attr("colour", 1),
        lambda: envs.set_attr("colour", [1, 2, 3]),
        lambda: envs.call("colour"),
        lambda: envs.get_attr("step"),
    ):
        with pytest.raises(AttributeError, match=r"CartPole-v1 has no parameter '\w+'; it has st"):
            call()
    with pytest.raises(AttributeError):
        oracle.get_attr("colour")
    with pytest.raises(TypeError, match=r"`gravity` is a parameter .* takes no arguments"):
        envs.call("gravity", 1)
    nothing = cartwheel.NativeVectorEnv("Null-v0", 1)
    with pytest.raises(AttributeError, match="it has none"):
        nothing.get_attr("steps")
    nothing.close()
    assert_same_steps(envs, oracle, 5)


BAD_VALUES = [
    ("CartPole-v1", "gravity", [1.0, 2.0], ValueError, "Got `2` values for 3 environments"),
    ("CartPole-v1", "gravity", "heavy", ValueError, "expected a number"),
    ("CartPole-v1", "gravity", None, ValueError, "expected a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, "heavy"], ValueError, "expected a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, None], ValueError, "expected a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, object()], TypeError, "no parameter can be of type"),
    ("CartPole-v1", "gravity", 2**70, OverflowError, "too large"),
    ("CartPole-v1", "state", np.zeros(3), ValueError, "expected 4 numbers"),
    ("CartPole-v1", "state", 1.0, ValueError, "expected 4 numbers"),
    ("CartPole-v1", "kinematics_integrator", 1, ValueError, "expected the name of an integrator"),
    ("Acrobot-v1", "book_or_nips", "article", ValueError, 'expected "book" or "nips"'),
    ("Acrobot-v1", "AVAIL_TORQUE", [[1.0, 2.0]] * 3, ValueError, "expected 3 numbers"),
    ("FrozenLake-v1", "s", -1, ValueError, "expected"),
    ("FrozenLake-v1", "s", 16, ValueError, "expected"),
    ("FrozenLake-v1", "s", 1.0, ValueError, "expected an integer"),
    ("FrozenLake-v1", "desc", [["SFFX"] * 4] * 3, ValueError, "malformed map"),
    ("FrozenLake-v1", "desc", [["SG"]] * 3, ValueError, "a map of the same size"),
    ("CliffWalking-v1", "s", -1, ValueError, "expected"),
    ("CliffWalking-v1", "s", 48, ValueError, "expected"),
    ("Taxi-v4", "s", 500, ValueError, "expected a state below 500"),
    ("Taxi-v4", "s", -1, ValueError, "expected a state below 500"),
    ("Taxi-v4", "fickle_passenger", 0.5, ValueError, "expected a truth value"),
    ("Blackjack-v1", "player", [[11, 2]] * 3, ValueError, "expected 1 to 22 cards from 1 to 10"),
    ("Blackjack-v1", "player", [[]] * 3, ValueError, "expected"),
]


@pytest.mark.parametrize(("env_id", "name", "value", "error", "text"), BAD_VALUES)
def test_a_value_that_does_not_fit_is_refused_in_every_row(build, env_id, name, value, error, text):
    envs, oracle = build(env_id, 3)
    before = envs.get_attr(name)
    with pytest.raises(error, match=text):
        envs.set_attr(name, value)
    assert_identical(envs.get_attr(name), before)
    assert_same_steps(envs, oracle, 10)


@pytest.mark.parametrize(
    "state", [[np.inf] * 4, [1e17, 0, 0, 0], [0, 0, 1e5, -1e5]], ids=["infinite", "angle", "speed"]
)
def test_a_row_that_fails_names_itself_and_the_others_are_stepped(build, state):
    envs, _ = build("Acrobot-v1", 4, num_workers=2)
    twin, _ = build("Acrobot-v1", 4, num_workers=2)
    states = list(envs.get_attr("state"))
    states[2] = np.array(state, np.float64)
    envs.set_attr("state", states)
    actions = np.array([0, 1, 2, 0])
    with pytest.raises(cartwheel.EnvPanicError, match="overflowed") as panic:
        envs.step(actions)
    assert_names_row(panic.value, 2)
    observations = twin.step(actions)[0]
    others = [0, 1, 3]
    assert_identical(
        np.array(envs.get_attr("state"))[others], np.array(twin.get_attr("state"))[others]
    )
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="2") as refusal:
            envs.step(actions)
        assert "reset()" in text_of(refusal.value)
    result = envs.reset(options={"reset_mask": np.array([False, False, True, False])})
    assert_identical(result[0][others], observations[others])
    assert_identical(envs.step(actions)[0][others], twin.step(actions)[0][others])


# The asynchronous protocol

STARTS = {
    "reset": lambda envs: envs.reset_async(seed=4),
    "step": lambda envs: envs.step_async([0, 1, 0]),
    "call": lambda envs: envs.call_async("tau"),
}
WAITS = {
    "reset": lambda envs, **keywords: envs.reset_wait(**keywords),
    "step": lambda envs, **keywords: envs.step_wait(**keywords),
    "call": lambda envs, **keywords: envs.call_wait(**keywords),
}
#: What each gives by the oracle.
SINGLE = {
    "reset": lambda oracle: oracle.reset(seed=4),
    "step": lambda oracle: oracle.step(np.array([0, 1, 0])),
    "call": lambda oracle: oracle.call("tau"),
}


def test_each_pair_gives_what_the_single_call_gives(build):
    envs, oracle = build("CartPole-v1", 3)
    for _ in range(40):
        envs.step_async(np.array([0, 1, 1]))
        assert_identical(envs.step_wait(), oracle.step(np.array([0, 1, 1])))
    mask = np.array([True, False, True])
    envs.reset_async(seed=3, options={"reset_mask": mask, "low": 0})
    expected = oracle.reset(seed=3, options={"reset_mask": mask, "low": 0})
    assert_identical(envs.reset_wait(), expected)
    envs.reset_async(7)
    assert_identical(envs.reset_wait(60), oracle.reset(seed=7))
    envs.step_async([0, 1, 0])
    assert_identical(envs.step_wait(60), oracle.step(np.array([0, 1, 0])))
    envs.call_async("state")
    assert_identical(envs.call_wait(60), oracle.call("state"))


def test_a_call_that_cannot_be_is_refused_before_it_is_pending(build):
    envs, oracle = build("CartPole-v1", 3)
    with pytest.raises(AttributeError, match="CartPole-v1 has no parameter 'colour'"):
        envs.call_async("colour")
    with pytest.raises(TypeError, match=r"`tau` is a parameter .* takes no arguments"):
        envs.call_async("tau", 1)
    with pytest.raises(NoAsyncCallError):
        envs.call_wait()
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("first", STARTS)
def test_a_call_while_another_is_pending_is_refused(build, first):
    envs, oracle = build("CartPole-v1", 3)
    STARTS[first](envs)
    pending = f"while waiting for a pending call to `{first}` to complete"
    for name, call in {
        "reset_async": envs.reset,
        "step_async": lambda: envs.step([0, 0, 0]),
        "get_attr": lambda: envs.get_attr("gravity"),
        "set_attr": lambda: envs.set_attr("gravity", 1),
        "call_async": lambda: envs.call("gravity"),
    }.items():
        with pytest.raises(AlreadyPendingCallError, match=f"^Calling `{name}` {pending}"):
            call()
    for name, start in STARTS.items():
        with pytest.raises(AlreadyPendingCallError, match=f"`{name}_async` {pending}") as refusal:
            start(envs)
        assert refusal.value.name == first
    assert_identical(WAITS[first](envs, timeout=60), SINGLE[first](oracle))
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("waited", WAITS)
@pytest.mark.parametrize("pending", [None, *STARTS])
def test_waiting_for_what_was_not_called_is_refused(build, waited, pending):
    if waited == pending:
        pytest.skip("this is what is allowed")
    envs, oracle = build("CartPole-v1", 3)
    if pending is not None:
        STARTS[pending](envs)
    text = f"Calling `{waited}_wait` without any prior call to `{waited}_async`."
    with pytest.raises(NoAsyncCallError, match=f"^{re.escape(text)}$") as refusal:
        WAITS[waited](envs)
    assert refusal.value.name == waited
    if pending is not None:
        WAITS[pending](envs)
    assert_identical(envs.reset(seed=2), oracle.reset(seed=2))
    assert_same_steps(envs, oracle, 5)


def test_a_timeout_that_is_not_reached_changes_nothing():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, timeout=60)
    oracle = twins("CartPole-v1", 3)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(20):
        envs.step_async([0, 1, 0])
        assert_identical(envs.step_wait(timeout=30), oracle.step(np.array([0, 1, 0])))
    assert envs.get_attr("gravity") == (9.8,) * 3
    envs.close()


def test_a_timeout_ends_the_wait_before_the_batch_and_loses_nothing():
    """A wait without any time steps one of the sixteen shards; nobody else does in a first step."""
    envs, twin = (cartwheel.NativeVectorEnv("Acrobot-v1", 160, num_workers=2) for _ in "ab")
    for each in (envs, twin):
        each.reset(seed=1)
    actions = np.arange(160) % 3
    envs.step_async(actions)
    late = 0
    while (result := outcome(partial(envs.step_wait, timeout=0)))[1] is not None:
        assert isinstance(result[1], TimeoutError)
        rows = re.search(r"after 0 second\(s\)\. Rows \[(.*)\] have not answered", str(result[1]))
        assert rows is not None
        late += 1
        assert rows[1].split(", ") == [str(row) for row in range(10 * late, 160)]
    assert late == 15
    assert_identical(result[0], twin.step(actions))
    envs.close()
    twin.close()


def test_a_reset_drops_a_step_that_was_given_up():
    envs, twin = (cartwheel.NativeVectorEnv("Acrobot-v1", 160, num_workers=2) for _ in "ab")
    envs.reset(seed=1)
    actions = np.arange(160) % 3
    envs.step_async(actions)
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0)
    assert_identical(envs.reset(seed=2), twin.reset(seed=2))
    assert_identical(envs.step(actions), twin.step(actions))
    envs.close()
    twin.close()


# The first reset


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_step_before_the_first_reset_is_refused_as_by_gymnasium(executor):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, executor=executor)
    oracle = twins("CartPole-v1", 3)
    actions = np.array([0, 1, 1])
    _, expected = outcome(lambda: oracle.step(actions))
    assert type(expected) is ResetNeeded
    for step in (envs.step, envs.step_async):
        with pytest.raises(ResetNeeded) as refusal:
            step(actions)
        assert str(refusal.value) == str(expected)
        assert "rows [0, 1, 2] were never reset" in text_of(refusal.value)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    assert_same_steps(envs, oracle, 5)
    envs.close()


def test_rows_that_no_reset_reached_are_named_and_no_row_is_stepped():
    envs, oracle = cartwheel.NativeVectorEnv("Pendulum-v1", 3), twins("Pendulum-v1", 3)
    actions = np.ones((3, 1), F32)
    mask = np.array([False, True, False])
    envs.reset(seed=1, options={"reset_mask": mask})
    state = envs.get_attr("state")[1]
    with pytest.raises(ResetNeeded) as refusal:
        envs.step(actions)
    assert "rows [0, 2] were never reset" in text_of(refusal.value)
    assert_identical(envs.get_attr("state")[1], state)
    oracle.reset(seed=1)
    rest = {"reset_mask": ~mask}
    assert_identical(envs.reset(seed=1, options=dict(rest)), oracle.reset(seed=1, options=rest))
    assert_same_steps(envs, oracle, 5)
    envs.close()


def test_not_every_one_of_many_rows_is_named():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 20)
    with pytest.raises(ResetNeeded) as refusal:
        envs.step(np.zeros(20, I64))
    assert "14, 15] and 4 more were never reset" in text_of(refusal.value)
    envs.close()


# Threads


def threads():
    """The threads of this program, of which some may be ending."""
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}


def left_of_threads(before):
    """Those beyond ``before``: the kernel may end a thread after it was joined."""
    deadline = time.monotonic() + 10
    while (left := threads() - before) and time.monotonic() < deadline:
        time.sleep(1e-3)
    return left


def in_threads(*functions):
    """Runs each function in a thread of its own; returns what they returned or raised."""
    outcomes = [None] * len(functions)

    def run(at, function):
        try:
            outcomes[at] = function()
        except Exception as error:
            outcomes[at] = error

    threads = [
        threading.Thread(target=run, args=[at, function]) for at, function in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def run(env_id, seed, steps=200):
    envs = cartwheel.NativeVectorEnv(env_id, 40, num_workers=2)
    envs.action_space.seed(seed)
    results = [envs.reset(seed=seed)]
    results += [envs.step(envs.action_space.sample()) for _ in range(steps)]
    envs.close()
    return results


def test_two_threads_step_two_objects():
    jobs = [("CartPole-v1", 1), ("Taxi-v4", 2), ("CartPole-v1", 3)]
    outcomes = in_threads(*[partial(run, *job) for job in jobs])
    for job, results in zip(jobs, outcomes, strict=True):
        assert_identical(results, run(*job))


def test_two_threads_may_take_turns_with_one_object(build):
    envs, oracle = build("CartPole-v1", 3)
    lock, results = threading.Lock(), []

    def step():
        for _ in range(50):
            with lock:
                results.append(envs.step([0, 1, 1]))

    assert in_threads(step, step) == [None, None]
    assert_identical(results, [oracle.step(np.array([0, 1, 1])) for _ in range(100)])


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_second_thread_in_the_same_object_is_refused(executor):
    """Steps run without the interpreter's lock, so the second thread comes to try."""
    rows = 8_000
    envs, twin = (cartwheel.NativeVectorEnv("Acrobot-v1", rows, executor=executor) for _ in "ab")
    actions = np.arange(rows) % 3
    envs.reset(seed=1)
    twin.reset(seed=1)
    done, refusals = threading.Event(), []

    def intrude():
        while not done.wait(0.001):
            refusals.append(type(outcome(lambda: envs.get_attr("dt"))[1]))
            refusals.append(type(outcome(envs.step_wait)[1]))

    intruder = threading.Thread(target=intrude)
    intruder.start()
    results = []
    while len(results) < 10 or AlreadyPendingCallError not in refusals:
        result, refusal = outcome(lambda: envs.step(actions))
        if refusal is None:
            results.append(result[0])
        else:  # the intruder came first
            assert isinstance(refusal, AlreadyPendingCallError)
    done.set()
    intruder.join()
    assert set(refusals) <= {AlreadyPendingCallError, NoAsyncCallError, type(None)}
    for result in results:
        assert_identical(result, twin.step(actions)[0])
    envs.close()
    twin.close()


def test_closing_ends_the_steps_of_another_thread():
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 5_000, num_workers=2)
    envs.reset(seed=1)
    started = threading.Event()

    def step():
        while True:
            envs.step(np.zeros(5_000, np.int64))
            started.set()

    def close():
        started.wait()
        envs.close()

    ended, closed = in_threads(step, close)
    assert isinstance(ended, ClosedEnvironmentError)
    assert closed is None


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_there_are_as_many_threads_as_asked_for_and_none_after_close(num_workers):
    for _ in range(5):
        before = threads()
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=num_workers)
        assert envs.num_workers == num_workers
        assert len(threads() - before) == num_workers - 1
        envs.reset(seed=1)
        envs.step(np.zeros(64, np.int64))
        envs.close()
        assert not left_of_threads(before)


@pytest.mark.parametrize("num_envs", [1, 63, 127, 128, 4096])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4"])
def test_by_default_no_thread_has_less_than_an_environment_steps_at_once(env_id, num_envs):
    envs = cartwheel.NativeVectorEnv(env_id, num_envs)
    whole_blocks = num_envs // _cartwheel.block_rows(env_id)
    assert envs.num_workers == min(max(whole_blocks, 1), _cartwheel.usable_cpus())
    envs.close()


def test_the_inline_executor_has_no_threads():
    before = threads()
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, executor="inline", num_workers=4)
    envs.reset(seed=1)
    envs.step(np.zeros(64, np.int64))
    assert (envs.num_workers, envs.executor) == (1, "inline")
    assert threads() <= before
    envs.close()


def test_an_object_that_is_dropped_ends_its_threads():
    before = threads()
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 64, num_workers=4)
    kept, _ = envs.reset(seed=1)
    copy = kept.copy()
    envs.step_async(np.zeros(64, np.int64))
    del envs
    gc.collect()
    assert not left_of_threads(before)
    assert_identical(kept, copy)


# The end, and arrays that outlive it


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_every_call_after_close_is_refused(executor):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, executor=executor)
    envs.reset()
    envs.close()
    text = "Trying to operate on `NativeVectorEnv`, after a call to `close()`."
    for call in (
        envs.reset,
        lambda: envs.step([0, 1, 0]),
        lambda: envs.step(None),
        lambda: envs.reset(seed=[1]),
        lambda: envs.get_attr("gravity"),
        lambda: envs.set_attr("gravity", 1),
        lambda: envs.call("gravity"),
        lambda: envs.get_attr("colour"),
        lambda: envs.np_random,
        lambda: envs.np_random_seed,
        envs.render,
        *[partial(call, envs) for call in [*STARTS.values(), *WAITS.values()]],
    ):
        with pytest.raises(ClosedEnvironmentError, match=re.escape(text)):
            call()
    assert envs.closed
    envs.close()


@pytest.mark.parametrize("pending", STARTS)
def test_close_warns_of_a_pending_call(build, pending):
    envs, _ = build("CartPole-v1", 3)
    STARTS[pending](envs)
    with pytest.warns(
        UserWarning, match=f"`close` while waiting for a pending call to `{pending}`"
    ):
        envs.close()
    assert envs.closed


def test_close_takes_its_arguments():
    for keywords in ({"timeout": 5}, {"timeout": 0}, {"terminate": True}, {}):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 3)
        envs.reset()
        envs.close(**keywords)
        assert envs.closed


@pytest.mark.filterwarnings("ignore:every slab is leased:RuntimeWarning")
@pytest.mark.parametrize("max_slabs", [None, 2, 3])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Blackjack-v1", "Taxi-v4", "Null-v0"])
def test_arrays_are_never_overwritten_and_outlive_the_object(env_id, max_slabs):
    keywords = {"shape": [70, 70], "episode_steps": 5} if env_id == "Null-v0" else {}
    envs = cartwheel.NativeVectorEnv(
        env_id, 5, autoreset_mode="SameStep", num_workers=2, max_slabs=max_slabs, **keywords
    )
    kept = [envs.reset(seed=1)]
    for step in range(60):
        kept.append(envs.step(np.full(5, step % envs.single_action_space.n)))
        if step % 20 == 19:
            kept.append(envs.reset(options={"reset_mask": np.arange(5) == 2}))
    copies = deepcopy(kept)
    for step in range(60):
        envs.step(np.full(5, step % envs.single_action_space.n))
    assert_identical(kept, copies)
    envs.close()
    assert_identical(kept, copies)
    del envs
    gc.collect()
    assert_identical(kept, copies)


def test_what_is_written_into_results_reaches_no_environment(build):
    envs, oracle = build("MountainCarContinuous-v0", 3)
    for step in range(30):
        actions = np.full((3, 1), np.sin(step), F32)
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        for array in result[:4]:
            array[:] = 1
    options = {"reset_mask": np.array([True, False, False])}
    assert_identical(envs.reset(options=dict(options)), oracle.reset(options=dict(options)))
