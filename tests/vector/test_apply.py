"""`apply` calls a function with single environments, wherever they are."""

import os
import sys
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import cartwheel
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.stateful import WalkEnv

MODES = list(gym.vector.AutoresetMode)


class NamedWrapper(gym.Wrapper):
    """The outermost wrapper of its row."""

    def __init__(self, env, row):
        super().__init__(env)
        self.row = row


def limited(row):
    return NamedWrapper(TimeLimit(TranscriptEnv(length=3), 50), row)


def row_of(env, *values, scale=1):
    assert isinstance(env, NamedWrapper)
    return scale * (env.row + sum(values))


def test_a_function_gets_what_the_rows_own_function_returned(build_everywhere):
    envs = build_everywhere([partial(limited, row) for row in range(4)])
    assert_identical(envs.apply(row_of), (0, 1, 2, 3))
    assert_identical(envs.apply(row_of, 1, 2, scale=10), (30, 40, 50, 60))
    assert_identical(envs.apply(row_of, env_index=np.array([3, 0])), (3, 0))


def in_main(monkeypatch, text):
    """A function of the main module, as a script or a cell of a notebook defines it."""
    scope = {"__name__": "__main__"}
    exec(text, scope)
    function = scope["of_main"]
    monkeypatch.setattr(sys.modules["__main__"], "of_main", function, raising=False)
    return function


@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_a_function_of_the_main_module_may_be_newer_than_the_workers(context, monkeypatch):
    before = in_main(monkeypatch, "def of_main(env, by=1): return by")
    with cartwheel.VectorEnv([WalkEnv] * 2, executor="process", context=context) as envs:
        assert envs.apply(before) == (1, 1)
        assert envs.apply(in_main(monkeypatch, "def of_main(env, by=2): return by")) == (2, 2)
        assert envs.apply(in_main(monkeypatch, "def of_main(env, by=2): return -by")) == (-2, -2)


def test_a_function_of_the_main_module_sees_the_classes_of_its_workers(monkeypatch):
    main = sys.modules["__main__"]
    in_main(monkeypatch, "class of_main: pass")
    made = main.of_main
    function = in_main(monkeypatch, "def of_main(env): return type(env.mark) is Mark")
    function.__globals__["Mark"] = made
    with cartwheel.VectorEnv([partial(marked, made)], executor="process", context="fork") as envs:
        assert envs.apply(function) == (True,)


def marked(kind):
    env = WalkEnv()
    env.mark = kind()
    return env


def test_a_function_changes_only_the_rows_that_are_named(build):
    envs = build([partial(limited, row) for row in range(3)])
    envs.apply(setattr, "row", 7, env_index=[2, 1])
    assert_identical(envs.get_attr("row"), (0, 7, 7))


def test_functions_may_be_lambdas_and_closures(build):
    envs = build([partial(limited, row) for row in range(2)])
    offset = np.arange(2)
    assert_identical(envs.apply(lambda env: env.row + offset), (np.arange(2), np.arange(2) + 1))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
def test_applications_between_steps_change_no_result(build, mode):
    called, other = (build(transcripts(2, 2), autoreset_mode=mode) for _ in range(2))
    assert_identical(called.reset(seed=1), other.reset(seed=1))
    for t in range(6):
        ended = mode == gym.vector.AutoresetMode.DISABLED and t % 2 == 0
        for envs in (called, other):
            if ended:
                envs.reset()
        assert_identical(called.apply(lambda env: env.t), other.get_attr("t"))
        assert_identical(called.step([1, 2]), other.step([1, 2]))


def fail_in(env, row):
    if env.row == row:
        raise KeyError("lost", row)
    return row


def test_an_exception_of_the_function_names_its_row_and_shows_its_traceback(build):
    envs = build([partial(limited, row) for row in range(4)])
    with pytest.raises(KeyError) as failure:
        envs.apply(fail_in, 2)
    assert failure.value.args == ("lost", 2)
    assert_names_row(failure.value, 2)
    if build.executor == "process":
        assert "in fail_in" in str(failure.value.__cause__)
    assert_identical(envs.apply(fail_in, 9), (9,) * 4)


def test_what_is_not_a_function_is_refused_before_a_row_is_called(build):
    envs = build([partial(limited, row) for row in range(2)])
    with pytest.raises(TypeError, match="needs a function that is called with each environment"):
        envs.apply("row")
    with pytest.raises(ValueError, match="`env_index` names row 2"):
        envs.apply(setattr, "row", 5, env_index=[0, 2])
    assert_identical(envs.get_attr("row"), (0, 1))


def test_what_cannot_be_pickled_is_an_error_only_between_processes(build):
    envs = build([partial(limited, row) for row in range(2)])
    lock = threading.Lock()

    def use(_env, given=None):
        return given if given is not None else lock.locked()

    if build.executor == "process":
        text = r"the function of `apply`, .*use.*cannot be sent to the worker processes.*lock"
        with pytest.raises(TypeError, match=text):
            envs.apply(use)
        with pytest.raises(TypeError, match="pickle") as failure:
            envs.apply(lambda _: threading.Lock(), env_index=[1])
        assert_names_row(failure.value, 1)
        notes = failure.value.__notes__
        assert "the result, of type lock, cannot leave the worker process" in notes
    else:
        assert_identical(envs.apply(use), (False, False))
        assert envs.apply(use, lock) == (lock, lock)
    assert_identical(envs.get_attr("row"), (0, 1))


def test_it_is_refused_while_a_call_is_pending_and_after_close(build):
    envs = build([partial(limited, row) for row in range(2)])
    envs.reset()
    envs.send([0], [1])
    with pytest.raises(gym.error.AlreadyPendingCallError, match="`apply` while rows"):
        envs.apply(row_of)
    envs.recv()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.apply(row_of)


def test_a_function_that_takes_too_long_times_out_and_loses_nothing(build_workers, gates):
    envs = build_workers([partial(limited, row) for row in range(2)], timeout=60)
    envs.reset()
    envs._callbacks.timeout = 0.3
    with pytest.raises(cartwheel.WorkerTimeoutError, match="apply"):
        envs.apply(lambda _: gates.stand_at(1), env_index=[0])
    envs._callbacks.timeout = 60
    gates.open(1)
    envs.reset()
    assert_identical(envs.apply(row_of), (0, 1))


def test_a_function_that_ends_its_worker_is_a_death_that_is_named(build_processes):
    envs = build_processes([partial(limited, row) for row in range(2)])
    with pytest.raises(cartwheel.WorkerDiedError, match="exited with code 3") as failure:
        envs.apply(lambda _: os._exit(3), env_index=[1])
    assert failure.value.env_index == [1]


def test_it_goes_through_wrappers_around_the_vector_environment(build):
    envs = build([partial(limited, row) for row in range(2)])
    wrapped = cartwheel.wrappers.RecordEpisodeStatistics(cartwheel.wrappers.FrameStack(envs, 2))
    assert_identical(wrapped.apply(row_of, 5, env_index=[1]), (6,))


def test_environments_with_cached_resets_are_given_as_they_were_made(build):
    envs = build([WalkEnv] * 2)
    cached = cartwheel.wrappers.CachedReset(envs, num_states=3, seed=1)
    assert_identical(cached.apply(lambda env: type(env).__name__), ("WalkEnv",) * 2)


def test_native_environments_refuse_it_by_name():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    text = "those of CartPole-v1 are native: use `get_attr` and `set_attr`"
    with pytest.raises(TypeError, match=text):
        envs.apply(print)
    with pytest.raises(TypeError, match=text):
        cartwheel.wrappers.RecordEpisodeStatistics(envs).apply(print)
    envs.close()
