"""Who takes part in a race: the ways to step one and the same list of environments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import cartwheel
from cartwheel.bench.ceiling import Ceiling
from cartwheel.bench.runner import AnyVectorEnv, Runner, VectorRunner

EnvFn = Callable[[], gym.Env[Any, Any]]

EXECUTORS = ("inline", "process", "thread")
"""In the order in which they are built: who forks comes before who has threads."""
NATIVE = ("cartwheel native", "gymnasium native")
"""Who runs other code than the Python environments, to which the ceiling is no bound."""


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to step a list of environments.

    Attributes:
        name: What tables and charts call it.
        build: Makes what is timed; autoreset mode ``NEXT_STEP``.
    """

    name: str
    build: Callable[[Sequence[EnvFn]], Runner]


def _vector(name: str, make: Callable[[Sequence[EnvFn]], AnyVectorEnv]) -> Contender:
    return Contender(name, lambda env_fns: VectorRunner(make(env_fns)))


def cartwheel_with(executor: str) -> Contender:
    """``cartwheel.VectorEnv`` with ``executor``, everything else at its default."""
    return _vector(
        f"cartwheel {executor}", lambda env_fns: cartwheel.VectorEnv(env_fns, executor=executor)
    )


def cartwheel_native(env_id: str) -> Contender:
    """``cartwheel.NativeVectorEnv`` of the environment that Gymnasium knows as ``env_id``."""
    return _vector(NATIVE[0], lambda env_fns: cartwheel.NativeVectorEnv(env_id, len(env_fns)))


def gymnasium_native(env_id: str) -> Contender:
    """Gymnasium's own vectorised implementation of ``env_id``."""
    return _vector(
        NATIVE[1],
        lambda env_fns: gym.make_vec(env_id, len(env_fns), vectorization_mode="vector_entry_point"),
    )


SYNC = _vector("gymnasium sync", SyncVectorEnv)
ASYNC = _vector("gymnasium async", AsyncVectorEnv)
CEILING = Contender("ceiling", Ceiling)
