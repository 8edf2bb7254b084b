"""Vector environments like a given one, with other numbers of rows, modes and executors."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from cartwheel._internal.gymnasium_classes import AsyncVectorEnv, SyncVectorEnv
from cartwheel.multiagent.pool import AgentsPool
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.testing.report import Unchecked
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable


class Variants:
    """Makes vector environments like a given one.

    This base class makes none: it stands for a vector environment that cannot be made again.

    Attributes:
        executors: For each executor that rows of this kind can have, its keywords.
        sizes: Numbers of rows to try, in blocks and shards of different sizes.
        render_modes: The render modes that :meth:`make` can choose.
    """

    executors: tuple[dict[str, Any], ...] = ()
    sizes: tuple[int, ...] = ()
    render_modes: tuple[str, ...] = ()

    def make(self, num_envs: int, **keywords: Any) -> Any:
        """Makes a vector environment.

        Args:
            num_envs: Number of rows.
            **keywords: ``mode``: the autoreset mode, by default ``DISABLED``. ``first``: the row of
                the given vector environment which is row 0 of the new one. ``limit``: steps after
                which episodes are truncated; ``None`` as in the given one. All others are keywords
                of cartwheel's vector environments, such as ``executor``.

        Raises:
            Unchecked: This kind of vector environment cannot be made so.
        """
        del num_envs, keywords
        raise Unchecked("only environments made from functions, ids or specs can be made again")

    def single_limit(self) -> int | None:
        """The declared number of steps after which an episode is truncated, if there is one."""
        envs = self.make(1)
        try:
            spec = envs.get_attr("spec")[0]
        finally:
            envs.close()
        return None if spec is None else spec.max_episode_steps

    def make_single(self) -> gym.Env[Any, Any] | None:
        """One environment alone, if it is written in Python."""
        return None


class NativeVariants(Variants):
    """Makes native vector environments from the spec of a given one."""

    executors = (
        {"executor": "inline"},
        {"executor": "thread", "num_workers": 2},
        {"executor": "thread", "num_workers": 3},
    )
    sizes = (1, 3, 7, 16, 17)

    def __init__(self, envs: NativeVectorEnv) -> None:
        assert envs.spec is not None
        self._spec = copy.deepcopy(envs.spec)
        self._spec.kwargs.pop("num_envs", None)
        modes = envs.metadata.get("render_modes", ())
        self.render_modes = tuple(mode for mode in modes if mode != "human")

    def make(
        self,
        num_envs: int,
        *,
        mode: AutoresetMode = AutoresetMode.DISABLED,
        first: int = 0,
        limit: int | None = None,
        **keywords: Any,
    ) -> Any:
        """Makes a native vector environment; all rows are alike, so ``first`` changes nothing."""
        del first
        plain: dict[str, Any] = {"executor": "inline", "num_workers": None, "batch_size": None}
        plain |= {"render_mode": None, "on_done": "raise", "on_error": "raise"}
        plain |= {"final_obs": "object", "final_names": "gymnasium", "full_batch": False}
        if limit is not None:
            plain["max_episode_steps"] = limit
        return gym.make_vec(self._spec, num_envs, autoreset_mode=mode, **{**plain, **keywords})

    def single_limit(self) -> int | None:
        """The keyword ``max_episode_steps`` or the limit of the spec."""
        limit: int | None = self._spec.kwargs.get("max_episode_steps")
        limit = self._spec.max_episode_steps if limit is None else limit
        return None if limit == -1 else limit


class PythonVariants(Variants):
    """Makes :class:`~cartwheel.VectorEnv` from the functions of a given one."""

    executors: tuple[dict[str, Any], ...] = (
        {"executor": "inline"},
        {"executor": "thread", "num_workers": 2},
        {"executor": "process", "num_workers": 2},
    )
    sizes = (1, 3, 7)

    def __init__(self, envs: VectorEnv) -> None:
        self._env_fns = envs.env_fns
        self._keywords = {
            "observation_mode": envs.observation_mode,
            "context": envs.context,
            "daemon": envs.daemon,
            **envs._rules.as_dict(),
        }
        mode = envs.render_mode
        self.render_modes = () if mode in (None, "human") else (mode,)

    def make(
        self,
        num_envs: int,
        *,
        mode: AutoresetMode = AutoresetMode.DISABLED,
        first: int = 0,
        limit: int | None = None,
        **keywords: Any,
    ) -> Any:
        """Makes a vector environment; the functions repeat after the last one."""
        known = self._env_fns
        fns = [known[(first + row) % len(known)] for row in range(num_envs)]
        if limit is not None:
            fns = [functools.partial(_limited, fn, limit) for fn in fns]
        keywords.pop("render_mode", None)  # the functions decide
        return self._make(fns, mode, keywords)

    def _make(self, fns: list[Callable[[], Any]], mode: AutoresetMode, keywords: Any) -> Any:
        keywords = {**self._keywords, "executor": "inline", **keywords}
        return VectorEnv(fns, autoreset_mode=mode, **keywords)

    def make_single(self) -> gym.Env[Any, Any] | None:
        """The environment that the first function makes."""
        env: gym.Env[Any, Any] = self._env_fns[0]()
        return env


class AgentsVariants(PythonVariants):
    """Makes rows of several agents from the functions of a given :class:`ParallelVectorEnv`."""

    def make(self, num_envs: int, *, limit: int | None = None, **keywords: Any) -> Any:
        """Makes the rows of a :class:`~cartwheel.ParallelVectorEnv`."""
        if limit is not None:
            keywords["max_episode_steps"] = limit
        return super().make(num_envs, **keywords)

    def _make(self, fns: list[Callable[[], Any]], mode: AutoresetMode, keywords: Any) -> Any:
        finals = {"final_obs": "dense"} if mode == AutoresetMode.SAME_STEP else {}
        keywords = {**self._keywords, "executor": "inline", **keywords, **finals}
        return AgentsPool(fns, autoreset_mode=mode, **keywords)

    def single_limit(self) -> int | None:
        """None is declared."""
        return None

    def make_single(self) -> None:
        """Environments of several agents are not played alone: that is PettingZoo's test."""
        return


class GymnasiumVariants(PythonVariants):
    """Makes Gymnasium's vector environments from the functions of a given one."""

    executors = ()

    def __init__(self, envs: SyncVectorEnv | AsyncVectorEnv) -> None:
        self._class = type(envs)
        self._env_fns = list(envs.env_fns)
        mode = envs.render_mode
        self.render_modes = () if mode in (None, "human") else (mode,)

    def _make(self, fns: list[Callable[[], Any]], mode: AutoresetMode, keywords: Any) -> Any:
        if keywords:
            raise Unchecked(f"Gymnasium's vector environments have no {', '.join(keywords)}")
        return self._class(fns, autoreset_mode=mode)


def variants_of(envs: gym.vector.VectorEnv[Any, Any, Any]) -> Variants:
    """Returns the factory of variants for the class of a vector environment."""
    if isinstance(envs, NativeVectorEnv):
        return Variants() if envs.spec is None else NativeVariants(envs)
    if isinstance(envs, AgentsPool):
        return AgentsVariants(envs)
    if isinstance(envs, VectorEnv):
        return PythonVariants(envs)
    if isinstance(envs, SyncVectorEnv | AsyncVectorEnv):
        return GymnasiumVariants(envs)
    return Variants()


def _limited(fn: Callable[[], gym.Env[Any, Any]], limit: int) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(fn(), limit)
