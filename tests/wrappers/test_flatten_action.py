"""`FlattenAction` gives environments the actions that its `flatten` made flat."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.vector.utils import batch_space, iterate

import cartwheel
from cartwheel.wrappers import FlattenAction
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv
from tests.support.wrapping import MODES, batch_of

LOW = np.array([[-1.0, -2.0], [0.0, -np.inf]], np.float32)
NESTED = Dict(
    z=Tuple([Discrete(4, start=-2), Box(LOW, LOW + 3, dtype=np.float32)]),
    a=Dict(bits=MultiBinary(3), choices=MultiDiscrete([3, 2, 5], start=[1, 0, -4])),
    m=Box(-1, 1, (), np.float64),
)
SPACES = [
    Discrete(3, start=5),
    MultiDiscrete(np.array([[3, 2], [2, 4]])),
    MultiBinary((2, 2)),
    Box(LOW, LOW + 1),
    Tuple([Discrete(2), Discrete(6)]),
    NESTED,
]


def made(space, **keywords):
    return cartwheel.VectorEnv([lambda: RecordingEnv(space)] * 3, executor="inline", **keywords)


def received(envs):
    """The last action of each environment, as a batch of its space."""
    return batch_of(envs.single_action_space, list(envs.get_attr("held")))


def bounds_by_index(space):
    """Lower and upper bounds, part by part in the order of `gymnasium.spaces.flatten`."""
    if isinstance(space, Dict | Tuple):
        parts = space.spaces.values() if isinstance(space, Dict) else space.spaces
        return [np.concatenate(each) for each in zip(*map(bounds_by_index, parts), strict=True)]
    if isinstance(space, Discrete):
        return np.array([space.start]), np.array([space.start + space.n - 1])
    if isinstance(space, MultiDiscrete):
        return space.start.ravel(), (space.start + space.nvec - 1).ravel()
    if isinstance(space, MultiBinary):
        return np.zeros(space.shape).ravel(), np.ones(space.shape).ravel()
    return space.low.ravel(), space.high.ravel()


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("form", ["index", "onehot"])
def test_environments_get_the_actions_that_were_flattened(space, form):
    bare = made(space)
    envs = FlattenAction(bare, form)
    envs.reset(seed=1)
    bare.action_space.seed(3)
    for _ in range(4):
        actions = bare.action_space.sample()
        flat = envs.flatten(actions)
        assert flat in envs.action_space
        before = flat.copy()
        envs.step(flat)
        assert_identical(flat, before)
        assert_identical(received(bare), actions)
        rows = [2, 0]
        envs.step(flat[rows], rows)
        assert_identical(received(bare), actions)
        envs.send(flat[1:2], [1])
        envs.recv()
        assert_identical(received(bare), actions)
    envs.close()


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_one_hot_actions_are_those_of_gymnasium(space):
    bare = made(space)
    envs = FlattenAction(bare, "onehot")
    assert envs.single_action_space == flatten_space(space)
    assert envs.action_space == batch_space(flatten_space(space), 3)
    actions = bare.action_space.sample()
    rows = [flatten(space, row) for row in iterate(bare.action_space, actions)]
    assert_identical(envs.flatten(actions), np.stack(rows))
    envs.close()


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_bounds_are_kept(space):
    envs = FlattenAction(made(space))
    low, high = bounds_by_index(space)
    np.testing.assert_array_equal(envs.single_action_space.low, low)
    np.testing.assert_array_equal(envs.single_action_space.high, high)
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_floating_point_indices_are_rounded_and_the_greatest_one_is_chosen(mode):
    space = Tuple([Discrete(3, start=1), MultiBinary(2), Box(-9, 9, (1,), np.float32)])
    bare = made(space, autoreset_mode=mode)
    envs = FlattenAction(bare)
    assert envs.single_action_space.dtype == np.float64
    envs.reset()
    envs.step(np.array([[2.9, 0.2, 0.9, 0.5]] * 3))
    assert_identical(
        received(bare),
        (np.array([3, 3, 3]), np.array([[0, 1]] * 3, np.int8), np.full((3, 1), 0.5, np.float32)),
    )
    envs = FlattenAction(bare, "onehot")
    envs.step(np.array([[-3, 0.4, 0.1, 1, 0, -2.0]] * 3))
    assert received(bare)[0].tolist() == [2, 2, 2]
    envs.close()


def test_wrong_arguments_are_refused_before_anything_is_stepped():
    bare = made(Dict(a=Discrete(3), b=Box(-1, 1, (2,), np.float32)))
    with pytest.raises(ValueError, match="'index' or 'onehot', got 'hot'"):
        FlattenAction(bare, "hot")
    envs = FlattenAction(bare)
    envs.reset()
    for actions in (np.zeros((3, 2)), np.zeros(9), bare.action_space.sample()):
        with pytest.raises((ValueError, TypeError)):
            envs.step(actions)
    with pytest.raises(ValueError, match=r"\(rows, 3\), got \(3, 2\)"):
        envs.send(np.zeros((3, 2)))
    assert bare.get_attr("actions") == ([], [], [])
    bare.close()
    text = made(Dict(a=Text(3)))
    with pytest.raises(TypeError, match="Box, Discrete, MultiDiscrete and MultiBinary"):
        FlattenAction(text)
    text.close()
