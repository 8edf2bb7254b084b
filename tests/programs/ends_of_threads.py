"""Programs that end while a thread of theirs is inside a call."""

import contextlib
import ctypes
import sys
import tempfile
import threading
import time
import warnings

import gymnasium as gym
import numpy as np

import cartwheel
from cartwheel import returns, wrappers
from tests.programs.registry import program, tell
from tests.support.gates import Gates

#: Seconds in which threads come back to a program that ends: more than a look at a gate takes.
_MEETING_S = 0.3
#: The exit code of the programs; also the seconds that one sleeps after the interpreter.
_EXIT_CODE = 2


class _LastObject:
    """Is dropped while the interpreter ends, and then gives threads the time to come back."""

    def __del__(self, sleep=time.sleep):
        sleep(_MEETING_S)


_kept: list[object] = []


def _meet_threads(moment):
    """Threads that come back do so at this moment: ``"finalizing"`` or ``"finalized"``."""
    if moment == "finalizing":
        _kept.append(_LastObject())
    else:
        libc = ctypes.CDLL(None)
        libc.on_exit(libc.sleep, None)  # sleeps as many seconds as the exit code says


@program
def end_during_a_call(executor, moment):
    """Ends while an environment is in a step that does not return before the program ends."""
    warnings.simplefilter("ignore")
    gym.logger.min_level = 50
    gates = Gates(tempfile.mkdtemp())
    envs = cartwheel.VectorEnv(gates.env_fns(2), executor=executor, num_workers=2)
    envs.reset()

    def step():
        with contextlib.suppress(Exception):  # it is closed, or its worker was ended
            envs.step([1, 1])

    if executor == "thread":
        envs.step_async([1, 1])
    else:
        threading.Thread(target=step, daemon=True).start()
    gates.await_arrival(1)
    if executor == "process":
        envs._finalizer.detach()  # nothing ends the wait of the thread
    else:
        envs.close(timeout=0)
    tell()
    _meet_threads(moment)
    sys.exit(_EXIT_CODE)


@program
def end_during_loops(moment):
    """Ends while daemon threads use everything in loops."""
    counts = {}

    def loop(name, use):
        counts[name] = 0
        with contextlib.suppress(Exception):  # such as that of a closed environment
            while True:
                use()
                counts[name] += 1

    def start(name, use):
        threading.Thread(target=loop, args=[name, use], daemon=True).start()

    for executor in ("inline", "thread", "process"):
        envs = cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 2, executor=executor)
        envs.reset()
        envs._finalizer.detach()  # nothing ends the loop
        start(executor, lambda envs=envs: envs.step([0, 1]))
    wrapped = cartwheel.make_vec("cartwheel/CartPole-v1", 4, num_workers=2)
    wrapped._finalizer.detach()
    wrapped = wrappers.NormalizeObservation(wrappers.RecordEpisodeStatistics(wrapped))
    wrapped.reset()
    start("native", lambda: wrapped.step([0, 1, 0, 1]))
    rewards, flags = np.zeros((64, 64)), np.zeros((64, 64), bool)
    arrays = [rewards, rewards, rewards, flags, flags]
    start("gae", lambda: returns.gae(*arrays, gamma=0.9, gae_lambda=0.9))
    while len(counts) < 5 or min(counts.values()) < 3:
        time.sleep(0.01)
    tell()
    _meet_threads(moment)
    sys.exit(_EXIT_CODE)
