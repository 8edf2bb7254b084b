"""Which tests run by default: for each parameter of a test, each of its values at least once.

Executors that differ only in their number of workers count as one value; which of them a test gets
depends on its name, so all numbers meet many tests. A test that runs inline, with threads and with
processes runs inline and with one of the others, which depends on its name, too; `pytest --slow`
runs it with the other one. All combinations of modes, executors, sizes and cases run with
`pytest --full`. So a default run is fast enough to be waited for, and still meets every mode in
every test and every kind of executor in every topic.
"""

import zlib
from collections import defaultdict

from tests.support.executors import EXECUTORS, INLINE, PROCESS, THREAD, Executor

_NAMES = {executor.name for executor in EXECUTORS}


def workers_take_turns(items):
    """Divides tests by their workers: those with workers whose turn it is not come second.

    Their other parameters have the same values with the workers whose turn it is.
    """
    now, later = [], []
    for name, combinations in _by_test(items).items():
        other = (THREAD, PROCESS)[zlib.crc32(name.encode()) // 7 % 2].name
        kept = {
            item: values
            for item, values in combinations.items()
            if other not in map(_executor_of, values)
        }
        all_values, values_kept = set().union(*combinations.values()), set().union(*kept.values())
        is_inline = INLINE.name in map(_executor_of, values_kept)
        if not is_inline or any(_executor_of(value) is None for value in all_values - values_kept):
            kept = combinations
        now += kept
        later += [item for item in combinations if item not in kept]
    return now, later


def covering(items):
    """Returns, in their order, items that together have each value of each parameter."""
    chosen = set()
    for name, combinations in _by_test(items).items():
        order = list(combinations)
        first = zlib.crc32(name.encode()) % len(order)
        order = order[first:] + order[:first]
        missing = set().union(*combinations.values())
        most = len(missing)
        while missing:
            best = _first_of_most(order, combinations, missing, most)
            most = len(combinations[best] & missing)  # later ones have no more
            chosen.add(best)
            missing -= combinations[best]
            order.remove(best)
    return [item for item in items if item in chosen]


def _by_test(items):
    """For the name of each test its items, with the values of their parameters."""
    tests = defaultdict(dict)
    for item in items:
        tests[item.nodeid.partition("[")[0]][item] = _values(item)
    return tests


def _first_of_most(order, combinations, missing, most):
    """The first of those that have most of what is missing, so values of all parameters rotate.

    None has more than ``most``, so the search ends at one that has as much.
    """
    best, found = None, 0
    for item in order:
        has = len(combinations[item] & missing)
        if has > found:
            best, found = item, has
            if has == most:
                break
    return best


def _values(item):
    """The values of a test's parameters, each with its name; without any, the test itself."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return {item}
    return {(name, _kind(value)) for name, value in callspec.params.items()}


def _kind(value):
    """The identity of a value, but of executors the name."""
    if isinstance(value, Executor):
        return value.name
    return value if isinstance(value, str) and value in _NAMES else id(value)


def _executor_of(value):
    """The name of the executor in a pair that ``_values`` returns, or none."""
    kind = value[1] if isinstance(value, tuple) else None
    return kind if kind in _NAMES else None
