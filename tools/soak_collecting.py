"""Random collectors with random faults, whose rollouts are checked step by step, for a given time.

    python -m tools.soak_collecting [--minutes 10] [--seed 1] [--session 5]
    python -m tools.soak_collecting --steps 1000000

Every session makes a collector at random: order, run_ahead, columns, spares, background, mode,
executor. Its policy raises and its environments raise at random moments, workers are killed and
stopped, Ctrl-C arrives in the middle of a call, and the program pauses, resets and closes it. Every
rollout is checked by the rules in ``tests/support/counting.py``: no step is lost, doubled or
swapped. Versions are those of a log of updates, and no action is older than documented. After each
session no thread, process or descriptor is left. With ``--steps``, the orders count so many
steps of cheap environments in all, without faults. The exit status is 1 if anything differs.
"""

import argparse
import contextlib
import faulthandler
import gc
import random
import sys
import time
from collections import Counter
from functools import partial

import numpy as np

import cartwheel
from tests.support.counting import RAISE, CountingEnv, Rules, same
from tests.support.processes import left_behind, residue
from tools.soak import Faults, print_counts, repeat

MODES = ("next_step", "same_step", "disabled")
ORDERS = ("lockstep", "groups", "free", "free", "auto")
#: The seconds after which a call hangs: the program prints where, and ends.
HANGS = 120
#: How often the policy raises, and how often it gives an action that raises.
POLICY_RAISES, ENV_RAISES = 0.01, 0.002


class PolicyError(Exception):
    """An exception that a policy raises at random."""


class Acts:
    """Actions that differ from step to step, and extras that say for which observation, and when.

    Attributes:
        version: How many updates there were.
    """

    def __init__(self, draw, *, env_raises=0.0, policy_raises=0.0):
        self.draw, self.version, self.calls = draw, 0, 0
        self.env_raises, self.policy_raises = env_raises, policy_raises

    def __call__(self, observations, env_index=None, first=None):
        if self.draw.random() < self.policy_raises:
            raise PolicyError
        self.calls += 1
        actions = (observations @ [7, 0, 3, 0, 0, 5, 1] + self.calls).astype(np.int64) % RAISE
        if self.draw.random() < self.env_raises:
            actions[self.draw.randrange(len(actions))] = RAISE
        extras = {"shown": observations, "version": np.full(len(actions), self.version)}
        if env_index is not None:
            same("the length of env_index and first", (len(env_index), len(first)), len(actions))
        return actions, extras

    def change(self):
        """An update of what acts."""
        self.version += 1


def drawn(draw, mode=None):
    """Keywords of a collector and of its environments that go together."""
    rows, mode = draw.choice([2, 4, 6, 8]), mode or draw.choice(MODES)
    order, executor = draw.choice(ORDERS), draw.choice(["process", "process", "thread", "inline"])
    how = {
        "order": order,
        "num_steps": draw.choice([1, 3, 8, 20]),
        "recurrent": draw.random() < 0.3,
    }
    if order != "lockstep":
        how["run_ahead"] = draw.choice([0, 0, 1, 2])
    if order in ("groups", "free"):
        if draw.random() < 0.3:
            how["columns"] = draw.randint(1, rows)
        if mode == "disabled" and draw.random() < 0.5:
            how["standby"] = draw.choice([1, 2, 2 * rows])
    if order == "groups":
        how["groups"] = draw.choice([1, 2, rows])
    if order == "free":
        how["min_rows"] = draw.randint(1, rows)
        how["max_rows"] = draw.choice([None, draw.randint(how["min_rows"], rows)])
        how["deadline"] = draw.choice([0, 0.0005, 0.002, None])
    if executor != "inline" and draw.random() < 0.5:
        how.update(background=True, queue=draw.randint(1, 3))
    where = {"executor": executor, "autoreset_mode": mode}
    if executor != "inline":
        where["num_workers"] = draw.randint(1, rows)
    for name in ("on_error", "on_worker_death"):
        where[name] = draw.choice(["raise", "restart", "restart"])
    where["max_restarts"] = None  # one environment may raise more than ten times
    if executor == "inline":
        del where["on_worker_death"]
    return rows, how, where


