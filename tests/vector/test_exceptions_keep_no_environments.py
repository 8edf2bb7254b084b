"""An exception that was handled keeps no vector environment until a garbage collection."""

import contextlib
import gc
import sysconfig
import weakref
from functools import partial

import pytest

import cartwheel
from cartwheel.recorder.writer import Writer
from tests.support import repetitions
from tests.support.executors import EXECUTORS, PROCESS
from tests.support.faulty import FaultyEnv, fault
from tests.support.stateful import TouchyWalkEnv

RAISES = fault("value error")


def a_step(envs):
    envs.step([RAISES, 0, 0])


def a_step_of_two(envs):
    envs.step([RAISES, 0, RAISES])


def a_receipt(envs):
    envs.send([0, RAISES, RAISES])
    while True:
        envs.recv()


def a_wait(envs):
    envs.step_async([RAISES, RAISES, RAISES])
    envs.step_wait()


def a_dropped_step(envs):
    envs.step_async([RAISES, RAISES, 0])
    envs.reset()


def a_reset(envs):
    envs.reset(options={"faults": {1: "value error", 2: "value error"}})


def a_call(envs):
    envs.call("commit", "value error")


def a_bad_seed(envs):
    envs.reset(seed=-1)


def values_of_too_few_rows(envs):
    envs.set_attr("row", [1, 2])


def bad_actions(envs):
    envs.step([0, 0, 99, 0])


def a_death(envs):
    envs.step([fault("exit 3"), 0, 0])


CALLS = [a_step, a_step_of_two, a_receipt, a_wait, a_dropped_step, a_reset, a_call]
#: Nothing is sent to a worker for them.
REFUSED = [a_bad_seed, values_of_too_few_rows, bad_actions]


def handled(call, envs):
    """Calls, and handles the exception as a program does."""
    with contextlib.suppress(Exception):
        call(envs)


def assert_ends(make, *calls):
    """Nothing keeps the vector environment; the collector is off in every test."""
    envs = make()
    kept = weakref.ref(envs)
    for call in calls:
        handled(type(envs).reset, envs)
        handled(call, envs)
    # Without a GIL, the thread of a worker frees the exceptions that it has made, when it runs code
    # of Python again, or a collection does.
    is_late = envs.executor == "thread" and sysconfig.get_config_var("Py_GIL_DISABLED")
    del envs
    if is_late:
        gc.collect()
    assert kept() is None


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_handled_exception_keeps_nothing(executor):
    env_fns = [partial(FaultyEnv, row) for row in range(3)]
    for call in CALLS if executor is PROCESS and not repetitions.full else [*CALLS, *REFUSED]:
        assert_ends(partial(executor, env_fns), call)


def test_a_handled_exception_of_a_native_environment_keeps_nothing():
    assert_ends(partial(cartwheel.NativeVectorEnv, "CartPole-v1", 3), bad_actions, a_bad_seed)


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_the_death_of_a_worker_keeps_nothing(policy):
    keywords = {"on_worker_death": policy, "max_restarts": 1} if policy == "restart" else {}
    env_fns = [partial(FaultyEnv, row) for row in range(3)]
    make = partial(PROCESS, env_fns, **keywords)
    assert_ends(make, a_death, a_death)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_states_that_are_refused_keep_nothing(executor):
    def restore(envs):
        states = envs.get_state()
        envs.set_attr("touchy", True)
        envs.set_state(None, states)

    assert_ends(partial(executor, [TouchyWalkEnv] * 3), restore)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_construction_that_fails_keeps_no_environment(executor):
    made = []

    class KeptEnv(FaultyEnv):
        def __init__(self, row):
            super().__init__(row)
            made.append(weakref.ref(self))
            self.commit("value error" if row else "none")

    with contextlib.suppress(ValueError):
        executor([partial(KeptEnv, row) for row in range(3)])
    assert not [ref for ref in made if ref() is not None]


def test_the_error_of_a_writing_thread_keeps_nothing():
    class Owner:
        def __init__(self):
            self.writer = Writer(1, lambda: None)

        def use(self, _):
            self.writer.drain()

        def fail(self):
            raise ValueError("chosen to fail")

        def reset(self):
            pass

    def make():
        owner = Owner()
        owner.writer.put(partial(Owner.fail, None), 1)
        return owner

    owner = make()
    kept = weakref.ref(owner)
    for _ in range(2):
        handled(owner.use, None)
    owner.writer.close()
    del owner
    assert kept() is None
