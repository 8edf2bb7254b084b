"""Tianshou's ``PettingZooEnv`` as a row: each step is the turn of one of several agents.

Workers import this file by name, so it must not import Tianshou.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space


class MakesTurns:
    """A function that makes a row; environments of one agent stay what they are."""

    def __init__(self, env_fn: Callable[[], Any]) -> None:
        self.env_fn = env_fn

    def __call__(self) -> Any:
        """Makes the environment."""
        made = self.env_fn()
        return TurnsEnv(made) if has_turns(made) else made


def has_turns(env: Any) -> bool:
    """Whether an environment is Tianshou's ``PettingZooEnv``."""
    return hasattr(env, "agent_idx") and hasattr(env, "agent_iter")


class TurnsEnv(gym.Env[Any, Any]):
    """An environment whose observations have ``agent_id``, ``obs`` and perhaps ``mask``.

    A reward is an array of the rewards of all agents, in the order of ``agent_idx``.

    Attributes:
        env: What the caller's function returned.
    """

    def __init__(self, env: Any) -> None:
        """Reads the spaces, which all agents share."""
        self.env = env
        names = [str(name) for name in env.agent_idx]
        shown: Space[Any] = env.observation_space
        if isinstance(shown, Dict) and "action_mask" in shown.spaces:
            shown = shown["observation"]
        parts: dict[str, Space[Any]] = {
            "agent_id": Text(max(map(len, names)), charset="".join(sorted({*"".join(names)}))),
            "obs": shown,
        }
        if isinstance(env.action_space, Discrete):
            parts["mask"] = Box(0, 1, (int(env.action_space.n),), np.bool_)
        self.observation_space = Dict(parts)
        self.action_space = env.action_space
        self.reward_space = Box(-np.inf, np.inf, (len(names),), np.float64)
        inner = env.env
        self.metadata = dict(getattr(inner, "metadata", None) or {})
        self.render_mode = getattr(inner, "render_mode", None)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets the environment; the first agent is to move."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._shown(observation), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Makes the move of the agent whose turn it is."""
        observation, rewards, terminated, truncated, info = self.env.step(action)
        # The environment changes its list of rewards in the next step.
        return self._shown(observation), np.array(rewards, np.float64), terminated, truncated, info

    def _shown(self, observation: dict[str, Any]) -> dict[str, Any]:
        shown = {**observation, "agent_id": str(observation["agent_id"])}
        if "mask" in shown:
            shown["mask"] = np.array(shown["mask"], np.bool_)
        return shown

    def render(self) -> Any:
        """Renders the environment."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def __getattr__(self, name: str) -> Any:
        """Other names are those of the environment."""
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.env, name)
