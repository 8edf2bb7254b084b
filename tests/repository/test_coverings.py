"""By default every test meets every value of each of its parameters."""

from types import SimpleNamespace

import pytest

from tests.support.coverings import covering, workers_take_turns
from tests.support.executors import EVERY_EXECUTOR, INLINE, PROCESS, THREAD

MODES, EXECUTORS = ("a", "b", "c"), tuple(range(1000, 1006))


class Item:
    """A test as pytest collects it."""

    def __init__(self, name, **params):
        self.nodeid = f"{name}[{params}]" if params else name
        if params:
            self.callspec = SimpleNamespace(params=params)


@pytest.mark.parametrize("modes", [MODES[:1], MODES])
def test_every_value_is_there_and_few_are_there_twice(modes):
    items = [Item("x", mode=mode, executor=each) for mode in modes for each in EXECUTORS]
    chosen = [item.callspec.params for item in covering(items)]
    assert {params["mode"] for params in chosen} == set(modes)
    assert {params["executor"] for params in chosen} == set(EXECUTORS)
    assert len(chosen) == len(EXECUTORS)


@pytest.mark.parametrize("executors", [EVERY_EXECUTOR, ("inline", "thread", "process")])
def test_threads_and_processes_take_turns(executors):
    items = [
        Item(f"x{n}", build=each, mode=m) for n in range(40) for each in executors for m in MODES
    ]
    now, later = workers_take_turns(items)
    assert sorted(map(id, now + later)) == sorted(map(id, items))
    kinds = {item.nodeid.partition("[")[0]: set() for item in items}
    for item in now:
        kind = item.callspec.params["build"]
        kinds[item.nodeid.partition("[")[0]].add(getattr(kind, "name", kind))
    found = set(map(frozenset, kinds.values()))
    assert found == {frozenset({"inline", "thread"}), frozenset({"inline", "process"})}


def test_a_value_that_only_other_workers_have_is_kept():
    values = [(INLINE, "a"), (THREAD, "a"), (PROCESS, "a"), (THREAD, "b"), (PROCESS, "c")]
    items = [Item("x", build=build, case=case) for build, case in values]
    assert workers_take_turns(items) == (items, [])


def test_workers_that_nothing_stands_in_for_take_no_turns():
    items = [Item("x", build=build) for build in (THREAD, PROCESS)]
    assert workers_take_turns(items) == (items, [])


def test_tests_do_not_stand_in_for_each_other():
    items = [Item(name, mode=mode) for name in ("x", "y") for mode in MODES]
    assert covering(items) == items


def test_a_test_without_parameters_is_kept():
    items = [Item("x"), Item("y", mode="a"), Item("z")]
    assert covering(items) == items
