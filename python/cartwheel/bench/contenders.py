"""Who takes part in a race: the ways to step one and the same list of environments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

import cartwheel

EnvFn = Callable[[], gym.Env[Any, Any]]
AnyVectorEnv = VectorEnv[Any, Any, Any]

EXECUTORS = ("inline", "thread", "process")


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to step a list of environments.

    Attributes:
        name: What tables and charts call it.
        build: Makes the vector environment; autoreset mode ``NEXT_STEP``.
    """

    name: str
    build: Callable[[Sequence[EnvFn]], AnyVectorEnv]


SYNC = Contender("gymnasium sync", SyncVectorEnv)
ASYNC = Contender("gymnasium async", AsyncVectorEnv)
CEILING = "ceiling"
"""The name of the bare loops, which are no vector environment, among the contenders."""


def cartwheel_with(executor: str) -> Contender:
    """``cartwheel.VectorEnv`` with ``executor``, everything else at its default."""

    def build(env_fns: Sequence[EnvFn]) -> AnyVectorEnv:
        return cartwheel.VectorEnv(env_fns, executor=executor)

    return Contender(f"cartwheel {executor}", build)
