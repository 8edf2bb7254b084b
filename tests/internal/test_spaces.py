"""Observations and actions of every space arrive unchanged, in every executor."""

import itertools
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import create_empty_array, iterate

import cartwheel
from cartwheel._internal import nested
from tests.support.comparison import assert_identical, text_of
from tests.support.environments import Complex, PuppetEnv, RegisteredComplex, samplers
from tests.support.executors import EVERY_EXECUTOR, EXECUTORS
from tests.support.oracle import D, N, S, assert_same_reset
from tests.support.random_examples import given, settings, st
from tests.support.repetitions import times

NUM_ENVS = 3
BOOL: Any = np.bool_
NUMBERS: list[Any] = [
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]
GRAPH = Graph(node_space=Box(-1, 1, (3,)), edge_space=Discrete(5))
NAMES = Text(6, min_length=1, charset="abcdef")

SPACES = {
    **{f"Box {np.dtype(dtype)}": Box(0, 7, (2, 3), dtype) for dtype in NUMBERS},
    "Box bool": Box(0, 1, (5,), BOOL),
    "Box of shape ()": Box(-1, 1, ()),
    "Box without elements": Box(-1, 1, (0, 3)),
    "Box unbounded": Box(-np.inf, np.inf, (2,), np.float64),
    "image": Box(0, 255, (84, 84, 4), np.uint8),
    "Discrete": Discrete(5),
    "Discrete with a start": Discrete(5, start=-3),
    "Discrete int32": Discrete(5, dtype=np.int32),
    "MultiDiscrete": MultiDiscrete([3, 5, 7]),
    "MultiDiscrete of two dimensions": MultiDiscrete(np.array([[3, 5], [7, 9]])),
    "MultiDiscrete with a start": MultiDiscrete([3, 5], start=[-1, 4], dtype=np.int16),
    "MultiBinary": MultiBinary(4),
    "MultiBinary of two dimensions": MultiBinary([2, 3]),
    "Dict": Dict(b=Box(-1, 1, (2,)), a=Discrete(3)),
    "Dict in order of insertion": Dict({"z": Discrete(3), "a": Discrete(4)}),
    "Tuple": Tuple([Discrete(3), Box(-1, 1, (2,))]),
    "Tuple without members": Tuple([]),
    "nested": Dict(
        d=Dict(t=Tuple([Discrete(3), Dict(x=Box(0, 1, (2, 2), np.float64))])),
        e=Tuple([Tuple([MultiBinary(3)]), MultiDiscrete([2, 2])]),
    ),
    "Text": NAMES,
    "Text that may be empty": Text(4, min_length=0, charset="äöü€𝄞"),
    "OneOf": OneOf([Discrete(3), Box(-1, 1, (2,)), Text(4)]),
    "Sequence": Sequence(Box(-1, 1, (2,))),
    "Sequence stacked": Sequence(Box(-1, 1, (2,)), stack=True),
    "Sequence of Dict": Sequence(Dict(a=Discrete(3), b=NAMES)),
    "Graph": GRAPH,
    "Graph without edge features": Graph(Box(-1, 1, (3,)), None),
    "custom": Complex(),
    "custom and registered": RegisteredComplex(),
    "Dict of everything": Dict(
        box=Box(-1, 1, (2,)),
        text=NAMES,
        one_of=OneOf([Discrete(3), NAMES]),
        graph=GRAPH,
        sequence=Sequence(Discrete(3)),
        custom=Complex(),
        registered=RegisteredComplex(),
        tuple=Tuple([NAMES, Discrete(4), Complex()]),
    ),
    "Tuple of everything": Tuple([NAMES, GRAPH, Discrete(4), Sequence(Discrete(3)), Complex()]),
}
#: Gymnasium cannot iterate batches of a custom space inside another space, or of an empty Tuple.
NO_ACTIONS = ["Dict of everything", "Tuple of everything", "Tuple without members"]
#: Gymnasium has no empty value for a custom space.
NO_EMPTY_VALUE = ["custom", "Dict of everything", "Tuple of everything"]


def assert_same_run(envs, oracle, steps=12, *, contained=False):
    """Results and received actions of both are equal over a few episodes."""
    assert envs.observation_space == oracle.observation_space
    assert envs.single_observation_space == oracle.single_observation_space
    assert_same_reset(envs, oracle, seed=3)
    envs.action_space.seed(5)
    for step in range(steps):
        actions = envs.action_space.sample()
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions), f"step {step}")
        assert_identical(envs.get_attr("received"), oracle.get_attr("received"), f"step {step}")
        if contained:
            assert result[0] in envs.observation_space
        over = result[2] | result[3]
        if oracle.metadata["autoreset_mode"] is D and over.any():
            assert_same_reset(envs, oracle, options={"reset_mask": over})


