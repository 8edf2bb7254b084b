"""Programs whose garbage is collected in a thread of cartwheel."""

import gc
import sys
import tempfile
import threading
from pathlib import Path

import gymnasium as gym
import numpy as np

import cartwheel
from cartwheel._internal.process import Finalizer
from cartwheel.awaitable.requests import Request
from cartwheel.workers.serving.awaited_env import Asked
from tests.programs.registry import program, tell
from tests.support.ledger import LedgerEnv

#: Set when the program refers to the object no more.
dropped, collected = threading.Event(), threading.Event()


def collect(*_):
    """Collects garbage once, in the thread that calls this."""
    if not collected.is_set():
        dropped.wait()
        gc.collect()
        collected.set()


class CollectingEnv(LedgerEnv):
    def step(self, action):
        collect()
        return super().step(action)


def of_thread(_):
    envs = cartwheel.VectorEnv([lambda: CollectingEnv(0, 0.0)], executor="thread")
    envs.reset()
    envs.step_async([0])
    return envs


def of_collector(_):
    def policy(observations):
        collect()
        return np.zeros(len(observations), np.int64)

    envs = cartwheel.VectorEnv([lambda: LedgerEnv(0, 0.0)] * 2, executor="thread", num_workers=1)
    collector = cartwheel.Collector(envs, policy, 8, background=True)
    collector._background._start()
    return collector


def of_recorder(folder):
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 1, autoreset_mode="same_step")
    envs = cartwheel.RecordEpisode(envs, folder, save_video=False)
    envs.reset(seed=1)
    envs.step([0])
    envs._writer.put(collect, 1)
    return envs


def of_rows(_):
    envs = cartwheel.AwaitableEnvs([lambda: gym.make("CartPole-v1")], context="spawn", lazy=True)
    envs._rows.service.post(collect)
    envs._rows.service.wake()
    return envs


def of_start(_):
    def reap(_):
        collect()
        raise RuntimeError("no process is started")

    envs = cartwheel.AwaitableEnvs([lambda: gym.make("CartPole-v1")], context="spawn", lazy=True)
    service = envs._rows.service
    service._group.reap = reap
    service.post(Request(0, Asked("make"), is_abandoned=True))
    service.wake()
    return envs


def drop(owner):
    owner.itself = owner  # only a collection finds it


@program
def collect_in_a_thread_of(kind):
    """Tells the threads that end what was dropped, and the errors that cannot be raised."""
    call, enders, errors = Finalizer.__call__, [], []

    def recorded(self, *arguments):
        if self.alive:
            enders.append(threading.current_thread().name)
        call(self, *arguments)

    Finalizer.__call__ = recorded
    sys.unraisablehook = lambda raised: errors.append(repr(raised.exc_value))
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        drop(globals()[f"of_{kind}"](folder))
        dropped.set()
        collected.wait()
        for thread in threading.enumerate():
            # In slices: without a GIL, what this thread has made and another one lets go is freed
            # here, when this thread runs code of Python again.
            while thread is not threading.main_thread() and thread.is_alive():
                thread.join(0.1)
        files = sorted(path.suffix for path in Path(folder).iterdir())
    tell(enders=sorted({*enders}), errors=errors, files=files)
