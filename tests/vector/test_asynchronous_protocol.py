"""`reset_async` … `call_wait` follow Gymnasium's states and raise its texts, in every executor."""

import contextlib
import re
import time
import warnings
from functools import partial
from multiprocessing import TimeoutError
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AsyncVectorEnv

import cartwheel
from cartwheel.workers import channels
from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import SleepingEnv, transcripts
from tests.support.gates import GatedEnv
from tests.support.in_parts import PATIENCE_S
from tests.support.oracle import assert_same_steps, with_oracle

pytestmark = pytest.mark.usefixtures("spinning")

ACTIONS = [1, 0]
STARTS = {
    "reset": lambda envs: envs.reset_async(seed=4),
    "step": lambda envs: envs.step_async(ACTIONS),
    "call": lambda envs: envs.call_async("gravity"),
}
WAITS = {
    "reset": lambda envs, **keywords: envs.reset_wait(**keywords),
    "step": lambda envs, **keywords: envs.step_wait(**keywords),
    "call": lambda envs, **keywords: envs.call_wait(**keywords),
}
#: What the oracle returns for each.
SINGLE = {
    "reset": lambda oracle: oracle.reset(seed=4),
    "step": lambda oracle: oracle.step(np.array(ACTIONS)),
    "call": lambda oracle: oracle.call("gravity"),
}


def with_halves_of_its_own(base):
    """A subclass as programs write them, with methods that a mixin may bring."""

    class Halves:
        def step_wait(self, timeout=None):
            observations, rewards, *others = super().step_wait(timeout)
            return observations, 2 * rewards, *others

        def reset_async(self, seed=None, options=None):
            super().reset_async(seed=7 if seed is None else seed, options=options)

    class Own(Halves, base):
        pass

    class Named(Own):
        def step(self, actions):
            return *super().step(actions)[:4], {"named": True}

    return Named


def test_step_and_reset_call_the_halves_that_a_subclass_overrides():
    subclasses = [with_halves_of_its_own(AsyncVectorEnv)]
    subclasses += map(with_halves_of_its_own, (cartwheel.VectorEnv, cartwheel.AsyncVectorEnv))
    expected = None
    for subclass in subclasses:
        envs = subclass([POLE] * 2)
        found = [envs.reset(), envs.step(np.array(ACTIONS)), envs.reset(seed=3)]
        envs.close()
        expected = expected or found
        assert_identical(found, expected)
    assert expected[1][1].tolist() == [2, 2]
    assert not envs.fills_rollouts


def test_each_pair_of_calls_gives_what_the_single_call_gives(build_anywhere):
    envs, oracle = with_oracle(build_anywhere, POLE, 2)
    for _ in range(40):
        envs.step_async(np.array(ACTIONS))
        assert_identical(envs.step_wait(), oracle.step(np.array(ACTIONS)))
    options = {"reset_mask": np.array([False, True]), "low": 0}
    envs.reset_async(seed=3, options=dict(options))
    assert_identical(envs.reset_wait(), oracle.reset(seed=3, options=options))
    envs.reset_async(7, {"low": 0})  # arguments may be positional
    assert_identical(envs.reset_wait(60), oracle.reset(seed=7, options={"low": 0}))
    envs.step_async(ACTIONS)
    assert_identical(envs.step_wait(60), oracle.step(np.array(ACTIONS)))
    envs.call_async("gravity")
    assert_identical(envs.call_wait(60), oracle.call("gravity"))


