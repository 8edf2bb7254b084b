"""Arrays of simulations, stacked: where each of them is in an observation."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.near_misses import near_miss, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray


class Fields:
    """The arrays of ``MjData`` that an observation consists of, one after the other.

    Attributes:
        shapes: The shape of each array in one simulation, by name, in the order of the observation.
        size: Number of elements of an observation.
    """

    def __init__(self, mujoco: ModuleType, model: Any, names: Sequence[str]) -> None:
        """Checks names of arrays by making a simulation and stepping it once.

        Args:
            mujoco: The imported package.
            model: A ``mujoco.MjModel``.
            names: Names of arrays of ``MjData``, such as ``"qpos"`` and ``"sensordata"``.

        Raises:
            TypeError: ``names`` is a text, or a name is none.
            ValueError: There is no such array, it is named twice, its elements are not ``float64``,
                or MuJoCo moves it in each step, as it does with contacts and constraints.
        """
        if isinstance(names, str):
            raise TypeError(
                f"`observation` must be a list of names, got {names!r}: did you mean [{names!r}]?"
            )
        data = mujoco.MjData(model)
        arrays = {name: _array(data, name) for name in names}
        if not arrays or len(arrays) < len(names):
            raise ValueError(f"`observation` must name arrays, each once, got {shown(names)}.")
        places = {name: array.ctypes.data for name, array in arrays.items()}
        mujoco.mj_step(model, data)
        for name, place in places.items():
            if getattr(data, name).ctypes.data != place:
                raise ValueError(f"`{name}` cannot be observed: MuJoCo moves it in every step.")
        self.shapes = {name: array.shape for name, array in arrays.items()}
        self.size = sum(map(prod, self.shapes.values()))

    def sizes(self) -> list[tuple[str, int]]:
        """Returns the name of each array and its number of elements."""
        return [(name, prod(shape)) for name, shape in self.shapes.items()]

    def split(self, observations: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Returns views of the arrays in observations of several simulations.

        Args:
            observations: ``(..., size)``.

        Returns:
            Each array by its name, ``(..., *shape)``.
        """
        split, start = {}, 0
        for name, shape in self.shapes.items():
            end = start + prod(shape)
            split[name] = observations[..., start:end].reshape(*observations.shape[:-1], *shape)
            start = end
        return split


def _array(data: Any, name: Any) -> NDArray[np.float64]:
    """Returns an array of a simulation, checked."""
    if not isinstance(name, str):
        raise TypeError(f"`observation` must be a list of names, got {shown(name)} in it.")
    array = getattr(data, name, None)
    if not isinstance(array, np.ndarray) or name.startswith("_"):
        names = [known for known in dir(data) if not known.startswith(("_", "efc_"))]
        arrays = [known for known in names if isinstance(getattr(data, known), np.ndarray)]
        meant = near_miss(name, arrays)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise ValueError(f"`observation` names {name!r}, which is not an array of MjData{hint}")
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise ValueError(f"`{name}` cannot be observed: it must be of float64, got {array.dtype}.")
    return array
