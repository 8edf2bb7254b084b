"""Repetitions of random trials and modes: fewer by default than with ``--full``."""

import pytest

#: Whether tests run with ``--full``. `tests/conftest.py` sets it before tests are collected.
full = False
#: Whether this run has slow tests: with ``--full`` or ``--slow``, or if a test is named.
may_be_slow = True


def times(by_default, *, with_full):
    """Returns how often to repeat a trial: ``by_default`` or, with ``--full``, ``with_full``."""
    return with_full if full else by_default


def in_turn(values, number):
    """Pairs each value with its marks: all are slow, but for the one whose turn ``number`` is.

    All are slow if it is ``None``. A run without slow tests does not even collect them, which would
    take it a tenth longer.
    """
    for position, value in enumerate(values):
        if number is not None and position == number % len(values):
            yield value, ()
        elif may_be_slow:
            yield value, (pytest.mark.slow,)
