"""Transitions in the form of a replay buffer."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel.returns as estimators
from cartwheel.choices import Order, check_choice
from cartwheel.rollouts.episodes import numbers
from cartwheel.rollouts.record import one_line
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.choices import Bootstrap
    from cartwheel.rollouts.record import Record
    from cartwheel.spaces.arrays import Array


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """``M`` transitions of one step, or of up to ``n_step`` steps.

    Every array is a copy with the first dimension ``M``. Observations and actions are nested like
    their spaces.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``; for several steps, their discounted sum.
        next_observations: The true next observation after the last step, never an observation of
            another episode.
        terminated: Whether the last step terminated the episode.
        truncated: Whether the last step truncated the episode.
        discounts: The factor of the value of the next observation, ``float64``: ``gamma`` to the
            power of ``lengths``, and 0 after a termination; ``None`` without a ``gamma``.
        lengths: The number of steps of each transition, ``int64``: fewer than ``n_step`` where the
            episode or the rollout ends.
        steps: The first step of each transition in the rollout, ``int64``.
        env_index: Its environment, ``int64``.
        episodes: The index of its episode in :meth:`Rollout.episodes`, ``int64``.
        extras: The extras of its first row, by name.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    next_observations: Any
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    discounts: NDArray[np.float64] | None
    lengths: NDArray[np.int64]
    steps: NDArray[np.int64]
    env_index: NDArray[np.int64]
    episodes: NDArray[np.int64]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self.rewards)

    def __repr__(self) -> str:
        """The number of transitions, their most steps and the names of extras."""
        most = int(self.lengths.max(initial=1))
        steps = f" of up to {most} steps" if most > 1 else ""
        return one_line("Transitions", f"{len(self)} transitions{steps}", self.extras)

    @classmethod
    def of(
        cls,
        rollout: Record,
        *,
        order: Order = "time",
        n_step: int = 1,
        gamma: Array | None = None,
        bootstrap: Bootstrap = "truncated",
    ) -> Transitions:
        """Returns the transitions of a rollout, see :meth:`Rollout.transitions`."""
        steps, rows = ordered_rows(rollout.valid, order)
        if gamma is None and n_step != 1:
            raise ValueError(f"`n_step={n_step}` needs `gamma`, the discount of its rewards.")
        windows = estimators.n_step_returns(
            rollout.rewards,
            rollout.terminated,
            rollout.truncated,
            valid=rollout.valid,
            n=n_step,
            gamma=1.0 if gamma is None else gamma,
            bootstrap=bootstrap,
        )
        lengths = windows.lengths[steps, rows]
        last = steps + lengths - 1
        return cls(
            observations=nested.at(rollout.observations, (steps, rows)),
            actions=nested.at(rollout.actions, (steps, rows)),
            rewards=windows.returns[steps, rows],
            next_observations=next_observations(rollout, last, rows),
            terminated=rollout.terminated[last, rows],
            truncated=rollout.truncated[last, rows],
            discounts=None if gamma is None else windows.discounts[steps, rows],
            lengths=lengths,
            steps=steps,
            env_index=rollout.env_index[rows],
            episodes=numbers(rollout)[steps, rows],
            extras=nested.at(rollout.checked_extras(), (steps, rows)),
        )


def ordered_rows(
    valid: NDArray[np.bool_], order: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns steps and environments of the valid rows.

    Raises:
        ValueError: ``order`` is unknown.
    """
    check_choice("order", order, Order)
    if order == "time":
        steps, rows = np.nonzero(valid)
    else:
        rows, steps = np.nonzero(valid.T)
    return steps, rows


def next_observations(rollout: Record, steps: NDArray[np.int64], rows: NDArray[np.int64]) -> Any:
    """Returns copies of the true next observations of some rows."""
    after = nested.at(rollout.observations, (steps + 1, rows))
    if len(rollout.final_index):
        slots = np.full(rollout.valid.shape, -1, np.int64)
        slots[rollout.final_index[:, 0], rollout.final_index[:, 1]] = np.arange(
            len(rollout.final_index)
        )
        slots = slots[steps, rows]
        replaced = slots >= 0
        nested.assign(after, replaced, nested.at(rollout.final_observations, slots[replaced]))
    return after
