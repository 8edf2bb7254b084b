"""Random operations with random faults, compared with a model, for a given time.

    python -m tools.soak [--minutes 10] [--workers 8] [--rows 32] [--seed 1] [--session 20]

Worker processes are killed, stopped and continued at random moments; environments raise and hang;
calls of ``step_wait`` and ``recv`` time out; Ctrl-C and SIGALRM arrive in the middle of a wait;
children are forked that use or close the pool, execute a program or end; programs end without a
close; and pools are closed, some by a signal handler in the middle of a step, and opened again, in
every autoreset mode, with all rows at once and in parts. Every value
that comes back is compared with the model in ``tests/support/ledger.py``. At the end the program
prints the counts, and how the memory and descriptors of this process changed. The exit status is 1
if any value differs.
"""

import argparse
import contextlib
import gc
import json
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from multiprocessing import util
from pathlib import Path

import numpy as np
from gymnasium.error import ClosedEnvironmentError

import cartwheel
from tests.support.ledger import LedgerEnv, Row
from tests.support.processes import open_descriptors, resident_kib, wait_until_gone

MODES = ("NextStep", "SameStep", "Disabled")
#: Average seconds between two faults that come from outside the environments.
FAULT_EVERY = 0.4
#: How programs end, and their exit codes; one is not waited for.
ENDINGS = {"end": 0, "pending": 0, "cycle": 0, "exit": 7, "exit at once": 7, "execute": None}
#: The probability that a step never returns, and the seconds until its worker is restarted.
HANGS, LIMIT = 3e-5, 3.0


def in_a_hook_of_a_fork(frame):
    """Whether a fork hook is interrupted: Python drops exceptions raised there."""
    callers = (caller.f_code.co_name for caller, _ in traceback.walk_stack(frame.f_back))
    return "_launch" in callers  # the function in which `multiprocessing` forks


class Faults:
    """A thread that kills, stops and interrupts while ``envs`` is open."""

    def __init__(self, envs, draw, counts, *, interrupts, kills=True, every=FAULT_EVERY):
        self.envs, self.draw, self.counts, self.every = envs, draw, counts, every
        self.choices = ["kill", "kill", "stop"] if kills else []
        self.choices += ["SIGINT", "SIGALRM"] if interrupts else []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        #: Whether the main thread is in a call that Ctrl-C may interrupt.
        self.waiting = False

    def __enter__(self):
        signals = (signal.SIGINT, signal.SIGALRM)
        self.handlers = {number: signal.signal(number, self._interrupt) for number in signals}
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _interrupt(self, _, frame):
        if self.waiting and not in_a_hook_of_a_fork(frame):
            self.waiting = False
            raise KeyboardInterrupt

    def _run(self):
        while not self.over.wait(self.draw.expovariate(1 / self.every)):
            if not self.choices:
                continue
            fault = self.draw.choice(self.choices)
            if fault.startswith("SIG"):
                os.kill(os.getpid(), signal.Signals[fault])
                continue
            with contextlib.suppress(ValueError, ProcessLookupError):  # it is being restarted
                process = self.draw.choice(self.envs.processes)
                if fault == "kill":
                    process.kill()
                else:
                    os.kill(process.pid, signal.SIGSTOP)
                    time.sleep(self.draw.uniform(0, 0.05))
                    os.kill(process.pid, signal.SIGCONT)
                self.counts[fault] += 1


