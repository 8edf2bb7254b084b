"""Batches of time steps of dm_env, the results of the ``dm`` interface."""

from __future__ import annotations

import enum
import keyword
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cartwheel.envpool.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray


try:
    from dm_env import Environment as Environment
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

    class Environment:  # type: ignore[no-redef]
        """The base class of pools without ``dm_env``; it adds nothing."""


#: Fields of every observation, which must not be keys of a ``Dict`` space.
_OWN_FIELDS = frozenset({"env_id", "elapsed_step", "players", "info"})


def time_step(
    observations: Any,
    rewards: NDArray[np.float32],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    infos: dict[str, Any],
) -> Any:
    """Converts a batch to one ``TimeStep`` of arrays.

    Returns:
        ``step_type`` (``int32``, the numbers of :data:`StepType`), ``reward`` and ``discount``
        (``float32``; the discount is 0 where the episode terminated, otherwise 1, also where it was
        truncated), and ``observation``, see :func:`merged`.
    """
    ended = np.where(terminations | truncations, np.int32(StepType.LAST), np.int32(StepType.MID))
    step_type = np.where(infos["elapsed_step"] == 0, np.int32(StepType.FIRST), ended)
    discount = np.where(terminations, np.float32(0), np.float32(1))
    return TimeStep(step_type, rewards, discount, merged(observations, infos))


def merged(observations: Any, infos: dict[str, Any]) -> Any:
    """Merges observation and infos into one named tuple.

    Its fields are ``env_id`` and ``players``; then the keys of a ``Dict`` space, or ``obs`` if the
    space is no ``Dict`` or a key cannot be a field; then ``elapsed_step`` and the further infos
    whose keys can be fields and are free; and ``info``, the dictionary of all infos.
    """
    apart = (
        isinstance(observations, dict)
        and all(map(_is_field, observations))
        and _OWN_FIELDS.isdisjoint(observations)
    )
    fields = {"env_id": infos["env_id"], "players": _nested(infos["players"])}
    fields |= observations if apart else {"obs": observations}
    further = {key: value for key, value in infos.items() if key not in fields}
    fields |= {key: _nested(value) for key, value in further.items() if _is_field(key)}
    fields["info"] = infos
    return record("State", fields)


def _nested(value: Any) -> Any:
    """Converts nested infos to named tuples; masks cannot be fields and are only in ``info``."""
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
