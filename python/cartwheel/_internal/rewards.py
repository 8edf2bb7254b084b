"""Rewards of several numbers, for several objectives: their space, and checks of it.

An environment with such rewards has a ``reward_space``, a ``Box`` of shape ``(k,)``, as those of
MO-Gymnasium have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.spaces import Box

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Wrappers of other packages that make numbers of such rewards and keep the ``reward_space``.
_WEIGHING = frozenset([("mo_gymnasium", "LinearReward")])


def reward_space_of(env: Any) -> Any:
    """Returns the ``reward_space`` of an environment, single or of a vector; ``None`` for numbers.

    The outermost wrapper that has the attribute decides.
    """
    while env is not None:
        kind = type(env)
        if (kind.__module__.partition(".")[0], kind.__name__) in _WEIGHING:
            return None
        if hasattr(env, "reward_space"):
            space = env.reward_space
            return None if getattr(space, "shape", None) == () else space
        is_wrapper = isinstance(env, gym.Wrapper | gym.vector.VectorWrapper)
        env = env.env if is_wrapper else None
    return None


def reward_shape_of(envs: Any) -> tuple[int, ...]:
    """Returns the shape of one reward: ``()`` for numbers, otherwise ``(k,)``."""
    space = reward_space_of(envs)
    return () if space is None else space.shape


def check_reward_space(space: Any) -> None:
    """Raises ``ValueError`` unless this is ``None`` or a ``Box`` of shape ``(k,)``."""
    fits = isinstance(space, Box) and len(space.shape) == 1 and space.shape[0] > 0
    if space is not None and not fits:
        raise ValueError(f"`reward_space` must be a Box of shape (k,), got {space}")


def common_reward_space(spaces: Sequence[Any]) -> Any:
    """Returns the ``reward_space`` of the first of the environments.

    Raises:
        RuntimeError: Rewards of the environments have different shapes.
    """
    shapes = [None if space is None else space.shape for space in spaces]
    for row, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise RuntimeError(
                "rewards of all environments must have the same shape: `reward_space` of row 0 is "
                f"{spaces[0]}, that of row {row} is {spaces[row]}"
            )
    return spaces[0]


def check_rewards_are_numbers(envs: Any, user: str, *, closes: bool = False) -> None:
    """Checks that rewards are numbers, for code that adds, scales or discounts them.

    Args:
        envs: A vector environment, possibly in wrappers.
        user: What needs numbers.
        closes: Whether environments that are refused are closed.

    Raises:
        ValueError: The environments have a ``reward_space``.
    """
    space = reward_space_of(envs)
    if space is not None:
        if closes:
            envs.close()
        raise ValueError(
            f"{user} needs rewards that are numbers, and those of the environments are arrays of "
            f"`reward_space` {space}: weigh them first, by `cartwheel.wrappers.TransformReward("
            "envs, lambda rewards: rewards @ weights)`."
        )
