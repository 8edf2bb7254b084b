"""Environments that functions returned: checks, and parts of their description for the caller.

Workers import this file, so it must not import a trainer.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from cartwheel._internal.suggestions import shown
from cartwheel.workers.envs.agents_env import AgentsEnv
from cartwheel.workers.envs.attributes import own_attribute


def refusal(env: Any, row: int) -> TypeError | None:
    """Returns the exception for what is not an environment, and closes it if it is one of others.

    Args:
        env: What a function returned.
        row: Its row.
    """
    names = ("reset", "step", "observation_space", "action_space")
    missing = [name for name in names if getattr(env, name, None) is None]
    is_vector = isinstance(env, gym.vector.VectorEnv)
    # PettingZoo's environments, without an import of it: their spaces are methods of an agent.
    has_agents = hasattr(env, "possible_agents") and callable(
        getattr(env, "observation_space", None)
    )
    if not missing and not isinstance(env, type) and not is_vector and not has_agents:
        return None
    if is_vector:
        env.close()
        return TypeError(
            f"env_fns[{row}] must return a single environment, got a vector environment, "
            f"{type(env).__name__} of num_envs={env.num_envs}: pass one function for each row"
        )
    if has_agents and not isinstance(env, type):
        env.close()
        return TypeError(
            f"env_fns[{row}] must return an environment of one agent, {_pettingzoo_advice(env)}"
        )
    why = f"an object of type {type(env)} without {', '.join(missing)}" if missing else repr(env)
    return TypeError(f"env_fns[{row}] must return an environment, got {why}")


def check_spaces(env: Any, row: int) -> None:
    """Raises if the spaces of an environment are not Gymnasium's."""
    for name in ("observation_space", "action_space"):
        space = getattr(env, name)
        if not isinstance(space, gym.Space):
            raise TypeError(
                f"env_fns[{row}] must return an environment whose `{name}` is a space of "
                f"Gymnasium, got {shown(space)} of type {type(space)}"
            )


def _pettingzoo_advice(env: Any) -> str:
    """Describes an environment of PettingZoo, and the class that takes it."""
    name = (getattr(env, "metadata", None) or {}).get("name", type(env).__name__)
    kind = "an AEC" if hasattr(env, "agent_iter") else "a parallel"
    return (
        f"got {kind} environment of PettingZoo, {name}: cartwheel.ParallelVectorEnv steps "
        "environments of several agents"
    )


def layouts_of(envs: list[Any]) -> list[Any]:
    """Returns the layouts of environments with several agents, equal ones as one object."""
    found = [env.layout for env in envs if isinstance(env, AgentsEnv)]
    return [found[0] if layout == found[0] else layout for layout in found]


def truncates(env: Any) -> bool:
    """Whether an environment is known to truncate its episodes after some number of steps.

    This holds if it or an environment that it wraps is a ``gymnasium.wrappers.TimeLimit``, or has a
    spec with ``max_episode_steps``, as environments of ``gymnasium.make`` with a limit have.
    """
    seen: set[int] = set()
    while env is not None and id(env) not in seen:
        seen.add(id(env))
        if isinstance(env, TimeLimit):
            return True
        spec = own_attribute(env, "spec")
        if isinstance(spec, EnvSpec) and (spec.max_episode_steps or 0) > 0:
            return True
        env = own_attribute(env, "env")
    return False
