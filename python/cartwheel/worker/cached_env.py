"""Environments whose resets load a state from a cache."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium as gym
from gymnasium.utils import seeding

from cartwheel._cartwheel import cache_draws, draw_cached
from cartwheel.worker.row_state import load, saved


@dataclasses.dataclass(frozen=True)
class ResetCache:
    """Initial states.

    Attributes:
        states: Saved states, each with the observation and the info of a reset.
        key: Part of every draw that a seed decides.
    """

    states: list[bytes]
    key: int


def sampled(env: gym.Env[Any, Any], row: int, seed: int) -> bytes:
    """Resets an environment and returns its state, with observation and info.

    Raises:
        ValueError: The environment cannot be saved, see ``get_state``.
        Exception: The environment raised it.
    """
    observation, info = env.reset(seed=seed)
    return saved(env, row, b"", [observation], info=info)


class CachedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Loads a state from a cache in each reset.

    The random numbers of the environment are those of its generator ``np_random``, which is not
    that of the state: it goes on where it was, or begins anew with the seed of the reset.

    Attributes:
        draw: The key of the row's draws, and the number of draws so far.
    """

    def __init__(
        self, env: gym.Env[Any, Any], row: int, cache: ResetCache, draw: tuple[int, int]
    ) -> None:
        """Wraps the environment of a row."""
        super().__init__(env)
        self._row = row
        self._cache = cache
        self.draw = draw

    def around(self, env: gym.Env[Any, Any]) -> CachedEnv:
        """Returns this wrapper around another environment, which replaces the wrapped one."""
        return CachedEnv(env, self._row, self._cache, self.draw)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Loads a state; ``options`` have no effect."""
        del options
        inner = self.env.unwrapped
        if seed is None:
            generator, number = inner.np_random, inner._np_random_seed
        else:
            generator, number = seeding.np_random(seed)
            self.draw = cache_draws(self._cache.key, seed), 0
        at = generator.bit_generator.state
        (key, count), states = self.draw, self._cache.states
        self.draw = key, count + 1
        body = load(self.env, self._row, states[draw_cached(key, count, len(states))])
        generator.bit_generator.state = at
        inner._np_random, inner._np_random_seed = generator, number
        return body["shown"][0], body["info"]