class Session:
    """One pool, from its construction to ``close()``."""

    def __init__(
        self,
        draw,
        counts,
        *,
        rows,
        workers,
        mode,
        parts=False,
        executor="process",
        width=4,
        pauses=(0, 0, 0.0005),
        hangs=0.0,
    ):
        self.draw, self.counts, self.mode = draw, counts, mode
        self.rows = [Row(number, mode, width) for number in range(rows)]
        self.batch = draw.randint(1, rows - 1) if parts and rows > 1 else rows
        #: Rows whose observation changed without a step: their next step must report why.
        self.unseen = set()
        self.envs = cartwheel.VectorEnv(
            [partial(LedgerEnv, row, draw.choice(pauses), width, hangs) for row in range(rows)],
            executor=executor,
            num_workers=workers,
            autoreset_mode=mode,
            batch_size=self.batch,
            on_error="restart",
            on_worker_death="restart",
            on_timeout="restart" if hangs else "raise",
            timeout=LIMIT if hangs else None,
            max_restarts=None,
        )

    def run(self, seconds):
        """Runs operations until the time is over; raises if any value differs."""
        end = time.monotonic() + seconds
        whole = self.batch == len(self.rows)
        with (
            contextlib.closing(self.envs),
            Faults(self.envs, self.draw, self.counts, interrupts=whole) as faults,
        ):
            self.faults = faults
            if whole:
                self.reset()
                while time.monotonic() < end:
                    operation = self.draw.choices(
                        [self.step, self.reset, self.slow_step, self.call, self.rollout, self.fork],
                        [200, 2, 10, 2, 2, 1],
                    )[0]
                    operation()
                self.end_a_program()
                if self.counts["session"] % 2 == 0:
                    self.close_in_a_handler()
            else:
                self.send_and_receive(end)

    def actions(self, number):
        weights = [100, 100, 100, 1]
        return np.array(self.draw.choices(range(4), weights, k=number))

    # All rows at once

    def step(self):
        actions = self.actions(len(self.rows))
        if self.restart_over_rows():
            with self.interruptible():
                self.faults.waiting = True
                result = self.envs.step(actions)
                self.faults.waiting = False
                self.check_step(actions, result)

    def slow_step(self):
        """A step whose ``step_wait`` may time out several times."""
        actions = self.actions(len(self.rows))
        if not self.restart_over_rows():
            return
        self.envs.step_async(actions)
        while True:
            try:
                result = self.envs.step_wait(timeout=self.draw.choice([0, 1e-4, 1e-3]))
                break
            except multiprocessing.TimeoutError:
                self.counts["time-out"] += 1
        self.check_step(actions, result)

    def rollout(self):
        if self.mode == "Disabled":
            return
        steps = self.draw.randint(1, 6)
        slab, shown = self.envs.rollout(steps), []
        before = np.array([row.shown for row in self.rows])
        same = (slab.observations[0] == before).all(axis=1)
        self.unseen.update(np.flatnonzero(~same).tolist())
        for _ in range(steps):
            actions = self.actions(len(self.rows))
            result = self.envs.step(actions)
            self.check_step(actions, result)
            shown.append(result[0])
        self.compare(np.array(shown), slab.observations[1:], "rollout")

    def restart_over_rows(self):
        """In mode ``Disabled``, resets the rows that are over; returns whether there were none."""
        over = np.array([row.over for row in self.rows])
        if self.mode == "Disabled" and over.any():
            observations, infos = self.envs.reset(options={"reset_mask": over})
            self.check_reset(observations, infos, [None] * len(self.rows), over)
            return False
        return True

    def reset(self):
        seed = self.draw.randint(0, 10**6)
        seeds = [seed + row for row in range(len(self.rows))]
        observations, infos = self.envs.reset(seed=seed)
        self.check_reset(observations, infos, seeds, np.ones(len(self.rows), bool))

    def call(self):
        self.counts["call"] += 1
        numbers = self.envs.get_attr("row")
        self.compare(np.array(numbers), np.arange(len(self.rows)), "call")

    @contextlib.contextmanager
    def interruptible(self):
        try:
            yield
        except KeyboardInterrupt:
            self.counts["Ctrl-C"] += 1
            self.reset()

    # Processes, programs and handlers

    def fork(self):
        """A forked child does something and ends, and nothing changes here."""
        use = self.draw.choice(["use", "close", "end", "execute"])
        child = os.fork()
        if child == 0:
            self.live_in_child(use)
        _, status = os.waitpid(child, 0)
        self.counts[f"fork, {use}"] += 1
        self.compare(os.waitstatus_to_exitcode(status), 0, f"the exit code of a child: {use}")

    def live_in_child(self, use):
        code = 1
        try:
            if use == "use":
                with contextlib.suppress(cartwheel.ForkedProcessError):
                    self.envs.step(self.actions(len(self.rows)))
                    use = "no error"
            elif use == "close":
                self.envs.close()
                gc.collect()
            elif use == "end":
                util._exit_function()  # what `multiprocessing` does at the end of a program
            else:
                os.execv(sys.executable, [sys.executable, "-S", "-c", ""])
            code = int(use == "no error")
        finally:
            os._exit(code)

    def end_a_program(self):
        """Another program ends without a close: with its own exit code, and its workers end."""
        how, code = self.draw.choice(list(ENDINGS.items()))
        name = ["end_without_close", "process", how]
        if how == "execute":  # it becomes yet another program, which never ends
            name = ["execute_another_program", "fork", "idle"]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.programs", *name],
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as program:
            facts = json.loads(program.stdout.readline())
            if how != "execute":
                self.compare(program.wait(60), code, f"the exit code of a program: {how}")
            left = wait_until_gone(facts.get("all") or facts["workers"], 30)
            self.compare(len(left), 0, f"the workers left by a program: {how}")
            program.kill()
        self.counts[f"program, {how}"] += 1

    def close_in_a_handler(self):
        """A handler closes the pool, most often in the middle of a step."""
        self.reset()

        def close(*_):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a call was pending
                self.envs.close()

        before = signal.signal(signal.SIGALRM, close)
        signal.setitimer(signal.ITIMER_REAL, self.draw.uniform(1e-6, 5e-3))
        try:
            while not self.envs.closed:
                with contextlib.suppress(ClosedEnvironmentError):
                    if self.mode == "Disabled":
                        self.envs.reset()
                    self.envs.step(self.actions(len(self.rows)))
        finally:
            signal.signal(signal.SIGALRM, before)
        self.counts["close in a handler"] += 1

    # Rows in parts

    def send_and_receive(self, end):
        seed = self.draw.randint(0, 10**6)
        sent = {row: ("reset", seed + row) for row in range(len(self.rows))}
        self.envs.send_reset(seed=seed)
        while sent:
            try:
                result = self.envs.recv(timeout=self.draw.choice([None, None, 1e-3]))
            except multiprocessing.TimeoutError:
                self.counts["time-out"] += 1
                continue
            rows = self.check_batch(sent, result)
            if time.monotonic() < end:
                self.send(rows, sent)

    def send(self, rows, sent):
        over = [row for row in rows if self.mode == "Disabled" and self.rows[row].over]
        going = [row for row in rows if row not in over]
        if over:
            self.envs.send_reset(options={"env_index": over})
            sent.update(dict.fromkeys(over, ("reset", None)))
        if going:
            actions = self.actions(len(going))
            self.envs.send(actions, going)
            steps = [("step", int(action)) for action in actions]
            sent.update(zip(going, steps, strict=True))

    # Comparing

    def check_reset(self, observations, infos, seeds, mask):
        self.counts["reset"] += 1
        for at, row in enumerate(self.rows):
            failed = failure(infos, at)
            self.count(failed)
            if mask[at]:
                self.unseen.discard(at)
                frame = row.reset(seeds[at], failed, episode(infos, at))
                self.compare(observations[at], frame.observation, f"reset of row {at}")
            elif not np.array_equal(observations[at], row.shown):
                self.unseen.add(at)  # its worker died; the next step must report it

    def check_batch(self, sent, result):
        """Checks a received batch, removes its rows from ``sent``, and returns them."""
        *arrays, infos = result
        rows = infos["env_index"].tolist()
        self.counts["batch"] += 1
        for at, row in enumerate(rows):
            kind, argument = sent.pop(row)
            failed = failure(infos, at)
            self.count(failed)
            if kind == "reset":
                self.unseen.discard(row)
                frame = self.rows[row].reset(argument, failed, episode(infos, at))
            else:
                self.check_told(row, failed)
                frame = self.rows[row].step(argument, failed, episode(infos, at))
            self.check_frame(row, frame, [array[at] for array in arrays], infos, at)
        return rows

    def check_step(self, actions, result):
        self.counts["step"] += 1
        *arrays, infos = result
        for at, row in enumerate(self.rows):
            failed = failure(infos, at)
            self.count(failed)
            self.check_told(at, failed)
            frame = row.step(actions[at], failed, episode(infos, at))
            self.check_frame(at, frame, [array[at] for array in arrays], infos, at)

    def check_told(self, row, failed):
        if failed == "worker_restarted":
            self.unseen.discard(row)
        self.compare(row in self.unseen, False, f"whether the loss of row {row} went unreported")

    def check_frame(self, row, frame, got, infos, at):
        where = f"{self.mode}, row {row}"
        names = ("observation", "reward", "terminated", "truncated")
        for name, value in zip(names, got, strict=True):
            self.compare(value, getattr(frame, name), f"{name} of {where}")
        has_final = "final_obs" in infos and infos["_final_obs"][at]
        self.compare(has_final, frame.final is not None, f"whether there is a final_obs of {where}")
        if has_final:
            self.compare(infos["final_obs"][at], frame.final, f"final_obs of {where}")

    def compare(self, got, expected, what):
        self.counts["values"] += np.size(expected)
        if not np.array_equal(got, expected):
            raise AssertionError(f"{what}: got {got}, expected {expected}")

    def count(self, failed):
        if failed:
            self.counts[failed] += 1


