"""``order="auto"`` measures, chooses, says why, and changes no result."""

import contextlib
import logging
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.rollouts.collecting.auto import Auto
from tests.support.collecting import assert_same_steps, collector_of, in_lockstep, policy
from tests.support.environments import transcripts
from tests.support.executors import INLINE, PROCESS


class Measured:
    """Stands in for the environments and the policy: rollouts of one step that take given times."""

    def __init__(self, clock, seconds, order):
        self.clock, self.seconds, self.order = clock, seconds, order
        self.waited, self.num_steps, self.run_ahead = 0.0, 1, 1
        self.carry, self.shown = object(), None
        self.needs_reset, self.is_between_rollouts = False, True
        self.begun = 0

    def begin(self, *_):
        self.begun += 1

    def rest(self):
        pass

    def collect(self):
        policy_s, envs_s, whole_s = self.seconds
        self.clock.actor.seconds += policy_s
        self.waited += envs_s
        self.clock.now += whole_s
        return self.clock


class Clock:
    """A clock, an actor and a rollout."""

    def __init__(self):
        self.now, self.seconds, self.num_steps = 0.0, 0.0, 1
        self.actor, self.rewards = self, np.zeros((1, 8))


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


CASES = {
    # (policy, environments, whole) in lockstep; the whole in groups and free; the choice
    "nothing to hide": ((1e-5, 1e-4, 1.1e-4), 1e-5, 1e-5, "lockstep", 0),
    "no policy to hide": ((1e-6, 1e-2, 1e-2), 1e-3, 4e-3, "free", 1),
    "groups win": ((4e-3, 5e-3, 9e-3), 5e-3, 6e-3, "groups", 2),
    "free wins": ((4e-3, 5e-3, 9e-3), 8e-3, 5e-3, "free", 2),
    "no order wins": ((4e-3, 5e-3, 9e-3), 8.8e-3, 9.5e-3, "lockstep", 2),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fastest_order_is_kept_and_others_are_tried_only_where_they_can_gain(
    case, clock, caplog
):
    lockstep, groups, free, choice, tries = CASES[case]
    source = Measured(clock, lockstep, "lockstep")
    others = {
        "free": Measured(clock, (0, 0, free), "free"),
        "groups": Measured(clock, (0, 0, groups), "groups"),
    }
    auto = Auto(clock, source, {name: partial(others.get, name) for name in others})
    with caplog.at_level(logging.INFO, "cartwheel"):
        for _ in range(12):
            auto.collect()
    assert auto.name == choice
    assert sum(other.begun > 0 for other in others.values()) == tries
    assert all(other.run_ahead == 1 for other in others.values())
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"chose the order {choice!r}" in line
    assert auto.reason in line
    assert f"{1e3 * lockstep[1]:.2f} ms" in auto.reason


class Failing(Measured):
    """An exception ends its first rollout, of which the next call collects the short rest."""

    calls = 0

    def collect(self):
        self.calls += 1
        if self.calls == 1:
            raise ZeroDivisionError
        whole, self.seconds = self.seconds, (0, 0, 1e-6) if self.calls == 2 else self.seconds
        super().collect()
        self.seconds = whole
        return self.clock


def test_the_rest_of_a_rollout_after_an_exception_is_not_measured(clock):
    lockstep, groups, free, choice, _ = CASES["no order wins"]
    source = Measured(clock, lockstep, "lockstep")
    others = {
        "free": Measured(clock, (0, 0, free), "free"),
        "groups": Failing(clock, (0, 0, groups), "groups"),
    }
    auto = Auto(clock, source, {name: partial(others.get, name) for name in others})
    for _ in range(13):
        with contextlib.suppress(ZeroDivisionError):
            auto.collect()
    assert auto.name == choice


def test_stats_say_the_order_and_the_reason():
    with collector_of("NEXT_STEP", 7, num_envs=6, build=PROCESS, order="auto") as collector:
        for _ in range(8):
            collector.collect()
        stats = collector.stats()
        assert stats.order in ("lockstep", "groups", "free")
        assert "a call of the policy" in stats.reason
        assert stats.rollouts == 8
        assert stats.steps == 8 * 7 * 6
        assert stats.policy_calls >= 8 * 7
        shares = stats.policy_share + stats.waiting_share + stats.other_share
        assert abs(shares - 1) < 0.01


@pytest.mark.parametrize("order", ["lockstep", "groups", "free"])
def test_shares_within_the_first_rollout_are_parts_of_the_time_so_far(order):
    found = []

    def watch(observations):
        found.append(collector.stats())
        return policy(observations)

    with collector_of("SAME_STEP", 20, num_envs=4, build=PROCESS, order=order) as collector:
        collector.policy = watch
        collector.collect()
    for stats in found:
        shares = stats.policy_share, stats.waiting_share, stats.other_share
        assert all(0 <= share <= 1 for share in shares), shares
        assert abs(sum(shares) - 1) < 1e-9
    assert 0 < found[0].seconds < found[1].seconds < found[-1].seconds
    assert found[1].policy_share > 0
    assert found[-1].waiting_share > 0


def test_waits_before_an_exception_of_the_policy_count_once():
    found = []

    def watch(observations):
        found.append(collector.stats())
        if len(found) == 10:
            raise ZeroDivisionError
        return policy(observations)

    with collector_of("SAME_STEP", 20, num_envs=4, build=INLINE, order="lockstep") as collector:
        collector.policy = watch
        with pytest.raises(ZeroDivisionError):
            collector.collect()
        found.append(collector.stats())
    before, after = (stats.waiting_share * stats.seconds for stats in found[-2:])
    assert 0 < before == pytest.approx(after)


def test_stats_of_free_rows_name_the_slowest(gates):
    """In its first step row 2 waits for two rollouts of the others, which go ahead of it."""
    length, asked, began = 20, Counter(), time.monotonic()

    def act(observations, env_index, first):  # noqa: ARG001 - a recurrent policy
        asked.update(env_index.tolist())
        if min(asked[row] for row in (0, 1, 3)) == 2 * length:
            gates.open(1)
        return np.where(env_index == 2, 1, 0)

    envs = PROCESS(gates.env_fns(4), num_workers=4)
    collector = cartwheel.Collector(
        envs, act, length, recurrent=True, order="free", run_ahead=1, seed=1
    )
    collector.collect()
    rows, seconds = zip(*collector.stats().slowest_rows, strict=True)
    assert (rows[0], sorted(rows)) == (2, [0, 1, 2, 3])
    assert 0 < seconds[3] <= seconds[2] <= seconds[1] < seconds[0]
    assert length * seconds[0] < time.monotonic() - began
    collector.close()
    envs.close()


def test_vectors_of_gymnasium_are_collected_in_lockstep():
    envs = SyncVectorEnv(transcripts(3, 4))
    collector = cartwheel.Collector(
        envs, lambda o: np.zeros(len(o), np.int64), 5, order="auto", seed=1
    )
    for _ in range(4):
        collector.collect()
    assert collector.stats().order == "lockstep"
    envs.close()


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP", "DISABLED"])
def test_whatever_is_tried_the_rollouts_are_those_of_lockstep(mode, monkeypatch):
    monkeypatch.setattr("cartwheel.rollouts.collecting.auto.SHORTEST_STEP", 0.0)
    monkeypatch.setattr("cartwheel.rollouts.collecting.auto.LEAST_SHARE", 0.0)
    expected = in_lockstep(16, mode, 7, num_envs=6)
    for ahead in (0, 2):
        with collector_of(
            mode, 7, num_envs=6, build=PROCESS, order="auto", run_ahead=ahead
        ) as collector:
            orders = set()
            for rollout in expected:
                assert_same_steps(collector.collect(), rollout)
                orders.add(collector.stats().order)
            assert orders == {"lockstep", "groups", "free"}
            assert policy is collector.policy


class Interrupted(Measured):
    """Ctrl-C comes where rows are passed to this order, or where they come back."""

    when = "begin"

    def begin(self, *_):
        if self.when == "begin":
            raise KeyboardInterrupt

    @property
    def is_between_rollouts(self):
        if self.when == "end":
            raise KeyboardInterrupt
        return True

    @is_between_rollouts.setter
    def is_between_rollouts(self, _):
        pass


@pytest.mark.parametrize("when", ["begin", "end"])
def test_ctrl_c_ends_the_comparison_of_orders_and_the_present_one_stays(when, clock):
    source = Measured(clock, (4e-3, 5e-3, 9e-3), "lockstep")
    other = Interrupted(clock, (0, 0, 5e-3), "free")
    other.when = when
    auto = Auto(clock, source, {"free": lambda: other})
    rollouts = 3 if when == "begin" else 5  # of these the last one is followed by Ctrl-C
    for _ in range(rollouts - 1):
        auto.collect()
    with pytest.raises(KeyboardInterrupt):
        auto.collect()
    assert not auto.is_measuring
    assert "interrupted" in auto.reason
    assert auto.name == {"begin": "lockstep", "end": "free"}[when]
    assert other.run_ahead == 1
    for _ in range(5):
        auto.collect()
    assert auto.present is {"begin": source, "end": other}[when]
