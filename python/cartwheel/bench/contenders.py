"""The contenders of a race: cartwheel, Gymnasium, EnvPool where it is installed, bare loops."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import gymnasium as gym

import cartwheel
from cartwheel._cartwheel import usable_cpus
from cartwheel._internal.gymnasium_classes import AsyncVectorEnv, SyncVectorEnv
from cartwheel.bench.ceiling import Ceiling, NativeCeiling
from cartwheel.bench.envpool import fastest_envpool
from cartwheel.bench.runner import AnyVectorEnv, Runner, VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.envs.registration import EnvSpec

    from cartwheel._internal.arguments import EnvFn
    from cartwheel._internal.literals import Executor, NumWorkers

EXECUTORS: tuple[Executor, ...] = ("inline", "process", "thread")
"""In the order in which they are built: processes fork before there are threads."""
NATIVE, ENVPOOL = "cartwheel native", "envpool"
"""Contenders that do not run the Python environments."""
NATIVE_CEILING, NATIVE_CEILING_BY_ROWS = "native ceiling", "native ceiling by rows"


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to step a list of environments.

    Attributes:
        name: Its name in tables and charts.
        build: Makes the runner, in the autoreset mode ``NEXT_STEP``.
    """

    name: str
    build: Callable[[Sequence[EnvFn]], Runner]


def _vector(name: str, make: Callable[[Sequence[EnvFn]], AnyVectorEnv]) -> Contender:
    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        envs = make(env_fns)
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    return Contender(name, build)


def cartwheel_with(executor: Executor, num_workers: NumWorkers = None) -> Contender:
    """``cartwheel.VectorEnv`` with these arguments, and all others at their defaults."""
    return _vector(
        f"cartwheel {executor}" if num_workers is None else f"{num_workers} workers",
        lambda env_fns: cartwheel.VectorEnv(env_fns, executor=executor, num_workers=num_workers),
    )


def cartwheel_native(env_id: str, **options: Any) -> Contender:
    """``cartwheel.NativeVectorEnv`` of ``env_id`` with these keywords."""
    return _vector(
        NATIVE, lambda env_fns: cartwheel.NativeVectorEnv(env_id, len(env_fns), **options)
    )


def native_ceiling(
    env_id: str, *, blocks: bool = True, threads: int | None = None, **options: Any
) -> Contender:
    """Plain loops over native environments, one on each core; see ``NativeCeiling``.

    Args:
        env_id: A native environment.
        blocks: Whether rows are stepped several at once where the environment can, as
            ``cartwheel.NativeVectorEnv`` does, or each on its own.
        threads: How many loops; one for each core by default.
        **options: Keywords of the environment.
    """

    def build(env_fns: Sequence[EnvFn]) -> NativeCeiling:
        loops = threads or usable_cpus()
        keywords = json.dumps(options)
        return NativeCeiling(env_id, len(env_fns), keywords, threads=loops, blocks=blocks)

    return Contender(NATIVE_CEILING if blocks else NATIVE_CEILING_BY_ROWS, build)


def envpool(env_id: str, num_threads: int | None = None) -> Contender:
    """EnvPool with ``num_threads``, by default as many as suit it best."""
    return Contender(
        ENVPOOL, lambda env_fns: fastest_envpool(env_id, len(env_fns), num_threads=num_threads)
    )


def own_vector_env(spec: EnvSpec) -> Contender | None:
    """The vector entry point of an environment, named after its package: ``gymnasium native``.

    ``None`` if the environment has no such entry point, or if it is one of cartwheel.
    """
    entry_point = spec.vector_entry_point
    module = entry_point if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    package = module.partition(":")[0].partition(".")[0]
    if entry_point is None or package == cartwheel.__name__:
        return None
    return _vector(
        f"{package} native",
        lambda env_fns: gym.make_vec(
            spec.id, len(env_fns), vectorization_mode="vector_entry_point"
        ),
    )


SYNC = _vector("gymnasium sync", SyncVectorEnv)
ASYNC = _vector("gymnasium async", AsyncVectorEnv)
CEILING = Contender("ceiling", Ceiling)


def ceiling_of(name: str) -> str | None:
    """Returns the ceiling that bounds a contender; ``None`` for code that no ceiling runs."""
    if name in (NATIVE, NATIVE_CEILING, NATIVE_CEILING_BY_ROWS):
        return NATIVE_CEILING
    return None if name == ENVPOOL or name.endswith(" native") else CEILING.name