def run_with_oracle(build, env_fns, mode=N, **keywords):
    """A run of ``env_fns`` in new vector environments: one from ``build`` and the oracle."""
    envs, oracle = build(env_fns, autoreset_mode=mode), SyncVectorEnv(env_fns, autoreset_mode=mode)
    try:
        assert_same_run(envs, oracle, **keywords)
    finally:
        envs.close()


def build_seeded(build, space, *, action_space, **keywords):
    """Rows with observations of ``space``, and the oracle; both spaces give the same samples."""
    env_fns = samplers(space, NUM_ENVS, action_space=action_space, **keywords)
    space.seed(11)
    envs = build(env_fns)
    space.seed(11)
    oracle = SyncVectorEnv(env_fns)
    assert_identical(envs.observation_space.sample(), oracle.observation_space.sample())
    if action_space is not None:
        assert_identical(envs.action_space.sample(), oracle.action_space.sample())
    return envs, oracle


@pytest.mark.parametrize("name", NO_ACTIONS)
def test_an_action_space_need_not_have_iterable_batches(build, name):
    build_seeded(build, SPACES[name], action_space=SPACES[name])


@pytest.mark.parametrize("name", SPACES)
def test_observations_and_actions_of_every_space_equal_the_oracles(build, name):
    """The same holds for samples of the spaces and for rows that were never reset.

    One vector environment serves all these checks, because building one takes time.
    """
    space = SPACES[name]
    envs, oracle = build_seeded(build, space, action_space=None if name in NO_ACTIONS else space)
    observations, _infos = envs.reset(options={"reset_mask": np.array([False, True, True])})
    if name not in NO_EMPTY_VALUE:
        for row, empty in zip(
            iterate(envs.observation_space, observations),
            iterate(envs.observation_space, create_empty_array(space, 1)),
            strict=False,  # the second has only one row
        ):
            assert_identical(row, empty)
    assert_same_run(envs, oracle, contained=True)


IN_EVERY_MODE = ["nested", "Dict of everything", "Text", "image"]


@pytest.mark.parametrize(
    ("build_everywhere", "name", "mode"),
    [
        *itertools.product(EXECUTORS, IN_EVERY_MODE, (N, S, D)),
        # Other numbers of workers, each name in one of the modes.
        *[
            (executor, name, (N, S, D)[(at + place) % 3])
            for at, executor in enumerate(EVERY_EXECUTOR[3:])
            for place, name in enumerate(IN_EVERY_MODE)
        ],
    ],
    indirect=["build_everywhere"],
    ids=str,
)
def test_observations_equal_the_oracles_in_every_mode(build_everywhere, name, mode):
    run_with_oracle(build_everywhere, samplers(SPACES[name], NUM_ENVS), mode)


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("name", ["nested", "Dict of everything", "Graph", "custom"])
def test_shared_memory_makes_no_difference(build_processes, name, shared_memory):
    def build(env_fns, **keywords):
        return build_processes(env_fns, shared_memory, **keywords)

    run_with_oracle(build, samplers(SPACES[name], NUM_ENVS))


def test_functions_registered_for_a_custom_space_are_used(build_everywhere):
    puppets = [lambda: PuppetEnv(RegisteredComplex(), 1 + 2j)] * NUM_ENVS
    envs = build_everywhere(puppets)
    observations, _infos = envs.reset()
    assert_identical(observations, np.full(NUM_ENVS, 2 + 4j, np.complex64))


def test_actions_of_nested_undefined_spaces_arrive(build):
    space = Dict(text=NAMES, tuple=Tuple([Sequence(Discrete(3)), Box(-1, 1, (2,))]))
    envs = build(samplers(Box(-1, 1, ()), NUM_ENVS, action_space=space, length=100))
    envs.reset(seed=1)
    envs.action_space.seed(5)
    actions = envs.action_space.sample()
    envs.step(actions)
    assert_identical(envs.get_attr("received"), tuple(iterate(envs.action_space, actions)))


class Unpicklable:
    def __reduce__(self):
        raise ValueError("not to be pickled")


class SometimesUnpicklableEnv(PuppetEnv):
    def __init__(self):
        super().__init__(Dict(a=PAIRS, b=PAIRS), {"a": (1,), "b": (2,)})

    def step(self, action):
        last = Unpicklable() if action else 2
        return {"a": (0, 1), "b": ("x" * 100, last)}, 1.0, False, False, {"t": 3}