class Session:
    """One collector, from its construction to its end."""

    def __init__(self, draw, counts, rows, how, where, *, faults=True):
        self.draw, self.counts, self.how, self.where = draw, counts, how, where
        spares = how.get("standby", 0)
        self.kills = faults and where["executor"] == "process" and draw.random() < 0.5
        self.raises = faults and draw.random() < 0.5
        self.interrupts = faults and draw.random() < 0.5
        self.policy = Acts(
            draw,
            env_raises=ENV_RAISES if self.raises else 0.0,
            policy_raises=POLICY_RAISES if faults else 0.0,
        )
        replaced = self.kills or self.raises
        mode = where["autoreset_mode"]
        self.rules = Rules(mode, rows, spares=bool(spares), faults=replaced)
        env_fns = [partial(CountingEnv, number) for number in range(rows + spares)]
        self.envs = cartwheel.VectorEnv(env_fns, **where)
        self.seed = draw.randrange(10**6)
        self.rules.reset(self.seed)
        self.collector = cartwheel.Collector(self.envs, self.policy, seed=self.seed, **how)
        self.is_broken = False

    def run(self, seconds, steps=0):
        """Collects until the time is over and the steps are made; raises if anything differs."""
        end = time.monotonic() + seconds
        operations = [self.collect, self.pause, self.reset, self.stats]
        faults = Faults(
            self.envs,
            self.draw,
            self.counts,
            interrupts=self.interrupts,
            kills=self.kills,
            every=0.1,
        )
        with contextlib.closing(self.envs), contextlib.closing(self.collector), faults:
            self.faults = faults
            try:
                while not self.is_broken and (
                    time.monotonic() < end or self.rules.counted["steps"] < steps
                ):
                    faulthandler.dump_traceback_later(HANGS, exit=True)
                    self.draw.choices(operations, [100, 3, 1, 2])[0]()
            finally:
                faulthandler.cancel_dump_traceback_later()
        self.counts.update(self.rules.counted)

    def collect(self):
        """The next rollout, checked, and an update after it."""
        rollout = self._called(self.collector.collect)
        if rollout is None:
            return
        self.rules.check(rollout)
        self.counts["rollouts"] += 1
        valid = rollout.valid
        if "version" in rollout.extras:
            same("version", rollout.policy_version[valid], rollout.extras["version"][valid])
        else:
            same("whether there are extras", valid.any(), False)
        behind = self.policy.version - rollout.policy_version
        self.counts["most updates behind"] = max(
            self.counts["most updates behind"], int(behind.max())
        )
        same("whether a version is from the future", behind.min() >= 0, True)
        if "columns" not in self.how:
            bound = self.how.get("run_ahead", 0)
            if self.how.get("background"):
                bound += self.how["queue"] + 1
            same(f"whether {behind.max()} updates are at most {bound}", behind.max() <= bound, True)
        self.collector.update(self.policy.change)

    def pause(self):
        """Nothing is in flight after it."""
        self._called(self.collector.pause)
        if not self.is_broken and not self.rules.interrupted.any():
            same("rows in flight after a pause", len(self.envs.in_flight), 0)

    def reset(self):
        """Every row begins anew."""
        seed = self.draw.randrange(10**6)
        with self._expected():
            self.collector.reset(seed=seed)
            self.rules.reset(seed)
            self.counts["resets"] += 1

    def stats(self):
        """Counts and shares at any time."""
        stats = self.collector.stats()
        shares = stats.policy_share, stats.waiting_share, stats.other_share
        same("version", stats.version, self.policy.version)
        same("whether shares are in their bounds", [share >= 0 for share in shares], True)

    def _called(self, call):
        """Calls something that Ctrl-C may interrupt."""
        with self._expected():
            try:
                self.faults.waiting = True
                return call()
            finally:
                self.faults.waiting = False
        return None

    @contextlib.contextmanager
    def _expected(self):
        """Counts errors that may come, and says what follows them."""
        try:
            yield
        except PolicyError:
            self.counts["PolicyError"] += 1
        except KeyboardInterrupt:
            self.counts["Ctrl-C"] += 1
            self.rules.interrupt()
        except cartwheel.WorkerDiedError:
            self.counts["WorkerDiedError"] += 1
            same("whether workers were killed", self.kills, True)
            same("on_worker_death", self.where["on_worker_death"], "raise")
            self.is_broken = True
        except ValueError as error:
            if "the action that raises" not in str(error):
                raise
            self.counts["environment's error"] += 1
            same("on_error", self.where["on_error"], "raise")
            self.rules.reset()


def counting(steps, seed=1):
    """Counts ``steps`` steps in all, of every order in every mode, without faults."""
    draw, counts = random.Random(seed), Counter()
    orders = sorted(set(ORDERS))
    for order in orders:
        for mode in MODES:
            how = {"order": order, "num_steps": 32}
            if order != "lockstep":
                how["run_ahead"] = 1
            where = {"executor": "inline", "autoreset_mode": mode}
            Session(draw, counts, 64, how, where, faults=False).run(
                0, steps // len(orders) // len(MODES)
            )
    return counts


def soak(seconds, *, seed=1, session=5.0, sessions=0, show=()):
    """Runs sessions with collectors, see :func:`tools.soak.repeat`."""
    draw, counts, before = random.Random(seed), Counter(), None
    # The first worker process opens a pipe that stays, by which workers notice the program's end.
    cartwheel.VectorEnv([partial(CountingEnv, 0)], executor="process").close()

    def play(number, _left):
        nonlocal before
        rows, how, where = drawn(draw)
        try:
            Session(draw, counts, rows, how, where).run(session)
            gc.collect()
            if before is None:
                before = residue()  # what the first session left is the program's
            same("what is left", left_behind(before), set())
        except BaseException as error:
            error.args = (f"{error}\nsession {number}: {rows} rows, {how}, {where}",)
            raise

    return repeat(play, counts, seconds, sessions, show)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session", type=float, default=5, help="seconds of one collector")
    parser.add_argument("--steps", type=int, help="count so many steps instead")
    args = parser.parse_args()

    try:
        if args.steps:
            counts = counting(args.steps, args.seed)
        else:
            show = ("rollouts", "steps", "kill", "Ctrl-C")
            counts, _ = soak(60 * args.minutes, seed=args.seed, session=args.session, show=show)
    except AssertionError as error:
        print(f"something differs: {error}")
        return 1
    print(f"\nseed {args.seed}: nothing differs")
    print_counts(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
