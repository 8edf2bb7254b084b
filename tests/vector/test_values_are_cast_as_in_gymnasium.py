"""Observations, rewards and flags become the dtypes of the batch, or an error of their row."""

import math
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.vector import SyncVectorEnv

from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import PuppetEnv, scalar_puppets
from tests.support.executors import EXECUTORS
from tests.support.oracle import outcome

DTYPES = [np.dtype(code) for code in "?bhilBHILefd"]
OBS = np.float32(0)


class ArrayLike:
    """An object that NumPy can convert to an array."""

    def __array__(self, dtype=None, copy=None):
        return np.array([3.5, 4.5], dtype)


class Pair:
    """Our puppets and the oracle's, which must treat an observation in the same way."""

    def __init__(self, build, space, good):
        env_fns = [partial(PuppetEnv, space, good)] * 2
        self.good, self.ours, self.oracle = good, build(env_fns), SyncVectorEnv(env_fns)
        self.ours.reset()

    def check(self, observation):
        """Our row 1 returns ``observation``, from a step and from a reset; row 0 a good one.

        All rows of the oracle return it: upstream, one row can change how another is cast.
        """
        show(self.ours, [self.good, observation])
        show(self.oracle, [observation, observation])
        for ours, theirs in (
            (partial(self.ours.step, [0, 0]), partial(self.oracle.step, [0, 0])),
            (self.ours.reset, self.oracle.reset),
        ):
            expected, failure = outcome(theirs)
            if failure is None:
                assert_identical(row_1(ours()[0]), row_1(expected[0]))
                continue
            with pytest.raises(type(failure)) as raised:
                ours()
            assert_names_row(raised.value, 1)
            show(self.ours, [self.good, self.good])
            self.ours.reset()
            show(self.ours, [self.good, observation])

    def close(self):
        self.ours.close()
        self.oracle.close()


def show(envs, rows):
    envs.set_attr("frame", [(row, 0.0, False, False, {}) for row in rows])
    envs.set_attr("reset_frame", [(row, {}) for row in rows])


def row_1(observations):
    if isinstance(observations, dict):
        return {key: row_1(value) for key, value in observations.items()}
    if isinstance(observations, tuple):
        return tuple(map(row_1, observations))
    return observations[1]


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_lists_of_arrays_are_stacked_as_in_gymnasium(executor):
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    pair = Pair(executor, Box(-9, 9, (2, 3), np.float32), rows)
    reversed_rows = rows[:, ::-1]
    try:
        for observation in (
            [rows[1], rows[0]],  # the rows of the leaf
            [reversed_rows[1], rows[0]],  # one that is not contiguous
            [rows[0], rows[1].astype(np.int64)],  # one to cast
            [rows[0], rows[0].tolist()],
            [rows[0]],
            [rows[0], rows[0], rows[0]],
            [rows[0], rows[1][:2]],
            [rows[0], "text"],
            (rows[1], rows[0]),
        ):
            pair.check(observation)
    finally:
        pair.close()


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_is_cast_into_every_other_as_in_gymnasium(executor, dtype):
    pair = Pair(executor, Box(0, 1, (3,), dtype), np.zeros(3, dtype))
    try:
        for source in DTYPES:
            for values in ([0, 1, 1], [1, 0, 100]):
                pair.check(np.array(values).astype(source))
        for code in (">i4", ">f8", "S3", "U3", "O", "D", "M8[s]"):
            pair.check(np.zeros(3, code))
    finally:
        pair.close()


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize(
    ("space", "observations"),
    [
        (
            Box(-9, 9, (2,), np.float32),
            [
                [1, 2],
                [0.1, 2],
                (1, 2.5),
                [np.float64(0.1), 3],
                np.array([0.1, 1e30]),
                np.array([2**60, 1]),
                np.array([[1.0, 2.0]]),
                np.array([1.0]),
                np.array([1.0, 2.0, 3.0]),
                np.array(1.0),
                np.arange(4.0).reshape(2, 2)[:, 0],
                np.arange(4.0)[::-2],
                ArrayLike(),
                range(2),
                3,
                None,
                "ab",
                [1, None],
                [1j, 2],
                [[1, 2], [3]],
            ],
        ),
        (Box(-9, 9, (), np.float32), [1, 2.5, True, np.array(0.1), np.array([1.0]), [1.0], None]),
        (
            Box(-9, 9, (2, 3), np.float32),
            [
                np.asfortranarray(np.arange(6.0).reshape(2, 3)),
                np.arange(6.0).reshape(3, 2).T,
                np.arange(12).reshape(2, 6)[:, ::2],
                np.broadcast_to(np.float32(1), (2, 3)),
                [[1, 2, 3], [4, 5, 6]],
                [np.zeros(3), np.ones(3)],
                np.zeros((3, 2)),
                np.zeros(6),
            ],
        ),
        (Box(0, 255, (2,), np.uint8), [[1, 2], np.array([300, 1]), np.array([3, 4], np.uint16)]),
        (Box(-9, 9, (2,), np.int8), [[1, 2], np.array([300, -300]), np.array([0.5, 1.0])]),
        (
            Discrete(5),
            [
                3,
                np.int8(3),
                np.uint64(3),
                np.array(3),
                True,
                np.array([3]),
                2.0,
                np.float32(1),
                "3",
            ],
        ),
        (Discrete(5, dtype=np.int32), [3, 2**40, np.int64(4)]),
        (MultiDiscrete([3, 4]), [[1, 2], (1, 2), np.array([1, 2], np.uint8), np.array([1.0, 2.0])]),
        (MultiBinary(2), [[1, 0], [True, False], np.array([1, 0]), np.array([1, 0], np.uint8)]),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, Space) else "",
)
def test_observations_that_are_not_arrays_of_the_space_are_cast_as_in_gymnasium(
    executor, space, observations
):
    pair = Pair(executor, space, np.zeros(space.shape, space.dtype))
    try:
        for observation in observations:
            pair.check(observation)
    finally:
        pair.close()


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_nested_observations_are_cast_as_in_gymnasium(executor):
    space = Dict(a=Box(-9, 9, (2,), np.float32), b=Tuple([Discrete(5), MultiBinary(2)]))
    good = {"a": np.zeros(2, np.float32), "b": (np.int64(0), np.zeros(2, np.int8))}
    pair = Pair(executor, space, good)
    try:
        for observation in (
            {"b": (3, [1, 0]), "a": [0.1, 2]},
            {"a": [0.1, 2], "b": [3, [1, 0]]},
            {"a": [0.1, 2], "b": (3, [1, 0]), "extra": object},
            {"a": [0.1, 2], "b": (3, [1, 0], "more")},
            {"a": [0.1, 2]},
            {"a": [0.1, 2], "b": (3,)},
            {"a": [0.1], "b": (3, [1, 0])},
            {"a": [0.1, 2], "b": (3.5, [1, 0])},
            {"a": [0.1, 2], "b": 3},
            None,
            [1, 2],
        ):
            pair.check(observation)
    finally:
        pair.close()


