"""Tensors over arrays, and arrays over tensors, are those that PyTorch itself makes."""

import gc
import importlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import TensorExchange
from cartwheel.wrappers import NumpyToTorch, TransformAction
from tests.support.held_arrays import KEPT, NEEDS_THE_GIL

torch = pytest.importorskip("torch")
fake_tensor = importlib.import_module("torch._subclasses.fake_tensor")
TorchDispatchMode = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
pytestmark = pytest.mark.torch

MODES = vars(torch.utils._python_dispatch)
EXCHANGE = TensorExchange.of(torch.Tensor, MODES, "_is_in_torch_dispatch_mode")
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64"]
SHAPES = [(1,), (3,), (2, 3), (1, 1), (2, 1, 3), (2,) * 8]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_have_the_bits_and_the_memory_of_the_other(dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    tensor, expected = EXCHANGE.tensor(array), torch.from_numpy(array)
    assert (tensor.dtype, tensor.shape) == (expected.dtype, expected.shape)
    assert (tensor.stride(), tensor.device) == (expected.stride(), expected.device)
    assert tensor.data_ptr() == expected.data_ptr()
    assert not tensor.requires_grad
    back = EXCHANGE.array(tensor)
    assert (back.dtype, back.shape, back.strides) == (array.dtype, array.shape, array.strides)
    assert back.flags.writeable
    assert back.flags.aligned
    back[...] = 1
    assert array.all()
    assert (tensor == 1).all()


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(()),
        np.zeros((0, 3)),
        np.zeros((2, 3)).T,
        np.zeros(6)[::-1],
        np.zeros((2,) * 9),
        np.zeros(3, ">f8"),
        np.zeros(3, np.uint16),
        np.zeros(3, np.float16),
        np.zeros(3, np.complex64),
        np.array(["a"]),
        np.array([None]),
        np.ma.zeros(3),
        np.broadcast_to(np.zeros(3), (2, 3)),
        [1.0],
        None,
    ],
)
def test_other_arrays_are_left_to_python(array):
    assert EXCHANGE.tensor(array) is None


def test_read_only_arrays_are_left_to_python():
    array = np.zeros(3)
    array.flags.writeable = False
    assert EXCHANGE.tensor(array) is None


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1),
        torch.zeros(0),
        torch.zeros(2, 3).T,
        torch.zeros(3).expand(2, 3),
        torch.zeros(6)[::2],
        torch.zeros((2,) * 9),
        torch.zeros(3, dtype=torch.bfloat16),
        torch.zeros(3, dtype=torch.float16),
        torch.zeros(3, dtype=torch.complex64),
        torch.ones(3, dtype=torch.complex64).conj().imag,
        torch.eye(3).to_sparse(),
        torch.zeros(3, device="meta"),
        torch.nn.Parameter(torch.zeros(3)),
        np.zeros(3),
        None,
    ],
)
def test_other_tensors_are_left_to_python(tensor):
    assert EXCHANGE.array(tensor) is None


def test_slices_and_tensors_with_gradients_are_read_where_they_are():
    whole = torch.arange(12.0).reshape(4, 3).requires_grad_()
    part = whole[1:3]
    array = EXCHANGE.array(part)
    assert array.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    assert array.__array_interface__["data"][0] == part.data_ptr()
    assert EXCHANGE.array(whole).shape == (4, 3)


def test_a_negated_view_has_its_own_sign():
    """DLPack does not know that the sign of the memory is another one."""
    view = torch._neg_view(torch.tensor([1.0, 2.0, 3.0]))
    assert view.is_contiguous()
    assert EXCHANGE.array(view) is None


def test_other_types_have_no_table():
    assert TensorExchange.of(int, {"mode": False}, "mode") is None

    class Own:
        __dlpack_c_exchange_api__ = "no capsule"

    assert TensorExchange.of(Own, {"mode": False}, "mode") is None


def test_modes_see_the_tensors_of_steps_and_of_resets():
    """Fake tensors have no memory, and a mode is told of each tensor that is made."""
    envs = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1))
    bare = cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1)
    actions, seen = np.ones(3, np.int64), []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with fake_tensor.FakeTensorMode():
        assert EXCHANGE.tensor(np.zeros(3)) is None
        results = [envs.reset(seed=1)[0], *envs.step(actions)[:4]]
    assert [type(tensor) for tensor in results] == [fake_tensor.FakeTensor] * 5
    assert [tuple(tensor.shape) for tensor in results] == [(3, 4), (3, 4), (3,), (3,), (3,)]
    with Watching():
        watched = envs.step(actions)
    assert len(seen) == 4
    bare.reset(seed=1)
    bare.step(actions)
    for found in (watched, envs.step(actions)):
        for tensor, array in zip(found[:4], bare.step(actions)[:4], strict=True):
            assert type(tensor) is torch.Tensor
            assert tensor.numpy().tobytes() == array.tobytes()
    envs.close()
    bare.close()


def test_tensors_are_left_to_python_where_modes_cannot_be_seen():
    exchange = TensorExchange.of(torch.Tensor, {}, "mode")
    assert exchange.tensor(np.zeros(3)) is None


