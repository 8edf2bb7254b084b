"""The configuration of a pool."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal.arguments import (
    as_autoreset_mode,
    as_integer,
    as_num_envs,
    as_number,
    check_max_batches,
)
from cartwheel._internal.literals import EnvType, OnDone, check_choice
from cartwheel._internal.suggestions import shown

if TYPE_CHECKING:
    from cartwheel.envpool.registry import Task

#: The upper bound of random seeds: EnvPool's seeds have 32 bits.
_SEEDS = 2**31
#: EnvPool's ``max_episode_steps`` of tasks without a limit.
NO_LIMIT = 2**31 - 1


@dataclass
class Config:
    """The checked keywords of :func:`~cartwheel.envpool.make`, which documents them.

    Attributes:
        seeds: The first seed of each environment.
        options: Keywords of the environment.
    """

    env_type: EnvType
    num_envs: int = 1
    batch_size: int = 0
    num_threads: int = 0
    seed: Any = None
    max_episode_steps: Any = None
    max_num_players: int | None = None
    thread_affinity_offset: int = -1
    reward_threshold: float | None = None
    gym_reset_return_info: bool = True
    autoreset_mode: Any = AutoresetMode.NEXT_STEP
    executor: Any = None
    timeout: float | None = None
    on_done: OnDone = "raise"
    max_batches: int | None = None
    env_seed: Any = ()
    seeds: list[int] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_keywords(cls, task: Task, env_type: EnvType, keywords: dict[str, Any]) -> Config:
        """Makes the configuration for a task, with the defaults of the registry.

        Raises:
            ValueError: A keyword has an invalid value.
        """
        keywords = {
            "max_episode_steps": task.max_episode_steps,
            "reward_threshold": task.reward_threshold,
            **task.defaults,
            **keywords,
        }
        own = {name: value for name, value in keywords.items() if name in KEYWORDS}
        config = cls(env_type, **own)
        config.options = {name: value for name, value in keywords.items() if name not in KEYWORDS}
        config._check(task)
        return config

    def _check(self, task: Task) -> None:
        check_choice("env_type", self.env_type, EnvType)
        self.num_envs = as_num_envs(self.num_envs)
        batch_size = as_integer("batch_size", self.batch_size, 0, self.num_envs)
        self.batch_size = batch_size or self.num_envs
        self.num_threads = as_integer("num_threads", self.num_threads, 0)
        self.thread_affinity_offset = as_integer(
            "thread_affinity_offset", self.thread_affinity_offset, -1
        )
        if self.thread_affinity_offset >= 0 and self.executor == "inline":
            raise ValueError(
                f"`thread_affinity_offset`={self.thread_affinity_offset} pins workers, but "
                "executor='inline' has no workers"
            )
        if self.max_episode_steps is not None:
            limit = as_integer("max_episode_steps", self.max_episode_steps, 1)
            self.max_episode_steps = None if limit == NO_LIMIT else limit
        if self.reward_threshold is not None:
            self.reward_threshold = as_number("reward_threshold", self.reward_threshold)
        try:
            self.autoreset_mode = as_autoreset_mode(self.autoreset_mode)
        except ValueError as error:
            raise ValueError(f"`autoreset_mode`: {error}") from error
        check_choice("on_done", self.on_done, OnDone)
        check_max_batches(self.max_batches)
        self._check_players(task)
        if not self.gym_reset_return_info and self.env_type != "gym":
            raise ValueError(
                "`gym_reset_return_info=False` means the old interface of gym, which needs "
                f"env_type='gym', got {self.env_type!r}"
            )
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        if same_step and (self.env_type == "dm" or task.parallel):
            form = "env_type='dm'" if self.env_type == "dm" else "an environment of several players"
            raise ValueError(
                f"autoreset_mode={self.autoreset_mode.value!r} does not work with {form}: "
                "it has no place for the last observation of an episode"
            )
        self._spread_seeds()

    def _check_players(self, task: Task) -> None:
        if self.on_done == "freeze" and task.parallel:
            raise ValueError(
                "on_done='freeze' does not work with an environment of several players: a frozen "
                "row would repeat their rewards"
            )
        if self.max_num_players is None:
            self.max_num_players = None if task.parallel else 1
            return
        self.max_num_players = as_integer("max_num_players", self.max_num_players, 1)
        if self.max_num_players > 1 and not task.parallel:
            raise ValueError(
                f"max_num_players={self.max_num_players}, but {task.task_id} has one player"
            )

    def _spread_seeds(self) -> None:
        """Sets the seed of each environment; draws a random seed if none is given."""
        listed = None
        if np.size(self.env_seed):
            listed = spread_seeds("env_seed", self.env_seed, self.num_envs)
            self.seed = listed if self.seed is None else self.seed
        if self.seed is None:
            self.seed = secrets.randbelow(_SEEDS - min(self.num_envs, _SEEDS - 1))
        self.seeds = spread_seeds("seed", self.seed, self.num_envs)
        if listed not in (None, self.seeds):
            raise ValueError(
                f"`seed` and `env_seed` disagree, {self.seed!r} and {self.env_seed!r}: "
                "give one of them"
            )
        is_list = np.ndim(self.seed) > 0
        self.seed = list(self.seeds) if is_list else int(self.seed)
        self.env_seed = list(self.seeds) if is_list else []

    def as_dict(self) -> dict[str, Any]:
        """Returns all keywords, including those of the environment, as a new dictionary."""
        own = {name: getattr(self, name) for name in ("env_type", *KEYWORDS)}
        if self.max_episode_steps is None:
            own["max_episode_steps"] = NO_LIMIT
        return {**own, **self.options}


#: The keywords of ``make`` that are not passed to the environment.
KEYWORDS = tuple(
    one.name for one in fields(Config) if one.name not in ("env_type", "seeds", "options")
)


def spread_seeds(name: str, seed: Any, num_envs: int) -> list[int]:
    """Returns one seed for each environment, from a list or from one integer: ``seed + i``.

    Args:
        name: The name of the seed in errors.
        seed: An integer, or a list, tuple or array of ``num_envs`` integers.
        num_envs: Number of environments.

    Raises:
        TypeError: The seed is not an integer, a list, a tuple or an array.
        ValueError: A seed is negative or not an integer, or the number of seeds is wrong.
    """
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        first = as_integer(name, seed, 0)
        return [first + row for row in range(num_envs)]
    if not isinstance(seed, list | tuple | np.ndarray) or getattr(seed, "ndim", 1) == 0:
        raise TypeError(
            f"`{name}` must be an integer, or a list with one for each environment, got "
            f"{shown(seed)}"
        )
    if len(seed) != num_envs:
        raise ValueError(f"`{name}` has {len(seed)} entries for num_envs={num_envs}")
    return [as_integer(f"{name}[{at}]", one, 0) for at, one in enumerate(seed)]
