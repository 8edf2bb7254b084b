"""Statistics of a rollout are computed from its valid rows alone."""

import re

import numpy as np
import pytest

from cartwheel import returns

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
