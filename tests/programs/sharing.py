"""Programs whose threads share a wrapper, or environments."""

import gc
import sys
import threading

import numpy as np

import cartwheel
from cartwheel._cartwheel import FrameStack
from tests.programs.registry import program, tell

#: Rounds of each thread.
ROUNDS = 50


def has_gil():
    """Whether threads run Python in turns."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


@program
def sharing():
    gc.freeze()  # what is imported, which would take most of each collection
    stack = FrameStack(64, 4, np.zeros((16, 16), np.uint8), repeats=False)

    def share():
        for _ in range(ROUNDS):
            stack.set_state(stack.state())

    def collect():
        for _ in range(ROUNDS):
            gc.collect()

    def step():
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=2)
        envs.reset(seed=1)
        for _ in range(ROUNDS):
            envs.step(np.zeros(64, np.int64))
        envs.close()

    threads = [threading.Thread(target=run) for run in (share, share, share, collect, step, step)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell(gil=has_gil(), unchanged=not stack.state().any())


@program
def looking():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=2)
    envs.reset(seed=1)
    stepping, over = threading.Event(), []

    def look():
        while stepping.is_set():
            over.append(envs._pool.rows_over())

    stepping.set()
    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS):
            envs.step(np.zeros(64, np.int64))
    finally:
        stepping.clear()
        for thread in threads:
            thread.join()
    envs.close()
    tell(looked=bool(over))
