"""Parameters of native environments are read and set like attributes of Gymnasium's."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium.error import NoAsyncCallError

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.oracle import assert_same_steps
from tests.support.parameters import OTHER_VALUES
from tests.support.repetitions import times

PARAMETERS = [(env_id, name) for env_id, values in OTHER_VALUES.items() for name in values]


def plain(value):
    """A value as plain Python data: lists, numbers, text."""
    return np.asarray(value).tolist()


def assert_same_parameters(envs, oracle, names):
    for name in names:
        pairs = zip(envs.get_attr(name), oracle.get_attr(name), strict=True)
        for ours, theirs in pairs:
            assert plain(ours) == plain(theirs), name


@pytest.mark.parametrize("env_id", OTHER_VALUES)
def test_parameters_equal_gymnasiums_attributes(build_pair, env_id):
    envs, oracle = build_pair(env_id, 3)
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])
    assert_same_steps(envs, oracle, 7)
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])
    for name in OTHER_VALUES[env_id]:
        assert_identical(envs.call(name), envs.get_attr(name))


@pytest.mark.parametrize(("env_id", "name"), PARAMETERS, ids=str)
def test_setting_a_parameter_acts_like_setting_gymnasiums_attribute(build_pair, env_id, name):
    envs, oracle = build_pair(env_id, 3)
    assert_same_steps(envs, oracle, 3)
    value = OTHER_VALUES[env_id][name]
    for each in (envs, oracle):
        each.set_attr(name, deepcopy(value))
    assert_same_parameters(envs, oracle, [name])
    assert_same_steps(envs, oracle, times(15, with_full=40))
    assert_identical(envs.reset(seed=9), oracle.reset(seed=9))
    assert_same_steps(envs, oracle, times(15, with_full=40))
    assert_same_parameters(envs, oracle, OTHER_VALUES[env_id])


def test_several_parameters_may_be_set(build_pair):
    envs, oracle = build_pair("CartPole-v1", 9, num_workers=3)
    random = np.random.default_rng(3)
    for turn in range(5):
        for name in ("gravity", "masspole", "force_mag", "tau"):
            value = (turn + 1) * random.uniform(0.01, 3, 9)
            for each in (envs, oracle):
                each.set_attr(name, value.tolist())
        assert_same_steps(envs, oracle, 10)
        assert_identical(envs.reset(), oracle.reset())


def test_a_passenger_is_fickle_only_if_the_parameter_is_set(build_pair):
    """Gymnasium reads both attributes in every step."""
    envs, oracle = build_pair("Taxi-v4", 3, fickle_passenger=True, fickle_probability=1.0)
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
        ("MountainCarContinuous-v0", "state"),  # float64 and float32
        ("Pendulum-v1", "state"),
        ("Pendulum-v1", "last_u"),
        ("Acrobot-v1", "state"),  # as above
        ("Blackjack-v1", "player"),
        ("Blackjack-v1", "dealer"),
    ],
)
def test_attributes_that_change_their_type_do_so_as_in_gymnasium(build_pair, env_id, name):
    envs, oracle = build_pair(env_id, 3)
    for _ in range(3):
        assert_identical(envs.get_attr(name), oracle.get_attr(name))
        assert_same_steps(envs, oracle, 1)


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("env_id", OTHER_VALUES)
def test_setting_a_parameter_to_its_own_value_changes_nothing(build_pair, env_id, steps):
    envs, oracle = build_pair(env_id, times(2, with_full=7))
    assert_same_steps(envs, oracle, steps)
    for name in OTHER_VALUES[env_id]:
        envs.set_attr(name, list(envs.get_attr(name)))
    assert_same_steps(envs, oracle, times(12, with_full=30))


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
def test_parameters_accept_every_kind_of_number(build_pair, env_id, name, value):
    envs, oracle = build_pair(env_id, 2)
    for each in (envs, oracle):
        each.set_attr(name, deepcopy(value))
    assert_same_steps(envs, oracle, 10)


def test_unknown_parameters_are_refused_by_name(build_pair):
    envs, oracle = build_pair("CartPole-v1", 3)
    for call in (
        lambda: envs.get_attr("color"),
        lambda: envs.set_attr("color", 1),
        lambda: envs.set_attr("color", [1, 2, 3]),
        lambda: envs.call("color"),
        lambda: envs.get_attr("step"),
    ):
        with pytest.raises(AttributeError, match=r"CartPole-v1 has no parameter '\w+'; it has st"):
            call()
    with pytest.raises(AttributeError):
        oracle.get_attr("color")
    with pytest.raises(TypeError, match=r"`gravity` is a parameter .* takes no arguments"):
        envs.call("gravity", 1)
    nothing = cartwheel.NativeVectorEnv("Null-v0", 1)
    with pytest.raises(AttributeError, match="it has none"):
        nothing.get_attr("steps")
    nothing.close()
    assert_same_steps(envs, oracle, 5)


BAD_VALUES: list[tuple[str, str, Any, type[Exception], str]] = [
    ("CartPole-v1", "gravity", "heavy", ValueError, "must be a number"),
    ("CartPole-v1", "gravity", None, ValueError, "must be a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, "heavy"], ValueError, "must be a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, None], ValueError, "must be a number"),
    ("CartPole-v1", "gravity", [5.0, 5.0, object()], TypeError, "`gravity` cannot be of type"),
    ("CartPole-v1", "gravity", 2**70, OverflowError, "too large"),
    ("CartPole-v1", "state", np.zeros(3), ValueError, "must be 4 numbers"),
    ("CartPole-v1", "state", 1.0, ValueError, "must be 4 numbers"),
    ("CartPole-v1", "kinematics_integrator", 1, ValueError, "must be the name of an integrator"),
    ("Acrobot-v1", "book_or_nips", "article", ValueError, 'must be "book" or "nips"'),
    ("Acrobot-v1", "AVAIL_TORQUE", [[1.0, 2.0]] * 3, ValueError, "must be 3 numbers"),
    ("FrozenLake-v1", "s", -1, ValueError, "must be"),
    ("FrozenLake-v1", "s", 16, ValueError, "must be"),
    ("FrozenLake-v1", "s", 1.0, ValueError, "must be an integer"),
    ("FrozenLake-v1", "desc", [["SFFX"] * 4] * 3, ValueError, "malformed map"),
    ("FrozenLake-v1", "desc", [["SG"]] * 3, ValueError, "a map of the same size"),
    ("CliffWalking-v1", "s", -1, ValueError, "must be"),
    ("CliffWalking-v1", "s", 48, ValueError, "must be"),
    ("Taxi-v4", "s", 500, ValueError, "must be a state below 500"),
    ("Taxi-v4", "s", -1, ValueError, "must be a state below 500"),
    ("Taxi-v4", "fickle_passenger", 0.5, ValueError, "must be a truth value"),
    ("Blackjack-v1", "player", [[11, 2]] * 3, ValueError, "must be 1 to 22 cards from 1 to 10"),
    ("Blackjack-v1", "player", [[]] * 3, ValueError, "must be 1 to 22 cards from 1 to 10"),
]


@pytest.mark.parametrize(("env_id", "name", "value", "error", "text"), BAD_VALUES)
def test_a_bad_value_is_refused_and_no_row_changes(build_pair, env_id, name, value, error, text):
    envs, oracle = build_pair(env_id, 3)
    before = envs.get_attr(name)
    with pytest.raises(error, match=text):
        envs.set_attr(name, value)
    assert_identical(envs.get_attr(name), before)
    assert_same_steps(envs, oracle, 10)


def test_a_bad_call_is_refused_before_it_is_pending(build_pair):
    envs, oracle = build_pair("CartPole-v1", 3)
    with pytest.raises(AttributeError, match="CartPole-v1 has no parameter 'color'"):
        envs.call_async("color")
    with pytest.raises(TypeError, match=r"`tau` is a parameter .* takes no arguments"):
        envs.call_async("tau", 1)
    with pytest.raises(NoAsyncCallError):
        envs.call_wait()
    assert_same_steps(envs, oracle, 5)


def test_returned_generators_are_copies(build_pair):
    envs, oracle = build_pair("Taxi-v4", 3)
    for generators in (envs.np_random, envs.get_attr("np_random"), envs.call("np_random")):
        assert_identical(generators, oracle.np_random)
        generators[0].random(9)
    assert_same_steps(envs, oracle, 5)
