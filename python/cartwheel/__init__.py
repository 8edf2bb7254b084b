"""Steps many reinforcement-learning environments at once.

Example:
    >>> import cartwheel
    >>> envs = cartwheel.make_vec("cartwheel/CartPole-v1", 4)
    >>> observations, infos = envs.reset(seed=7)
    >>> for _ in range(100):
    ...     actions = envs.action_space.sample()  # your policy
    ...     observations, rewards, terminations, truncations, infos = envs.step(actions)
    >>> observations.shape
    (4, 4)
    >>> envs.close()

:class:`VectorEnv` replaces ``gymnasium.vector.AsyncVectorEnv``: the same arguments, values and
errors, several times faster, in all three autoreset modes. :class:`Collector` runs a policy in it,
:mod:`cartwheel.returns` computes advantages and returns of its rollouts, and :func:`evaluate` plays
a quota of episodes. :mod:`cartwheel.envpool` has EnvPool's interface, and
:mod:`cartwheel.testing` checks environments.
"""

import importlib
from typing import TYPE_CHECKING

from cartwheel._internal import platform_check  # noqa: F401 - first: it checks that cartwheel runs here

# isort: split
from cartwheel._internal import versions  # noqa: F401 - second: it refuses old versions of Gymnasium

# isort: split
from cartwheel._cartwheel import VERSION as __version__
from cartwheel._cartwheel import make_first_uses

# Before any other module uses native code, it looks up what it uses of Python: a process that is
# forked while another thread looks something up would wait for it forever.
make_first_uses()

# isort: split
# ruff: noqa: E402 - they use native code
from cartwheel._internal.suggestions import missing_name
from cartwheel._make import make_vec, patch_gymnasium
from cartwheel.errors import (
    BrokenPoolError,
    CartwheelError,
    EnvFailedError,
    EnvPanicError,
    EpisodeOverError,
    ForkedProcessError,
    PluginError,
    RemoteEnvError,
    RemoteTraceback,
    WorkerDiedError,
    WorkerTimeoutError,
)
from cartwheel.native.env import NativeEnv
from cartwheel.native.plugins import load_plugin, register
from cartwheel.native.registration import register_native
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.gymnasium_presets import AsyncVectorEnv, SyncVectorEnv
from cartwheel.vector.rollout_arrays import RolloutArrays
from cartwheel.vector.stats import Stats
from cartwheel.vector.vector_env import VectorEnv
from cartwheel.vector.worker_choice import WorkerChoice

if TYPE_CHECKING:
    from cartwheel import envpool, returns, testing, wrappers
    from cartwheel.awaitable import AwaitableEnvs, RowLease
    from cartwheel.evaluation import Evaluation, evaluate
    from cartwheel.multiagent import ParallelVectorEnv
    from cartwheel.recorder import RecordEpisode, RecordParallelEpisode, TrajectoryDataset
    from cartwheel.rollouts import Collector, Rollout

__all__ = [
    "AsyncVectorEnv",
    "AwaitableEnvs",
    "BrokenPoolError",
    "CartwheelError",
    "Collector",
    "EnvFailedError",
    "EnvPanicError",
    "EpisodeOverError",
    "Evaluation",
    "ForkedProcessError",
    "NativeEnv",
    "NativeVectorEnv",
    "ParallelVectorEnv",
    "PluginError",
    "PoolVectorEnv",
    "RecordEpisode",
    "RecordParallelEpisode",
    "RemoteEnvError",
    "RemoteTraceback",
    "Rollout",
    "RolloutArrays",
    "RowLease",
    "Stats",
    "SyncVectorEnv",
    "TrajectoryDataset",
    "VectorEnv",
    "WorkerChoice",
    "WorkerDiedError",
    "WorkerTimeoutError",
    "__version__",
    "envpool",
    "evaluate",
    "load_plugin",
    "make_vec",
    "patch_gymnasium",
    "register",
    "returns",
    "testing",
    "wrappers",
]

#: Modules that are loaded when they are first used. Those that need another library are not in
#: ``__all__``, because ``help`` and ``import *`` take every name there; nor are those whose main
#: names are there.
_LAZY_MODULES = {"envpool", "returns", "testing", "wrappers"}
_LAZY_MODULES |= {"evaluation", "multiagent", "recorder", "rollouts"}
_LAZY_MODULES |= {
    "agilerl",
    "ale",
    "jax",
    "mujoco",
    "ray",
    "rllib",
    "sb3",
    "skrl",
    "tianshou",
    "torchrl",
}

#: Public names that are loaded when they are first used, and the module of each.
_LAZY = {
    "AwaitableEnvs": "cartwheel.awaitable",
    "Collector": "cartwheel.rollouts",
    "Evaluation": "cartwheel.evaluation",
    "ParallelVectorEnv": "cartwheel.multiagent",
    "RecordEpisode": "cartwheel.recorder",
    "RecordParallelEpisode": "cartwheel.recorder",
    "Rollout": "cartwheel.rollouts",
    "RowLease": "cartwheel.awaitable",
    "TrajectoryDataset": "cartwheel.recorder",
    "evaluate": "cartwheel.evaluation",
}

#: In the error about ``cartwheel.make``, which users of Gymnasium and EnvPool type first.
_INSTEAD_OF_MAKE = (
    "`cartwheel.make_vec(id, num_envs)` makes a vector environment, `gymnasium.make(id)` a single "
    "environment, and `cartwheel.envpool.make` has EnvPool's interface"
)

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> object:
        """Loads a public name when it is first used."""
        if name in _LAZY:
            value = getattr(importlib.import_module(_LAZY[name]), name)
        elif name in _LAZY_MODULES:
            value = importlib.import_module(f"{__name__}.{name}")
        else:
            raise missing_name(__name__, name, _INSTEAD_OF_MAKE if name == "make" else None)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, without the modules that have them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


register_native()
