"""A breakpoint in a worker cannot ask anybody; its exception says which executor to use."""

import bdb
import io
import pdb
import subprocess
import sys
import traceback
from functools import partial

import pytest

from tests.support.environments import TranscriptEnv, transcripts
from tests.support.executors import INLINE, THREAD

HINT = 'use executor="inline"'


class StoppingEnv(TranscriptEnv):
    """Stops in a debugger whose input has ended, as that of a worker process has."""

    def __init__(self, where):
        self.where = where
        self.stop("constructor")
        super().__init__(0)

    def stop(self, where):
        if where == self.where:  # `breakpoint()` itself is pytest's here
            pdb.Pdb(stdin=io.StringIO(), stdout=io.StringIO(), nosigint=True).set_trace()
            self.where += "."  # never reached: the debugger quits

    def reset(self, **keywords):
        self.stop("reset")
        return super().reset(**keywords)

    def step(self, action):
        self.stop("step")
        return super().step(action)

    def look(self):
        self.stop("call")


def quits(build, where, **keywords):
    """The exception of a breakpoint at ``where`` in row 1."""

    def play():
        envs = build([partial(StoppingEnv, "nowhere"), partial(StoppingEnv, where)], **keywords)
        envs.reset(seed=1)
        envs.step(envs.action_space.sample())
        envs.call("look")

    with pytest.raises(bdb.BdbQuit) as failure:
        play()
    return failure.value


@pytest.mark.parametrize("where", ["constructor", "reset", "step", "call"])
def test_a_breakpoint_in_a_worker_says_which_executor_has_a_terminal(build_workers, where):
    notes = quits(build_workers, where).__notes__
    assert notes[0].startswith("raised by the environment of row 1")
    [hint] = [note for note in notes if HINT in note]
    assert hint.startswith("`breakpoint()` needs a terminal")


def test_quitting_a_debugger_on_the_calling_thread_has_no_such_note():
    assert not any(HINT in note for note in quits(INLINE, "step").__notes__)


def test_a_breakpoint_is_no_failure_of_the_environment(build_workers):
    """``on_error="restart"`` would replace the environment at each breakpoint."""
    assert quits(build_workers, "step", on_error="restart").__notes__


def test_other_exceptions_have_no_such_note(build_workers):
    envs = build_workers([partial(TranscriptEnv, 0)] * 2)
    with pytest.raises(AttributeError) as failure:
        envs.call("nothing")
    assert not any(HINT in note for note in failure.value.__notes__)


@pytest.mark.parametrize("executor", [INLINE, THREAD], ids=str)
def test_a_post_mortem_sees_the_frame_of_the_environment(executor):
    envs = executor(transcripts(5, 5))
    envs.reset()
    envs.set_attr("length", [5, "long"])
    with pytest.raises(TypeError) as failure:
        envs.step([7, 8])
    [*_, frame] = [frame for frame, _ in traceback.walk_tb(failure.tb)]
    assert frame.f_code is TranscriptEnv.step.__code__
    assert frame.f_locals["action"] == 8
    assert frame.f_locals["self"].t == 1
    envs.close()


PROGRAM = """
import gymnasium as gym, cartwheel

class Env(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        breakpoint()
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

envs = cartwheel.VectorEnv([Env], executor="process")
envs.reset()
"""


def test_breakpoint_itself_prints_where_it_is_and_ends_with_the_note():
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="continue\n",  # which the worker does not read
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert "(Pdb)" in finished.stdout
    last = finished.stderr.splitlines()[-1]
    if sys.version_info >= (3, 11):  # before, tracebacks did not show notes
        assert HINT in last
