"""Observations and actions of every space arrive as they were sent, in every executor."""

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
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import create_empty_array, iterate
from hypothesis import given, settings
from hypothesis import strategies as st

import cartwheel
from tests.comparison import assert_identical
from tests.environments import Complex, PuppetEnv, RegisteredComplex, samplers
from tests.executors import EXECUTORS

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
MODES = list(AutoresetMode)


def assert_same_run(env_fns, build, mode=AutoresetMode.NEXT_STEP, steps=12, *, contained=False):
    """The results of ``build`` and of the oracle are equal, over a few episodes."""
    envs = build(env_fns, autoreset_mode=mode)
    oracle = SyncVectorEnv(env_fns, autoreset_mode=mode)
    try:
        assert envs.observation_space == oracle.observation_space
        assert envs.single_observation_space == oracle.single_observation_space
        assert_identical(envs.reset(seed=3), oracle.reset(seed=3), "reset")
        for step in range(steps):
            result, expected = envs.step([0] * len(env_fns)), oracle.step([0] * len(env_fns))
            assert_identical(result, expected, f"step {step}")
            if contained:
                assert result[0] in envs.observation_space
            over = result[2] | result[3]
            if mode is AutoresetMode.DISABLED and over.any():
                assert_identical(
                    envs.reset(options={"reset_mask": over}),
                    oracle.reset(options={"reset_mask": over}),
                    f"reset after step {step}",
                )
    finally:
        envs.close()
        oracle.close()


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_observations_of_every_space_equal_the_oracles(build, space):
    assert_same_run(samplers(space, NUM_ENVS), build, contained=True)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", ["nested", "Dict of everything", "Text", "image"])
def test_observations_equal_the_oracles_in_every_mode(build_everywhere, name, mode):
    assert_same_run(samplers(SPACES[name], NUM_ENVS), build_everywhere, mode)


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("name", ["nested", "Dict of everything", "Graph", "custom"])
def test_shared_memory_makes_no_difference(build_processes, name, shared_memory):
    def build(env_fns, **keywords):
        return build_processes(env_fns, shared_memory, **keywords)

    assert_same_run(samplers(SPACES[name], NUM_ENVS), build)


def test_functions_registered_for_a_custom_space_are_used(build_everywhere):
    puppets = [lambda: PuppetEnv(RegisteredComplex(), 1 + 2j)] * NUM_ENVS
    envs = build_everywhere(puppets)
    observations, _infos = envs.reset()
    assert_identical(observations, np.full(NUM_ENVS, 2 + 4j, np.complex64))


STRUCTURED = [name for name in SPACES if name != "Tuple without members"]  # iterates to nothing


@pytest.mark.parametrize("name", STRUCTURED)
def test_actions_of_every_space_arrive_as_gymnasium_iterates_them(build, name):
    if "of everything" in name:
        pytest.skip("upstream cannot iterate a custom space inside another one")
    envs = build(samplers(Box(-1, 1, ()), NUM_ENVS, action_space=SPACES[name], length=100))
    envs.reset(seed=1)
    envs.action_space.seed(5)
    for _ in range(4):
        actions = envs.action_space.sample()
        envs.step(actions)
        received = envs.get_attr("received")
        assert_identical(received, tuple(iterate(envs.action_space, actions)))


def test_actions_of_nested_undefined_spaces_arrive(build):
    space = Dict(text=NAMES, tuple=Tuple([Sequence(Discrete(3)), Box(-1, 1, (2,))]))
    envs = build(samplers(Box(-1, 1, ()), NUM_ENVS, action_space=space, length=100))
    envs.reset(seed=1)
    envs.action_space.seed(5)
    actions = envs.action_space.sample()
    envs.step(actions)
    assert_identical(envs.get_attr("received"), tuple(iterate(envs.action_space, actions)))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_rows_never_reset_show_what_gymnasium_calls_empty(build, space):
    if isinstance(space, Complex) and not isinstance(space, RegisteredComplex):
        pytest.skip("Gymnasium has no empty value for it")
    if "custom" in getattr(space, "keys", list)() or any(
        isinstance(member, Complex) for member in getattr(space, "spaces", [])
    ):
        pytest.skip("Gymnasium has no empty value for a member")
    envs = build(samplers(space, 2))
    observations, _infos = envs.reset(options={"reset_mask": np.array([False, True])})
    rows = tuple(iterate(envs.observation_space, observations))
    if not rows:
        return  # a Tuple without members has nothing to show
    empty = tuple(iterate(envs.observation_space, create_empty_array(space, 2)))
    assert_identical(rows[0], empty[0])


def test_a_seeded_space_gives_the_same_batches_as_the_oracle(build):
    for name, space in SPACES.items():
        env_fns = samplers(space, 2, action_space=space)
        space.seed(11)
        envs = build(env_fns)
        space.seed(11)
        oracle = SyncVectorEnv(env_fns)
        assert_identical(envs.action_space.sample(), oracle.action_space.sample(), name)
        assert_identical(envs.observation_space.sample(), oracle.observation_space.sample(), name)
        envs.close()
        oracle.close()


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
    @settings(max_examples=25 if executor.name == "process" else 40)
    @given(space=NESTED, mode=st.sampled_from(MODES))
    def check(space, mode):
        assert_same_run(samplers(space, NUM_ENVS), executor, mode)

    check()


def test_observation_spaces_that_differ_in_bounds_are_batched(build_everywhere):
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
