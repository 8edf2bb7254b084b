"""Each environment is built once, where it runs, from any kind of function."""

import functools
import multiprocessing
import os
import re
import threading
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import cartwheel
from tests.support.comparison import assert_identical, assert_names_row, text_of
from tests.support.environments import (
    CountedEnv,
    PuppetEnv,
    TranscriptEnv,
    transcripts,
)
from tests.support.executors import FORK_FIRST, SENDING
from tests.support.faulty import FaultyEnv, UnclosableEnv, build_faulty, fault
from tests.support.processes import is_alive, left_behind, residue

ROOT = Path(__file__).parents[2]


def assert_works(envs):
    oracle = SyncVectorEnv(transcripts(2, 3))
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(5):
        assert_identical(envs.step([1, 2]), oracle.step([1, 2]))
    oracle.close()


@pytest.mark.parametrize("name", FORK_FIRST)
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


@pytest.mark.parametrize("context", ["fork", *SENDING])
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


@pytest.mark.parametrize("context", SENDING)
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


def test_environments_of_processes_never_run_in_the_callers_process(build_everywhere):
    envs = build_everywhere([FaultyEnv] * 5)
    pids = envs.get_attr("pid")
    if build_everywhere.executor == "process":
        assert os.getpid() not in pids
        assert list(pids) == sorted(pids, key=pids.index)  # neighbors share a worker
        assert len(set(pids)) == min(envs.num_workers, 5)
    else:
        assert set(pids) == {os.getpid()}


def test_workers_end_when_the_environments_are_closed(build_processes):
    before = residue()
    envs = build_processes(transcripts(2, 3))
    assert_works(envs)
    envs.close()
    left = left_behind(before)
    assert not left, "a closed object still holds processes or descriptors"


def test_a_construction_that_fails_before_its_end_leaves_no_thread(monkeypatch):
    """Threads that serve would wait for their pool, which there is not yet."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = residue()
    monkeypatch.setattr("cartwheel.vector.vector_env.Pool", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cartwheel.VectorEnv(transcripts(2, 3), executor="thread", num_workers=2)
    assert not left_behind(before)


@pytest.mark.slow
def test_nothing_accumulates_over_many_vector_environments(build):
    before = residue()
    for _ in range(15):
        envs = build(transcripts(2, 3))
        envs.reset()
        envs.step([1, 1])
        envs.close()
    assert not left_behind(before)


def test_an_empty_list_is_an_index_error_as_in_gymnasium(build):
    for env_fns in ([], (), iter([])):
        with pytest.raises(IndexError):
            build(env_fns)


@pytest.mark.parametrize("wrong", [None, 3, "CartPole-v1", TranscriptEnv(3)], ids=str)
def test_an_env_fn_that_is_not_callable_is_a_type_error_that_names_its_index(build, wrong):
    with pytest.raises(TypeError, match=r"\b1\b"):
        build([*transcripts(2), wrong])


@pytest.mark.parametrize("wrong", [None, 3, "CartPole-v1", TranscriptEnv], ids=str)
def test_a_function_that_returns_no_environment_is_an_error_of_its_row(build, wrong):
    with pytest.raises((TypeError, AttributeError)) as failure:
        build([*transcripts(2, 2), lambda: wrong])
    assert_names_row(failure.value, 2)


class ForeignSpaceEnv(TranscriptEnv):
    """Its space is not Gymnasium's, as that of an environment of the older package gym."""

    def __init__(self, name, file):
        super().__init__(2)
        setattr(self, name, range(3))
        self.file = file

    def close(self):
        self.file.touch()


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_a_space_that_is_not_gymnasiums_is_an_error_that_names_it(build, name, tmp_path):
    file = tmp_path / "closed"
    with pytest.raises(TypeError) as refused:
        build([*transcripts(2, 2), partial(ForeignSpaceEnv, name, file)])
    assert str(refused.value) == (
        f"env_fns[2] must return an environment whose `{name}` is a space of Gymnasium, got "
        "range(0, 3) of type <class 'range'>"
    )
    assert_names_row(refused.value, 2)
    assert file.exists()  # it was closed


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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # how it is reported
def test_an_environment_that_cannot_be_closed_keeps_nothing_alive(build):
    envs = build([UnclosableEnv, partial(FaultyEnv, 1), partial(UnclosableEnv, 2)])
    pids = envs.get_attr("pid")
    envs.reset()
    envs.close()
    assert envs.closed
    if build.executor == "process":
        assert not any(is_alive(pid) for pid in pids)


