"""Rollouts whose rows are in flight while the policy works, against rollouts in lockstep.

Steps, resets and calls of the policy take known times. *Computing* is a fixed amount of work on a
core, with one worker for each core; *waiting* is ``time.sleep``, with one worker for each row,
as if a simulator of its own computed. The policy waits, as for an accelerator, where it is not
said to compute. ``envs alone`` steps all rows without a policy, so no order is faster where the
policy takes less time than the environments.

Resets wait for 200 ms after episodes of 50 steps on average, so in lockstep a quarter of all steps
wait for a reset. ``after`` collects in lockstep and learns after each rollout; ``with`` does so
while a thread collects. The learner waits as long as a rollout takes in lockstep.

``auto`` is measured after its choice, which takes some rollouts; below each case the table
says what it chose. A step of the table is one row of a rollout; every run begins with as many
rollouts as are collected ahead, and with a turn of the learner, which do not count.
"""

from __future__ import annotations

import functools
import statistics
import time
from typing import TYPE_CHECKING, Any

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.workloads import Timed, TimedPolicy, rounds_of, wait
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel._internal.literals import ModeName

ROWS, STEPS = 16, 32
LEARNER_TURNS = 4
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
AHEAD: dict[str, Any] = {"order": "free", "run_ahead": 1}


class Collecting:
    """One collector, repeatedly; a rollout is dropped when the next one is complete."""

    def __init__(
        self, envs: Any, policy: Any, num_steps: int, learner_ms: float = 0.0, **how: Any
    ) -> None:
        """Collects until ``auto`` has chosen; ``learner_ms`` passes after each rollout."""
        self.envs, self.learner_ms, self.note = envs, learner_ms, ""
        self.collector = cartwheel.Collector(envs, policy, num_steps, seed=1, **how)
        in_background = how.get("background", False)
        self._ahead = how.get("run_ahead", 0) + 2 * in_background
        self._rollout_s = float("inf")  # time of a rollout in the last run
        if how.get("order") == "auto":
            while self.collector.stats().reason.startswith("nothing"):
                self.collector.collect()
            self.note = f"{self.collector.stats().order}: {self.collector.stats().reason}"

    def run(self, seconds: float) -> float:
        """Collects for about ``seconds``, at least once; returns rows per second."""
        turns, collect = max(1, round(seconds / self._rollout_s)), self.collector.collect
        for _ in range(self._ahead):
            collect()
        if self.learner_ms:  # every timed turn begins where this one ends, and none is special
            collect()
            wait(self.learner_ms)
            turns = max(turns, LEARNER_TURNS)
        start = time.perf_counter()
        for _ in range(turns):
            self.last = collect()
            wait(self.learner_ms)
        self._rollout_s = (time.perf_counter() - start) / turns
        self.collector.pause()  # nothing works while others are timed
        return self.last.rewards.size / self._rollout_s

    def close(self) -> None:
        """Closes the collector and the environments."""
        self.collector.close()
        self.envs.close()


def collecting(
    name: str,
    policy: TimedPolicy,
    *,
    worker_a_row: bool = False,
    mode: ModeName = "next_step",
    learner_ms: float = 0.0,
    **how: Any,
) -> Contender:
    """A collector with these keywords; spares are environments more."""

    def build(env_fns: Sequence[EnvFn]) -> Collecting:
        every = [*env_fns, *env_fns[: how.get("standby", 0)]]
        envs = cartwheel.VectorEnv(
            every,
            executor="process",
            num_workers=len(every) if worker_a_row else None,
            autoreset_mode=mode,
        )
        return Collecting(envs, policy, STEPS, learner_ms, **how)

    return Contender(name, build)


def native(name: str, **how: Any) -> Contender:
    """A collector over native CartPole-v1 with a policy in NumPy."""

    def act(observations: Any) -> Any:
        return (observations[:, 2] > 0).astype(int)

    def build(env_fns: Sequence[EnvFn]) -> Collecting:
        envs = cartwheel.NativeVectorEnv("CartPole-v1", len(env_fns))
        return Collecting(envs, act, 128, **how)

    return Contender(name, build)


