"""Which tests run by default: for each parameter of a test, each of its values at least once.

Executors that differ only in their number of workers count as one value; which of them a test gets
depends on its name, so all numbers meet many tests. All combinations of modes, executors, sizes and
cases run with `pytest --full`. So a default run is fast enough to be waited for, and still meets
every mode and every kind of executor in every test.
"""

import zlib
from collections import defaultdict

from tests.support.executors import Executor


def covering(items):
    """Returns, in their order, items that together have each value of each parameter."""
    tests = defaultdict(dict)
    for item in items:
        tests[item.nodeid.partition("[")[0]][item] = _values(item)
    chosen = set()
    for name, combinations in tests.items():
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
    return {
        (name, value.name if isinstance(value, Executor) else id(value))
        for name, value in callspec.params.items()
    }
