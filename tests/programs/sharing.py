"""A program whose threads share what belongs to one wrapper, and collect garbage meanwhile."""

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
