"""The functions of ``cartwheel.returns``: which arguments they accept, fill and refuse."""

import importlib
import re
import threading

import numpy as np
import pytest

import cartwheel
from cartwheel import returns
from tests.support.random_rollouts import ENVS, STEPS, rollout

TAKES = {
    "gae": ("values", "next_values", "gae_lambda"),
    "gae_normalized": ("values", "next_values", "gae_lambda"),
    "lambda_returns": ("next_values", "lambda_"),
    "discounted_returns": ("next_values",),
    "n_step_returns": ("next_values", "n"),
    "vtrace": ("values", "next_values", "ratios", "lambda_"),
    "retrace": ("q_values", "next_values", "ratios", "lambda_"),
}
ESTIMATORS = list(TAKES)


def call(name, arrays, **changes):
    """Calls an estimator with its arguments from ``arrays``; returns a tuple."""
    weights = {"gamma": 0.9, "gae_lambda": 0.8, "lambda_": 0.8, "n": 3}
    every = {**weights, "q_values": arrays["values"], **arrays, **changes}
    common = ("rewards", "terminated", "truncated", "valid", "gamma")
    keywords = {key: every[key] for key in (*common, *TAKES[name])}
    keywords |= {key: value for key, value in changes.items() if key not in keywords}
    result = getattr(returns, name)(**keywords)
    return result if isinstance(result, tuple) else (result,)


