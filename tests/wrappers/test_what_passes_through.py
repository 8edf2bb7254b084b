"""Attributes, overridden methods and random numbers of spaces, through wrappers around them."""

import gc
import weakref

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import TransformReward

import cartwheel
from cartwheel.wrappers import (
    ClipReward,
    DelayAction,
    FilterObservation,
    FlattenAction,
    FlattenObservation,
    FrameStack,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    RecordMetrics,
    TransformAction,
    TransformObservation,
)
from cartwheel.wrappers.base import VectorWrapper
from tests.support.wrapping import D


def poles(**keywords):
    return cartwheel.NativeVectorEnv("CartPole-v1", 2, **keywords)


@pytest.mark.parametrize("between", [False, True], ids=["ours", "around Gymnasium's"])
def test_an_attribute_is_set_where_it_is_read(between):
    envs = poles()
    normalizer = NormalizeObservation(envs)
    inside = TransformReward(normalizer, lambda rewards: rewards) if between else normalizer
    around = ClipReward(RecordEpisodeStatistics(inside), 0, 1)
    around.update_running_mean = False
    assert normalizer.update_running_mean is False
    around.epsilon = 0.5
    assert normalizer.epsilon == 0.5
    around.recv_order = "done"
    assert envs.recv_order == "done"
    with pytest.raises(ValueError, match="recv_order"):
        around.recv_order = "soon"
    with pytest.raises(AttributeError):
        around.in_flight = []  # it has no setter
    around.note = 1  # nothing inside has it
    assert "note" in vars(around)
    around.close()


def test_a_function_that_is_given_a_wrapper_sets_attributes_as_its_caller_would():
    def freeze(envs):
        envs.update_running_mean = False

    normalizer = NormalizeObservation(poles())
    around = ClipReward(normalizer, 0, 1)
    freeze(around)
    assert normalizer.update_running_mean is False
    around.close()


def test_to_set_an_attribute_keeps_no_local_of_the_caller():
    envs = ClipReward(poles(), 0, 1)
    batch = envs.reset(seed=1)[0]
    alive = weakref.ref(envs), weakref.ref(batch)
    envs.note = 1
    del envs, batch
    gc.collect()
    assert [of() for of in alive] == [None, None]


def test_attributes_that_a_subclass_adds_are_its_own():
    class Counting(VectorWrapper):
        def __init__(self, envs):
            self.stack_size = 7
            super().__init__(envs)
            self.padding_type = "none"

        def count(self):
            self.epsilon = 3

    stack = FrameStack(NormalizeObservation(poles()), 2)
    around = Counting(stack)
    around.count()
    assert (stack.stack_size, stack.padding_type, stack.env.epsilon) == (2, "reset", 1e-8)
    assert (around.stack_size, around.padding_type, around.epsilon) == (7, "none", 3)
    around.close()


@pytest.mark.parametrize(
    ("wrap", "name", "value"),
    [
        (lambda envs: NormalizeObservation(envs, clip=0.7), "clip", 0.7),
        (lambda envs: NormalizeReward(envs, clip=0.7), "clip", 0.7),
        (lambda envs: FrameStack(envs, 2), "stack_size", 2),
        (lambda envs: FrameStack(envs, 2), "padding_type", "reset"),
        (lambda envs: DelayAction(envs, 3), "delay", 3),
    ],
)
def test_what_the_memory_or_the_space_of_a_wrapper_depends_on_cannot_be_set(wrap, name, value):
    with wrap(poles()) as envs:
        with pytest.raises(AttributeError, match=name):
            setattr(envs, name, 1)
        assert getattr(envs, name) == value


@pytest.mark.parametrize("name", ["reset", "send", "recv", "send_reset", "reset_wait", "set_state"])
def test_a_method_that_a_wrapper_inside_overrides_is_called(name):
    called = []

    def method(self, *arguments, **keywords):
        called.append(name)
        return getattr(super(kind, self), name)(*arguments, **keywords)

    kind = type("Overriding", (VectorWrapper,), {name: method})
    envs = RecordMetrics(ClipReward(kind(poles(autoreset_mode=D)), 0, 1))
    envs.reset(seed=1)
    envs.reset_async(seed=1)
    envs.reset_wait()
    envs.send_reset(seed=1)
    envs.recv(30)
    envs.send(np.ones(2, int))
    _, rewards, *_ = envs.recv(30)
    assert rewards.tolist() == [1.0, 1.0]
    envs.set_state([0], envs.get_state([0]))
    assert name in called
    for _ in range(100):
        over = np.logical_or(*envs.step(np.ones(2, int))[2:4])
        if over.any():
            break
    assert len(envs.finished()["return"]) == np.count_nonzero(over)
    envs.close()


class Nested(gym.Env):
    """Spaces of several parts, each of which is seeded alone."""

    def __init__(self):
        pair = Tuple([Box(0, 1, (3,), np.float32), Discrete(3)])
        self.observation_space = Dict(a=Box(0, 1, (2,), np.float32), b=pair)
        self.action_space = Dict(x=Box(-1, 1, (2,), np.float32), y=Discrete(4))
        for number, space in enumerate(self.parts()):
            space.seed(number)

    def parts(self):
        return [
            self.observation_space["a"],
            *self.observation_space["b"],
            *self.action_space.values(),
        ]

    def streams(self):
        return [space.np_random.bit_generator.state["state"]["state"] for space in self.parts()]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: FilterObservation(envs, ["a"]),
        lambda envs: FilterObservation(FilterObservation(envs, ["b"]), ["b"]),
        lambda envs: FrameStack(envs, 2),
        lambda envs: TransformObservation(envs, lambda observations: observations),
        lambda envs: TransformAction(envs, lambda actions: actions),
        FlattenObservation,
        FlattenAction,
        RecordMetrics,
    ],
)
@pytest.mark.parametrize("kind", ["inline", "sync"])
def test_no_wrapper_changes_the_random_numbers_of_spaces(wrap, kind):
    made = []

    def make():
        made.append(Nested())
        return made[-1]

    if kind == "sync":
        envs = SyncVectorEnv([make] * 2)
    else:
        envs = cartwheel.VectorEnv([make] * 2, executor="inline")
    before = [env.streams() for env in made]
    wrap(envs)
    assert [env.streams() for env in made] == before
    envs.close()
