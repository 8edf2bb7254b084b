"""Environments are built once each, where they run, from whatever functions a user may have."""

import functools
import multiprocessing
import os
import re
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import cartwheel
from tests.comparison import assert_identical, assert_names_row, text_of
from tests.environments import (
    CountedEnv,
    PuppetEnv,
    SleepingEnv,
    TranscriptEnv,
    samplers,
    transcripts,
)
from tests.faulty import FaultyEnv, UnclosableEnv, build_faulty
from tests.processes import is_alive, residue

CONTEXTS = ["fork", "forkserver", "spawn"]


def assert_works(envs, lengths=(2, 3)):
    oracle = SyncVectorEnv(transcripts(*lengths))
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(5):
        assert_identical(envs.step([1, 2]), oracle.step([1, 2]))
    oracle.close()


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_is_a_name_or_an_object(build_processes, name):
    for context in (name, multiprocessing.get_context(name)):
        envs = build_processes(transcripts(2, 3), context=context)
        assert_works(envs)
        envs.close()


@pytest.mark.parametrize("context", ["no such method", ""], ids=repr)
def test_an_unknown_context_is_a_value_error(build_processes, context):
    with pytest.raises(ValueError, match="cannot find context for"):
        build_processes(transcripts(2, 3), context=context)


class Builder:
    def __init__(self, length):
        self.length = length

    def __call__(self):
        return TranscriptEnv(self.length)

    def build(self):
        return TranscriptEnv(self.length)


def functions_of_every_kind():
    lengths = {"two": 2, "three": 3}

    def two():
        return TranscriptEnv(lengths["two"])

    class Local(TranscriptEnv):
        def __init__(self):
            super().__init__(lengths["three"])

    return {
        "lambdas": [lambda: TranscriptEnv(2), lambda: TranscriptEnv(length=3)],
        "closures": [two, functools.wraps(two)(lambda: TranscriptEnv(lengths["three"]))],
        "partials": [partial(TranscriptEnv, 2), partial(TranscriptEnv, length=3)],
        "callable objects": [Builder(2), Builder(3)],
        "bound methods": [Builder(2).build, Builder(3).build],
        "classes": [partial(TranscriptEnv, 2), Local],
        "wrapped": [lambda: TimeLimit(TranscriptEnv(2), 100), lambda: TimeLimit(Local(), 100)],
        "a loop's": [lambda length=length: TranscriptEnv(length) for length in (2, 3)],
    }


@pytest.mark.parametrize("context", CONTEXTS)
def test_functions_of_every_kind_reach_the_workers(build_processes, context):
    for env_fns in functions_of_every_kind().values():
        envs = build_processes(env_fns, context=context)
        assert_works(envs)
        envs.close()


@pytest.mark.parametrize("kind", functions_of_every_kind())
def test_functions_of_every_kind_build_environments(build, kind):
    assert_works(build(functions_of_every_kind()[kind]))


def test_env_fns_may_be_a_tuple_or_a_generator(build):
    assert_works(build(tuple(transcripts(2, 3))))
    assert_works(build(env_fn for env_fn in transcripts(2, 3)))


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_function_that_cannot_be_sent_is_an_error_of_its_row(build_processes, context):
    lock = threading.Lock()

    def locked():
        with lock:
            return TranscriptEnv(3)

    with pytest.raises(Exception, match="pickle") as failure:
        build_processes([*transcripts(2, 2), locked], context=context)
    assert re.search(r"row 2|\[2\]", text_of(failure.value))


def test_a_function_that_cannot_be_sent_works_where_nothing_is_sent():
    lock = threading.Lock()

    def locked():
        with lock:
            return TranscriptEnv(2)

    for executor in ("inline", "thread"):
        envs = cartwheel.VectorEnv([locked, *transcripts(3)], executor=executor)
        assert_works(envs)
        envs.close()


