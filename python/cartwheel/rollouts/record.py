"""The recorded arrays of a rollout, without its methods."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._device.sending import tensor_on
from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gymnasium.vector import AutoresetMode
    from numpy.typing import NDArray

    from cartwheel.rollouts.buffers import Carry


def one_line(name: str, parts: str, extras: Mapping[str, Any]) -> str:
    """Returns the ``repr`` of recorded arrays, with the names of extras."""
    named = f", extras: {', '.join(extras)}" if extras else ""
    return f"{name}({parts}{named})"


@dataclasses.dataclass(eq=False, kw_only=True, repr=False)
class Record:
    """The fields of a :class:`~cartwheel.Rollout`, which documents them."""

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    final_observations: Any
    final_index: NDArray[np.int64]
    extras: dict[str, NDArray[Any]]
    autoreset_mode: AutoresetMode
    carry: Carry
    policy_version: NDArray[np.int64]
    env_index: NDArray[np.int64]
    device: Any = None

    @property
    def num_steps(self) -> int:
        """The number of steps, ``T``."""
        return len(self.rewards)

    @property
    def num_envs(self) -> int:
        """The number of columns, ``N``: of environments, if each has one."""
        return len(self.carry.rewards)

    @property
    def prev_done(self) -> NDArray[np.bool_]:
        """Which episodes ended in the step before this rollout, ``[N]``."""
        return self.carry.done

    def _checked_extras(self) -> dict[str, NDArray[Any]]:
        """Returns the extras as arrays, or on a device as tensors, with those of the user.

        Raises:
            ValueError: An extra does not have one entry for each row.
        """
        extras = {name: self._as_part(extra) for name, extra in self.extras.items()}
        for name, extra in extras.items():
            if tuple(extra.shape[:2]) != self.valid.shape:
                steps, envs = self.valid.shape
                raise ValueError(
                    f"extra `{name}` must have shape ({steps}, {envs}, …), got "
                    f"{tuple(extra.shape)}."
                )
        return extras

    def _as_part(self, array: Any) -> Any:
        """Returns an array, or on a device a tensor."""
        return np.asarray(array) if self.device is None else tensor_on(self.device, array)

    def _sent(self, array: NDArray[Any]) -> Any:
        """Returns an array of the host as a part of views: on a device as a tensor."""
        return array if self.device is None else tensor_on(self.device, array)

    def _at(self, tree: Any, index: Any) -> Any:
        """Returns copies of observations, actions or extras at an index of arrays."""
        if self.device is None:
            return nested.at(tree, index)
        index = nested.apply(lambda part: tensor_on(self.device, part), index)
        return nested.apply(lambda tensor: tensor[index], tree)
