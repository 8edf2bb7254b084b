"""Repetitions of random trials and modes: fewer by default than with ``--full``."""

import pytest

#: Whether tests run with ``--full``. `tests/conftest.py` sets it before tests are collected.
full = False


def times(by_default, *, with_full):
    """Returns how often to repeat a trial: ``by_default`` or, with ``--full``, ``with_full``."""
    return with_full if full else by_default


def in_turn(values, number):
    """Pairs each value with its marks: all are slow, but for the one whose turn ``number`` is."""
    for position, value in enumerate(values):
        yield value, () if position == number % len(values) else (pytest.mark.slow,)
