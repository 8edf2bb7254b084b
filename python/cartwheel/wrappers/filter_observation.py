"""Keeps some parts of nested observations."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Dict, Space, Tuple

from cartwheel.gymnasium_versions import dict_like
from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class FilterObservation(ObservationWrapper):
    """Keeps some keys of ``Dict`` observations, or some places of ``Tuple`` observations.

    Args:
        envs: A vector environment.
        filter_keys: The keys, strings; or the places, integers.

    Raises:
        TypeError: ``filter_keys`` are no sequence, or of another type than the space's keys.
        ValueError: A key is missing or named twice, nothing would be left, or the space is neither
            a ``Dict`` nor a ``Tuple``.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], filter_keys: Sequence[str | int]) -> None:
        """Checks the keys."""
        super().__init__(envs)
        space = self._space_before
        is_dict = isinstance(space, Dict)
        if not isinstance(space, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - Gymnasium's type
                f"FilterObservation needs observations of a Dict or a Tuple space, got {space}."
            )
        kind: type[str | int] = str if is_dict else int
        if not isinstance(filter_keys, Sequence) or isinstance(filter_keys, str):
            raise TypeError(
                f"`filter_keys` must be a sequence, got {filter_keys!r} of {type(filter_keys)}."
            )
        if not all(isinstance(key, kind) for key in filter_keys):
            raise TypeError(
                f"all of `filter_keys` must be {kind.__name__} for a {type(space).__name__} space, "
                f"got {list(filter_keys)}."
            )
        self.filter_keys = tuple(filter_keys)
        there: Any = list(space.spaces) if is_dict else range(-len(space), len(space))
        missing = [key for key in filter_keys if key not in there]
        if missing:
            has = f"the keys {there}" if is_dict else f"places 0 to {len(space) - 1}"
            raise ValueError(f"`filter_keys` has {missing}, but observations have {has}.")
        if not filter_keys or len(set(filter_keys)) < len(filter_keys):
            raise ValueError(
                "`filter_keys` must name at least one part of the observations, and none twice, "
                f"got {list(filter_keys)}."
            )
        # Copies: making a batched space seeds the parts of the space that it is made from, and they
        # may be those of an environment in this process.
        parts: Any = copy.deepcopy(space.spaces)
        kept: Space[Any]
        if isinstance(space, Dict):
            kept = dict_like(space, {str(key): parts[key] for key in filter_keys})
        else:
            kept = Tuple([parts[key] for key in filter_keys])
        self._is_dict = is_dict
        self._set_observation_space(kept)

    def _observe(self, observations: Any) -> Any:
        if self._is_dict:
            return {key: observations[key] for key in self.filter_keys}
        return tuple(observations[key] for key in self.filter_keys)
