"""A thread that collects: the same rollouts, known versions, and an end at every moment."""

import contextlib
import gc
import threading
import time
import weakref
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from cartwheel.rollouts.collecting import pipeline
from cartwheel.rollouts.collecting.policy_calls import Actor
from tests.support.cases import POLE, SHORT
from tests.support.collecting import assert_same_steps, collector_of, in_lockstep, policy
from tests.support.executors import NATIVE, PROCESS, THREAD
from tests.support.programs import run_program

pytestmark = pytest.mark.usefixtures("program_server")

#: The name of the thread that reads it.
COMM = Path("/proc/thread-self/comm")
MODES = ("NEXT_STEP", "SAME_STEP", "DISABLED")
ORDERS = [
    {"order": "lockstep"},
    {"order": "free"},
    {"order": "free", "run_ahead": 2, "queue": 3},
    {"order": "groups"},
    {"order": "auto"},
]


@contextlib.contextmanager
def in_background(mode="NEXT_STEP", num_steps=7, *, act=policy, build=PROCESS, **keywords):
    """A collector in the background over simulated episodes of 6 rows."""
    with collector_of(mode, num_steps, num_envs=6, build=build) as collector:
        collector = cartwheel.Collector(collector.envs, act, num_steps, background=True, **keywords)
        try:
            yield collector
        finally:
            collector.close()
    assert "cartwheel-collector" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("keywords", ORDERS, ids=str)
@pytest.mark.parametrize("build", [PROCESS, THREAD], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_rollouts_are_those_of_the_foreground(mode, build, keywords):
    expected = in_lockstep(8, mode, 7, num_envs=6)
    with in_background(mode, build=build, **keywords) as collector:
        for number, rollout in enumerate(expected):
            assert_same_steps(collector.collect(), rollout)
            if number == 3:
                collector.pause()
                assert collector.envs.in_flight == []
                collector.envs.call("spec")


@pytest.mark.parametrize(
    ("keywords", "bound"),
    [
        ({"order": "free"}, 2),
        ({"order": "free", "run_ahead": 1}, 3),
        ({"order": "free", "run_ahead": 2, "queue": 2}, 5),
        ({"order": "groups", "run_ahead": 1}, 3),
        ({"order": "lockstep"}, 2),
    ],
    ids=str,
)
def test_versions_are_those_of_a_log_of_updates(keywords, bound):
    log = []  # for each row, the versions in the order of its steps
    version = [0]

    def act(observations, env_index, first):  # noqa: ARG001 - a recurrent policy
        actions, extras = policy(observations)
        log.append(version[0])
        return actions, {**extras, "version": np.full(len(env_index), version[0])}

    def change():
        version[0] += 1

    with in_background(act=act, recurrent=True, **keywords) as collector:
        for number in range(12):
            rollout = collector.collect()
            valid = rollout.valid
            np.testing.assert_array_equal(
                rollout.policy_version[valid], rollout.extras["version"][valid]
            )
            behind = number - rollout.policy_version
            assert 0 <= behind.min() <= behind.max() <= bound
            assert (np.diff(rollout.policy_version, axis=0) >= 0).all()
            assert collector.update(change) == number + 1
        assert collector.stats().max_staleness <= bound
        assert collector.stats().version == 12
    assert log == sorted(log)


def test_in_the_foreground_without_run_ahead_nothing_is_stale():
    for order in ("lockstep", "free", "groups"):
        with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order=order) as collector:
            for number in range(4):
                assert (collector.collect().policy_version == number).all()
                collector.update()
            assert collector.stats().max_staleness == 0


class Raising:
    """Raises within the third rollout."""

    def __init__(self):
        self.calls = 0

    def __call__(self, observations):
        self.calls += 1
        if self.calls % 17 == 0:
            raise ZeroDivisionError
        return policy(observations)


@pytest.mark.parametrize("keywords", ORDERS[:4], ids=str)
def test_an_exception_of_the_policy_is_raised_after_what_was_complete(keywords):
    expected = in_lockstep(6, "NEXT_STEP", 7, num_envs=6)
    with in_background(act=Raising(), **keywords) as collector:
        rollouts, errors = [], 0
        while len(rollouts) < 6:
            try:
                rollouts.append(collector.collect())
            except ZeroDivisionError:  # each call may raise
                errors += 1
        assert errors
        for one, two in zip(rollouts, expected, strict=True):
            assert_same_steps(one, two)


