"""What the ``dm`` interface returns: batches of dm_env's time steps."""

from __future__ import annotations

import enum
import keyword
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cartwheel.envpool.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray


try:
    from dm_env import StepType as StepType
    from dm_env import TimeStep as TimeStep
except ImportError:

    class TimeStep(NamedTuple):  # type: ignore[no-redef]
        """A batch of time steps, with the fields of ``dm_env.TimeStep``."""

        step_type: Any
        reward: Any
        discount: Any
        observation: Any

    class StepType(enum.IntEnum):  # type: ignore[no-redef]
        """The numbers of ``dm_env.StepType``."""

        FIRST = 0
        MID = 1
        LAST = 2


#: Fields of every observation, which the keys of a ``Dict`` space must leave free.
_OWN_FIELDS = frozenset({"env_id", "elapsed_step", "players", "info"})


def time_step(
    observations: Any,
    rewards: NDArray[np.float64],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    infos: dict[str, Any],
) -> Any:
    """A batch as one ``TimeStep`` of arrays.

    Returns:
        ``step_type`` (``int32``, the numbers of :data:`StepType`), ``reward`` and ``discount``
        (``float64``; the discount is 0 where the episode terminated and 1 everywhere else, also
        where it was truncated), and ``observation``: a named tuple of the observation (``obs``, or
        the keys of a ``Dict`` space, unless one of them cannot be a field or is among those that
        follow), ``env_id``, ``elapsed_step``, ``players``, those further infos whose keys can be
        fields and are none of the observation, and ``info``, the dictionary of all of them.
    """
    ended = np.where(terminations | truncations, np.int32(StepType.LAST), np.int32(StepType.MID))
    step_type = np.where(infos["elapsed_step"] == 0, np.int32(StepType.FIRST), ended)
    discount = np.where(terminations, 0.0, 1.0)
    return TimeStep(step_type, rewards, discount, merged(observations, infos))


def merged(observations: Any, infos: dict[str, Any]) -> Any:
    """Observation and infos in one named tuple."""
    apart = (
        isinstance(observations, dict)
        and all(map(_is_field, observations))
        and _OWN_FIELDS.isdisjoint(observations)
    )
    fields = dict(observations) if apart else {"obs": observations}
    further = {key: value for key, value in infos.items() if key not in fields}
    fields |= {key: _nested(value) for key, value in further.items() if _is_field(key)}
    fields["info"] = infos
    return record("Observation", fields)


def _nested(value: Any) -> Any:
    """Nested infos as named tuples; masks, which cannot be fields, are in ``info`` alone."""
    if not isinstance(value, dict):
        return value
    return record("Info", {key: _nested(part) for key, part in value.items() if _is_field(key)})


def _is_field(key: Any) -> bool:
    """Whether a named tuple can have this field."""
    return (
        isinstance(key, str)
        and key.isidentifier()
        and not key.startswith("_")
        and not keyword.iskeyword(key)
    )
