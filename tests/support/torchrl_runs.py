"""Runs of TorchRL, and its wrapper around Gymnasium's environments as the oracle.

This module needs TorchRL, which not every environment of the tests has. So the tests get it from
the fixture ``runs`` of ``tests/adapters/torchrl/conftest.py``.
"""

import multiprocessing

import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

_start_method = multiprocessing.get_start_method()
from tensordict import TensorDict  # noqa: E402 - see below
from torchrl._utils import seed_generator  # noqa: E402
from torchrl.collectors import Collector, MultiCollector  # noqa: E402
from torchrl.data import Unbounded  # noqa: E402
from torchrl.envs import GymWrapper, SerialEnv, default_info_dict_reader, transforms  # noqa: E402

from cartwheel.torchrl import CartwheelEnv  # noqa: E402

# TorchRL makes `spawn` the default of the program; other tests count on what was there.
multiprocessing.set_start_method(_start_method, force=True)
torch.set_num_threads(1)

__all__ = [
    "DISABLED",
    "CartwheelEnv",
    "GymWrapper",
    "MultiCollector",
    "TensorDict",
    "assert_same",
    "collected",
    "oracle",
    "reader",
    "rolled_out",
    "seed_generator",
    "serial",
    "some_are_over",
    "torch",
    "transforms",
]
DISABLED = AutoresetMode.DISABLED


def oracle(env_fns, **keywords):
    """TorchRL's wrapper around a ``SyncVectorEnv`` of Gymnasium."""
    return GymWrapper(SyncVectorEnv(env_fns, autoreset_mode=DISABLED), **keywords)


def rolled_out(env, steps=60, seed=5, policy=None, **keywords):
    """A rollout of random actions, which depend on the seed alone."""
    torch.manual_seed(seed)
    env.set_seed(seed)
    return env.rollout(steps, policy, break_when_any_done=False, **keywords)


def collected(env):
    """Three batches of a collector, which closes the environment."""
    torch.manual_seed(5)
    env.set_seed(5)
    frames = 20 * env.batch_size.numel()
    collector = Collector(env, None, frames_per_batch=frames, total_frames=3 * frames)
    found = list(collector)
    collector.shutdown()
    return torch.stack(found)


def assert_same(actual, expected):
    """Fails unless both tensordicts have the same keys, shapes, dtypes, devices and bits."""
    assert actual.batch_size == expected.batch_size
    assert actual.device == expected.device
    keys = set(actual.keys(include_nested=True)), set(expected.keys(include_nested=True))
    assert keys[0] == keys[1]
    for key in keys[0]:
        ours, theirs = actual.get(key), expected.get(key)
        if isinstance(theirs, torch.Tensor):
            assert ours.dtype == theirs.dtype, key
            assert ours.shape == theirs.shape, key
            assert ours.numpy().tobytes() == theirs.numpy().tobytes(), key
        else:
            assert ours.batch_size == theirs.batch_size, key
            assert ours.device == theirs.device, key


def some_are_over(rollout):
    """Whether episodes ended before the last step, in some rows and not in all at once."""
    done = rollout["next", "done"][:, :-1, 0]
    return bool(done.any()) and bool((done.any(0) & ~done.all(0)).any())


def reader(*keys):
    """A reader of integers in infos, one for each row."""
    specs = [Unbounded((3,), dtype=torch.int64)] * len(keys)
    return default_info_dict_reader(list(keys), specs)


def serial(env_fns, **keywords):
    """TorchRL's ``SerialEnv`` of its own wrappers around single environments."""
    functions = [
        lambda function=function: GymWrapper(function(), **keywords) for function in env_fns
    ]
    return SerialEnv(len(functions), functions)
