"""Integer observations are ``int32``, and everything else is as the environment returns it."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from gymnasium.vector.utils import batch_space, iterate

from cartwheel import NativeVectorEnv
from cartwheel.envpool.formats import form_of
from tests.envpool.tasks import NESTED

WIDE = 2**31 - 1  # the largest int32
IN_FORM = [
    Box(-1, 1, (2,), np.float64),
    MultiDiscrete([3, 4]),
    Discrete(WIDE + 2),
    Discrete(5, start=-(2**31) - 1),
    Tuple([]),
    Tuple([Box(0, 9, (1,), np.int64), Discrete(WIDE + 2)]),
    Dict(a=Box(0, 1), b=Dict(c=Discrete(WIDE + 2))),
]
CONVERTED = {
    "integers": (Discrete(7, start=-3), Discrete(7, start=-3)),
    "the most that fits": (Discrete(WIDE + 1), Discrete(WIDE + 1)),
    "a tuple": (Tuple([Discrete(32), Discrete(11), Discrete(2)]), Box(0, 31, (3,), np.int32)),
    "other bounds": (
        Tuple([Discrete(4, start=-2), Discrete(3, start=5)]),
        Box(-2, 7, (2,), np.int32),
    ),
    "a dict": (
        Dict(a=Tuple([Discrete(3)]), b=Box(0, 1, (2,))),
        Dict(a=Box(0, 2, (1,), np.int32), b=Box(0, 1, (2,))),
    ),
    "a mixed tuple": (
        Tuple([Discrete(3), Box(0, 1, (2,))]),
        Tuple([Discrete(3), Box(0, 1, (2,))]),
    ),
}


def flat(value):
    """The numbers in an observation, in order."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return [number for part in value for number in flat(part)]
    return np.ravel(value).tolist()


@pytest.mark.parametrize("space", IN_FORM, ids=str)
def test_these_observations_are_not_touched(space):
    assert form_of(space) == (space, None)


@pytest.mark.parametrize("case", CONVERTED)
def test_converted_batches_have_the_same_numbers_and_are_in_the_space_of_the_pool(case):
    space, expected = CONVERTED[case]
    form = form_of(space)
    assert form.space == expected
    batches = batch_space(space, 5)
    batches.seed(4)
    batch = batches.sample()
    converted = form.convert(batch)
    rows = list(iterate(batch_space(form.space, 5), converted))
    for row, original in zip(rows, iterate(batches, batch), strict=True):
        assert flat(row) == flat(original)
        assert form.space.contains(row)


def dtypes(value):
    if isinstance(value, dict):
        return {key: dtypes(part) for key, part in value.items()}
    return tuple(map(dtypes, value)) if isinstance(value, tuple) else value.dtype


@pytest.mark.parametrize("way", ["reset", "step", "masked reset"])
def test_integers_in_nested_spaces_are_int32(make, way):
    envs = make(NESTED, num_envs=2, seed=3, executor="inline")
    observations = envs.reset()[0]
    if way == "step":
        observations = envs.step(np.zeros(2, np.int64))[0]
    elif way == "masked reset":
        options = {"reset_mask": np.array([True, False])}
        observations = envs.reset(options=options)[0]
    assert observations["walk"].dtype == np.float64
    assert dtypes(observations["state"]) == (np.int32, np.int8, {"clock": np.int64})


@pytest.mark.parametrize("task_id", ["Blackjack-v1", "FrozenLake-v1", "CliffWalkingSlippery-v1"])
def test_values_are_those_of_the_environment(make, task_id):
    envs, oracle = make(task_id, num_envs=3, seed=5), NativeVectorEnv(task_id, 3)
    got, expected = envs.reset(), oracle.reset(seed=5)
    for _ in range(40):
        shown = np.array(expected[0]).T if isinstance(expected[0], tuple) else expected[0]
        np.testing.assert_array_equal(got[0], shown)
        assert got[0].dtype == np.int32
        actions = np.ones(3, np.int64)
        got, expected = envs.step(actions), oracle.step(actions)
        if "prob" in expected[-1]:
            np.testing.assert_allclose(got[-1]["prob"], expected[-1]["prob"], rtol=1e-6)
    oracle.close()
