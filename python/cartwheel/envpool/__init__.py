"""EnvPool's Python interface, over cartwheel's environments.

Changing ``import envpool`` to ``from cartwheel import envpool`` is meant to be a whole migration
for programs whose environments are native here, in Gymnasium's registry, or made known by
:func:`register`. :func:`make` lists the keywords, with the places where their meaning is not
EnvPool's; results that differ on purpose are described by :class:`GymnasiumEnvPool` and
:class:`DMEnvPool`.

Not offered: ``xla``, ``from_pixels`` and the keywords of ``render``, EnvPool's own families of
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
