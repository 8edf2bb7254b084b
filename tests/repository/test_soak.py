"""Some seconds of the soak: random operations and faults, and no value differs."""

import pytest

from tests.support.counting import CountingEnv
from tests.support.ledger import Row
from tools import soak_collecting
from tools.soak import soak


@pytest.mark.slow
def test_no_value_differs_from_the_model_whatever_fails():
    counts, _ = soak(0, rows=7, workers=3, seed=8, session=4, sessions=6)
    assert counts["step"] > 0
    assert counts["batch"] > 0
    assert counts["kill"] > 0
    assert counts["close in a handler"] > 0
    assert any(name.startswith("program, ") for name in counts)
    if counts["step"] > 500:  # a busy machine may make too few steps for an error
        assert counts["env_error"] > 0
    if counts["step"] > 2000:
        assert any(name.startswith("fork, ") for name in counts)
    assert counts["values"] > 1000


def test_a_value_that_differs_ends_the_soak(monkeypatch):
    """With a wrong model the soak fails."""
    monkeypatch.setattr(Row, "_end", lambda _, frame: frame)
    with pytest.raises(AssertionError, match="expected"):
        soak(0, rows=7, workers=3, seed=8, session=4, sessions=6)


@pytest.mark.slow
def test_rollouts_keep_the_rules_whatever_fails():
    counts, _ = soak_collecting.soak(0, seed=3, session=0.3, sessions=12)
    assert counts["rollouts"] > 0
    if counts["rollouts"] > 300:  # a busy machine may make too few calls for an error
        assert counts["PolicyError"] > 0


def test_no_step_is_lost_or_doubled_in_any_order():
    counts = soak_collecting.counting(24_000)
    assert counts["steps"] >= 24_000
    assert counts["failed steps"] == 0


def test_a_step_that_is_doubled_ends_the_soak_of_collectors(monkeypatch):
    """With environments that count wrongly the soak fails."""
    step = CountingEnv.step

    def doubled(env, action):
        if env.number == 3 and env.episode == 5:
            env.time += 1
        return step(env, action)

    monkeypatch.setattr(CountingEnv, "step", doubled)
    with pytest.raises(AssertionError, match="step"):
        soak_collecting.counting(24_000)
