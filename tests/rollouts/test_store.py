"""``store`` is NumPy's assignment to many steps and rows, for several arrays at once."""

import mmap

import numpy as np
import pytest

from cartwheel._cartwheel import store
from cartwheel._internal import nested

DTYPES = [np.dtype(code) for code in "?bBhHiIlLqQefdFD"]
T, N = 7, 5


def numbers(rng, dtype, shape):
    """Random values; every byte of a number is random."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = rng.integers(
        0, 2 if dtype.kind == "b" else 256, array.nbytes
    )
    return array


def cells(rng, count, offset):
    """Different steps and rows of ``count`` entries, in a random order."""
    found = rng.permutation(T * N)[:count]
    return (found // N - offset).astype(np.int64), (found % N).astype(np.int64)


def assert_stored(leaves, steps, rows):
    """Stores the leaves, and compares every bit with NumPy's assignment, among other values."""
    expected = [destination.copy() for _, destination, _ in leaves]
    for array, (source, _, offset) in zip(expected, leaves, strict=True):
        array[steps + offset, rows] = source
    sources = [source.copy() for source, _, _ in leaves]
    store(leaves, steps, rows)
    for array, before, (source, destination, _) in zip(expected, sources, leaves, strict=True):
        assert destination.tobytes() == array.tobytes()
        assert source.tobytes() == before.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (84, 84, 4), (0,), (2, 0)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_stored_as_by_numpy(dtype, shape):
    rng = np.random.default_rng(5)
    for count in (0, 1, 2, T * N):
        for offset in (0, 1, -2):
            source = numbers(rng, dtype, (count, *shape))
            destination = numbers(rng, dtype, (T, N, *shape))
            assert_stored([(source, destination, offset)], *cells(rng, count, offset))


def test_leaves_have_steps_and_offsets_of_their_own():
    rng = np.random.default_rng(6)
    steps, rows = np.array([2, 0, 3, 2]), np.array([4, 4, 0, 1])
    shapes = [(np.uint8, T, (8, 8)), (np.float64, 5, ()), (np.bool_, 4, ()), (np.int64, 9, (2,))]
    leaves = [
        (numbers(rng, np.dtype(dtype), (4, *shape)), np.zeros((size, N + at, *shape), dtype), at)
        for at, (dtype, size, shape) in enumerate(shapes)
        if at + steps.max() < size
    ]
    assert len(leaves) == 3
    assert_stored(leaves, steps, rows)
    assert_stored(tuple(leaves), steps, rows)


def test_nested_observations_are_stored_leaf_by_leaf():
    rng = np.random.default_rng(7)
    shown = {"camera": rng.integers(0, 256, (3, 4, 4), np.uint8), "arm": (rng.random((3, 2)),)}
    into = nested.apply(lambda leaf: np.zeros((T, N, *leaf.shape[1:]), leaf.dtype), shown)
    steps, rows = np.array([6, 0, 6]), np.array([1, 4, 0])
    pairs = zip(nested.named(shown, ""), nested.named(into, ""), strict=True)
    store([(source, room, 0) for (_, source), (_, room) in pairs], steps, rows)
    stored = nested.at(into, (steps, rows))
    assert (stored["camera"] == shown["camera"]).all()
    assert (stored["arm"][0] == shown["arm"][0]).all()
    assert np.count_nonzero(into["arm"][0].any(axis=-1)) == 3


def test_the_last_of_two_entries_for_one_cell_remains():
    source = np.arange(4.0)
    into = np.zeros((T, N))
    store([(source, into, 0)], np.array([1, 1, 2, 1]), np.array([3, 3, 3, 3]))
    assert (into[1, 3], into[2, 3], np.count_nonzero(into)) == (3.0, 2.0, 2)


def test_no_leaf_and_no_row_store_nothing():
    store([], np.array([99]), np.array([-1]))
    nothing = np.zeros(0, np.int64)
    store([(np.zeros((0, 3)), np.zeros((0, N, 3)), 0)], nothing, nothing)
    store([(np.zeros((0, 3)), np.zeros((T, 0, 3)), 0)], nothing, nothing)