@pytest.mark.parametrize("observation_mode", ["same", "different", "custom"])
def test_each_environment_is_built_once_and_closed_once(build, tmp_path, observation_mode):
    if observation_mode == "custom":
        space = TranscriptEnv.observation_space
        observation_mode = (gym.vector.utils.batch_space(space, 5), space)
    log = tmp_path / "log"
    envs = build([partial(CountedEnv, log)] * 5, observation_mode=observation_mode)
    envs.reset()
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["built"] * 5
    envs.close()
    events = [line.split() for line in log.read_text().splitlines()]
    assert [event for event, _pid in events] == ["built"] * 5 + ["closed"] * 5
    pids = {int(pid) for _event, pid in events}
    if build.executor == "process":
        assert os.getpid() not in pids
        assert len(pids) == 2
    else:
        assert pids == {os.getpid()}


def test_environments_of_processes_never_live_in_the_callers(build_everywhere):
    envs = build_everywhere([FaultyEnv] * 5)
    pids = envs.get_attr("pid")
    if build_everywhere.executor == "process":
        assert os.getpid() not in pids
        assert list(pids) == sorted(pids, key=pids.index)  # neighbours share a worker
        assert len(set(pids)) == min(envs.num_workers, 5)
    else:
        assert set(pids) == {os.getpid()}


def test_workers_end_when_the_environments_are_closed(build_processes):
    before = residue()
    envs = build_processes(transcripts(2, 3))
    assert_works(envs)
    envs.close()
    assert residue() <= before, "a closed object still holds processes or descriptors"


def test_nothing_accumulates_over_many_lives(build):
    before = residue()
    for _ in range(15):
        envs = build(transcripts(2, 3))
        envs.reset()
        envs.step([1, 1])
        envs.close()
    assert residue() <= before


def test_descriptors_are_counted_by_worker_not_by_environment(build_processes):
    before = residue()
    envs = build_processes(transcripts(*[9] * 40))
    envs.reset()
    added = [item for item in residue() - before if item.startswith("descriptor")]
    assert len(added) <= 20, added


def test_an_empty_list_is_an_index_error_as_upstream(build):
    for env_fns in ([], (), iter([])):
        with pytest.raises(IndexError):
            build(env_fns)


@pytest.mark.parametrize("wrong", [None, 3, "CartPole-v1", TranscriptEnv(3)], ids=str)
def test_what_is_no_function_is_a_type_error_that_names_its_place(build, wrong):
    with pytest.raises(TypeError, match=r"\b1\b"):
        build([*transcripts(2), wrong])


@pytest.mark.parametrize("wrong", [None, 3, "CartPole-v1", TranscriptEnv], ids=str)
def test_a_function_that_returns_no_environment_is_an_error_of_its_row(build, wrong):
    with pytest.raises((TypeError, AttributeError)) as failure:
        build([*transcripts(2, 2), lambda: wrong])
    assert_names_row(failure.value, 2)


def test_a_function_that_raises_is_an_error_of_its_row(build_everywhere):
    rows = [partial(build_faulty, row, "value error" if row == 3 else "none") for row in range(5)]
    with pytest.raises(ValueError, match="boom") as failure:
        build_everywhere(rows)
    assert failure.value.args == ("boom", 7)
    assert_names_row(failure.value, 3)
    assert_works(build_everywhere(transcripts(2, 3)))


def test_of_several_functions_that_raise_the_lowest_row_is_reported(build_everywhere):
    rows = [partial(build_faulty, row, "value error" if row > 1 else "none") for row in range(5)]
    with pytest.raises(ValueError, match="boom") as failure:
        build_everywhere(rows)
    assert_names_row(failure.value, 2)


