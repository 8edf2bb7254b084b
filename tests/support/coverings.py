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
        while missing:
            # The first of those that have most of what is missing: values of all parameters rotate.
            best = max(order, key=lambda item: len(combinations[item] & missing))
            chosen.add(best)
            missing -= combinations[best]
    return [item for item in items if item in chosen]


def _values(item):
    """The values of a test's parameters, each with its name; without any, the test itself."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return {item}
    return {
        (name, value.name if isinstance(value, Executor) else id(value))
        for name, value in callspec.params.items()
    }
