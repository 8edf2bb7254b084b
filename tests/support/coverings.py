"""Which tests run by default: for each parameter of a test, each of its values at least once.

All combinations of modes, executors, sizes and cases run with `pytest --full`. So a default run is
fast enough to be waited for, and still meets every mode and every executor in every test.
"""

from collections import defaultdict


def covering(items):
    """Returns, in their order, items that together have each value of each parameter."""
    tests = defaultdict(dict)
    for item in items:
        tests[item.nodeid.partition("[")[0]][item] = _values(item)
    chosen = set()
    for combinations in tests.values():
        missing = set().union(*combinations.values())
        while missing:
            # The first of those that have most of what is missing: values of all parameters rotate.
            best = max(combinations, key=lambda item: len(combinations[item] & missing))
            chosen.add(best)
            missing -= combinations[best]
    return [item for item in items if item in chosen]


def _values(item):
    """The values of a test's parameters, each with its name; without any, the test itself."""
    callspec = getattr(item, "callspec", None)
    return {(name, id(value)) for name, value in callspec.params.items()} if callspec else {item}
