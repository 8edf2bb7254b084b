"""Traces of rows: their actions, resets and steps since their seeds.

They are the same in every autoreset mode. Actions depend on the seed of a row and on the number of
its steps, and on nothing else.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from cartwheel._internal import nested
from cartwheel.testing.compare import first_difference
from cartwheel.vector.infos import is_dense, masks_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.testing.compare import Difference

#: Spaces whose values are arrays.
_ARRAYS = (Box, MultiBinary, MultiDiscrete)
#: Entries of the infos that are not the environment's.
_POOL_KEYS = ("final_obs", "final_info", "env_index")


@dataclass(frozen=True)
class Event:
    """A reset or a step of one row. A reset has reward 0 and false flags.

    Attributes:
        is_reset: Whether this is a reset.
        observation: The observation after it; at the end of an episode the final observation.
        reward: The reward, a number or an array.
        terminated: The flag of the step.
        truncated: The flag of the step.
        info: The row's own info.
    """

    is_reset: bool
    observation: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def is_end(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


Trace = list[Event]


def reward_of(reward: Any) -> Any:
    """The reward of one row: a float, or a copy of an array."""
    return np.array(reward) if np.ndim(reward) else float(reward)


def row_of(space: Space[Any], batch: Any, place: int) -> Any:
    """A copy of one row of a batch; ``space`` is the space of one row."""
    return nested.each(lambda part, rows: _part(part, rows[place]), space, batch)


def final_at(finals: Any, place: int) -> Any:
    """Returns the final observation of a row, from ``infos["final_obs"]`` in either form."""
    return nested.at(finals, place) if is_dense(finals) else finals[place]


def final_of(space: Space[Any], value: Any) -> Any:
    """A copy of a final observation, in the form of :func:`row_of`."""
    return nested.each(_part, space, value)


def _part(space: Space[Any], value: Any) -> Any:
    if isinstance(space, Discrete):  # a final observation may be a Python integer
        return np.array(value, space.dtype)
    return np.array(value) if isinstance(space, _ARRAYS) else copy.deepcopy(value)


def info_of(infos: dict[str, Any], place: int) -> dict[str, Any]:
    """The info of one row of a batch, without the entries that a vector environment adds."""
    info, masks = {}, masks_of(infos)
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key in _POOL_KEYS or key in masks or (mask is not None and not mask[place]):
            continue
        is_nested = isinstance(values, dict)
        info[key] = info_of(values, place) if is_nested else copy.deepcopy(values[place])
    return info


def compare(
    one: Trace, other: Trace, without: AbstractSet[str] = frozenset()
) -> tuple[int, Difference] | None:
    """Compares two traces as far as both go.

    Args:
        one: A trace.
        other: The trace to compare with.
        without: Keys of the infos that are not compared.

    Returns:
        The number of the first event that differs, and the difference; ``None`` if there is none.
    """
    for number, (one_event, other_event) in enumerate(zip(one, other, strict=False)):
        found = first_difference(_values(one_event, without), _values(other_event, without))
        if found is not None:
            return number, found
    return None


def _values(event: Event, without: AbstractSet[str]) -> dict[str, Any]:
    """The values of an event, by their names in errors."""
    info = {key: value for key, value in event.info.items() if key not in without}
    return {
        "is_reset": event.is_reset,
        "terminated": event.terminated,
        "truncated": event.truncated,
        "reward": event.reward,
        "observation": event.observation,
        "info": info,
    }


def field_of(path: str) -> str:
    """The field that a key path of :func:`compare` names: ``observation['pos'][0]``."""
    first, _, rest = path.removeprefix("['").partition("']")
    return first + rest


def moment(trace: Sequence[Event], number: int) -> str:
    """The time of an event, for errors: steps are counted from the reset that had a seed."""
    steps = sum(not event.is_reset for event in trace[: number + 1])
    if not trace[number].is_reset:
        return f"in step {steps}"
    return f"at the reset after step {steps}" if steps else "at the reset with the seed"


#: Rows whose seeds differ by a multiple of this number get the same actions.
STREAMS = 8


class Actions:
    """Samples of an action space, in :data:`STREAMS` streams."""

    def __init__(self, space: Space[Any]) -> None:
        """Copies the action space of one environment, which keeps its own random numbers."""
        self._space = copy.deepcopy(space)
        self._made = 0
        self._table: Any = None

    def batch(self, seeds: NDArray[np.int64], step_counts: NDArray[np.int64]) -> Any:
        """Returns the next actions of rows with these seeds that made these numbers of steps."""
        last = int(step_counts.max(initial=0))
        if last >= self._made:
            self._make(2 * last + 64)
        return nested.take(self._space, self._table, seeds % STREAMS * self._made + step_counts)

    def _make(self, count: int) -> None:
        samples = []
        for stream in range(STREAMS):
            self._space.seed(stream)
            samples += [self._space.sample() for _ in range(count)]
        self._table = nested.stack(self._space, samples)
        self._made = count
