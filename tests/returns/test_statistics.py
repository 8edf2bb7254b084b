"""Statistics of a rollout are computed from its valid rows alone."""

import re

import numpy as np
import pytest

from cartwheel import _cartwheel, returns

SHAPES = [(1,), (5,), (17, 300), (3, 4, 5)]


def numbers(shape, dtype, seed=0):
    """Numbers far from 0, with NaN in rows that are not valid, and the mask of valid rows."""
    rng = np.random.default_rng(seed)
    valid = rng.random(shape) < 0.7
    valid.flat[0] = True
    x = (1000 + rng.normal(size=shape)).astype(dtype)
    return np.where(valid, x, np.asarray(np.nan, dtype)), valid


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_mean_equals_numpys_over_valid_rows(shape, dtype):
    x, valid = numbers(shape, dtype)
    mean = returns.masked_mean(x, valid)
    assert isinstance(mean, float)
    assert mean == pytest.approx(x[valid].astype(np.float64).mean(), rel=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@pytest.mark.parametrize("shape", SHAPES)
def test_normalized_numbers_equal_numpys_over_valid_rows(shape, dtype, tolerance):
    x, valid = numbers(shape, dtype)
    exact = x.astype(np.float64)
    wanted = (exact - exact[valid].mean()) / (exact[valid].std() + 1e-8)
    normalized = returns.masked_normalize(x, valid)
    assert normalized.dtype == dtype
    np.testing.assert_allclose(normalized[valid], wanted[valid], rtol=tolerance, atol=tolerance)
    assert (normalized[~valid] == 0).all()


def test_epsilon_is_added_to_the_deviation():
    x = np.array([1.0, 3.0])
    assert returns.masked_normalize(x, [True, True], epsilon=1.0).tolist() == [-0.5, 0.5]
    assert returns.masked_normalize(np.ones(2), [True, True]).tolist() == [0, 0]


def test_out_is_filled_and_returned():
    x, valid = numbers((7, 9), np.float32)
    out = np.empty_like(x)
    assert returns.masked_normalize(x, valid, out=out) is out
    np.testing.assert_array_equal(out, returns.masked_normalize(x, valid))
    with pytest.raises(ValueError, match="shares memory with `x`"):
        returns.masked_normalize(x, valid, out=x)


def test_every_memory_layout_gives_the_same():
    x, valid = numbers((6, 10), np.float64)
    mean = returns.masked_mean(x[::2, ::-1], np.asfortranarray(valid[::2, ::-1]))
    assert mean == returns.masked_mean(x[::2, ::-1].copy(), valid[::2, ::-1].copy())


@pytest.mark.parametrize("function", [returns.masked_mean, returns.masked_normalize])
def test_input_without_a_mean_is_refused(function):
    with pytest.raises(ValueError, match="none of the 4 rows is valid"):
        function(np.ones((2, 2)), np.zeros((2, 2), bool))
    text = "`valid` must have shape (2, 2) like `x`, got (4,)"
    with pytest.raises(ValueError, match=re.escape(text)):
        function(np.ones((2, 2)), np.ones(4, bool))
    with pytest.raises(TypeError, match="`x` must be float32 or float64, got int64"):
        function(np.ones(2, np.int64), np.ones(2, bool))
    with pytest.raises(TypeError, match="`valid` must be bool or uint8, got float64"):
        function(np.ones(2), np.ones(2))


@pytest.mark.parametrize("epsilon", [0.0, -1e-8, float("nan")])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(ValueError, match="`epsilon` must be positive, got"):
        returns.masked_normalize(np.ones(2), np.ones(2, bool), epsilon=epsilon)


def read_only():
    out = np.zeros(4)
    out.flags.writeable = False
    return out


FLOATS = np.zeros(4)
FLAGS = np.ones(4, np.bool_)
#: Numbers, which are valid, and the array that is filled; and what is wrong with one of them.
WRONG_ARRAYS = {
    "dtype of flags": (
        (FLOATS, np.ones(4, np.uint8), np.zeros(4)),
        "`valid` must be a NumPy array of dtype bool with 1 dimension, got dtype uint8 and shape "
        "[4]",
    ),
    "dimensions": (
        (FLOATS, FLAGS, np.zeros((2, 2))),
        "`normalized` must be a NumPy array of dtype float64 with 1 dimension, got dtype float64 "
        "and shape [2, 2]",
    ),
    "dtype": ((FLOATS, FLAGS, np.zeros(4, np.float32)), "got dtype float32 and shape [4]"),
    "no array": ((FLOATS, [True] * 4, np.zeros(4)), "with 1 dimension, got <class 'list'>"),
    "strides": (
        (FLOATS, FLAGS, np.zeros(8)[::2]),
        "`normalized` must be C-contiguous, got shape [4] with strides [16] in bytes",
    ),
    "read-only": (
        (FLOATS, FLAGS, read_only()),
        "`normalized` is read-only: its `flags.writeable` must be True",
    ),
    "overlap": (
        (FLOATS, FLAGS, FLOATS),
        "`normalized` shares memory with another array of this call",
    ),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_native_code_cannot_use_are_refused_with_their_form(name):
    (x, valid, out), text = WRONG_ARRAYS[name]
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        _cartwheel.masked_normalize(x, valid, 1e-8, out)