def test_memory_may_be_shared_and_begin_anywhere():
    with mmap.mmap(-1, 4096) as memory:
        source = np.frombuffer(memory, np.float64, 4, offset=3)  # at no multiple of 8
        into = np.frombuffer(bytearray(T * N * 8 + 5), np.float64, T * N, offset=5).reshape(T, N)
        source[:] = [1.5, -2.5, 3.5, 4.5]
        assert_stored([(source, into, 0)], np.array([6, 0, 3, 3]), np.array([0, 1, 2, 4]))
        del source


def test_a_row_may_be_stored_into_its_own_array():
    into = np.arange(float(T * N)).reshape(T, N)
    store([(into[0], into, 1)], np.zeros(N, np.int64), np.arange(N))
    assert (into[1] == np.arange(N)).all()
    assert (into[2:] == np.arange(2 * N, T * N).reshape(T - 2, N)).all()


def test_equal_dtypes_need_not_be_the_same_object():
    into = np.zeros((T, N), np.dtype("int64", metadata={"unit": "m"}))
    store([(np.array([9], np.longlong), into, 0)], np.array([1], np.longlong), np.array([2]))
    assert into[1, 2] == 9


INDEXES = np.array([1, 2])


@pytest.mark.parametrize(
    ("source", "into", "offset", "error", "text"),
    [
        (
            np.zeros(2, np.float32),
            np.zeros((T, N)),
            0,
            TypeError,
            "float32 in the source and float",
        ),
        (np.zeros(2, ">f8"), np.zeros((T, N)), 0, TypeError, "leaf 1 must have one dtype"),
        (np.zeros(2, ">f8"), np.zeros((T, N), ">f8"), 0, TypeError, "numbers or flags, got >f8"),
        (np.zeros(2, "O"), np.zeros((T, N), "O"), 0, TypeError, "numbers or flags, got object"),
        (np.zeros(2, "U4"), np.zeros((T, N), "U4"), 0, TypeError, "numbers or flags, got <U4"),
        (np.zeros(2, "f4,i4"), np.zeros((T, N), "f4,i4"), 0, TypeError, "numbers or flags"),
        (np.zeros(2, "m8[s]"), np.zeros((T, N), "m8[s]"), 0, TypeError, "numbers or flags"),
        (np.zeros(3), np.zeros((T, N)), 0, ValueError, r"got \[3\] and \[7, 5\]"),
        (np.zeros(()), np.zeros((T, N)), 0, ValueError, r"got \[\] and \[7, 5\]"),
        (np.zeros((2, 3)), np.zeros((T, N)), 0, ValueError, r"\[2, 3\] and \[7, 5\]"),
        (np.zeros((2, 3)), np.zeros((T, N, 3, 1)), 0, ValueError, r"\[2, 3\] and \[7, 5, 3, 1\]"),
        (np.zeros((2, 3)), np.zeros((T, N, 4)), 0, ValueError, r"\[2, \*shape\] in the source"),
        (np.zeros(2), np.zeros(T), 0, ValueError, r"got \[2\] and \[7\]"),
        (
            np.zeros((2, 6))[:, ::2],
            np.zeros((T, N, 3)),
            0,
            ValueError,
            "the source of leaf 1 is not",
        ),
        (np.broadcast_to(np.zeros(3), (2, 3)), np.zeros((T, N, 3)), 0, ValueError, "not C-contig"),
        (
            np.zeros(2),
            np.zeros((T, 2 * N))[:, ::2],
            0,
            ValueError,
            "the destination of leaf 1 is n",
        ),
        (np.zeros(2), np.zeros((N, T)).T, 0, ValueError, r"C-contiguous: strides \[8, 56\]"),
        (np.zeros(2), np.broadcast_to(0.0, (T, N)), 0, ValueError, "not C-contiguous"),
        (np.zeros(2), np.frombuffer(bytes(8 * T * N)).reshape(T, N), 0, ValueError, "read-only"),
        (
            np.zeros(2),
            np.zeros((2, N)),
            0,
            IndexError,
            "step 2 with offset 0 is not one of 2 steps",
        ),
        (
            np.zeros(2),
            np.zeros((T, N)),
            5,
            IndexError,
            r"step 2 with offset 5 .* \(at position 1\)",
        ),
        (np.zeros(2), np.zeros((T, N)), -2, IndexError, r"step 1 with offset -2 .* of leaf 1"),
        (np.zeros(2), np.zeros((T, N)), 2**63 - 2, IndexError, "offset 9223372036854775806"),
        (np.zeros(2), np.zeros((T, N)), -(2**63), IndexError, "offset -9223372036854775808"),
        (np.zeros(2), np.zeros((T, 2)), 0, IndexError, "row 2 is not one of 2 rows in the destin"),
        (np.zeros(2), np.zeros((0, N)), 0, IndexError, "not one of 0 steps"),
        ([0.0, 0.0], np.zeros((T, N)), 0, TypeError, "leaf 1 must be a tuple of a source array"),
        (np.zeros(2), None, 0, TypeError, "leaf 1 must be a tuple"),
        (np.zeros(2), np.zeros((T, N)), 2**63, TypeError, "int64 offset"),
        (np.zeros(2), np.zeros((T, N)), 1.0, TypeError, "int64 offset"),
    ],
)
def test_nothing_is_stored_if_one_leaf_does_not_fit(source, into, offset, error, text):
    good = np.zeros((T, N))
    leaves = [(np.ones(2), good, 0), (source, into, offset)]
    with pytest.raises(error, match=text):
        store(leaves, INDEXES, INDEXES)
    assert not good.any()
    if isinstance(into, np.ndarray):
        assert into.tobytes() == np.zeros_like(into).tobytes()


