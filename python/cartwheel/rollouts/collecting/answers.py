"""What a policy returned, checked against its action space and against earlier extras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel.policy import actions_and_extras
from cartwheel.spaces import nested
from cartwheel.spaces.arrays import as_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gymnasium.spaces import Space
    from numpy.typing import NDArray


class Answers:
    """Checks results of a policy; nothing is kept of a result that does not fit.

    Attributes:
        actions: Arrays of the form of a step's actions, ``[1, N, …]``; they have no values.
        extras: Arrays of the form of a step's extras, ``[1, N, …]``, by name; ``None`` until the
            first result.
    """

    def __init__(self, space: Space[Any], num_envs: int) -> None:
        """``space`` is the action space of one environment."""
        self.space, self.num_envs = space, num_envs
        # Pools of `cartwheel.envpool` have only the spaces of one environment.
        self.actions = nested.empty(batch_space(space, num_envs), 1, "actions")
        self.extras: dict[str, NDArray[Any]] | None = None

    def checked(
        self, answer: Any, count: int, step: int | None = None
    ) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Returns actions and extras of ``count`` rows as arrays.

        Args:
            answer: What the policy returned.
            count: The number of rows that it was asked for.
            step: The step of the rollout, for errors.

        Raises:
            TypeError: Actions or extras have another kind of dtype than before.
            ValueError: There is not one action or one extra for each row, or the names of extras
                differ from before.
        """
        given, extras = actions_and_extras(answer, self.space)
        actions = nested.as_batch(self._few(self.actions, count), given, "actions")
        if self.extras is None:
            arrays = {name: as_array(name, extra) for name, extra in extras.items()}
            for name, array in arrays.items():
                if array.shape[:1] != (count,):
                    raise ValueError(
                        f"extra `{name}` must have shape ({count}, …), one entry for each "
                        f"environment; got {array.shape}."
                    )
            self.expect(arrays)
            return actions, arrays
        if extras.keys() != self.extras.keys():
            where = "" if step is None else f" at step {step} of the rollout"
            raise ValueError(
                f"the policy gave the extras {sorted(extras)}{where}, and {sorted(self.extras)} "
                "before."
            )
        kept = self._few(self.extras, count)
        return actions, {
            name: nested.as_batch(like, extras[name], name) for name, like in kept.items()
        }

    def expect(self, extras: Mapping[str, NDArray[Any]]) -> None:
        """Expects extras of the shapes and dtypes of these from now on, ``[K, …]`` each."""
        self.extras = {
            name: np.empty((1, self.num_envs, *extra.shape[1:]), extra.dtype)
            for name, extra in extras.items()
        }

    def _few(self, form: Any, count: int) -> Any:
        """The form of ``count`` rows."""
        return form if count == self.num_envs else nested.at(form, (slice(None), slice(count)))