def test_an_observation_of_the_wrong_shape_is_a_value_error_that_names_its_row(build):
    envs = build([partial(PuppetEnv, Box(-1, 1, (2,)), np.zeros(2, np.float32))] * 3)
    envs.reset()
    for wrong in (np.zeros(3, np.float32), np.zeros((2, 1)), np.zeros(()), np.zeros((1, 2))):
        frames = [(np.zeros(2), 0.0, False, False, {})] * 2 + [(wrong, 0.0, False, False, {})]
        envs.set_attr("frame", frames)
        with pytest.raises(ValueError, match=r"shape|broadcast") as failure:
            envs.step([0] * 3)
        assert_names_row(failure.value, 2)
        envs.reset()


def test_an_observation_is_never_truncated_silently(build):
    envs = build([partial(PuppetEnv, Box(0, 255, (2,), np.uint8), np.zeros(2, np.uint8))] * 3)
    envs.reset()
    for wrong in (np.array([300, 1]), np.array([0.5, 1.0])):
        frames = [(wrong, 0.0, False, False, {})] * 3
        envs.set_attr("frame", frames)
        text = f"the observation has dtype {wrong.dtype}, its space has uint8"
        with pytest.raises(TypeError, match=text) as failure:
            envs.step([0] * 3)
        assert_names_row(failure.value, 0)
        envs.reset()


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        (1, 1.0),
        (2.5, 2.5),
        (True, 1.0),
        (None, math.nan),
        (math.inf, math.inf),
        (-0.0, -0.0),
        (2**70, float(2**70)),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.1), float(np.float16(0.1))),
        (np.int8(-3), -3.0),
        (np.uint64(2**63), float(2**63)),
        (np.bool_(True), 1.0),
        (np.array(2.5), 2.5),
        (np.array([2.5]), 2.5),
        (np.array([[3]]), 3.0),
        (np.ma.masked, math.nan),
        (np.ma.array(2.5, mask=True), math.nan),
        (np.ma.array(2.5), 2.5),
    ],
    ids=repr,
)
def test_a_reward_is_a_float64(puppets, reward, expected):
    puppets.reset()
    puppets.set_attr("frame", [(OBS, value, False, False, {}) for value in (0.5, reward)])
    for _ in range(2):
        assert_identical(puppets.step([0, 0])[1], np.array([0.5, expected]))


def test_a_reward_of_size_one_survives_the_autoreset(build):
    """Upstream's batches change their shape, and break at the first reset (#1445)."""
    envs = build(scalar_puppets(2))
    envs.reset()
    envs.set_attr("frame", [(OBS, np.array([2.5]), True, False, {})] * 2)
    assert [envs.step([0, 0])[1].tolist() for _ in range(4)] == [[2.5, 2.5], [0, 0]] * 2


