"""A flag of NumPy is true whatever byte it has, if that is not zero."""

import numpy as np
import pytest

from cartwheel import returns
from tests.support.bytes_of_flags import TRUE_BYTES, with_byte
from tests.support.random_rollouts import rollout

OVER_TIME = "rewards", "terminated", "truncated", "valid"
#: The arrays and the numbers that each function takes.
FUNCTIONS = {
    "gae": (("values", "next_values", *OVER_TIME), {"gamma": 0.9, "gae_lambda": 0.8}),
    "gae_normalized": (("values", "next_values", *OVER_TIME), {"gamma": 0.9, "gae_lambda": 0.8}),
    "lambda_returns": (("next_values", *OVER_TIME), {"gamma": 0.9, "lambda_": 0.8}),
    "discounted_returns": (("next_values", *OVER_TIME), {"gamma": 0.9}),
    "n_step_returns": (("next_values", *OVER_TIME), {"gamma": 0.9, "n": 3}),
    "vtrace": (("values", "next_values", "ratios", *OVER_TIME), {"gamma": 0.9}),
    "retrace": (("q_values", "next_values", "ratios", *OVER_TIME), {"gamma": 0.9, "lambda_": 0.8}),
    "masked_mean": (("x", "valid"), {}),
    "masked_normalize": (("x", "valid"), {}),
}


def assert_same(one, other):
    one, other = (got if isinstance(got, tuple) else (got,) for got in (one, other))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("byte", TRUE_BYTES)
@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_estimates_are_those_of_the_truth_values(name, num_threads, byte):
    arrays = rollout(9, 103, np.float32)  # whole vectors of flags, and a rest
    arrays |= {"x": arrays["rewards"], "q_values": arrays["values"]}
    names, numbers = FUNCTIONS[name]
    threads = {} if name.startswith("masked") else {"num_threads": num_threads}

    def estimated(of_flags):
        given = {name: arrays[name] for name in names}
        for key, array in given.items():
            if array.dtype == np.bool_:
                given[key] = of_flags(array)
        return getattr(returns, name)(**given, **numbers, **threads)

    assert_same(estimated(lambda flags: with_byte(flags, byte)), estimated(lambda flags: flags))


@pytest.mark.parametrize("byte", TRUE_BYTES)
@pytest.mark.parametrize("on_done", ["raise", "freeze"])
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_masks_are_those_of_the_truth_values_and_are_0_and_1(mode, on_done, byte):
    terminated, truncated = np.zeros((2, 4, 35), np.bool_)
    terminated[1, ::3] = truncated[2, 1::3] = True
    prev_done = np.arange(35) % 3 == 2
    flags = (terminated, truncated, prev_done)
    odd = tuple(with_byte(array, byte) for array in flags)
    for function, further in ((returns.valid_mask, ()), (returns.is_first, (prev_done,))):
        expected = function(mode, *flags, *further, on_done=on_done)
        changed = function(
            mode, *odd, *(with_byte(array, byte) for array in further), on_done=on_done
        )
        np.testing.assert_array_equal(changed.view(np.uint8), expected.view(np.uint8))
        assert set(np.unique(changed.view(np.uint8))) <= {0, 1}
        out = with_byte(np.ones(expected.shape, np.bool_), byte)
        function(mode, *odd, *further, on_done=on_done, out=out)
        np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))
    values = np.arange(5 * 35, dtype=np.float64).reshape(5, 35)
    finals = {}
    if mode == "same_step" or (mode, on_done) == ("disabled", "raise"):
        index = np.argwhere(terminated | truncated)
        finals = {"final_values": -np.arange(1.0, len(index) + 1), "final_index": index}
    np.testing.assert_array_equal(
        returns.next_values(mode, values, *odd[:2], on_done=on_done, **finals),
        returns.next_values(mode, values, *flags[:2], on_done=on_done, **finals),
    )