def failure(infos, at):
    """The kind of failure in a row; ``None`` if nothing failed."""
    for name in ("worker_restarted", "env_error"):
        if name in infos and infos[f"_{name}"][at]:
            return name
    return None


def episode(infos, at):
    """The episode number in a row's info; 0 if the infos have none."""
    return int(infos["episode"][at]) if "episode" in infos else 0


def repeat(play, counts, seconds, sessions, show=()):
    """Plays sessions one after another for ``seconds``, and at least ``sessions`` of them.

    Args:
        play: Plays a session: a function of its number and of the seconds that are left.
        show: Names of counts to print after each session, with what the program uses.

    Returns:
        The counts, and a list with the seconds, resident KiB and descriptors after each session.
    """
    trend, start = [], time.monotonic()
    logger = logging.getLogger("cartwheel")
    level = logger.level
    logger.setLevel(logging.ERROR)  # every kill logs a warning
    try:
        while (gone := time.monotonic() - start) < seconds or len(trend) < sessions:
            play(len(trend), seconds - gone)
            counts["session"] += 1
            gc.collect()
            trend.append((time.monotonic() - start, resident_kib(), open_descriptors()))
            if show:
                gone, resident, fds = trend[-1]
                numbers = "  ".join(f"{counts[name]:>9,} {name}" for name in show)
                used = f"{resident / 1024:7.1f} MiB  {fds} descriptors"
                print(f"{gone:6.0f} s  {numbers}  {used}", flush=True)
    finally:
        logger.setLevel(level)
    return counts, trend


