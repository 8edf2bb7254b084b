"""Step limits that environments have themselves."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit


def truncates(env: Any) -> bool:
    """Whether an environment is known to truncate its episodes after some number of steps.

    It is if it or an environment that it wraps is a ``gymnasium.wrappers.TimeLimit``, or has a spec
    with ``max_episode_steps``, as every environment of ``gymnasium.make`` with a limit.
    """
    seen: set[int] = set()
    while env is not None and id(env) not in seen:
        seen.add(id(env))
        if isinstance(env, TimeLimit):
            return True
        own = vars(env) if hasattr(env, "__dict__") else {}
        spec = own.get("spec")
        if isinstance(spec, EnvSpec) and (spec.max_episode_steps or 0) > 0:
            return True
        env = own.get("env")
    return False
