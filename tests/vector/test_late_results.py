"""A late result is received or dropped as a whole; it never replaces another result."""

import contextlib
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from tests.support.comparison import assert_identical
from tests.support.environments import SleepingEnv
from tests.support.faulty import FAULTS
from tests.support.repetitions import times


class LateEnv(SleepingEnv):
    """Waits at gate 1 in every call for which ``late`` is set; ``late`` says how the call ends."""

    late = None

    def __init__(self, gates):
        super().__init__()
        self.gates = gates

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        if self.late is not None:
            self.gates.stand_at(1)
            self.end(info)
        return obs, reward, terminated, truncated, info

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed, options=options)
        if options is not None:
            self.gates.stand_at(1)
            self.late = options["late"]
            self.end(info)
        return obs, info

    def end(self, info):
        late, self.late = self.late, None
        if late == "large":
            info["large"] = np.full(2_000_000, self.t)
        elif late == "unusual":
            info["unusual"] = {"set": {1, 2}, 3: [None] * 10_000}
        else:
            FAULTS[late]()

    def slow(self, late):
        self.late = late
        self.gates.stand_at(1)
        self.end({})
        return late


ENDINGS = pytest.mark.parametrize(
    "late", ["none", "large", "unusual", "value error", "unpicklable"]
)


def build_late(build, gates):
    envs = build([partial(LateEnv, gates)] * 3)
    envs.reset()
    return envs


def assert_in_step(envs):
    """Every later result belongs to its own call."""
    obs, infos = envs.reset()
    assert obs.tolist() == [[0]] * 3
    assert set(infos) == {"started", "_started", "ended", "_ended"}
    assert envs.call("slow", "none") == ("none",) * 3
    for t in range(1, 4):
        obs, rewards, _terminations, _truncations, infos = envs.step([0.001 * t] * 3)
        assert obs.tolist() == [[t]] * 3
        assert_identical(rewards, np.full(3, 0.001 * t))
        assert infos["t"].tolist() == [t] * 3
        assert not {"large", "unusual"} & set(infos)
        assert envs.get_attr("t") == (t,) * 3


def begin_a_step(envs, late):
    """Begins a step whose row 1 is late; returns the method that waits for it."""
    envs.set_attr("late", [None, late, None])
    envs.step_async([0.0] * 3)
    return envs.step_wait


def begin_a_reset(envs, late):
    envs.reset_async(options={"late": late})
    return envs.reset_wait


def begin_a_call(envs, late):
    envs.call_async("slow", late)
    return envs.call_wait


@pytest.mark.parametrize("begin", [begin_a_step, begin_a_reset, begin_a_call])
@ENDINGS
def test_a_reset_drops_what_is_late_however_it_ends(build_workers, begin, late, gates):
    envs = build_late(build_workers, gates)
    wait = begin(envs, late)
    with pytest.raises(TimeoutError):
        wait(timeout=0.02)
    with gates.opened_soon(1):
        assert_in_step(envs)


@pytest.mark.parametrize("late", ["value error", "unpicklable"])
def test_a_late_exception_is_not_lost(build_workers, late, gates):
    envs = build_late(build_workers, gates)
    wait = begin_a_step(envs, late)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            wait(timeout=0.02)
    with gates.opened_soon(1), pytest.raises(Exception, match=r"boom|holds a lock"):
        wait()
    assert_in_step(envs)


@pytest.mark.parametrize("late", ["large", "unusual"])
def test_a_late_info_is_not_lost(build_workers, late, gates):
    envs = build_late(build_workers, gates)
    wait = begin_a_step(envs, late)
    with pytest.raises(TimeoutError):
        wait(timeout=0.02)
    with gates.opened_soon(1):
        infos = wait()[4]
    assert infos[f"_{late}"].tolist() == [False, True, False]
    if late == "large":
        assert_identical(infos["large"][1], np.full(2_000_000, 1))
    else:
        assert infos["unusual"]["set"][1] == {1, 2}
    assert_in_step(envs)


def test_repeated_late_results_are_never_mixed_up(build_workers, gates):
    envs = build_late(build_workers, gates)
    random = np.random.default_rng(0)
    for _ in range(times(6, with_full=15)):
        if random.random() < 0.5:
            envs.step_async([0.03] * 3)
            wait = envs.step_wait
        else:
            envs.call_async("sleep", 0.03)
            wait = envs.call_wait
        with contextlib.suppress(TimeoutError):
            wait(timeout=random.uniform(0, 0.06))
        assert envs.reset()[0].tolist() == [[0]] * 3
        assert envs.step([0.001] * 3)[0].tolist() == [[1]] * 3
        assert envs.call("sleep", 0.001) == (0.001,) * 3
    gates.open(1)
    assert_in_step(envs)


def test_late_rows_can_be_dropped_after_another_call_was_refused(build_workers, gates):
    envs = build_late(build_workers, gates)
    envs.set_attr("late", ["none", None, None])
    envs.send(np.array([0.0] * 3), [0, 1, 2])
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0)
    for refused in (envs.step_wait, envs.call_wait):
        with pytest.raises(NoAsyncCallError):
            refused()
    with pytest.raises(AlreadyPendingCallError):
        envs.step_async([0.0] * 3)
    with gates.opened_soon(1):
        assert_in_step(envs)