def test_update_waits_for_the_call_in_progress():
    began, ends, seen = threading.Event(), threading.Event(), []

    def act(observations):
        began.set()
        assert ends.wait(60)
        seen.append("answered")
        return policy(observations)

    with in_background(act=act, order="free") as collector:
        waiting = threading.Thread(target=lambda: seen.append(collector.collect()))
        waiting.start()
        assert began.wait(60)
        threading.Timer(0.05, ends.set).start()
        collector.update(lambda: seen.append("updated"))
        assert seen[:2] == ["answered", "updated"]
        waiting.join(60)
        assert not waiting.is_alive()


def test_a_policy_that_an_update_sets_answers_under_the_new_version():
    asks, answers = threading.Event(), []
    actor = Actor(None, lambda *_: "old", recurrent=True)

    def ask():
        answers.append(actor.ask(None, np.arange(2), asks.set))

    asking = threading.Thread(target=ask)

    def change():
        asking.start()
        assert asks.wait(60)  # the call comes before the new policy, and waits for this update
        actor.policy = lambda *_: "new"

    assert actor.update(change) == 1
    asking.join(60)
    assert answers == [("new", 1)]


def test_an_update_that_raises_changes_no_version():
    with collector_of("NEXT_STEP", 7) as collector:
        with pytest.raises(ZeroDivisionError):
            collector.update(lambda: 1 / 0)
        assert collector.stats().version == 0
        assert collector.update() == 1


def test_update_from_within_the_policy_is_an_error():
    def act(observations):
        collector.update()
        return policy(observations)

    with collector_of("NEXT_STEP", 7) as one:
        collector = cartwheel.Collector(one.envs, act, 7)
        with pytest.raises(RuntimeError, match="`update` was called by the policy itself"):
            collector.collect()


def test_closing_from_within_the_policy_is_an_error():
    def close(_):
        collector.close()

    with in_background("SAME_STEP", order="free") as collector:
        collector.policy = close
        with pytest.raises(RuntimeError, match="`close` was called by the policy"):
            collector.collect()
        collector.policy = policy
        assert collector.collect().valid.all()


def test_a_second_thread_is_refused():
    inside, ends = threading.Event(), threading.Event()

    def act(observations):
        inside.set()
        assert ends.wait(60)
        return policy(observations)

    with collector_of("NEXT_STEP", 7) as one:
        collector = cartwheel.Collector(one.envs, act, 7)
        other = threading.Thread(target=collector.collect)
        other.start()
        assert inside.wait(60)
        for call in (collector.collect, collector.reset, collector.pause):
            with pytest.raises(RuntimeError, match="one thread at a time"):
                call()
        ends.set()
        other.join(60)
        assert not other.is_alive()


def test_a_collector_in_the_background_is_refused_where_it_would_step_itself():
    message = "`background` needs executor='process'"
    with collector_of("NEXT_STEP", 7) as one, pytest.raises(ValueError, match=message):
        cartwheel.Collector(one.envs, policy, 7, background=True)
    pool = envpool.make("CartPole-v1", num_envs=2, executor="inline")
    with pool, pytest.raises(ValueError, match=message):
        cartwheel.Collector(pool, policy, 7, background=True)
    theirs = cartwheel.wrappers.RecordEpisodeStatistics(gym.vector.SyncVectorEnv([POLE] * 2))
    with pytest.raises(ValueError, match=message):
        cartwheel.Collector(theirs, policy, 7, background=True)
    theirs.close()


def test_closing_ends_the_thread_at_any_moment():
    for pause in (0, 0.001, 0.01, 0.05):
        with in_background(order="free", run_ahead=1) as collector:
            threading.Thread(target=lambda: collector.collect(), daemon=True)  # not started
            collector.collect()
            time.sleep(pause)
            collector.close()
            assert collector.envs.in_flight == []
            with pytest.raises(RuntimeError, match="closed collector"):
                collector.collect()
            collector.close()


