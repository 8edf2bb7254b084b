"""Rewards and flags of all rows at once, by functions of the caller over stacked arrays."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown, suggest
from cartwheel.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]
    Function = Callable[[Arrays, Any, Arrays], Any]


class ExternalRewards:
    """Calls the functions after each step, and checks their results.

    The pool owns it, so it does not refer to a vector environment.
    """

    def __init__(
        self,
        fields: Fields,
        num_envs: int,
        *,
        reward: Function,
        terminated: Function | None,
        truncated: Function | None,
    ) -> None:
        """Keeps the functions.

        Raises:
            TypeError: One of them cannot be called.
        """
        self._fields = fields
        self._shape = (num_envs,)
        self._functions = {"reward": reward, "terminated": terminated, "truncated": truncated}
        for name, function in self._functions.items():
            if not callable(function) and not (function is None and name != "reward"):
                raise TypeError(
                    f"`{name}` must be a function of (before, actions, after), got "
                    f"{shown(function)}."
                )

    def __call__(
        self, before: bytes, actions: Any, after: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns rewards, terminations and truncations of all rows, each ``(num_envs,)``.

        Args:
            before: The elements of the observations before the step.
            actions: The actions, ``(num_envs, nu)``.
            after: The observations after it, ``(num_envs, size)``.

        Raises:
            TypeError: A function returned an array of another kind.
            ValueError: A function returned an array of another shape, or a reward is NaN.
            Exception: As a function raised it, with a note that names the function.
        """
        after = after.view()
        actions.flags.writeable = after.flags.writeable = (
            False  # a function must not change the arguments of the next one
        )
        split = self._fields.split
        given = (split(np.frombuffer(before).reshape(after.shape)), actions, split(after))
        return (
            self._rewards(*given),
            self._flags("terminated", *given),
            self._flags("truncated", *given),
        )

    def _rewards(self, *given: Any) -> NDArray[np.float64]:
        rewards = self._called("reward", *given)
        if not np.can_cast(rewards.dtype, np.float64, "same_kind"):
            raise TypeError(f"`reward` must return floats, got an array of {rewards.dtype}.")
        rewards = np.ascontiguousarray(rewards, np.float64)
        if np.isnan(rewards).any():
            rows = np.flatnonzero(np.isnan(rewards)).tolist()
            raise ValueError(f"`reward` returned NaN for rows {shown(rows)}.")
        return rewards

    def _flags(self, name: str, *given: Any) -> NDArray[np.bool_]:
        if self._functions[name] is None:
            return np.zeros(self._shape, np.bool_)
        flags = self._called(name, *given)
        if flags.dtype != np.bool_:
            raise TypeError(f"`{name}` must return truth values, got an array of {flags.dtype}.")
        return np.ascontiguousarray(flags)

    def _called(self, name: str, *given: Any) -> NDArray[Any]:
        """Calls a function of the caller; returns an array with one entry for each row."""
        function = self._functions[name]
        assert function is not None
        try:
            result = np.asarray(function(*given))
        except Exception as error:
            add_note(error, f"in the function `{name}` of cartwheel.mujoco.make")
            named = list(self._fields.shapes)
            if isinstance(error, KeyError) and error.args and error.args[0] not in named:
                add_note(error, f"`before` and `after` have what `observation` names: {named}")
            raise
        if result.shape != self._shape:
            raise ValueError(
                f"`{name}` must return one value for each of {self._shape[0]} rows, an array of "
                f"shape {self._shape}; got shape {result.shape}."
            )
        return result


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
            TypeError: ``names`` is a string, or an entry is not a string.
            ValueError: The array does not exist, it is named twice, its elements are not
                ``float64``, or MuJoCo moves it in each step, as it does with contacts and
                constraints.
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
        meant = suggest(name, arrays)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise ValueError(f"`observation` names {name!r}, which is not an array of MjData{hint}")
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise ValueError(f"`{name}` cannot be observed: it must be of float64, got {array.dtype}.")
    return array
