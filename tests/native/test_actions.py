"""Actions of native environments: bad ones are refused early, others act as in Gymnasium."""

import numpy as np
import pytest
from gymnasium.error import NoAsyncCallError

from tests.support.bytes_of_flags import TRUE_BYTES, with_byte
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.oracle import assert_same_steps

I64, F32 = np.int64, np.float32
OTHER_KIND = (
    r"^cannot cast actions of dtype \w+ to .* space's \w+ .* 'same_kind': pass \w+ actions$"
)

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
    ("CartPole-v1", np.zeros((3, 1), I64), ValueError, r"shape \(3,\) .int64., got shape \(3, 1\)"),
    ("CartPole-v1", [[0], [1], [0]], ValueError, r"shape \(3,\) .int64., got shape \(3, 1\)"),
    ("CartPole-v1", np.zeros(3), TypeError, OTHER_KIND),
    ("CartPole-v1", np.zeros(3, F32), TypeError, OTHER_KIND),
    ("CartPole-v1", np.zeros(3, object), TypeError, OTHER_KIND),
    ("CartPole-v1", [0.0, 1.0, 0.0], TypeError, OTHER_KIND),
    ("CartPole-v1", [None] * 3, TypeError, OTHER_KIND),
    ("CartPole-v1", [0, 2**70, 0], OverflowError, "action 118.* does not fit"),
    ("CartPole-v1", 1, TypeError, "Unable to iterate over"),
    ("CartPole-v1", None, TypeError, "Unable to iterate over"),
    ("CartPole-v1", "012", TypeError, "Unable to iterate over"),
    ("Pendulum-v1", np.array([[0], [np.nan], [0]], F32), ValueError, "^action nan of row 1"),
    ("Pendulum-v1", np.array([[np.nan]] * 3, F32), ValueError, r"^action nan of row 0 is not in"),
    ("MountainCarContinuous-v0", np.array([[1], [1], [np.nan]], F32), ValueError, "row 2"),
    ("Pendulum-v1", np.zeros((3, 1), np.complex64), TypeError, OTHER_KIND),
    ("Pendulum-v1", np.zeros(3, F32), ValueError, r"shape \(3, 1\) .float32., got shape \(3,\)"),
    ("Pendulum-v1", np.zeros((3, 2), F32), ValueError, r"got shape \(3, 2\)"),
    ("Pendulum-v1", np.zeros((2, 1), F32), ValueError, "^expected 3 actions .* got 2"),
]


@pytest.mark.parametrize(("env_id", "actions", "error", "text"), BAD_ACTIONS)
def test_bad_actions_are_refused_before_anything_is_stepped(
    build_pair, env_id, actions, error, text
):
    envs, oracle = build_pair(env_id, 3)
    assert_same_steps(envs, oracle, 3)
    for call in (envs.step, envs.step_async):
        with pytest.raises(error, match=text):
            call(actions)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    assert_same_steps(envs, oracle, 5)


CAST_ACTIONS = [
    ("CartPole-v1", np.array([0, 1, 1], dtype))
    for dtype in (bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">i8")
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


@pytest.mark.parametrize(("env_id", "actions"), CAST_ACTIONS)
def test_actions_of_another_dtype_are_cast_to_that_of_the_space(build_pair, env_id, actions):
    envs, oracle = build_pair(env_id, 3)
    exact = np.array(actions, oracle.single_action_space.dtype)
    for _ in range(4):
        assert_identical(envs.step(actions), oracle.step(exact))


@pytest.mark.parametrize("dtype", [bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_many_integers_of_another_dtype_are_those_of_the_space(build_native, dtype):
    envs, twin = (build_native([Case("CartPole-v1")] * 150, num_workers=2) for _ in range(2))
    random = np.random.default_rng(3)
    envs.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(4):
        actions = random.integers(2, size=150)
        assert_identical(envs.step(actions.astype(dtype)), twin.step(actions))
        rows = np.r_[140:150, 3:70]
        actions = random.integers(2, size=len(rows))
        assert_identical(envs.step(actions.astype(dtype), rows), twin.step(actions, rows))


@pytest.mark.parametrize("byte", TRUE_BYTES)
def test_flags_as_actions_are_0_or_1_whatever_their_byte(build_native, byte):
    envs, twin = (build_native([Case("CartPole-v1")] * 150, num_workers=2) for _ in range(2))
    random, rows = np.random.default_rng(3), np.r_[140:150, 3:70]
    envs.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(4):
        actions = random.random(150) < 0.5
        assert_identical(envs.step(with_byte(actions, byte)), twin.step(actions))
        some = with_byte(actions[rows], byte)
        assert_identical(envs.step(some, rows), twin.step(actions[rows], rows))


@pytest.mark.parametrize(("dtype", "wrong"), [("i1", -128), ("i2", -(2**15)), ("u4", 2**32 - 1)])
def test_the_first_of_many_integers_that_is_no_action_is_named(build_native, dtype, wrong):
    envs = build_native([Case("CartPole-v1")] * 150)
    envs.reset(seed=1)
    actions = np.zeros(150, dtype)
    actions[[129, 149]] = wrong
    with pytest.raises(ValueError, match=rf"^action {wrong} of row 129 is not in Discrete\(2\)$"):
        envs.step(actions)


@pytest.mark.parametrize(
    "dtype",
    [bool, "i1", "i2", "i4", "i8", "u1", "u2", "u8", "f2", "f8"],
    ids=lambda dtype: np.dtype(dtype).name,
)
def test_float_actions_accept_integers_and_other_floats(build_pair, dtype):
    envs, oracle = build_pair("Pendulum-v1", 2)
    for _ in range(4):
        actions = np.array([[1], [0]], dtype)
        assert_identical(envs.step(actions), oracle.step(actions.astype(F32)))