def alone(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """Steps all rows, as ``e`` is defined."""
    envs = cartwheel.VectorEnv(env_fns, executor="process")
    envs.reset(seed=1)
    return VectorRunner(envs, sample_actions(envs.action_space))


def against_lockstep(
    policy: TimedPolicy, *more: tuple[str, float, dict[str, Any]], **where: Any
) -> list[Claim]:
    """Claims of ``auto``, and of others by name, bound and keywords."""
    lockstep = collecting("lockstep", policy, **where)
    ways = [*more, ("auto", 0.97, {"order": "auto"})]
    return [
        Claim(collecting(name, policy, **where, **how), lockstep, bound)
        for name, bound, how in ways
    ]


def rollout_ms(env_fn: EnvFn, policy: TimedPolicy) -> float:
    """Milliseconds of a rollout in lockstep: the median of five."""
    lockstep = collecting("lockstep", policy).build([env_fn] * ROWS)
    rates = [lockstep.run(0.0) for _ in range(6)]
    lockstep.close()
    return 1e3 * ROWS * STEPS / statistics.median(rates[1:])


def computing(rounds_a_ms: int) -> None:
    """Environments that compute, a worker for each core."""
    env_fn = functools.partial(Timed, 1.0, rounds_a_ms=rounds_a_ms)
    slow = TimedPolicy(4.0)
    of_the_bound = Claim(
        collecting("free, ahead", slow, **AHEAD), Contender("envs alone", alone), 0.9
    )
    claims = {ROWS: against_lockstep(slow), 2 * ROWS: [of_the_bound, *against_lockstep(slow)]}
    check("1 ms of computing, a policy of 4 ms", env_fn, claims)
    busy = TimedPolicy(1.1, rounds_a_ms)
    claims = {ROWS: against_lockstep(busy)}
    check("1 ms of computing, a policy that computes 1.1 ms", env_fn, claims)

    frames = functools.partial(Timed, 0.5, rounds_a_ms=rounds_a_ms, shape=(84, 84, 4))
    for does, policy in (
        ("computes 2.6 ms", TimedPolicy(2.6, rounds_a_ms)),
        ("waits 3 ms", TimedPolicy(3.0)),
    ):
        work = f"84×84×4 frames, 0.5 ms of computing, a policy that {does}"
        check(work, frames, {ROWS: against_lockstep(policy)})


def waiting() -> None:
    """Environments that wait, a worker for each row."""
    policy = TimedPolicy(1.0)
    uneven = functools.partial(Timed, 2.0, sigma=1.0)
    claims = against_lockstep(policy, ("free, ahead", 1.8, AHEAD), worker_a_row=True)
    check("2 ms of waiting, lognormal, a policy of 1 ms", uneven, {ROWS: claims})

    resets = functools.partial(Timed, 1.0, reset_ms=200.0, episode=50)
    for mode in MODES:
        ways = [("free, ahead", 5.0, AHEAD)]
        if mode == "disabled":
            ways.append(("free, 8 spares", 5.0, {**AHEAD, "standby": 8}))
        claims = against_lockstep(policy, *ways, worker_a_row=True, mode=mode)
        check(
            f"1 ms of waiting, resets of 200 ms, {mode}, a policy of 1 ms", resets, {ROWS: claims}
        )


def learning(rounds_a_ms: int) -> None:
    """A learner that takes as long as a rollout."""
    env_fn, policy = functools.partial(Timed, 1.0, rounds_a_ms=rounds_a_ms), TimedPolicy(1.0)
    learner_ms = rollout_ms(env_fn, policy)
    after = collecting("after", policy, learner_ms=learner_ms)
    claims = [
        Claim(
            collecting(
                f"with, {order}", policy, learner_ms=learner_ms, order=order, background=True
            ),
            after,
            1.6,
        )
        for order in ("lockstep", "free")
    ]
    work = f"1 ms of computing, a policy of 1 ms, a learner of {learner_ms:.0f} ms"
    check(work, env_fn, {ROWS: claims})


def native_rows() -> None:
    """Environments that cost next to nothing."""
    claims = [Claim(native("auto", order="auto"), native("lockstep"), 0.97)]
    check("native CartPole-v1, a policy in NumPy", no_env, {64: claims, 1024: claims})


if __name__ == "__main__":
    rounds = rounds_of(1e-3)
    computing(rounds)
    waiting()
    learning(rounds)
    native_rows()