def test_environments_that_were_built_are_closed_if_another_cannot_be(build, tmp_path):
    log = tmp_path / "log"
    with pytest.raises(ValueError, match="boom"):
        build([partial(CountedEnv, log), partial(build_faulty, 1, "value error")])
    events = [line.split()[0] for line in log.read_text().splitlines()]
    assert events == ["built", "closed"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # how it is told
def test_an_environment_that_cannot_be_closed_keeps_nothing_alive(build):
    envs = build([UnclosableEnv, partial(FaultyEnv, 1), partial(UnclosableEnv, 2)])
    pids = envs.get_attr("pid")
    envs.reset()
    envs.close()
    assert envs.closed
    if build.executor == "process":
        assert not any(is_alive(pid) for pid in pids)


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
def test_observation_spaces_must_be_the_same(build_everywhere, spaces):
    env_fns = [samplers(space, 1)[0] for space in (spaces[0], *spaces)]
    text = (
        r"observation_mode='same'\) however .*observation spaces are not equivalent.*"
        r"If this is intentional, use `observation_mode='different'` instead\."
    )
    with pytest.raises(RuntimeError, match=text):
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
    with pytest.raises((ValueError, TypeError, RuntimeError)) as upstream:
        SyncVectorEnv(env_fns, observation_mode="different")
    with pytest.raises(upstream.type, match=re.escape(str(upstream.value)[:30])):
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


def test_spaces_that_cannot_be_sent_are_no_obstacle_where_nothing_is_sent():
    class Locked(Tuple):
        def __init__(self):
            super().__init__([Discrete(3)])
            self.lock = threading.Lock()

    space = Locked()
    envs = cartwheel.VectorEnv([lambda: PuppetEnv(space, (1,))] * 2, executor="inline")
    assert_identical(envs.reset()[0], (np.array([1, 1]),))
    envs.close()


@pytest.mark.parametrize("mode", ["nope", "", None, 3, "SAME STEP"], ids=repr)
def test_an_unknown_autoreset_mode_is_a_value_error(build, mode):
    with pytest.raises(ValueError, match="is not a valid AutoresetMode"):
        build(transcripts(2), autoreset_mode=mode)


@pytest.mark.parametrize("executor", ["gpu", "", None, 3, "Inline"], ids=repr)
def test_an_unknown_executor_is_a_value_error(executor):
    with pytest.raises(ValueError, match="executor"):
        cartwheel.VectorEnv(transcripts(2), executor=executor)


@pytest.mark.parametrize("number", [0, -1, 1.5, "2"], ids=repr)
def test_a_wrong_number_of_workers_is_refused(build, number):
    with pytest.raises((ValueError, TypeError), match="num_workers"):
        build(transcripts(2), num_workers=number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "`max_concurrency` must be a positive or None, got 0."),
        (-3, "`max_concurrency` must be a positive or None, got -3."),
        (1.5, "`max_concurrency` must be an integer or None, got <class 'float'>."),
        ("2", "`max_concurrency` must be an integer or None, got <class 'str'>."),
    ],
)
def test_a_wrong_concurrency_is_a_value_error(build, number, text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        build(transcripts(2), max_concurrency=number)


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


def test_an_unknown_reaction_to_finished_episodes_is_a_value_error(build):
    with pytest.raises(ValueError, match="on_done"):
        build(transcripts(2), on_done="explode")


def test_a_worker_function_is_refused_with_a_reason(build):
    with pytest.raises(ValueError, match="worker"):
        build(transcripts(2), worker=lambda *_: None)


def test_the_arguments_are_those_of_async_vector_env_in_its_order():
    envs = cartwheel.AsyncVectorEnv(
        transcripts(2, 3), False, False, "fork", False, None, "different", "SameStep", 1
    )
    assert envs.autoreset_mode is AutoresetMode.SAME_STEP
    assert envs.observation_mode == "different"
    assert envs.max_concurrency == 1
    envs.reset()
    assert "final_obs" in [envs.step([1, 1]), envs.step([1, 1])][1][4]
    envs.close()


def test_the_arguments_are_those_of_sync_vector_env_in_its_order():
    envs = cartwheel.SyncVectorEnv(iter(transcripts(2, 3)), False, "different", "SameStep")
    assert envs.autoreset_mode is AutoresetMode.SAME_STEP
    assert [env.length for env in envs.envs] == [2, 3]
    envs.reset()
    envs.step([1, 1])
    assert [env.t for env in envs.envs] == [1, 1]
    envs.envs[1].t = 7
    assert envs.get_attr("t") == (1, 7)
    envs.close()


def test_workers_compute_with_one_thread_unless_the_user_chose(build_processes, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    for context in ("forkserver", "spawn"):
        envs = build_processes([EnvironmentVariablesEnv] * 2, context=context)
        if context == "spawn":
            assert envs.call("variable", "MKL_NUM_THREADS") == ("3", "3")
        assert envs.call("variable", "OMP_NUM_THREADS") == ("1", "1")
        envs.close()
    assert "OMP_NUM_THREADS" not in os.environ


class EnvironmentVariablesEnv(TranscriptEnv):
    def __init__(self):
        super().__init__(length=3)

    def variable(self, name):
        return os.environ.get(name)
