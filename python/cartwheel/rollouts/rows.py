"""Rows of a rollout without their time axis."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cartwheel.rollouts.record import one_line
from cartwheel.spaces import nested

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Some rows of a rollout; the first dimension of every array is ``M``.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``.
        terminated: Flags.
        truncated: Flags.
        extras: The extras of the rollout, by name; ``rows["advantages"]`` is one of them.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rewards)

    def __repr__(self) -> str:
        """The number of rows and the names of extras."""
        return one_line("Rows", f"{len(self)} rows", self.extras)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Returns the extra of this name."""
        return self.extras[name]

    def take(self, index: Any) -> Rows:
        """Returns copies of the rows at ``index``."""
        return Rows(**{name: nested.at(part, index) for name, part in vars(self).items()})

    @classmethod
    def of(cls, rollout: Record, *, valid_only: bool = True) -> Rows:
        """Returns the rows of a rollout: copies, or views if no row is left out."""
        num_steps, num_envs = rollout.valid.shape
        parts = {
            "observations": nested.at(rollout.observations, slice(num_steps)),
            "actions": rollout.actions,
            "rewards": rollout.rewards,
            "terminated": rollout.terminated,
            "truncated": rollout.truncated,
            "extras": rollout.checked_extras(),
        }
        if valid_only and not rollout.valid.all():
            return cls(**{name: nested.at(part, rollout.valid) for name, part in parts.items()})

        def flat(array: NDArray[Any]) -> NDArray[Any]:
            return array.reshape(num_steps * num_envs, *array.shape[2:])

        return cls(**{name: nested.apply(flat, part) for name, part in parts.items()})