def soak(seconds, *, rows=32, workers=8, seed=1, session=20.0, sessions=0, show=()):
    """Runs sessions with pools of each mode, see :func:`repeat`."""
    draw, counts = random.Random(seed), Counter()

    def play(number, left):
        mode, parts = MODES[number % 3], number // 3 % 2 == 1
        one = Session(draw, counts, rows=rows, workers=workers, mode=mode, parts=parts, hangs=HANGS)
        one.run(min(session, max(left, session / 2)))

    return repeat(play, counts, seconds, sessions, show)


def print_counts(counts):
    """Prints every count on a line of its own."""
    for name, count in sorted(counts.items()):
        print(f"  {name:<36} {count:>12,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session", type=float, default=20, help="seconds that one pool is open")
    args = parser.parse_args()

    try:
        counts, trend = soak(
            60 * args.minutes,
            rows=args.rows,
            workers=args.workers,
            seed=args.seed,
            session=args.session,
            show=("step", "batch", "kill", "env_error"),
        )
    except AssertionError as error:
        print(f"a value differs: {error}")
        return 1
    print(f"\n{args.workers} workers, {args.rows} rows, seed {args.seed}: no value differs")
    print_counts(counts)
    # The first sessions are left out: they import, fill caches and warm up.
    seconds, resident, fds = np.array(trend[len(trend) // 4 :]).T
    if len(seconds) > 1:
        slope = np.polyfit(seconds / 60, resident, 1)[0]
        print(f"  resident memory: {slope:+.1f} KiB a minute")
        print(f"  descriptors: {fds[0]:.0f} at first, {fds[-1]:.0f} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
