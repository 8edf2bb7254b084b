"""Equality in the strict meaning: same types, same dtypes, same bits."""

import math

import numpy as np
from gymnasium.spaces import GraphInstance


def assert_identical(actual, expected, where="value"):
    """Fails unless both have the same types, dtypes, shapes and bits, at every level of nesting.

    Any two NaNs of one type are the same. The order of dictionary keys does not matter.
    """
    assert type(actual) is type(expected), (
        f"{where}: {type(actual).__name__} {actual!r} instead of "
        f"{type(expected).__name__} {expected!r}"
    )
    if isinstance(expected, np.ndarray):
        _assert_same_array(actual, expected, where)
    elif isinstance(expected, np.generic):
        _assert_same_array(np.asarray(actual), np.asarray(expected), where)
    elif isinstance(expected, dict):
        _assert_same_dict(actual, expected, where)
    elif isinstance(expected, GraphInstance):
        for field in GraphInstance._fields:
            assert_identical(getattr(actual, field), getattr(expected, field), f"{where}.{field}")
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), f"{where}: {actual!r} instead of {expected!r}"
        for index, pair in enumerate(zip(actual, expected, strict=True)):
            assert_identical(*pair, f"{where}[{index}]")
    elif isinstance(expected, float):
        same = _same_float(actual, expected)
        assert same, f"{where}: {actual!r} instead of {expected!r}"
    elif isinstance(expected, complex):
        same = _same_float(actual.real, expected.real) and _same_float(actual.imag, expected.imag)
        assert same, f"{where}: {actual!r} instead of {expected!r}"
    elif isinstance(expected, np.random.Generator):
        states = actual.bit_generator.state, expected.bit_generator.state
        assert_identical(*states, f"{where}.bit_generator.state")
    else:
        assert actual == expected, f"{where}: {actual!r} instead of {expected!r}"


def _same_float(actual, expected):
    if math.isnan(expected):
        return math.isnan(actual)
    return actual == expected and math.copysign(1, actual) == math.copysign(1, expected)


def _assert_same_dict(actual, expected, where):
    actual_keys = {(type(key).__name__, key) for key in actual}
    expected_keys = {(type(key).__name__, key) for key in expected}
    missing, extra = expected_keys - actual_keys, actual_keys - expected_keys
    assert not missing, f"{where}: lacks the keys {missing}"
    assert not extra, f"{where}: has the unexpected keys {extra}"
    for key, value in expected.items():
        assert_identical(actual[key], value, f"{where}[{key!r}]")


def _assert_same_array(actual, expected, where):
    assert actual.dtype == expected.dtype, f"{where}: {actual.dtype} instead of {expected.dtype}"
    assert actual.shape == expected.shape, f"{where}: {actual.shape} instead of {expected.shape}"
    if expected.dtype.hasobject:
        for index in np.ndindex(expected.shape):
            assert_identical(actual[index], expected[index], f"{where}{list(index)}")
        return
    if actual.tobytes() == expected.tobytes():  # as nearly always
        return
    differs = _differs(actual, expected)
    assert not differs.any(), (
        f"{where}: differs at {np.argwhere(differs).tolist()[:5]}:\n"
        f"{actual!r}\ninstead of\n{expected!r}"
    )


def _differs(actual, expected):
    """A mask of the elements that differ between two arrays of the same shape and dtype."""
    if actual.tobytes() == expected.tobytes():
        return np.zeros(expected.shape, np.bool_)
    differs = (_bits(actual) != _bits(expected)).reshape(expected.shape)
    if expected.dtype.kind in "fc":
        differs &= ~(np.isnan(actual) & np.isnan(expected))
    return differs


def _bits(array):
    """One opaque value per element, shape ``(size,)``."""
    return np.ascontiguousarray(array).reshape(-1).view(f"V{array.dtype.itemsize}")


def count_values(value):
    """The number of array elements and other values in it, at every level of nesting."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.size
    if isinstance(value, dict):
        return sum(map(count_values, value.values()))
    if isinstance(value, (np.ndarray, tuple, list)):
        return sum(map(count_values, value.flat if isinstance(value, np.ndarray) else value))
    return 1


_ABSENT = object()


def count_differing(actual, expected):
    """The number of values that differ from ``expected``, as `assert_identical` compares.

    If type, dtype, shape, length or a key differs, every value there counts, and at least one.
    """
    if type(actual) is type(expected):
        if isinstance(expected, dict):
            pairs = [
                (actual.get(key, _ABSENT), expected.get(key, _ABSENT))
                for key in {**expected, **actual}
            ]
            return sum(count_differing(*pair) for pair in pairs)
        if isinstance(expected, (tuple, list)) and len(actual) == len(expected):
            return sum(map(count_differing, actual, expected))
        if isinstance(expected, np.ndarray):
            if (actual.dtype, actual.shape) == (expected.dtype, expected.shape):
                if expected.dtype.hasobject:
                    return sum(map(count_differing, actual.flat, expected.flat))
                return int(_differs(actual, expected).sum())
        elif _is_identical(actual, expected):
            return 0
    return max(count_values(expected), 1)


def _is_identical(actual, expected):
    try:
        assert_identical(actual, expected)
    except AssertionError:
        return False
    return True


def text_of(error):
    """The text of an exception that a user reads: its message and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def assert_names_row(error, row):
    assert f"row {row}" in text_of(error), f"no mention of row {row} in: {text_of(error)}"
