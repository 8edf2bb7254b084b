"""By default every test meets every value of each of its parameters."""

from types import SimpleNamespace

import pytest

from tests.support.coverings import covering

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


def test_tests_do_not_stand_in_for_each_other():
    items = [Item(name, mode=mode) for name in ("x", "y") for mode in MODES]
    assert covering(items) == items


def test_a_test_without_parameters_is_kept():
    items = [Item("x"), Item("y", mode="a"), Item("z")]
    assert covering(items) == items
