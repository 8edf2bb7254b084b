"""How often tests repeat a random trial: a few times, or with ``--full`` many times."""

#: Whether tests run with ``--full``. `tests/conftest.py` sets it before tests are collected.
full = False


def times(by_default, *, with_full):
    """Returns how often to repeat a trial: ``by_default`` or, with ``--full``, ``with_full``."""
    return with_full if full else by_default
