"""Registers environments with RLlib that its runners step by cartwheel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from cartwheel._internal.adapters import check_mode
from cartwheel._internal.arguments import as_autoreset_mode, mismatched_signature
from cartwheel._internal.literals import Executor, check_choice
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.suggestions import check_keywords, keywords_of, shown
from cartwheel._make import make_vec
from cartwheel.native.plugins import without_module
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.native.vector_env import NativeVectorEnv


def register(
    name: str, env: str | EnvSpec | Callable[[dict[str, Any]], gym.Env[Any, Any]], **keywords: Any
) -> None:
    """Registers an environment with RLlib under a name; its runners step it with cartwheel.

    Example:
        >>> from ray.rllib.algorithms.ppo import PPOConfig
        >>> from cartwheel.rllib import register
        >>> register("poles", "CartPole-v1", executor="process", num_workers=2)
        >>> config = PPOConfig().environment("poles").env_runners(
        ...     gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=8
        ... )

    Ids are looked up here, and functions are sent to the remote environment runners and from there
    to the worker processes. So an environment that only this program registered with Gymnasium
    works there, too.

    Args:
        name: The name for ``config.environment(name)``.
        env: An id of Gymnasium's registry, possibly with a module (``"module:Env-v0"``), native ids
            included, or a spec; or a function or class that takes the ``env_config`` and makes
            one environment, as for ``ray.tune.register_env``.
        **keywords: Keywords of :func:`cartwheel.make_vec` for an id, of
            :class:`~cartwheel.VectorEnv` for a function: ``executor``, ``num_workers`` and others.
            With an id, ``env_config`` has further keywords, which take precedence.

    Raises:
        gymnasium.error.Error: The id does not exist.
        TypeError: ``name`` is not a string; ``env`` is something else, does not take the
            ``env_config`` or is a class of environments with several agents; ``num_envs`` is given;
            or ``VectorEnv`` lacks a keyword that is given for a function.
        ValueError: ``autoreset_mode`` is not ``"next_step"``, the only mode that RLlib's runners
            understand, or ``batch_size`` is given. In the runner: ``gym_env_vectorize_mode`` is not
            ``"vector_entry_point"``. For a function: the ``executor`` does not exist.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"`name` must be a string, as for config.environment(…), got {shown(name)}."
        )
    _check(keywords)
    make: Callable[..., VectorEnv | NativeVectorEnv]
    if callable(env):
        _check_function(env)
        check_keywords(VectorEnv.__name__, keywords, keywords_of(VectorEnv))
        check_choice("executor", keywords.get("executor", "auto"), Executor)
        make = functools.partial(_of_function, env)
    elif isinstance(env, str | EnvSpec):
        make = functools.partial(
            _of_spec, gym.spec(without_module(env)) if isinstance(env, str) else env
        )
    else:
        raise TypeError(
            "`env` must be an id of Gymnasium's registry, or a function that takes the env_config "
            f"and makes one environment, got {shown(env)}."
        )
    register_env(name, functools.partial(_create, name, make, keywords))


def _check_function(function: Callable[..., Any]) -> None:
    """Raises ``TypeError`` unless a function can be called with the ``env_config``.

    Only workers know the environment of a function, but a class shows that it has several agents.
    """
    if isinstance(function, type) and issubclass(function, MultiAgentEnv):
        raise TypeError(
            f"{function.__name__} has several agents: register it by ray.tune.register_env, and "
            "step it by config.env_runners(env_runner_cls=cartwheel.rllib.AsyncMultiAgentEnvRunner)"
        )
    signature = mismatched_signature(function, {})
    if signature is not None:
        raise TypeError(
            "`env` must be a function of one argument, the env_config, such as "
            f"`lambda env_config: MyEnv(**env_config)`, but {shown(function)} takes {signature}."
        )


def _check(keywords: dict[str, Any]) -> None:
    if "num_envs" in keywords or "env_fns" in keywords:
        raise TypeError(
            "the number of environments is set by config.env_runners(num_envs_per_env_runner=…)."
        )
    mode = as_autoreset_mode(keywords.get("autoreset_mode") or AutoresetMode.NEXT_STEP)
    why = "RLlib's environment runners expect a reset in the step after the end of an episode"
    check_mode(mode, AutoresetMode.NEXT_STEP, why, makes_all=True)
    if keywords.get("batch_size") is not None:
        raise ValueError("RLlib's environment runners step all rows: leave `batch_size` out.")


def _create(
    name: str,
    make: Callable[..., VectorEnv | NativeVectorEnv],
    keywords: dict[str, Any],
    env_config: dict[str, Any],
) -> VectorEnv | NativeVectorEnv:
    """Makes the vector environment of an environment runner, with the number that RLlib adds."""
    env_config = dict(env_config)
    num_envs = env_config.pop("num_envs", None)
    if num_envs is None:
        raise ValueError(
            f"{name!r} is a vector environment: "
            "config.env_runners(gym_env_vectorize_mode='vector_entry_point')."
        )
    return make(num_envs, keywords, env_config)


def _of_spec(
    spec: EnvSpec, num_envs: int, keywords: dict[str, Any], env_config: dict[str, Any]
) -> VectorEnv | NativeVectorEnv:
    keywords = keywords | env_config
    _check(keywords)
    envs: VectorEnv | NativeVectorEnv = make_vec(spec, num_envs, **keywords)
    check_rewards_are_numbers(envs, "RLlib", closes=True)
    return envs


def _of_function(
    env: Callable[[dict[str, Any]], gym.Env[Any, Any]],
    num_envs: int,
    keywords: dict[str, Any],
    env_config: dict[str, Any],
) -> VectorEnv:
    envs = VectorEnv([functools.partial(env, env_config)] * num_envs, **keywords)
    check_rewards_are_numbers(envs, "RLlib", closes=True)
    return envs
