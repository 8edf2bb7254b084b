"""The transitions of a rollout: the input of every estimator."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cartwheel.choices import Bootstrap, check_choice
from cartwheel.returns.arrays import as_flags, as_numbers, as_rewards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cartwheel.spaces.arrays import Array


@dataclasses.dataclass(frozen=True)
class Transitions:
    """Checked arrays, whose attributes the native side reads by name.

    Attributes:
        rewards: Rewards ``[T, N]``, in the dtype of the computation.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Flags ``[T, N]``, or ``None`` if every row is a transition.
        gamma: A float, or an array ``[T, N]`` in the dtype of the computation.
        bootstrap: One of :data:`~cartwheel.choices.Bootstrap`.
        num_threads: At least 1, or ``None`` for as many as are faster.
    """

    rewards: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_] | None
    gamma: float | NDArray[Any]
    bootstrap: str
    num_threads: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps and environments."""
        return self.rewards.shape


def as_transitions(
    rewards: Array,
    terminated: Array,
    truncated: Array,
    valid: Array | None,
    gamma: Array,
    bootstrap: str,
    num_threads: int | None,
    *,
    dtype: np.dtype[Any] | None,
) -> Transitions:
    """Checks all arguments except the shapes, which the native side compares.

    They are those of the estimators. ``dtype`` is that of the other arrays; ``None`` keeps the
    dtype of the rewards.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: A number of dimensions is wrong, a name is unknown, or threads are below 1.
    """
    check_choice("bootstrap", bootstrap, Bootstrap)
    if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
        raise ValueError(f"`num_threads` must be a positive integer or None, got {num_threads!r}.")
    rewards = as_rewards(rewards, dtype)
    return Transitions(
        rewards,
        as_flags("terminated", terminated),
        as_flags("truncated", truncated),
        None if valid is None else as_flags("valid", valid),
        as_numbers("gamma", gamma, rewards.dtype),
        bootstrap,
        num_threads,
    )
