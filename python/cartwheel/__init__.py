"""cartwheel steps many reinforcement-learning environments at once.

:class:`VectorEnv` replaces ``gymnasium.vector.AsyncVectorEnv``: the same arguments, values and
errors, several times faster, in all three autoreset modes. :class:`Collector` runs a policy in it,
:mod:`cartwheel.returns` computes advantages and returns of its rollouts, and :func:`evaluate` plays
a quota of episodes.
"""

from importlib.metadata import version

from cartwheel import returns
from cartwheel.errors import (
    BrokenPoolError,
    EnvPanicError,
    EpisodeOverError,
    ForkedProcessError,
    RemoteEnvError,
    RemoteTraceback,
    WorkerDiedError,
    WorkerTimeoutError,
)
from cartwheel.evaluation import Evaluation, evaluate
from cartwheel.native.env import NativeEnv
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.registry.make import make_vec
from cartwheel.registry.native import register_native
from cartwheel.registry.patch import patch_gymnasium
from cartwheel.rollouts import Collector, Rollout
from cartwheel.vector.pool_env import PoolVectorEnv
from cartwheel.vector.presets import AsyncVectorEnv, SyncVectorEnv
from cartwheel.vector.rollout_arrays import RolloutArrays
from cartwheel.vector.stats import Stats
from cartwheel.vector.vector_env import VectorEnv

__all__ = [
    "AsyncVectorEnv",
    "BrokenPoolError",
    "Collector",
    "EnvPanicError",
    "EpisodeOverError",
    "Evaluation",
    "ForkedProcessError",
    "NativeEnv",
    "NativeVectorEnv",
    "PoolVectorEnv",
    "RemoteEnvError",
    "RemoteTraceback",
    "Rollout",
    "RolloutArrays",
    "Stats",
    "SyncVectorEnv",
    "VectorEnv",
    "WorkerDiedError",
    "WorkerTimeoutError",
    "__version__",
    "evaluate",
    "make_vec",
    "patch_gymnasium",
    "returns",
]

__version__: str = version("cartwheel")

register_native()
