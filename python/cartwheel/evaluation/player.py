"""What a policy is asked, and what it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Dict, Tuple

from cartwheel.policy import actions_and_extras, as_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.policy import Policy
    from cartwheel.wrapping.conversion import ConvertsArrays


class Player:
    """Asks a policy for actions and counts them before anything is stepped.

    Args:
        policy: A function, or an object with a method ``predict``.
        action_space: Of one environment.
        recurrent: Whether it gets the row numbers, and which rows begin an episode.
        conversion: The policy sees arrays as this wrapper returns them.
    """

    def __init__(
        self,
        policy: Policy,
        action_space: Space[Any],
        *,
        recurrent: bool,
        conversion: ConvertsArrays | None = None,
    ) -> None:
        """Checks that the policy can be called."""
        self._function = as_function(policy, recurrent=recurrent)
        if conversion is not None:
            self._function = conversion._converted(self._function)
        self._space = action_space
        self._recurrent = recurrent

    def __call__(self, observations: Any, rows: NDArray[np.intp], first: NDArray[np.bool_]) -> Any:
        """One action for each of ``rows``.

        Raises:
            ValueError: The policy returned another number of actions.
            TypeError: It returned something that has no length, or a tuple that is no batch.
            Exception: Whatever it raises.
        """
        further = (rows.copy(), first.copy()) if self._recurrent else ()
        answer = self._function(observations, *further)
        actions, _ = actions_and_extras(answer, self._space)
        for name, batch in batches(self._space, actions):
            try:
                count = len(batch)
            except TypeError as error:
                raise TypeError(
                    f"the policy returned {type(batch)}{name} where a batch of {len(rows)} actions "
                    "is expected"
                ) from error
            if count != len(rows):
                raise ValueError(
                    f"the policy returned {count} actions{name} for {len(rows)} observations"
                )
        return actions


def batches(space: Space[Any], actions: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The parts of a batch of actions that have one entry an environment, and their names."""
    if isinstance(space, Dict) and isinstance(actions, dict):
        for key, part in space.spaces.items():
            if key in actions:  # one that is missing is the environments' to refuse
                yield from batches(part, actions[key], f"{name} under {key!r}")
    elif isinstance(space, Tuple) and isinstance(actions, tuple):
        for place, (part, batch) in enumerate(zip(space.spaces, actions, strict=False)):
            yield from batches(part, batch, f"{name} at {place}")
    else:
        yield name, actions
