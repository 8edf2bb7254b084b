"""Gymnasium's two vector environments as presets of :class:`~cartwheel.VectorEnv`.

Their positional arguments are the same as in Gymnasium, so that only the import has to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from cartwheel.vector.pool_owner import ActType, ObsType
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartwheel._internal.arguments import EnvFn
    from cartwheel._internal.literals import Executor, Mode, ObservationMode


class AsyncVectorEnv(VectorEnv[ObsType, ActType], gym.vector.VectorEnv[ObsType, ActType, Any]):
    """:class:`VectorEnv` in worker processes, with the arguments of ``AsyncVectorEnv``.

    All other keywords of :class:`VectorEnv` are accepted, too.
    """

    def __init__(
        self,
        env_fns: Iterable[EnvFn],
        shared_memory: bool = True,  # noqa: FBT001 - Gymnasium's signature
        copy: bool = True,  # noqa: FBT001 - Gymnasium's signature
        context: Any = None,
        daemon: bool = True,  # noqa: FBT001 - Gymnasium's signature
        worker: Any = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        executor: Executor = "process",
        **keywords: Any,
    ) -> None:
        super().__init__(
            env_fns,
            shared_memory,
            copy,
            context,
            daemon,
            worker,
            observation_mode,
            autoreset_mode,
            max_concurrency,
            executor=executor,
            **keywords,
        )


class SyncVectorEnv(VectorEnv[ObsType, ActType], gym.vector.VectorEnv[ObsType, ActType, Any]):
    """:class:`VectorEnv` in the calling thread, with the arguments of ``SyncVectorEnv``.

    All other keywords of :class:`VectorEnv` are accepted, too. As in Gymnasium, :attr:`envs` has
    the environments, and :meth:`call` may call their ``reset``, ``step`` and ``close``.
    """

    _reserves_calls = False

    def __init__(
        self,
        env_fns: Iterable[EnvFn],
        copy: bool = True,  # noqa: FBT001 - Gymnasium's signature
        observation_mode: ObservationMode = "same",
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        *,
        executor: Executor = "inline",
        **keywords: Any,
    ) -> None:
        super().__init__(
            env_fns,
            copy=copy,
            observation_mode=observation_mode,
            autoreset_mode=autoreset_mode,
            executor=executor,
            **keywords,
        )