@pytest.mark.parametrize("first", STARTS)
def test_a_call_while_another_is_pending_is_refused(build_any, first):
    envs, oracle = with_oracle(build_any, POLE, 2)
    STARTS[first](envs)
    pending = f"while waiting for a pending call to `{first}` to complete"
    for second, start in STARTS.items():
        text = f"Calling `{second}_async` {pending}" + ("" if second == "reset" else ".")
        with pytest.raises(AlreadyPendingCallError) as refusal:
            start(envs)
        assert str(refusal.value) == text
        assert refusal.value.__notes__ == [f"`{first}_wait()` receives its results first"]
        assert refusal.value.name == first
    for call in (
        envs.reset,
        lambda: envs.step(ACTIONS),
        lambda: envs.call("gravity"),
        lambda: envs.get_attr("gravity"),
        envs.render,
    ):
        with pytest.raises(AlreadyPendingCallError, match=pending):
            call()
    text = f"Calling `set_attr` {pending}."
    with pytest.raises(AlreadyPendingCallError, match=re.escape(text)):
        envs.set_attr("gravity", 5)
    assert_identical(WAITS[first](envs, timeout=60), SINGLE[first](oracle))
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("pending", [None, *STARTS])
def test_waiting_for_a_call_that_was_not_begun_is_refused(build_any, pending):
    envs, oracle = with_oracle(build_any, POLE, 2)
    if pending is not None:
        STARTS[pending](envs)
    for waited in WAITS.keys() - {pending}:
        text = f"Calling `{waited}_wait` without any prior call to `{waited}_async`."
        with pytest.raises(NoAsyncCallError, match=f"^{re.escape(text)}$") as refusal:
            WAITS[waited](envs)
        assert refusal.value.name == waited
    if pending is not None:
        assert_identical(WAITS[pending](envs), SINGLE[pending](oracle))
        with pytest.raises(NoAsyncCallError):
            WAITS[pending](envs)
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("flying", [False, True], ids=["idle", "in flight"])
def test_every_call_after_close_is_refused(build_any, flying):
    envs, _ = with_oracle(build_any, POLE, 2)
    if flying:
        envs.send([1], [1])
    envs.close()
    text = f"Trying to operate on `{type(envs).__name__}`, after a call to `close()`."
    for call in (
        envs.reset,
        lambda: envs.step(ACTIONS),
        lambda: envs.step(None),
        lambda: envs.reset(seed=[1]),
        lambda: envs.call("gravity"),
        lambda: envs.get_attr("gravity"),
        lambda: envs.get_attr("color"),
        lambda: envs.set_attr("gravity", 1),
        lambda: envs.set_attr("gravity", [1]),
        envs.render,
        lambda: envs.np_random,
        lambda: envs.np_random_seed,
        lambda: envs.send([1], [1]),
        lambda: envs.step([1], [1]),
        envs.recv,
        lambda: envs.recv(0),
        envs.send_reset,
        lambda: envs.send_reset(options={"env_index": [1]}),
        *[partial(call, envs) for call in (*STARTS.values(), *WAITS.values())],
    ):
        with pytest.raises(ClosedEnvironmentError, match=re.escape(text)):
            call()
    assert envs.closed
    envs.close()


def test_the_closed_error_names_the_class():
    for preset in (cartwheel.SyncVectorEnv, cartwheel.AsyncVectorEnv):
        envs = preset(transcripts(2))
        envs.close()
        with pytest.raises(ClosedEnvironmentError, match=f"on `{preset.__name__}`, after"):
            envs.reset()


@pytest.mark.parametrize("pending", STARTS)
def test_close_warns_of_a_pending_call_and_waits_for_it(build_any, pending):
    envs, _ = with_oracle(build_any, POLE, 2)
    STARTS[pending](envs)
    text = f"Calling `close` while waiting for a pending call to `{pending}` to complete."
    with pytest.warns(UserWarning, match=re.escape(f"\x1b[33mWARN: {text}\x1b[0m")):
        envs.close()
    assert envs.closed


