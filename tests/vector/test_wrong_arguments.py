"""Arguments of the constructor that cannot work are refused in Gymnasium's words."""

import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.cases import POLE
from tests.support.environments import SleepingEnv, samplers, transcripts
from tests.support.gymnasium_versions import ASSERTS, error_of_today

SPACES = {
    "shape": (Box(-1, 1, (2,)), Box(-1, 1, (3,))),
    "dtype": (Box(-1, 1, (2,), np.float32), Box(-1, 1, (2,), np.float64)),
    "bounds": (Box(-1, 1, (2,)), Box(-1, 2, (2,))),
    "kind": (Discrete(3), Box(-1, 1, (2,))),
    "number": (Discrete(3), Discrete(4)),
    "nested": (Dict(a=Discrete(3)), Dict(a=Discrete(4))),
    "keys": (Dict(a=Discrete(3)), Dict(b=Discrete(3))),
}


@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
def test_observation_spaces_must_be_the_same(build, spaces):
    env_fns = [samplers(space, 1)[0] for space in (spaces[0], *spaces)]
    text = (
        r"observation_mode='same'\) however .*observation spaces are not equivalent.*"
        r"If this is intentional, use `observation_mode='different'` instead\."
    )
    with pytest.raises(RuntimeError, match=text):
        build(env_fns)


def test_observation_spaces_are_compared_across_workers(build_everywhere):
    env_fns = [samplers(space, 1)[0] for space in (*[Discrete(3)] * 6, Discrete(4))]
    with pytest.raises(RuntimeError, match="observation spaces are not equivalent"):
        build_everywhere(env_fns)


def test_the_presets_use_the_words_of_the_class_they_replace():
    env_fns = [samplers(space, 1)[0] for space in SPACES["bounds"]]
    with pytest.raises(
        RuntimeError,
        match=re.escape(
            "SyncVectorEnv(..., observation_mode='same') however the sub-environments observation "
            "spaces are not equivalent. single_observation_space=Box(-1.0, 1.0, (2,), float32), "
            "sub-environment observation_space=Box(-1.0, 2.0, (2,), float32)"
        ),
    ):
        cartwheel.SyncVectorEnv(env_fns)
    with pytest.raises(
        RuntimeError,
        match=re.escape(
            "AsyncVectorEnv(..., observation_mode='same') however some of the sub-environments "
            "observation spaces are not equivalent."
        ),
    ):
        cartwheel.AsyncVectorEnv(env_fns)


@pytest.mark.parametrize("name", ["shape", "dtype", "kind", "keys"])
def test_different_spaces_must_have_one_shape_and_dtype(build, name):
    env_fns = [samplers(space, 1)[0] for space in SPACES[name]]
    with pytest.raises(
        AssertionError if ASSERTS else (ValueError, TypeError, RuntimeError)
    ) as upstream:
        SyncVectorEnv(env_fns, observation_mode="different")
    errors, text = error_of_today(upstream.value)
    with pytest.raises(errors, match=f"^{re.escape(text[:30])}"):
        build(env_fns, observation_mode="different")


def test_a_given_space_must_have_the_shape_and_dtype_of_the_environments(build):
    text = (
        r"observation_mode='different' or custom space\) however the sub-environment'?s? "
        r"observation spaces do not share a common shape and dtype"
    )
    with pytest.raises(RuntimeError, match=text):
        build(samplers(Box(-1, 1, (2,)), 2), observation_mode=(Box(0, 1, (2, 3)), Box(0, 1, (3,))))


@pytest.mark.parametrize("mode", ["other", 3, None, (1,), Discrete(3), (1, 2, 3)], ids=str)
def test_an_unknown_observation_mode_is_a_value_error(build, mode):
    with pytest.raises(ValueError, match="Invalid `observation_mode`, expected: 'same' or"):
        build(transcripts(2), observation_mode=mode)


