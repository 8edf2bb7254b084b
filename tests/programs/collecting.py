"""Ends while a collector collects in the background."""

import os
import signal
import sys
import time
from functools import partial

import numpy as np

import cartwheel
from tests.programs.registry import program, tell
from tests.support.ledger import LedgerEnv


def policy(observations):
    return np.zeros(len(observations), np.int64)


@program
def collecting(ending):
    envs = cartwheel.VectorEnv(
        [partial(LedgerEnv, row, 0.001) for row in range(4)], executor="process"
    )
    collector = cartwheel.Collector(
        envs, policy, 8, order="free", run_ahead=1, background=True, seed=1
    )
    rollouts = sum(1 for _ in range(5) if collector.collect())
    facts = {"rollouts": rollouts}
    if ending == "fork":
        read, write = os.pipe()
        lock = collector._background._lock
        lock.acquire()  # as the thread of the collector does now and then
        child = os.fork()
        if not child:
            signal.alarm(100)  # for a child that hangs
            try:
                collector.collect()
            except cartwheel.ForkedProcessError as error:
                collector.close()
                os.write(write, str(error).encode())
            os._exit(0)
        lock.release()
        os.close(write)
        os.waitpid(child, 0)
        facts["child"] = os.read(read, 4096).decode()
    if ending == "interrupt":
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for _ in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.003)
                while True:
                    collector.collect()
            except KeyboardInterrupt:  # one for each interrupt
                time.sleep(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    tell(**facts)
    if ending == "exception":
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
        raise SystemExit(1)