def test_closing_ends_the_thread_that_waits_for_a_row_and_a_pause_receives_it(gates):
    def act(observations, env_index, first):  # noqa: ARG001 - a recurrent policy
        return np.where(env_index == 2, 1, 0)  # row 2 waits at gate 1

    envs = PROCESS(gates.env_fns(4), num_workers=4)
    collector = cartwheel.Collector(
        envs, act, 5, recurrent=True, order="free", background=True, run_ahead=1
    )
    errors = []

    def collect():
        try:
            collector.collect()
        except BaseException as error:
            errors.append(error)

    waiting = threading.Thread(target=collect)
    waiting.start()
    gates.await_arrival(1)
    with gates.opened_soon(1):
        collector.close()
    waiting.join(60)
    assert not waiting.is_alive()
    assert envs.in_flight == []
    envs.close()


def test_a_collector_without_references_ends_its_thread():
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS) as one:
        collector = cartwheel.Collector(one.envs, policy, 7, order="free", background=True)
        collector.collect()
        del collector
        gc.collect()
        names = [thread.name for thread in threading.enumerate()]
        assert "cartwheel-collector" not in names
        one.envs.reset()  # drops what is in flight


def collect_until_it_raised(collector):
    collector.collect()
    while "cartwheel-collector" in [thread.name for thread in threading.enumerate()]:
        time.sleep(0.001)


def test_a_closed_collector_keeps_no_exception_that_was_not_raised():
    """Its traceback refers to the policy, and to the collector."""
    act = Raising()
    kept = weakref.ref(act)
    with in_background(act=act, order="lockstep", queue=3) as collector:
        collect_until_it_raised(collector)
        collector.close()
        del act, collector
    assert kept() is None


def test_a_reset_drops_the_rollouts_and_the_exception_of_the_background():
    with in_background(act=Raising(), order="lockstep", queue=3) as collector:
        collect_until_it_raised(collector)
        observations, _ = collector.reset(seed=8)
        np.testing.assert_array_equal(collector.collect().observations[0], observations)
        collector.collect()


def test_native_rows_are_collected_in_the_background():
    case = SHORT[0]
    envs = NATIVE([case] * 64)
    envs.single_action_space.seed(3)
    action = envs.single_action_space.sample()
    collector = cartwheel.Collector(
        envs, lambda o: np.stack([action] * len(o)), 20, order="free", background=True, seed=2
    )
    rollouts = [collector.collect() for _ in range(3)]
    collector.close()
    lockstep = cartwheel.Collector(envs, lambda o: np.stack([action] * len(o)), 20, seed=2)
    for rollout in rollouts:
        assert_same_steps(rollout, lockstep.collect())
    envs.close()


@pytest.mark.skipif(not COMM.exists(), reason="only Linux shows names here")
def test_the_system_shows_the_name_of_the_thread():
    names = set()

    def act(observations):
        names.add(COMM.read_text().strip())
        return policy(observations)

    with in_background(act=act, build=THREAD) as collector:
        collector.collect()
    assert names == {"cartwheel-coll"}


@pytest.mark.parametrize("ending", ["end", "exception", "fork", "interrupt"])
def test_a_program_ends_in_the_middle_of_a_collection(ending):
    facts = run_program("collecting", ending, returncode=1 if ending == "exception" else 0)
    assert facts["rollouts"] > 0
    if ending == "fork":
        assert "thread of the parent process" in facts["child"]


def test_the_error_of_a_row_that_is_late_has_the_time_limit_of_the_environments(monkeypatch):
    clock = SimpleNamespace(perf_counter=time.perf_counter, monotonic=count(step=100).__next__)

    def late(timeout, **_):
        raise cartwheel.WorkerTimeoutError.from_call("recv", timeout, [4], [1])

    with in_background(build=partial(PROCESS, timeout=60), order="free") as collector:
        monkeypatch.setattr(pipeline, "time", clock)
        monkeypatch.setattr(collector.envs, "recv", late)
        words = r"after 60 second\(s\)\. Rows \[4\] have not answered"
        with pytest.raises(cartwheel.WorkerTimeoutError, match=words) as error:
            collector.collect()
        assert (error.value.env_index, error.value.workers) == ([4], [1])
        monkeypatch.undo()