def test_close_closes_also_where_its_warning_is_an_error(build_any):
    envs, _ = with_oracle(build_any, POLE, 2)
    envs.step_async(np.array(ACTIONS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="waiting for a pending call to `step`"):
            envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.reset()
    envs.close()
    assert envs.closed


def test_a_step_that_is_late_is_not_lost(build_workers, gates):
    envs = build_workers(gates.env_fns(3))
    envs.reset()
    envs.step_async([0, 1, 0])
    for _ in range(2):
        with pytest.raises(
            TimeoutError, match=re.escape("The call to `step_wait` has timed out after 0.1 second(")
        ):
            envs.step_wait(timeout=0.1)
        for call in (lambda: envs.step([0, 0, 0]), lambda: envs.get_attr("t"), envs.render):
            with pytest.raises(AlreadyPendingCallError, match="pending call to `step`"):
                call()
    with gates.opened_soon(1):
        observations, rewards, *_ = envs.step_wait()
    assert observations.tolist() == [[1], [1], [1]]
    assert_identical(rewards, np.array([0.0, 1.0, 0.0]))
    gates.open(2, 3)
    observations, rewards, *_ = envs.step([1, 2, 3])
    assert observations.tolist() == [[2], [2], [2]]
    assert_identical(rewards, np.array([1.0, 2.0, 3.0]))


def test_a_reset_that_is_late_is_not_lost(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset_async(seed=5, options={"gate": 1})
    with pytest.raises(
        TimeoutError, match=re.escape("The call to `reset_wait` has timed out after 0.05 second(s)")
    ):
        envs.reset_wait(timeout=0.05)
    with gates.opened_soon(1):
        assert envs.reset_wait()[0].tolist() == [[0], [0]]
    assert envs.step([0, 0])[0].tolist() == [[1], [1]]


def test_a_call_that_is_late_is_not_lost(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    envs.call_async("stand_at", 1)
    with pytest.raises(
        TimeoutError, match=re.escape("The call to `call_wait` has timed out after 0.05 second(s)")
    ):
        envs.call_wait(timeout=0.05)
    with gates.opened_soon(1):
        assert envs.call_wait() == (1, 1)
    assert envs.get_attr("t") == (0, 0)


def test_a_timeout_of_zero_does_not_wait(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    envs.step_async([1, 1])
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0)
    with gates.opened_soon(1):
        assert envs.step_wait()[0].tolist() == [[1], [1]]
    envs.step_async([0, 0])
    deadline = time.monotonic() + PATIENCE_S
    result = None
    while result is None:  # polling with a zero timeout eventually finishes
        assert time.monotonic() < deadline
        with contextlib.suppress(TimeoutError):
            result = envs.step_wait(timeout=0)
    assert result[0].tolist() == [[2], [2]]


def test_a_timeout_that_is_not_reached_changes_nothing(build_any):
    envs, oracle = with_oracle(build_any, POLE, 2, timeout=60)
    for _ in range(20):
        envs.step_async(ACTIONS)
        assert_identical(envs.step_wait(timeout=30), oracle.step(np.array(ACTIONS)))
    envs.reset_async(seed=2)
    assert_identical(envs.reset_wait(timeout=60), oracle.reset(seed=2))
    assert_identical(envs.get_attr("gravity"), oracle.get_attr("gravity"))


def test_the_timeout_of_the_constructor_bounds_every_wait(build_workers, gates):
    envs = build_workers(gates.env_fns(2), timeout=0.5)
    envs.reset_async()
    envs.reset_wait(timeout=60)  # longer than the constructor's, which may be too short here
    with pytest.raises(TimeoutError, match=r"`reset` has timed out after 0.5"):
        envs.reset(options={"gate": 1})
    gates.open(1)
    assert envs.reset_wait(timeout=60)[0].tolist() == [[0], [0]]
    with pytest.raises(TimeoutError, match=r"`step` has timed out after 0.5"):
        envs.step([2, 0])
    gates.open(2)
    assert envs.step_wait(timeout=60)[0].tolist() == [[1], [1]]
    with pytest.raises(TimeoutError, match=r"`call` has timed out after 0.5"):
        envs.call("stand_at", 3)
    gates.open(3)
    assert envs.call_wait(timeout=60) == (3, 3)


class SlowToDiscard:
    """A pool whose wait for an earlier call takes 45 seconds, by the clock of deadlines."""

    def __init__(self, pool, patch):
        self._pool, self._patch, self.timeouts = pool, patch, []

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def discard_abandoned(self, *args):
        self._pool.discard_abandoned(*args)
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 45)
        self._patch.setattr(channels, "time", clock)

    def reset(self, *args):
        self.timeouts.append(args[-1])
        return self._pool.reset(*args)

    def reset_rows(self, *args):
        self.timeouts.append(args[-1])
        return self._pool.reset_rows(*args)


def test_the_timeout_of_a_reset_includes_the_wait_for_an_earlier_call(build_workers, monkeypatch):
    envs = build_workers(transcripts(3, 3), timeout=60)
    with monkeypatch.context() as patch:
        patch.setattr(envs, "_pool", pool := SlowToDiscard(envs._pool, patch))
        envs.reset()
        envs.reset(options={"env_index": [1]})
    assert len(pool.timeouts) == 2
    assert all(0 < timeout <= 15 for timeout in pool.timeouts)


def test_close_ends_a_call_that_is_late(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    envs.step_async([1, 0])
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0.01)
    with gates.opened_soon(1), pytest.warns(UserWarning, match="pending call to `step`"):
        envs.close()


@pytest.mark.parametrize("keywords", [{"timeout": 0.1}, {"terminate": True}], ids=str)
def test_close_need_not_wait_for_a_pending_call(build_processes, keywords):
    envs = build_processes([SleepingEnv] * 2)
    envs.reset()
    envs.step_async([3600.0, 0.0])
    started = time.monotonic()
    with pytest.warns(UserWarning, match="pending call to `step`"):
        envs.close(**keywords)
    assert time.monotonic() - started < 20  # far above the timeout, far below an hour
    assert envs.closed


def test_close_takes_a_timeout_when_nothing_is_pending(build_any):
    for keywords in ({"timeout": 0}, {"terminate": True}):
        envs = build_any([POLE] * 2)
        envs.reset()
        envs.close(**keywords)
        assert envs.closed


class MeetingEnv(GatedEnv):
    """Its step waits until the step of the other environment has begun."""

    def __init__(self, gates, own, other):
        super().__init__(gates)
        self.own, self.other = own, other

    def step(self, action):
        self.gates.open(self.own)
        self.gates.stand_at(self.other)
        return super().step(action)


def test_slow_environments_run_at_the_same_time(build_workers, gates):
    """With two workers, the steps of both rows must overlap, or neither ends."""
    envs = build_workers([partial(MeetingEnv, gates, 1, 2), partial(MeetingEnv, gates, 2, 1)])
    envs.reset()
    assert envs.step([0, 0])[0].tolist() == [[1], [1]]