def test_an_observation_mode_of_two_things_that_are_no_spaces_is_a_type_error(build):
    text = "Expected both elements of observation_mode to be Spaces, got <class 'int'> and <class"
    with pytest.raises(TypeError, match=re.escape(text)):
        build(transcripts(2), observation_mode=(1, 2))


def test_action_spaces_must_be_the_same(build_everywhere):
    env_fns = [
        samplers(Discrete(3), 1, action_space=space)[0]
        for space in (Discrete(2), Discrete(2), Discrete(3))
    ]
    with pytest.raises(RuntimeError, match=r"action[_ ]space"):
        build_everywhere(env_fns)


@pytest.mark.parametrize("mode", ["nope", "", None, 3, "SAME STEP"], ids=repr)
def test_an_unknown_autoreset_mode_is_a_value_error(build_any, mode):
    with pytest.raises(ValueError, match="is not a valid AutoresetMode"):
        build_any([POLE], autoreset_mode=mode)


@pytest.mark.parametrize("executor", ["gpu", "", None, 3, "Inline"], ids=repr)
def test_an_unknown_executor_is_a_value_error(executor):
    with pytest.raises(ValueError, match="executor"):
        cartwheel.VectorEnv(transcripts(2), executor=executor)


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, np.True_], ids=repr)
def test_a_wrong_number_of_workers_is_refused(build_any, number):
    with pytest.raises(ValueError, match=r"^`num_workers` must be a positive integer"):
        build_any([POLE], num_workers=number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "`max_concurrency` must be a positive integer or None, got 0."),
        (-3, "`max_concurrency` must be a positive integer or None, got -3."),
        (1.5, "`max_concurrency` must be an integer or None, got <class 'float'>."),
        ("2", "`max_concurrency` must be an integer or None, got <class 'str'>."),
    ],
)
def test_a_wrong_concurrency_is_a_value_error(build_any, number, text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        build_any([POLE], max_concurrency=number)


@pytest.mark.parametrize("limit", [1, 2])
def test_no_more_environments_run_at_one_time_than_allowed(build_workers, limit):
    envs = build_workers([SleepingEnv] * 4, num_workers=4, max_concurrency=limit)
    envs.reset()
    infos = envs.step([0.05] * 4)[4]
    running = [
        sum(
            other_started <= started < other_ended
            for other_started, other_ended in zip(infos["started"], infos["ended"], strict=True)
        )
        for started in infos["started"]
    ]
    assert max(running) <= limit


@pytest.mark.parametrize("number", [1, 0, 2.0, True], ids=repr)
def test_a_wrong_number_of_slabs_is_refused(build_any, number):
    with pytest.raises(ValueError, match=r"^`max_batches` must be an integer from 2 on, got "):
        build_any([POLE] * 2, max_batches=number)


def test_numpys_integers_are_integers(build_any):
    integers = {"num_workers": np.int8(1), "batch_size": np.uint64(2), "max_batches": np.int32(4)}
    envs = build_any([POLE] * 2, **integers)
    assert envs.reset()[0].shape == (2, 4)


def test_an_unknown_on_done_is_a_value_error(build_any):
    with pytest.raises(ValueError, match="on_done"):
        build_any([POLE], on_done="explode")


def test_a_worker_function_is_refused_with_a_reason(build_any):
    with pytest.raises(ValueError, match="worker"):
        build_any([POLE], worker=lambda *_: None)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon", [1]], ids=repr)
def test_an_invalid_timeout_is_refused(build_any, timeout):
    with pytest.raises((ValueError, TypeError), match=r"^`timeout` must "):
        build_any([POLE], timeout=timeout)


@pytest.mark.parametrize("timeout", [float("nan"), "soon", [1]], ids=repr)
def test_a_wait_with_an_invalid_timeout_loses_nothing(build_any, timeout):
    envs = build_any([POLE])
    envs.reset()
    envs.step_async([1])
    with pytest.raises((ValueError, TypeError), match=r"^`timeout` must "):
        envs.step_wait(timeout=timeout)
    assert envs.step_wait()[1].tolist() == [1]
    assert envs.step([0])[1].tolist() == [1]