@pytest.mark.parametrize("name", ["steps", "rows"])
@pytest.mark.parametrize(
    ("indexes", "error", "text"),
    [
        ([1, 2], TypeError, "must be a C-contiguous array of int64, got <class 'list'>"),
        (np.array([1, 2], np.int32), TypeError, r"got int32, shape \[2\]"),
        (np.array([1, 2], np.uint64), TypeError, "got uint64"),
        (np.array([1.0, 2.0]), TypeError, "got float64"),
        (np.array([1, 2], ">i8"), TypeError, "got >i8"),
        (np.array([[1, 2]]), TypeError, r"shape \[1, 2\]"),
        (np.array(1), TypeError, r"shape \[\]"),
        (np.arange(4)[::2], TypeError, r"strides \[16\]"),
        (np.array([1, 2, 3]), ValueError, "the same length, got (3 and 2|2 and 3)"),
        (np.array([1, -1]), IndexError, "(step|row) -1 .* leaf 0 .at position 1."),
        (np.array([2**63 - 1, 1]), IndexError, "(step|row) 9223372036854775807"),
        (np.array([-(2**63), 1]), IndexError, "(step|row) -9223372036854775808"),
    ],
)
def test_indexes_are_checked_before_anything_is_stored(name, indexes, error, text):
    into = np.zeros((T, N))
    arguments = {"steps": INDEXES, "rows": INDEXES, name: indexes}
    with pytest.raises(error, match=text):
        store([(np.ones(2), into, 0)], arguments["steps"], arguments["rows"])
    assert not into.any()


@pytest.mark.parametrize(
    "leaf", [(), (np.zeros(2),), (np.zeros(2), np.zeros((T, N))), 5, "abc", None]
)
def test_what_is_no_leaf_is_refused(leaf):
    with pytest.raises(TypeError, match="leaf 0 must be a tuple"):
        store([leaf], INDEXES, INDEXES)


def test_an_argument_that_changes_arrays_while_it_is_read_changes_them_before_the_checks():
    into = np.zeros((T, N))

    class Offset:
        def __index__(self):
            into.flags.writeable = False
            return 0

    leaves = [(np.ones(2), into, 0), (np.ones(2), np.zeros((T, N)), Offset())]
    with pytest.raises(ValueError, match="leaf 0 is read-only"):
        store(leaves, INDEXES, INDEXES)
    assert not into.any()