def assert_same(results, others):
    for one, other in zip(results, others, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def as_out(arrays):
    """The arrays in the form that ``out`` expects."""
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


class OnlyDLPack:
    """An array of another library: it has only the DLPack methods."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()


def test_the_module_is_an_attribute_of_the_package():
    assert cartwheel.returns is importlib.import_module("cartwheel.returns")
    for name in returns.__all__:
        assert getattr(returns, name).__doc__


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(name, dtype):
    for shape in [(7, 100), (40, 3000)]:  # the second is split over threads by default
        arrays = rollout(*shape, dtype=dtype)
        single = call(name, arrays, num_threads=1)
        for num_threads in (None, 2, 3, 7, 100):
            assert_same(call(name, arrays, num_threads=num_threads), single)


def test_calls_in_several_threads_do_not_disturb_each_other():
    arrays = rollout(40, 500)
    wanted, found = call("gae", arrays), [None] * 8

    def run(place):
        found[place] = call("gae", arrays)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for results in found:
        assert_same(results, wanted)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_out_is_filled_and_returned(name):
    arrays = rollout()
    fresh = call(name, arrays)
    out = [np.full_like(array, 77) for array in fresh]
    results = call(name, arrays, out=as_out(out))
    assert all(one is other for one, other in zip(results, out, strict=True))
    assert_same(out, fresh)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_out_that_cannot_be_filled_is_refused(name):
    arrays = rollout()
    good = [np.full_like(array, 77) for array in call(name, arrays)]
    read_only = good[-1].copy()
    read_only.flags.writeable = False
    shifted = np.zeros(good[-1].nbytes + 1, np.uint8)[1:].view(good[-1].dtype)
    bad = {
        r"must be (float|int)64, got float16": good[-1].astype(np.float16),
        r"must have shape \(6, 4\), got \(5, 4\)": good[-1][:-1],
        r"must be C-contiguous, aligned and writable": np.asfortranarray(good[-1]),
        r"must be C-contiguous, aligned and writable\.": read_only,
        r"must be C-contiguous, aligned and writable.$": shifted.reshape(good[-1].shape),
    }
    for text, array in bad.items():
        before = array.copy()
        with pytest.raises((TypeError, ValueError), match=text):
            call(name, arrays, out=as_out([*good[:-1], array]))
        np.testing.assert_array_equal(array, before)
    for array in good[:-1]:
        assert (array == 77).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_out_that_shares_memory_is_refused(name):
    arrays = rollout()
    fresh = call(name, arrays)
    with pytest.raises(ValueError, match=r"`out` for .* shares memory with `rewards`"):
        call(name, arrays, out=as_out([arrays["rewards"], *fresh[1:]]))
    if len(fresh) > 1:
        with pytest.raises(ValueError, match="shares memory with `"):
            call(name, arrays, out=as_out([fresh[0], fresh[0], *fresh[2:]]))


def test_several_outs_must_be_a_tuple_of_the_right_length():
    arrays = rollout()
    with pytest.raises(TypeError, match="`out` must be a tuple of advantages, returns, got"):
        call("gae", arrays, out=np.zeros((STEPS, ENVS)))
    with pytest.raises(ValueError, match="a tuple of advantages, returns, got 1 arrays"):
        call("gae", arrays, out=(np.zeros((STEPS, ENVS)),))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_arrays_of_any_layout_give_the_same(name):
    arrays = rollout()
    plain = call(name, arrays)

    def spread(array):
        wide = np.zeros((2 * STEPS, 3 * ENVS), array.dtype)
        wide[::2, 1::3] = array
        return wide[::2, 1::3]

    def unaligned(array):
        room = np.zeros(array.nbytes + 1, np.uint8)[1:]
        view = room.view(array.dtype).reshape(array.shape)
        view[:] = array
        return view

    for layout in (np.asfortranarray, spread, unaligned, lambda array: array[::-1][::-1]):
        assert_same(call(name, {key: layout(array) for key, array in arrays.items()}), plain)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_arrays_of_other_libraries_are_accepted_through_dlpack(name):
    arrays = rollout()
    fresh = call(name, arrays)
    wrapped = {key: OnlyDLPack(array) for key, array in arrays.items()}
    assert_same(call(name, wrapped), fresh)
    gamma = OnlyDLPack(np.full((STEPS, ENVS), 0.9))
    assert_same(call(name, wrapped, gamma=gamma), fresh)


@pytest.mark.parametrize("error", [BufferError, RuntimeError])
def test_an_array_that_its_library_does_not_export_is_named(error, monkeypatch):
    def refuse(*_, **__):
        raise error("tensors that require gradient")

    monkeypatch.setattr(OnlyDLPack, "__dlpack__", refuse)
    arrays = rollout()
    arrays["values"] = OnlyDLPack(arrays["values"])
    with pytest.raises(TypeError, match=r"`values` cannot be read .*: tensors that require grad"):
        call("gae", arrays)


def test_an_array_on_another_device_is_refused():
    arrays = rollout()
    arrays["values"] = OnlyDLPack(arrays["values"], device=(2, 0))
    with pytest.raises(TypeError, match="`values` must be on the CPU, got DLPack device type 2"):
        call("gae", arrays)


@pytest.mark.torch
def test_torch_tensors_are_accepted_and_filled():
    torch = importlib.import_module("torch")
    arrays = rollout(dtype=np.float32)
    fresh = call("gae", arrays)
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    assert_same(call("gae", tensors), fresh)
    out = (torch.zeros(STEPS, ENVS), torch.zeros(STEPS, ENVS))
    call("gae", tensors, out=out)
    assert_same([tensor.numpy() for tensor in out], fresh)
    with pytest.raises(ValueError, match="shares memory with `rewards`"):
        call("gae", tensors, out=(tensors["rewards"], out[1]))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rewards_are_converted_to_the_dtype_of_values(name):
    arrays = rollout(dtype=np.float32)
    arrays["rewards"] = np.round(arrays["rewards"] * 4)
    plain = call(name, arrays)
    for dtype in (np.float64, np.int64, np.int8, np.float16):
        assert_same(call(name, {**arrays, "rewards": arrays["rewards"].astype(dtype)}), plain)


def test_rewards_alone_keep_their_dtype():
    arrays = rollout(dtype=np.float32)
    assert call("discounted_returns", arrays, next_values=None)[0].dtype == np.float32
    for name in ("discounted_returns", "n_step_returns"):
        with pytest.raises(TypeError, match="`rewards` must be float32 or float64, got int64"):
            call(name, arrays, next_values=None, rewards=np.ones((STEPS, ENVS), np.int64))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_flags_may_be_bytes(name):
    arrays = rollout()
    octets = {
        key: array * np.uint8(200) if array.dtype == np.bool_ else array
        for key, array in arrays.items()
    }
    assert_same(call(name, octets), call(name, arrays))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"values": np.int64}, "`values` must be float32 or float64, got int64"),
        ({"values": np.float16}, "`values` must be float32 or float64, got float16"),
        ({"values": ">f8"}, "`values` must be float32 or float64, got >f8"),
        ({"next_values": np.float32}, "`next_values` must be float64 like `values`, got float32"),
        ({"rewards": complex}, "`rewards` must be real numbers, got complex128"),
        ({"rewards": object}, "`rewards` must be real numbers, got object"),
        ({"terminated": np.float64}, "`terminated` must be bool or uint8, got float64"),
        ({"truncated": np.int64}, "`truncated` must be bool or uint8, got int64"),
        ({"valid": np.int8}, "`valid` must be bool or uint8, got int8"),
    ],
)
def test_a_wrong_dtype_is_a_type_error(change, text):
    arrays = rollout()
    for key, dtype in change.items():
        arrays[key] = arrays[key].astype(dtype)
    with pytest.raises(TypeError, match=f"^{re.escape(text)}"):
        call("gae", arrays)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("gae", "gamma"), ("gae", "gae_lambda"), ("lambda_returns", "lambda_")],
)
def test_a_discount_is_one_number_or_one_for_each_row(name, argument):
    arrays = rollout()
    wanted = call(name, arrays, **{argument: 1.0})
    for same in (1, np.float32(1), np.array(1.0), np.ones((STEPS, ENVS))):
        assert_same(call(name, arrays, **{argument: same}), wanted)
    one = rollout(1, 1)
    assert_same(call(name, one, **{argument: np.ones((1, 1))}), call(name, one, **{argument: 1}))
    for wrong in ("0.9", None, np.ones((STEPS, ENVS), np.float32)):
        with pytest.raises(TypeError, match=f"`{argument}` must be a number or a float64 array"):
            call(name, arrays, **{argument: wrong})
    for wrong in (-0.1, 1.1, float("nan"), float("inf")):
        text = f"`{argument}` must be in [0, 1], got "
        with pytest.raises(ValueError, match=re.escape(text)):
            call(name, arrays, **{argument: wrong})
    array = np.ones((STEPS, ENVS))
    array[2, 1] = 1.5
    valid = np.ones((STEPS, ENVS), bool)
    text = f"`{argument}` must be in [0, 1], got 1.5 at [2, 1]"
    with pytest.raises(ValueError, match=re.escape(text)):
        call(name, arrays, valid=valid, **{argument: array})
    valid[2, 1] = False  # rows that are not transitions may have any value
    call(name, arrays, valid=valid, **{argument: array})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_different_shapes_are_refused(name):
    arrays = rollout()
    text = {
        "short": "has shape [5, 4], expected [6, 4] (steps, environments)",
        "wide": "has shape [6, 5], expected [6, 4] (steps, environments)",
        "flat": "must have two dimensions (steps, environments), got shape (24,)",
    }
    changes = {
        "short": lambda array: array[:-1],
        "wide": lambda array: np.concatenate([array, array[:, :1]], axis=1),
        "flat": lambda array: array.reshape(-1),
    }
    used = {"terminated", "truncated", "valid", *TAKES[name]} & set(arrays)
    for key in sorted(used):
        for kind, change in changes.items():
            with pytest.raises(ValueError, match=re.escape(f"`{key}` {text[kind]}")):
                call(name, {"q_values": arrays["values"], **arrays, key: change(arrays[key])})
    with pytest.raises(ValueError, match=re.escape(f"`rewards` {text['flat']}")):
        call(name, {**arrays, "rewards": arrays["rewards"].reshape(-1)})


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_empty_rollout_is_refused(name, shape):
    with pytest.raises(ValueError, match="at least one step and one environment, got shape"):
        call(name, rollout(*shape))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_unknown_bootstraps_and_bad_thread_counts_are_refused(name):
    arrays = rollout()
    with pytest.raises(ValueError, match="`bootstrap` must be one of 'truncated', 'always', 'neve"):
        call(name, arrays, bootstrap="sometimes")
    for number in (0, -1, 1.5, "two"):
        with pytest.raises(ValueError, match="`num_threads` must be a positive integer or None"):
            call(name, arrays, num_threads=number)


def test_n_step_windows_have_at_least_one_step():
    for n in (0, -3):
        with pytest.raises(ValueError, match=f"`n` must be at least 1, got {n}"):
            call("n_step_returns", rollout(), n=n)
    with pytest.raises(TypeError):
        call("n_step_returns", rollout(), n=2.5)
    assert_same(
        call("n_step_returns", rollout(), n=10**30), call("n_step_returns", rollout(), n=STEPS)
    )


@pytest.mark.parametrize("cap", ["rho_bar", "c_bar", "pg_rho_bar"])
def test_caps_must_be_positive(cap):
    for name in ("vtrace", "retrace") if cap == "c_bar" else ("vtrace",):
        for number in (0.0, -1.0, float("nan")):
            with pytest.raises(ValueError, match=f"`{cap}` must be positive, got"):
                call(name, rollout(), **{cap: number})
        call(name, rollout(), **{cap: float("inf")})


@pytest.mark.parametrize(
    ("name", "wrong", "meant"),
    [
        ("gae", "gama", "gamma"),
        ("gae", "lam", "gae_lambda"),
        ("retrace", "lmbda", "lambda_"),
        ("gae_normalized", "gae_lamda", "gae_lambda"),
        ("lambda_returns", "lambda", "lambda_"),
        ("discounted_returns", "bootstap", "bootstrap"),
        ("n_step_returns", "num_thread", "num_threads"),
        ("vtrace", "rho_barr", "rho_bar"),
        ("retrace", "ratio", "ratios"),
    ],
)
def test_a_misspelled_keyword_is_an_error_with_a_suggestion(name, wrong, meant):
    text = f"`{wrong}` is not a keyword of {name}: did you mean `{meant}`?"
    with pytest.raises(TypeError, match=re.escape(text)):
        getattr(returns, name)(**{wrong: 0.9})
