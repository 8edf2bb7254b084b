"""EnvPool's Python interface, over cartwheel's environments.

A program changes ``import envpool`` to ``from cartwheel import envpool`` and nothing else, if its
environments are native, in Gymnasium's registry, or registered by :func:`register`. :func:`make`
lists the keywords, and where their meaning differs from EnvPool's. :class:`GymnasiumEnvPool` and
:class:`DMEnvPool` list where results differ on purpose.

Not supported: ``xla``, ``from_pixels`` and the keywords of ``render``, EnvPool's own families of
environments and their keywords, ``state_array_spec`` and ``action_array_spec``.
"""

from cartwheel.envpool.dm_pool import DMEnvPool
from cartwheel.envpool.errors import EnvBusyError
from cartwheel.envpool.gym_pool import GymEnvPool
from cartwheel.envpool.gymnasium_pool import GymnasiumEnvPool
from cartwheel.envpool.make import make, make_dm, make_gym, make_gymnasium, make_spec
from cartwheel.envpool.pool import EnvPool
from cartwheel.envpool.registry import list_all_envs, register
from cartwheel.envpool.spec import EnvSpec
from cartwheel.envpool.time_step import StepType, TimeStep

__all__ = [
    "DMEnvPool",
    "EnvBusyError",
    "EnvPool",
    "EnvSpec",
    "GymEnvPool",
    "GymnasiumEnvPool",
    "StepType",
    "TimeStep",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "register",
]
