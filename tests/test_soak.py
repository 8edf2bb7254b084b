"""Some seconds of the soak: random operations and faults, and no value differs."""

import pytest

from tests.soak import soak
from tests.support.ledger import Row


def test_no_value_differs_from_the_model_whatever_fails():
    counts, _ = soak(0, rows=7, workers=3, seed=8, session=4, sessions=6)
    assert counts["step"] > 0
    assert counts["batch"] > 0
    assert counts["kill"] > 0
    if counts["step"] > 500:  # a busy machine may make too few steps for an error
        assert counts["env_error"] > 0
    assert counts["values"] > 1000


def test_a_value_that_differs_ends_the_soak(monkeypatch):
    """With a wrong model the soak fails."""
    monkeypatch.setattr(Row, "_end", lambda _, frame: frame)
    with pytest.raises(AssertionError, match="expected"):
        soak(0, rows=7, workers=3, seed=8, session=4, sessions=6)
