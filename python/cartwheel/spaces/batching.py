"""The spaces of a vector environment, from the spaces of its environments."""

from __future__ import annotations

from typing import Any, TypeAlias

from gymnasium.spaces import Space
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_space

from cartwheel.gymnasium_versions import batch_differing_spaces

#: ``"same"``, ``"different"``, or the batched and the single observation space.
ObservationMode: TypeAlias = "str | tuple[Space[Any], Space[Any]]"


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
