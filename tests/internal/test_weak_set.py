"""The living objects of a kind, while threads change them."""

import gc
import weakref

import pytest

from cartwheel._internal.weak_set import ConcurrentWeakSet


class Object:
    pass


def test_objects_are_there_until_they_are_collected():
    living, one, other = ConcurrentWeakSet(), Object(), Object()
    for each in (one, other, one):
        living.add(each)
    assert set(living) == {one, other}
    assert len(list(living)) == 2
    del other, each
    gc.collect()
    assert list(living) == [one]
    living.clear()
    assert list(living) == []


@pytest.mark.parametrize("collected", [False, True])
def test_another_thread_may_add_and_drop_during_an_iteration(collected):
    """A ``WeakSet`` fails here: its ``__iter__`` is Python, so others run between two objects."""
    living, kept = ConcurrentWeakSet(), [Object() for _ in range(3)]
    for each in kept:
        living.add(each)

    def change():
        kept.append(Object())
        living.add(kept[-1])
        if collected:
            kept.pop(0)
            gc.collect()

    seen = []
    for each in living:
        seen.append(weakref.ref(each))
        change()
    assert len(seen) == 3
    assert set(living) == set(kept) | ({each} if collected else set())
