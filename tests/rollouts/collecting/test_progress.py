"""Long collections show how far they are."""

import io
import sys

import pytest

from cartwheel.rollouts.collecting import session
from tests.support.collecting import assert_same, collector_of
from tests.support.executors import INLINE

ORDERS = [
    {"num_steps": 9},
    {"num_steps": 9, "order": "free", "max_rows": 2},
    {"num_steps": 9, "order": "groups", "groups": 3},
    {"num_steps": 9, "order": "auto"},
]


@pytest.mark.parametrize("keywords", ORDERS, ids=str)
def test_a_function_gets_the_steps_that_a_rollout_has(keywords):
    reports = []
    with collector_of(
        "NEXT_STEP",
        num_envs=6,
        build=INLINE,
        progress=lambda *report: reports.append(report),
        **keywords,
    ) as collector:
        for _ in range(3):
            reports.clear()
            collector.collect()
            done = [done for done, _ in reports]
            assert {total for _, total in reports} == {54}
            assert done == sorted(done)
            assert done[0] == 0 < done[-1] < 54  # what the last call asked for is not there yet


@pytest.mark.parametrize("keywords", [ORDERS[0], ORDERS[2]], ids=str)
def test_a_report_that_raises_loses_no_answer_of_the_policy(keywords):
    faults = iter([None, None, OSError("no room to write"), None, OSError("no room to write")])

    def report(*_):
        if (fault := next(faults, None)) is not None:
            raise fault

    with (
        collector_of("NEXT_STEP", num_envs=6, progress=report, **keywords) as collector,
        collector_of("NEXT_STEP", num_envs=6, **keywords) as other,
    ):
        for _ in range(2):
            with pytest.raises(OSError, match="no room"):
                collector.collect()
        assert_same(collector.collect(), other.collect())
        assert collector.stats().policy_calls == other.stats().policy_calls


def test_a_rollout_of_episodes_counts_episodes():
    reports = []
    with collector_of(
        "NEXT_STEP",
        None,
        num_envs=6,
        build=INLINE,
        num_episodes=18,
        progress=lambda *report: reports.append(report),
    ) as collector:
        collector.collect()
    assert {total for _, total in reports} == {18}
    assert len({done for done, _ in reports}) > 3


def test_with_columns_only_those_of_the_rollout_count():
    reports = []
    with collector_of(
        "NEXT_STEP",
        9,
        num_envs=6,
        build=INLINE,
        order="free",
        columns=2,
        progress=lambda *report: reports.append(report),
    ) as collector:
        for _ in range(5):
            collector.collect()
    assert {total for _, total in reports} == {18}
    assert all(done <= total for done, total in reports)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("screen", "progress", "long", "drawn"),
    [
        (Terminal, True, 0.0, True),
        (Terminal, True, 1e6, False),
        (Terminal, False, 0.0, False),
        (io.StringIO, True, 0.0, False),
    ],
)
def test_a_bar_is_drawn_on_a_terminal_for_what_takes_long(
    monkeypatch, screen, progress, long, drawn
):
    stderr = screen()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        patch.setattr(session, "LONG", long)
        with collector_of("NEXT_STEP", 9, build=INLINE, progress=progress) as collector:
            collector.collect()
    assert ("collected" in stderr.getvalue()) == drawn
    assert bool(stderr.getvalue().strip("\r\x1b[K")) == drawn
