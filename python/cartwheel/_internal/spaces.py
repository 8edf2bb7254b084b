"""Spaces of Gymnasium: their descriptions for the native code, and their batches.

A space whose values have a fixed shape and dtype becomes *leaves*, arrays in shared memory. Any
other space is *opaque*: its values are encoded one by one. The functions that are registered for
the space with Gymnasium make the batch, also functions that users register for their own spaces.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.spaces import Dict, Space, Text, Tuple
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from cartwheel._internal.nested import ARRAY_SPACES
from cartwheel._internal.versions import batch_differing_spaces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartwheel._internal.literals import ObservationMode

#: A space as nested tuples; ``rust/cartwheel-python/src/space.rs`` lists the forms.
Description: TypeAlias = "tuple[Any, ...]"

_LEAF_DTYPES = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
)
#: Gymnasium's own batch functions of the known spaces. If another function is registered for a
#: space or a subclass, the space is opaque, so that the other function is called.
_OWN: dict[Any, Any] = {
    space: concatenate.dispatch(space) for space in (*ARRAY_SPACES, Dict, Tuple)
}


def _is_known(space: Any, kind: type[Any]) -> bool:
    return isinstance(space, kind) and concatenate.dispatch(type(space)) is _OWN[kind]


def describe(space: Any, *, native: bool = False) -> Description:
    """Describes a space by its leaves; texts of native environments have a fixed number of bytes.

    Returns:
        Nested tuples, in the order in which Gymnasium batches the parts.
    """
    if any(_is_known(space, kind) for kind in ARRAY_SPACES) and str(space.dtype) in _LEAF_DTYPES:
        return ("leaf", str(space.dtype), tuple(space.shape or ()))
    if _is_known(space, Dict):
        parts = space.spaces.items()
        return ("dict", [(key, describe(part, native=native)) for key, part in parts])
    if _is_known(space, Tuple):
        return ("tuple", [describe(part, native=native) for part in space.spaces])
    if native and isinstance(space, Text):
        # `TextSpace` of `cartwheel-core`: the number of bytes, and those of the longest text.
        widest = max(len(character.encode()) for character in space.characters)
        return ("text", 4 + space.max_length * widest)
    return ("opaque", space)


def describe_actions(space: Space[Any]) -> Description:
    """Describes an action space: by its leaves, or as one opaque part if any part is opaque."""
    description = describe(space)
    kinds = {part[0] for part in single_parts(description)}
    return ("opaque", space) if "opaque" in kinds or "leaf" not in kinds else description


def has_fixed_shape(space: Space[Any]) -> bool:
    """Whether the values of a space are arrays of fixed shape."""
    return not _has_opaque(describe(space))


def check_fixed_shape(observations: Description, space: Space[Any]) -> None:
    """Checks that dense final observations are possible: every part has a fixed shape.

    Raises:
        ValueError: Some part has no fixed shape.
    """
    if _has_opaque(observations):
        raise ValueError(
            "`final_obs='dense'` needs observations of fixed shape; the space has parts without "
            f"one: {space}. Use final_obs='object'."
        )


def _has_opaque(description: Description) -> bool:
    return any(part[0] == "opaque" for part in single_parts(description))


def single_parts(description: Description) -> Iterator[Description]:
    """Yields the parts that have no parts themselves: leaves, texts and opaque ones, in order."""
    kind, parts = description[:2]
    if kind == "dict":
        parts = [part for _, part in parts]
    if kind in ("dict", "tuple"):
        for part in parts:
            yield from single_parts(part)
    else:
        yield description


def row_bytes(description: Description) -> int:
    """Returns the bytes of the leaves of one row."""
    parts = [*single_parts(description)]
    arrays = [
        np.dtype(part[1]).itemsize * math.prod(part[2]) for part in parts if part[0] == "leaf"
    ]
    return int(sum(arrays) + sum(part[1] for part in parts if part[0] == "text"))


def batch_opaque(space: Space[Any], found: dict[int, Any], num_envs: int) -> Any:
    """Batches values of a space without a fixed shape, by Gymnasium's own functions.

    Args:
        space: The space of one environment.
        found: Values by row; rows without a value were never reset.
        num_envs: Rows of the batch.

    Returns:
        The result of ``gymnasium.vector.utils.concatenate``.
    """
    empty: Any = create_empty_array(space, n=num_envs)
    if len(found) < num_envs:
        blank = list(empty) if isinstance(empty, tuple | list | np.ndarray) else [None] * num_envs
        found = {row: found.get(row, blank[row]) for row in range(num_envs)}
    return concatenate(space, [found[row] for row in range(num_envs)], empty)


def batch_of_actions(space: Space[Any], actions: Any, num_rows: int) -> Any:
    """Batches actions, one for each row, of a space whose batches are not single arrays.

    Args:
        space: The action space of one row.
        actions: The actions, in any iterable.
        num_rows: The number of actions.

    Returns:
        The result of ``gymnasium.vector.utils.concatenate``.

    Raises:
        ValueError: The number of actions is not ``num_rows``.
    """
    return batch_opaque(space, dict(enumerate(_counted(list(actions), num_rows))), num_rows)


def rows_of(action_space: Space[Any], actions: Any, num_envs: int) -> list[Any]:
    """Returns the actions of a batch as a list, by Gymnasium's ``iterate``.

    Raises:
        ValueError: The number of actions is not ``num_envs``.
        TypeError: ``actions`` is not a batch.
    """
    return _counted(list(iterate(action_space, actions)), num_envs)


def _counted(actions: list[Any], num_envs: int) -> list[Any]:
    if len(actions) != num_envs:
        raise ValueError(f"expected {num_envs} actions (one per environment), got {len(actions)}")
    return actions


class Batching:
    """Batches spaces by Gymnasium's functions, with the same checks as in Gymnasium.

    Attributes:
        single_observation_space: The observation space of one environment.
        observation_space: The observation space of a batch.
        single_action_space: The action space of one environment.
        action_space: The action space of a batch.
    """

    def __init__(
        self,
        class_name: str,
        pairs: list[tuple[Space[Any], Space[Any]]],
        observation_mode: ObservationMode,
        executor: str,
    ) -> None:
        """Batches the spaces of all rows.

        Args:
            class_name: The name in errors.
            pairs: Observation and action space of each row.
            observation_mode: How observation spaces are batched.
            executor: Errors are worded as in ``SyncVectorEnv`` for ``"inline"``, otherwise as in
                ``AsyncVectorEnv``.

        Raises:
            RuntimeError: Spaces differ where they must be equal.
            ValueError, TypeError: Spaces cannot be batched.
        """
        num_envs = len(pairs)
        self.single_action_space = pairs[0][1]
        self.action_space = batch_space(self.single_action_space, num_envs)
        if isinstance(observation_mode, tuple):
            self.observation_space, self.single_observation_space = observation_mode
        else:
            self.single_observation_space = pairs[0][0]
            self.observation_space = (
                batch_space(self.single_observation_space, num_envs)
                if observation_mode == "same"
                else batch_differing_spaces([observation for observation, _ in pairs])
            )
        for row, (observation, action) in enumerate(pairs):
            self._check_observations(class_name, observation, row, observation_mode, executor)
            self._check_actions(action, row, executor)

    @staticmethod
    def check_mode(observation_mode: Any) -> None:
        """Checks the observation mode before any environment is made.

        Raises:
            ValueError: ``observation_mode`` is neither a mode nor a pair.
            TypeError: The elements of the pair are not spaces.
        """
        if isinstance(observation_mode, tuple) and len(observation_mode) == 2:
            batched, single = observation_mode
            if not isinstance(batched, Space) or not isinstance(single, Space):
                raise TypeError(
                    "Expected both elements of observation_mode to be Spaces, got "
                    f"{type(batched)} and {type(single)}"
                )
        elif not isinstance(observation_mode, str) or observation_mode not in ("same", "different"):
            raise ValueError(
                "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single "
                f"and batch observation space, actual got {observation_mode}"
            )

    def _check_observations(
        self, class_name: str, space: Space[Any], row: int, mode: ObservationMode, executor: str
    ) -> None:
        single = self.single_observation_space
        if mode == "same":
            if space == single:
                return
            some = "" if executor == "inline" else "some of "
            raise RuntimeError(
                f"{class_name}(..., observation_mode='same') however {some}the sub-environments "
                f"observation spaces are not equivalent. single_observation_space={single}, "
                f"sub-environment observation_space={space}. If this is intentional, use "
                f"`observation_mode='different'` instead. Row {row} differs from row 0."
            )
        if not is_space_dtype_shape_equiv(space, single):
            whose = "sub-environments" if executor == "inline" else "sub-environment's"
            raise RuntimeError(
                f"{class_name}(..., observation_mode='different' or custom space) however the "
                f"{whose} observation spaces do not share a common shape and dtype, "
                f"single_observation_space={single}, sub-environment observation space={space} "
                f"in row {row}"
            )

    def _check_actions(self, space: Space[Any], row: int, executor: str) -> None:
        single = self.single_action_space
        if space == single:
            return
        if executor == "inline":
            raise RuntimeError(
                "Sub-environment action space doesn't make the `single_action_space`, "
                f"action_space={space} (row {row}), single_action_space={single}"
            )
        raise RuntimeError(
            f"Some environments have an action space different from `{single}`. In order to "
            f"batch actions, the action spaces from all environments must be equal. "
            f"Row {row} has {space}."
        )