def test_spaces_that_cannot_be_sent_work_where_nothing_is_sent():
    class Locked(Tuple):
        def __init__(self):
            super().__init__([Discrete(3)])
            self.lock = threading.Lock()

    space = Locked()
    envs = cartwheel.VectorEnv([lambda: PuppetEnv(space, (1,))] * 2, executor="inline")
    assert_identical(envs.reset()[0], (np.array([1, 1]),))
    envs.close()


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


def test_the_preset_for_the_calling_thread_may_call_reset_as_in_gymnasium():
    envs, oracle = (kind(transcripts(2, 3)) for kind in (cartwheel.SyncVectorEnv, SyncVectorEnv))
    assert_identical(envs.call("reset", seed=3), oracle.call("reset", seed=3))
    assert_identical(envs.call("step", 1), oracle.call("step", 1))
    envs.close()
    oracle.close()


@pytest.mark.parametrize("name", ["AsyncVectorEnv", "SyncVectorEnv"])
def test_public_attributes_are_those_of_gymnasium_but_for_those_that_a_page_lists(name):
    every = []
    for module in (cartwheel, gym.vector):
        envs = getattr(module, name)(transcripts(2))
        every.append({each for each in dir(envs) if not each.startswith("_")})
        envs.close()
    ours, theirs = every
    listed = (ROOT / "docs/gymnasium-differences.md").read_text(encoding="utf-8")
    assert [each for each in sorted(theirs - ours) if f"`{each}`" not in listed] == []


@pytest.mark.parametrize("vector_class", [cartwheel.SyncVectorEnv, SyncVectorEnv])
def test_the_environments_are_still_listed_after_close_as_in_gymnasium(vector_class):
    envs = vector_class(transcripts(2, 3))
    envs.reset()
    listed = list(envs.envs)
    envs.step([0, 0])
    envs.close()
    assert len(envs.envs) == 2
    assert all(after is before for after, before in zip(envs.envs, listed, strict=True))
    assert [env.t for env in envs.envs] == [1, 1]


def test_an_environment_that_was_replaced_is_listed_in_its_place():
    envs = cartwheel.SyncVectorEnv([FaultyEnv] * 2, on_error="restart")
    envs.reset()
    first, second = envs.envs
    envs.step([fault("none"), fault("value error")])
    listed = list(envs.envs)
    assert listed[0] is first
    assert listed[1] is not second
    envs.close()
    assert envs.envs == listed


class TalkingEnv:
    """As PettingZoo's parallel environments: spaces are methods of an agent."""

    metadata = {"name": "talking_v0"}  # noqa: RUF012 - as PettingZoo
    possible_agents = ("left", "right")
    closed = False

    def observation_space(self, _agent):
        return Discrete(2)

    action_space = observation_space

    def reset(self, **keywords):
        raise AssertionError(keywords)

    def step(self, actions):
        raise AssertionError(actions)

    def close(self):
        TalkingEnv.closed = True


class TurnTakingEnv(TalkingEnv):
    """As PettingZoo's AEC environments: agents act in turn."""

    def agent_iter(self):
        raise AssertionError("no policy acts")


PARALLEL = (
    "env_fns[1] must return an environment of one agent, got a parallel environment of PettingZoo, "
    "{name}: cartwheel.ParallelVectorEnv steps environments of several agents"
)
IN_TURN = PARALLEL.replace("a parallel", "an AEC")


@pytest.mark.parametrize(("made", "text"), [(TalkingEnv, PARALLEL), (TurnTakingEnv, IN_TURN)])
def test_environments_of_several_agents_are_refused_with_a_way(build, made, text):
    TalkingEnv.closed = False
    with pytest.raises(TypeError) as refused:
        build([transcripts(2)[0], made, made])
    assert str(refused.value) == text.format(name="talking_v0")
    assert_names_row(refused.value, 1)
    assert TalkingEnv.closed or build.executor == "process"


def test_environments_of_pettingzoo_are_refused_and_the_way_that_the_error_names_works(build):
    rps = pytest.importorskip("pettingzoo.classic.rps_v2")
    for made, text in [(rps.parallel_env, PARALLEL), (rps.env, IN_TURN), (rps.raw_env, IN_TURN)]:
        with pytest.raises(TypeError) as refused:
            build([transcripts(2)[0], made])
        assert str(refused.value) == text.format(name="rps_v2")
    with cartwheel.ParallelVectorEnv([rps.env] * 2, executor=build.executor) as envs:
        assert list(envs.reset()[0]) == ["player_0", "player_1"]