@pytest.mark.parametrize(
    "reward", [np.zeros(2), np.array(["high"]), [1.0, 2.0], "high", {}, 1j], ids=repr
)
def test_a_reward_that_is_not_a_number_is_an_error_of_its_row(build, reward):
    envs = build(scalar_puppets(3))
    envs.reset()
    envs.set_attr("frame", [(OBS, value, False, False, {}) for value in (0.5, reward, 1.0)])
    with pytest.raises((TypeError, ValueError), match="a reward must be a number, got ") as failure:
        envs.step([0] * 3)
    assert_names_row(failure.value, 1)
    envs.reset()
    envs.set_attr("frame", [(OBS, 1.0, False, False, {})] * 3)
    assert_identical(envs.step([0] * 3)[1], np.ones(3))


@pytest.mark.parametrize("position", [2, 3], ids=["terminated", "truncated"])
@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (1, True),
        (0, False),
        (2, True),
        (0.5, True),
        (None, False),
        (np.bool_(True), True),
        (np.bool_(False), False),
        (np.int64(3), True),
        (np.array(True), True),
        (np.array([False]), False),
        ("", False),
    ],
    ids=repr,
)
def test_a_flag_is_a_bool(puppets, position, flag, expected):
    puppets.reset()
    frame = [OBS, 1.0, False, False, {}]
    frame[position] = flag
    puppets.set_attr("frame", [(OBS, 1.0, False, False, {}), tuple(frame)])
    result = puppets.step([0, 0])
    assert_identical(result[position], np.array([False, expected]))
    assert_identical(result[5 - position], np.array([False, False]))
    assert_identical(puppets.step([0, 0])[1], np.array([1.0, 0.0 if expected else 1.0]))


@pytest.mark.parametrize(
    "frame", [(OBS, 0.0, False, {}), (OBS, 0.0, False, False, {}, 1), (), None, 3], ids=repr
)
def test_a_step_that_is_not_a_tuple_of_five_is_an_error_of_its_row(puppets, frame):
    puppets.reset()
    good = (OBS, 0.0, False, False, {})
    puppets.set_attr("frame", [good, frame])
    with pytest.raises((TypeError, ValueError)) as failure:
        puppets.step([0, 0])
    assert_names_row(failure.value, 1)
    puppets.reset()
    puppets.set_attr("frame", [good, good])
    puppets.step([0, 0])


@pytest.mark.parametrize("position", [2, 3], ids=["terminated", "truncated"])
def test_a_flag_with_an_ambiguous_truth_value_is_an_error_of_its_row(puppets, position):
    puppets.reset()
    frame = [OBS, 1.0, False, False, {}]
    frame[position] = np.array([True, False])
    puppets.set_attr("frame", [(OBS, 1.0, False, False, {}), tuple(frame)])
    with pytest.raises(ValueError, match=r"truth|sequence") as failure:
        puppets.step([0, 0])
    assert_names_row(failure.value, 1)


def test_a_step_may_return_any_sequence_of_five(build):
    envs = build(scalar_puppets(2))
    envs.reset()
    envs.set_attr("frame", [[OBS, 1.5, False, True, {"a": 1}]] * 2)
    _obs, rewards, _terminations, truncations, infos = envs.step([0, 0])
    assert (rewards.tolist(), truncations.tolist()) == ([1.5, 1.5], [True, True])
    assert_identical(infos, {"a": np.array([1, 1]), "_a": np.array([True, True])})


@pytest.mark.parametrize("frame", [(OBS,), (OBS, {}, 1), (), None, np.zeros(4)], ids=repr)
def test_a_reset_that_is_not_a_tuple_of_two_is_an_error_of_its_row(build, frame):
    envs = build(scalar_puppets(2))
    envs.set_attr("reset_frame", [(OBS, {}), frame])
    with pytest.raises((TypeError, ValueError)) as failure:
        envs.reset()
    assert_names_row(failure.value, 1)
    envs.set_attr("reset_frame", [(OBS, {})] * 2)
    envs.reset()


def test_a_row_with_a_wrong_observation_blocks_no_reset_of_another_row(build):
    """It shows its last good observation until it is reset itself."""
    space, good = Box(-1, 1, (2,)), np.zeros(2, np.float32)
    envs = build([partial(PuppetEnv, space, good)] * 2)
    envs.reset()
    half, wrong = np.full(2, 0.5, np.float32), np.zeros(3)
    envs.set_attr("frame", [(half, 0.0, False, False, {})] * 2)
    envs.step([0, 0])
    envs.set_attr("frame", [(half, 0.0, False, False, {}), (wrong, 0.0, False, False, {})])
    with pytest.raises(ValueError, match="shape"):
        envs.step([0, 0])
    observations, _infos = envs.reset(options={"reset_mask": np.array([True, False])})
    assert_identical(observations, np.array([[0, 0], [0.5, 0.5]], np.float32))
    with pytest.raises(ResetNeeded, match="1"):
        envs.step([0, 0])
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.set_attr("frame", [(half, 1.0, False, False, {})] * 2)
    assert_identical(envs.step([0, 0])[1], np.ones(2))
