"""Rollouts with their workers and the version of their weights, and joined rollouts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel.rollouts import Carry, Rollout
from cartwheel.rollouts.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FIELDS = tuple(field.name for field in dataclasses.fields(Record))
#: Fields with one more row than steps.
_WITH_LAST = ("observations", "is_first")
#: Fields with a time axis.
_TIMED = (
    *("actions", "rewards", "terminated", "truncated", "valid", "extras", "policy_version"),
    *_WITH_LAST,
)


@dataclasses.dataclass(eq=False, kw_only=True, repr=False)
class WorkerRollout(Rollout):
    """A :class:`~cartwheel.Rollout` of one worker, or of all workers, of one version of weights.

    Rollouts of one worker are in Ray's object store, which the processes of a machine share: their
    arrays are read-only and are not copied. (``torch.from_numpy`` warns of such arrays,
    ``torch.tensor`` copies.) Rollouts of all workers are copies, into which the caller may write.

    Attributes:
        version: The version of the weights, as :meth:`RolloutWorkers.update` counts them;
            it is also in ``policy_version``, for every action.
        workers: The workers whose environments these are, in the order of the rows.
    """

    version: int
    workers: tuple[int, ...]

    @classmethod
    def from_rollout(cls, rollout: Rollout, version: int, worker: int) -> WorkerRollout:
        """Returns the rollout with its origin; shares the arrays."""
        fields = {name: getattr(rollout, name) for name in _FIELDS}
        fields["policy_version"] = np.full_like(rollout.policy_version, version)
        return cls(**fields, version=version, workers=(worker,))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        others = ("autoreset_mode", "carry", "device")
        parts = [getattr(self, name) for name in _FIELDS if name not in others]
        return sum(array.nbytes for part in parts for _, array in nested.named(part, ""))


def joined(rollouts: Sequence[WorkerRollout]) -> WorkerRollout:
    """Joins the rollouts of several workers and one version along the axis of environments.

    Rollouts with fewer steps than others (``until``, ``num_episodes``) are padded, as a
    :class:`~cartwheel.Collector` pads environments that finish early.

    Raises:
        ValueError: The extras of the policies have different names.
    """
    names = [sorted(rollout.extras) for rollout in rollouts]
    if any(other != names[0] for other in names):
        raise ValueError(f"the policies of the workers gave different extras: {names}.")
    num_steps = max(rollout.num_steps for rollout in rollouts)
    fields: dict[str, Any] = {}
    for name in _TIMED:
        length = num_steps + (name in _WITH_LAST)
        parts = [_padded(rollout, name, length) for rollout in rollouts]
        fields[name] = nested.concat(parts, axis=1)
    carries = [vars(rollout.carry) for rollout in rollouts]
    before = {name: np.concatenate([carry[name] for carry in carries]) for name in carries[0]}
    rows = np.cumsum([0, *(rollout.num_envs for rollout in rollouts)])
    pairs = zip(rollouts, rows[:-1], strict=True)
    index = np.concatenate([rollout.final_index + np.array([0, row]) for rollout, row in pairs])
    order = np.argsort(index[:, 0], kind="stable")  # by time, and then by environment
    finals = [rollout.final_observations for rollout in rollouts]
    return WorkerRollout(
        **fields,
        final_observations=nested.at(nested.concat(finals), order),
        final_index=index[order],
        autoreset_mode=rollouts[0].autoreset_mode,
        carry=Carry(**before),
        env_index=np.arange(rows[-1]),
        version=rollouts[0].version,
        workers=tuple(worker for rollout in rollouts for worker in rollout.workers),
    )


def _padded(rollout: WorkerRollout, name: str, length: int) -> Any:
    """Returns a field padded to ``length`` rows by repeating the last row."""

    def repeated(array: NDArray[Any]) -> NDArray[Any]:
        more = length - len(array)
        if not more:
            return array
        rest = np.repeat(array[-1:], more, axis=0)
        if name in ("rewards", "valid", "is_first"):
            rest[:] = 0
        return np.concatenate([array, rest])

    return nested.apply(repeated, getattr(rollout, name))