def test_memory_stays_as_long_as_either_does_and_no_longer():
    class Owner:
        """Memory of an array, whose end can be watched."""

        def __init__(self):
            self.memory = np.zeros(1000)
            self.__array_interface__ = self.memory.__array_interface__

    owner = Owner()
    gone = weakref.ref(owner)
    array = np.asarray(owner)
    tensor = EXCHANGE.tensor(array)
    view = tensor[10:20]
    back = EXCHANGE.array(EXCHANGE.tensor(array))
    del owner, array, tensor
    gc.collect()
    assert gone() is not None
    view += 1
    assert back[10:20].tolist() == [1.0] * 10
    del view
    gc.collect()
    assert gone() is not None
    thread = threading.Thread(target=lambda kept: kept.pop(), args=([back],))
    del back
    thread.start()
    thread.join(30)
    del thread
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("rows", [3, 600])  # observations in one piece with the others, and not
@pytest.mark.parametrize("part", range(4))
def test_one_tensor_of_a_step_stays_without_the_others(part, rows):
    envs = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", rows, num_workers=1))
    bare = cartwheel.NativeVectorEnv("CartPole-v1", rows, num_workers=1)
    envs.reset(seed=1)
    bare.reset(seed=1)
    actions, kept = np.ones(rows, np.int64), []
    for number in range(200):
        pair = envs.step(actions)[part], bare.step(actions)[part]
        # A pool warns of too many batches that are kept: those of flags and rewards are not.
        if part > 0 or number % 50 == 0:
            kept.append(pair)
    for tensor, array in kept:
        assert tensor.numpy().tobytes() == array.tobytes()
        tensor.fill_(1)
    thread = threading.Thread(target=kept.clear)
    del tensor, pair
    thread.start()
    thread.join(30)
    assert not kept
    for _ in range(2 * KEPT):
        found, expected = envs.step(actions)[part], bare.step(actions)[part]
        assert found.numpy().tobytes() == expected.tobytes()
    envs.close()
    bare.close()


@NEEDS_THE_GIL
def test_memory_of_tensors_that_were_dropped_is_that_of_a_later_step():
    envs = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1))
    envs.reset(seed=1)
    addresses = [set() for _ in range(4)]
    for _ in range(30):
        result = envs.step(np.ones(3, np.int64))
        for found, tensor in zip(addresses, result, strict=False):
            found.add(tensor.data_ptr())
    assert all(2 <= len(found) <= KEPT for found in addresses)
    del result, tensor
    envs.close()


FREE_IN_A_STEP = """
import ctypes
import weakref
import gymnasium as gym
import numpy as np
import torch
import cartwheel
from cartwheel._cartwheel import TensorExchange

modes = vars(torch.utils._python_dispatch)
exchange = TensorExchange.of(torch.Tensor, modes, "_is_in_torch_dispatch_mode")
watches, attached = [], []

def note(_):
    attached.append(ctypes.pythonapi.PyGILState_Check())

class Learner(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        array = np.ones(3)
        watches.append(weakref.ref(array, note))
        weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
        loss = (weights * exchange.tensor(array)).sum()
        del array
        assert not attached
        loss.backward()  # frees the tensor
        return 0, 0.0, False, False, {}

envs = cartwheel.SyncVectorEnv([Learner])
envs.reset()
envs.step([0])
print(attached)
"""


def test_a_thread_that_torch_has_detached_within_a_call_may_free_a_tensor():
    """PyO3 takes the thread to be attached, and the end of the array runs functions of Python."""
    program = [sys.executable, "-c", FREE_IN_A_STEP]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert ended.stdout == "[1]\n", (ended.returncode, ended.stderr)


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("way", [True, False])
def test_steps_are_the_same_with_and_without_the_table(mode, way):
    """Tensors of every form as actions, which are not changed."""
    keywords = {"num_workers": 1, "autoreset_mode": mode}
    envs = NumpyToTorch(cartwheel.NativeVectorEnv("Pendulum-v1", 5, **keywords))
    bare = cartwheel.NativeVectorEnv("Pendulum-v1", 5, **keywords)
    if not way:
        envs._exchange = None
    assert np.array_equal(envs.reset(seed=2)[0].numpy(), bare.reset(seed=2)[0])
    base = torch.linspace(-2, 2, 40).reshape(5, 8)
    forms = [
        base[:, :1].contiguous(),
        base[:, 1:2],
        base[:, 2:3].contiguous().requires_grad_(),
        torch._neg_view(base[:, 3:4].contiguous()),
        base[:, 4:5].contiguous().numpy(),
        torch.nn.Parameter(base[:, 5:6].contiguous()),
    ]
    kept = []
    for form in forms * 2:
        values = form if isinstance(form, np.ndarray) else form.detach().clone().numpy()
        expected = bare.step(values)
        found = envs.step(form)
        kept.append((found, expected))
        after = form if isinstance(form, np.ndarray) else form.detach().clone().numpy()
        assert np.array_equal(values, after)
    for found, expected in kept:
        for tensor, array in zip(found[:4], expected[:4], strict=True):
            assert tensor.numpy().dtype == array.dtype
            assert tensor.numpy().tobytes() == array.tobytes()
    wrong = torch.zeros(5, 1, dtype=torch.complex64)
    with pytest.raises((TypeError, ValueError)):
        envs.step(wrong)
    envs.step(forms[0])
    envs.close()
    bare.close()


def test_a_wrapper_inside_gets_arrays():
    seen = []

    def act(actions):
        seen.append(type(actions))
        return actions

    inner = TransformAction(cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1), act)
    seen.clear()
    envs = NumpyToTorch(inner)
    envs.reset(seed=1)
    envs.step(torch.ones(3, dtype=torch.int64))
    assert seen
    assert set(seen) == {np.ndarray}
    envs.close()
