"""Environments get copies of their actions, even of those that shared memory cannot hold."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Graph, GraphInstance, Sequence, Text
from gymnasium.vector.utils import batch_space, iterate

from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv
from tests.support.in_parts import PATIENCE_S

BOX = Box(-9, 9, (2,), np.float32)
NUM_ENVS = 3


def overwrite(actions):
    """Overwrites every array, however nested."""
    if isinstance(actions, np.ndarray):
        actions[...] = 7
    elif isinstance(actions, dict | list | tuple):
        for part in actions.values() if isinstance(actions, dict) else actions:
            overwrite(part)


class OverwritingEnv(RecordingEnv):
    """Overwrites the arrays of its actions after it has recorded them."""

    def step(self, action):
        result = super().step(action)
        overwrite(action)
        return result


def dicts():
    return {
        "b": np.arange(6, dtype=np.float32).reshape(3, 2),
        "n": {"b": np.ones((3, 2), np.float32)},
        "t": ("x", "y", "z"),
    }


def sequences():
    return tuple(tuple(np.full(2, row, np.float32) for _ in range(row)) for row in range(NUM_ENVS))


def graphs():
    return tuple(
        GraphInstance(
            np.full((2, 2), row, np.float32), np.ones((1, 2), np.float32), np.array([[0, 1]])
        )
        for row in range(NUM_ENVS)
    )


WITHOUT_SHAPE = pytest.mark.parametrize(
    ("space", "make_batch"),
    [
        (Dict(b=BOX, n=Dict(b=BOX), t=Text(5)), dicts),
        (Sequence(BOX), sequences),
        (Graph(BOX, BOX), graphs),
    ],
    ids=["Dict", "Sequence", "Graph"],
)


def step_all(envs, batch):
    envs.step_async(batch)
    overwrite(batch)
    envs.step_wait()


def send_all(envs, batch):
    envs.send(batch)
    overwrite(batch)
    envs.recv(PATIENCE_S)


def send_by_number(envs, batch):
    envs.send(batch, [0, 1, 2])
    overwrite(batch)
    envs.recv(PATIENCE_S)


HOW = pytest.mark.parametrize("play", [step_all, send_all, send_by_number])


@WITHOUT_SHAPE
@HOW
def test_the_caller_may_overwrite_actions_without_a_fixed_shape(build, space, make_batch, play):
    envs = build([partial(RecordingEnv, space)] * NUM_ENVS)
    envs.reset()
    play(envs, make_batch())
    expected = list(iterate(batch_space(space, NUM_ENVS), make_batch()))
    assert_identical([actions[-1] for actions in envs.get_attr("actions")], expected)
    assert_identical(list(envs.get_attr("held")), expected)


@WITHOUT_SHAPE
@pytest.mark.parametrize("sends", [False, True], ids=["step", "send"])
def test_an_environment_that_overwrites_its_action_does_not_change_the_callers(
    build, space, make_batch, sends
):
    envs = build([partial(OverwritingEnv, space)] * NUM_ENVS)
    envs.reset()
    batch = make_batch()
    if sends:
        envs.send(batch, [0, 1, 2])
        envs.recv(PATIENCE_S)
    else:
        envs.step(batch)
    assert_identical(batch, make_batch())


def in_flight_with_another_dtype(envs, batch):
    """Sends ``batch`` to rows 1 and 2, while row 0 is in flight with actions of another dtype."""
    first = np.zeros((1, 2), np.float64)
    envs.send({"b": first} if isinstance(batch, dict) else first, [0])
    envs.send(batch, [1, 2])


@pytest.mark.parametrize("nested", [False, True], ids=["Box", "Dict"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_the_caller_may_overwrite_actions_of_another_dtype_than_those_in_flight(
    build, nested, dtype
):
    envs = build([partial(RecordingEnv, Dict(b=BOX) if nested else BOX)] * NUM_ENVS)
    envs.reset()
    array = np.array([[1, 2], [3, 4]], dtype)
    expected = [{"b": row} if nested else row for row in deepcopy(array)]
    in_flight_with_another_dtype(envs, {"b": array} if nested else array)
    array[...] = 7
    envs.recv(PATIENCE_S)
    assert_identical([actions[-1] for actions in envs.get_attr("actions")[1:]], expected)
    assert_identical(list(envs.get_attr("held")[1:]), expected)


@pytest.mark.parametrize("nested", [False, True], ids=["Box", "Dict"])
def test_an_environment_that_overwrites_an_action_of_another_dtype_does_not_change_the_callers(
    build, nested
):
    envs = build([partial(OverwritingEnv, Dict(b=BOX) if nested else BOX)] * NUM_ENVS)
    envs.reset()
    array = np.array([[1, 2], [3, 4]], np.float32)
    in_flight_with_another_dtype(envs, {"b": array} if nested else array)
    envs.recv(PATIENCE_S)
    assert array.tolist() == [[1, 2], [3, 4]]