PAIRS = Sequence(Discrete(5))


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_an_observation_that_cannot_be_passed_on_fails_its_row_alone(executor):
    envs = executor([SometimesUnpicklableEnv] * 3)
    envs.reset()
    if executor.name == "process":
        with pytest.raises(ValueError, match="not to be pickled") as failure:
            envs.step([0, 1, 0])
        assert "row 1" in text_of(failure.value)
    else:
        envs.step([0, 1, 0])
    envs.reset()
    observations, rewards, *_, infos = envs.step([0, 0, 0])
    assert observations["b"] == (("x" * 100, 2),) * 3
    assert (rewards.tolist(), infos["t"].tolist()) == ([1, 1, 1], [3, 3, 3])
    envs.close()


def test_the_space_of_the_environment_keeps_its_class_and_attributes(build):
    envs = build(samplers(SPACES["Dict in order of insertion"], 2))
    assert list(envs.single_observation_space) == list(SPACES["Dict in order of insertion"])
    assert list(envs.reset()[0]) == list(SPACES["Dict in order of insertion"])


LEAVES = st.one_of(
    st.builds(
        lambda shape, dtype: Box(0, 5, tuple(shape), dtype),
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from(NUMBERS),
    ),
    st.builds(Discrete, st.integers(1, 9), start=st.integers(-9, 9)),
    st.builds(MultiDiscrete, st.lists(st.integers(1, 9), min_size=1, max_size=4)),
    st.builds(MultiBinary, st.integers(1, 9)),
    st.builds(Text, st.integers(1, 9)),
    st.sampled_from([GRAPH, Sequence(Discrete(3)), Sequence(Box(-1, 1, (2,)), stack=True)]),
    st.builds(Complex),
    st.builds(RegisteredComplex),
)
KEYS = st.text("abcXYZ_ .é", min_size=1, max_size=4)
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, min_size=1, max_size=4).map(Dict),
        st.lists(inner, max_size=4).map(Tuple),
        st.lists(inner, min_size=1, max_size=3).map(OneOf),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_observations_of_any_nested_space_equal_the_oracles(executor):
    @settings(max_examples=times(8, with_full=25 if executor.name == "process" else 40))
    @given(space=NESTED, mode=st.sampled_from([N, S, D]))
    def check(space, mode):
        run_with_oracle(executor, samplers(space, NUM_ENVS), mode)

    check()


def test_observation_spaces_with_different_bounds_are_batched(build_everywhere):
    spaces = [Discrete(3), Discrete(5, start=2), Discrete(9)]
    env_fns = [samplers(space, 1)[0] for space in spaces]
    envs = build_everywhere(env_fns, observation_mode="different")
    oracle = SyncVectorEnv(env_fns, observation_mode="different")
    assert envs.observation_space == MultiDiscrete([3, 5, 9], start=[0, 2, 0])
    assert envs.single_observation_space == Discrete(3)
    for _ in range(3):
        assert_identical(envs.reset(seed=2), oracle.reset(seed=2))
        assert_identical(envs.step([0, 0, 0]), oracle.step([0, 0, 0]))
    oracle.close()


def test_the_caller_may_give_the_batched_and_the_single_space(build_everywhere):
    spaces = [Box(0, high, (2,)) for high in (1, 2, 3)]
    env_fns = [samplers(space, 1)[0] for space in spaces]
    mode = (Box(0, 9, (3, 2)), Box(0, 9, (2,)))
    envs = build_everywhere(env_fns, observation_mode=mode)
    oracle = SyncVectorEnv(env_fns, observation_mode=mode)
    assert envs.observation_space == mode[0]
    assert envs.single_observation_space == mode[1]
    assert_identical(envs.reset(seed=2), oracle.reset(seed=2))
    assert_identical(envs.step([0, 0, 0]), oracle.step([0, 0, 0]))
    oracle.close()


def test_the_presets_have_the_same_spaces():
    for preset in (cartwheel.SyncVectorEnv, cartwheel.AsyncVectorEnv):
        envs = preset(samplers(SPACES["nested"], 2))
        assert envs.single_observation_space == SPACES["nested"]
        assert envs.reset(seed=0)[0] in envs.observation_space
        envs.close()


def test_rows_of_a_space_without_arrays_are_the_values_of_its_batch():
    """Gymnasium batches such a space as a tuple, which is not one of a ``Tuple`` space."""
    assert nested.rows(Text(3), ("a", "bc"), 2) == ["a", "bc"]
    both = Tuple([Text(3), Discrete(4)])
    assert nested.rows(both, (("a", "bc"), np.array([1, 3])), 2) == [("a", 1), ("bc", 3)]
