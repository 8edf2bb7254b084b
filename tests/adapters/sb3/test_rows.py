"""Attributes and methods of single rows, compared with DummyVecEnv."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.vec_envs import native

pytestmark = pytest.mark.torch

INDICES = [None, 1, -1, [2, 0], [-1, 0], [], range(2), (1,), np.array([2, 1])]


class ToolEnv(TranscriptEnv):
    """Has methods and attributes, of which one cannot be pickled."""

    def __init__(self, row=0):
        super().__init__(5)
        self.row, self.calls, self.closure = row, 0, lambda: row

    def describe(self, prefix, *, suffix=""):
        self.calls += 1
        return f"{prefix}{self.row}{suffix}"


def tools(num_envs):
    return [lambda row=row: TimeLimit(ToolEnv(row), 9) for row in range(num_envs)]


@pytest.fixture
def both(build, dummy):
    return build(tools(3)), dummy(tools(3))


@pytest.mark.parametrize("indices", INDICES, ids=str)
def test_only_the_rows_of_the_indices_are_reached_in_their_order(both, indices):
    envs, oracle = both
    for each in both:
        each.set_attr("mark", "set", indices)
    for name in ("row", "t"):
        assert_identical(envs.get_attr(name, indices), oracle.get_attr(name, indices))
    described = [each.env_method("describe", "<", indices=indices, suffix=">") for each in both]
    assert_identical(*described)
    assert_identical(envs.get_attr("calls"), oracle.get_attr("calls"))
    marked = [
        [each.env_method("has_wrapper_attr", "mark", indices=row)[0] for row in range(3)]
        for each in both
    ]
    assert_identical(*marked)
    wrapped = [each.env_is_wrapped(TimeLimit, indices) for each in both]
    assert_identical(*wrapped)


def test_reading_a_method_does_not_call_it(both):
    envs, _ = both
    if envs.vector_env.executor != "process":  # a method is not sent to another process
        (method,) = envs.get_attr("describe", 1)
        assert envs.get_attr("calls") == [0, 0, 0]
        assert method("of ") == "of 1"
        assert envs.get_attr("calls") == [0, 1, 0]
        envs.set_attr("calls", 0)
    assert envs.has_attr("describe")
    assert envs.get_attr("describe.__name__") == ["describe"] * 3
    assert envs.get_attr("calls") == [0, 0, 0]


def test_attributes_are_found_whether_they_can_be_sent_or_not(both):
    for name in ("closure", "row", "describe", "nowhere", "_max_episode_steps"):
        assert len({each.has_attr(name) for each in both}) == 1, name
    for each in both:
        each.set_attr("mark", "set", 0)
        assert not each.has_attr("mark")  # of one row


def test_an_attribute_is_set_on_the_outermost_wrapper(build_inline):
    envs = build_inline(tools(2))
    envs.set_attr("row", 7)
    assert envs.get_attr("row") == [7, 7]
    assert [env.unwrapped.row for env in envs.envs] == [0, 1]
    assert [env.row for env in envs.envs] == [7, 7]


def test_what_does_not_exist_is_an_attribute_error(both):
    envs, _ = both
    for call in (envs.get_attr, envs.env_method):
        with pytest.raises(AttributeError, match="nowhere"):
            call("nowhere")
    for indices, row in (([3], 3), (-4, -4), ([0, 7], 7)):
        with pytest.raises(IndexError, match=f"names row {row}; there are rows -3 to 2"):
            envs.get_attr("row", indices)
    for indices in (0.5, "0", [True]):
        with pytest.raises(TypeError, match=r"`indices` must be .* integers"):
            envs.get_attr("row", indices)


def test_a_row_that_is_named_twice_is_refused_before_anything_is_called(both):
    envs, _ = both
    with pytest.raises(ValueError, match="`indices` names row 0 twice"):
        envs.env_method("describe", "", indices=[0, -3])
    assert envs.get_attr("calls") == [0, 0, 0]


def test_any_method_of_an_environment_can_be_called(both):
    for each in both:
        each.reset()
        each.step([0, 0, 0])
    results = [each.env_method("reset", indices=[1], seed=3) for each in both]
    assert_identical(*results)
    for name in ("t", "episodes"):
        assert_identical(*[each.get_attr(name) for each in both])


def test_wrappers_are_found_by_their_classes(build):
    monitor = importlib.import_module("stable_baselines3.common.monitor").Monitor
    wrapped = [ToolEnv, lambda: monitor(TimeLimit(ToolEnv(), 3)), lambda: Limit(ToolEnv(), 3)]
    envs = build(wrapped)
    assert envs.env_is_wrapped(monitor) == [False, True, False]
    assert envs.env_is_wrapped(TimeLimit) == [False, True, True]
    assert envs.env_is_wrapped(gym.Wrapper, [1, 0]) == [True, False]
    assert envs.env_is_wrapped(Limit, 2) == [True]


class Limit(TimeLimit):
    """A class that derives from a wrapper."""


def test_monitored_rows_count_as_wrapped_in_a_monitor(build_inline):
    monitor = importlib.import_module("stable_baselines3.common.monitor").Monitor
    for envs in (native(POLE, 2, monitor=True), build_inline([ToolEnv] * 2, monitor=True)):
        assert envs.env_is_wrapped(monitor) == [True, True]
        assert envs.env_is_wrapped(monitor, [1]) == [True]
        assert envs.env_is_wrapped(gym.Wrapper) == [True, True]
        assert envs.env_is_wrapped(TimeLimit) == [False, False]
        envs.close()
    envs = native(POLE, 2)
    assert envs.env_is_wrapped(monitor) == [False, False]
    envs.close()


def test_native_rows_have_the_parameters_of_gymnasiums_environment(dummy):
    envs, oracle = native(POLE, 3), dummy([POLE] * 3)
    assert envs.metadata.items() >= oracle.metadata.items()
    for indices in INDICES:
        for name in ("gravity", "masspole", "render_mode"):
            assert_identical(envs.get_attr(name, indices), oracle.get_attr(name, indices))
    envs.set_attr("gravity", 3.5, [-1, 0])
    assert envs.get_attr("gravity") == [3.5, 9.8, 3.5]
    assert envs.env_method("set_wrapper_attr", "gravity", 1.5, indices=[1, 0]) == [True, True]
    envs.set_attr("gravity", 2.5, [])
    assert envs.env_method("get_wrapper_attr", "gravity") == [1.5, 1.5, 3.5]
    for name in ("gravity", "nowhere"):
        told = [
            each.env_method("has_wrapper_attr", name, indices=[2, 0]) for each in (envs, oracle)
        ]
        assert told[0] == told[1]
    assert all(map(envs.has_attr, ("gravity", "spec", "render_mode", "np_random")))
    assert not envs.has_attr("nowhere")
    assert envs.get_attr("observation_space")[0] == oracle.get_attr("observation_space")[0]
    assert envs.get_attr("spec")[0].id == "cartwheel/CartPole-v1"
    for call in (lambda: envs.env_method("step", 1), lambda: envs.get_attr("render")):
        with pytest.raises(AttributeError):
            call()
    envs.close()


def test_frames_are_those_of_DummyVecEnv(build, dummy):
    def make():
        return gym.make("CartPole-v1", render_mode="rgb_array")

    envs, oracle = build([make] * 3), dummy([make] * 3)
    rows = native(POLE, 3, render_mode="rgb_array")
    for each in (envs, oracle, rows):
        each.seed(3)
        each.reset()
        assert each.render_mode == "rgb_array"
    assert_identical(list(envs.get_images()), list(oracle.get_images()))
    assert_identical(list(rows.get_images()), list(oracle.get_images()))
    assert_identical(envs.render(), oracle.render())
    assert_identical(rows.render("rgb_array"), oracle.render("rgb_array"))
    frames = oracle.env_method("render", indices=2)
    for each in (envs, rows):
        assert_identical(each.env_method("render", indices=[2]), frames)
        assert each.env_method("render", indices=[]) == []
    rows.close()


def test_without_a_render_mode_there_is_a_warning(build_inline):
    envs = build_inline([ToolEnv] * 2)
    assert envs.render_mode is None
    with pytest.warns(UserWarning, match="rgb_array"):
        assert envs.get_images() == [None, None]
    with pytest.warns(UserWarning, match="render"):
        assert envs.render() is None
    envs.render_mode = "ansi"  # as of environments that draw texts
    with pytest.warns(UserWarning, match=r"needs .*rgb_array.*'ansi'") as warned:
        assert envs.get_images() == [None, None]
    assert warned[0].filename == __file__
