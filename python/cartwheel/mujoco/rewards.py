"""Rewards, flags and infos of all rows at once, by functions of the caller over stacked arrays."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown, suggest
from cartwheel.errors import add_note
from cartwheel.native.mujoco.simulations import source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from cartwheel.mujoco.resets import SimulationArrays

    Arrays = dict[str, NDArray[np.float64]]
    Function = Callable[[Arrays, Any, Arrays], Any]


#: Keys of infos that cartwheel or Gymnasium set.
_RESERVED = ("final_obs", "final_info", "env_index", "env_error", "mujoco_warning")


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
        infos: Function | None,
        inputs: Sequence[str],
    ) -> None:
        """Keeps the functions.

        Raises:
            TypeError: One of them cannot be called.
        """
        self._fields = fields
        self._shape = (num_envs,)
        self._functions = {
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "infos": infos,
        }
        for name, function in self._functions.items():
            if not callable(function) and not (function is None and name != "reward"):
                raise TypeError(
                    f"`{name}` must be a function of (before, actions, after), got "
                    f"{shown(function)}."
                )
        self._inputs = tuple(inputs)
        #: The inputs before the step that is going on.
        self._before: Arrays = {}
        #: The arrays of all rows, once the rows exist; needed for inputs.
        self.arrays: SimulationArrays | None = None

    def begin_step(self) -> None:
        """Reads the inputs before a step."""
        self._before = self._read_inputs()

    def __call__(
        self, before: bytes, actions: Any, after: NDArray[np.float64], stepped: bytes
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[tuple[str, Any]]]:
        """Returns rewards, terminations and truncations, each ``(num_envs,)``, and infos by name.

        Args:
            before: The elements of the observations before the step.
            actions: The actions, ``(num_envs, nu)``.
            after: The observations after it, ``(num_envs, size)``.
            stepped: Whether each row was stepped: the rewards of the others are not used.

        Raises:
            TypeError: A function returned an array of another kind.
            ValueError: A function returned an array of another shape, or a reward that is used is
                NaN.
            Exception: As a function raised it, with a note that names the function.
        """
        after = after.view()
        actions.flags.writeable = after.flags.writeable = (
            False  # a function must not change the arguments of the next one
        )
        split = self._fields.split
        shown_before = split(np.frombuffer(before).reshape(after.shape))
        given = ({**shown_before, **self._before}, actions, {**split(after), **self._read_inputs()})
        return (
            self._rewards(np.frombuffer(stepped, np.bool_), *given),
            self._flags("terminated", *given),
            self._flags("truncated", *given),
            self._infos(*given),
        )

    def _read_inputs(self) -> Arrays:
        inputs = {}
        for name in self._inputs:
            assert self.arrays is not None
            inputs[name] = self.arrays.read(name, slice(None))
            inputs[name].flags.writeable = False
        return inputs

    def _infos(self, *given: Any) -> list[tuple[str, NDArray[Any]]]:
        """Returns infos with their names, each with one entry for each row."""
        if self._functions["infos"] is None:
            return []
        infos = self._result("infos", *given)
        if not isinstance(infos, Mapping):
            raise TypeError(f"`infos` must return a dictionary of arrays, got {shown(infos)}.")
        return [(_checked_name(name), self._entries(name, infos[name])) for name in infos]

    def _entries(self, name: str, values: Any) -> NDArray[Any]:
        array = np.asarray(values)
        if array.shape[:1] != self._shape:
            raise ValueError(
                f"`infos` must return one entry for each of {self._shape[0]} rows, got "
                f"{name!r} of shape {array.shape}."
            )
        if array.dtype.kind not in "biuf":
            raise TypeError(
                f"`infos` must return numbers and truth values, got {name!r} of {array.dtype}."
            )
        return array

    def _rewards(self, stepped: NDArray[np.bool_], *given: Any) -> NDArray[np.float64]:
        rewards = self._called("reward", *given)
        if not np.can_cast(rewards.dtype, np.float64, "same_kind"):
            raise TypeError(f"`reward` must return floats, got an array of {rewards.dtype}.")
        rewards = np.ascontiguousarray(rewards, np.float64)
        if rows := np.flatnonzero(np.isnan(rewards) & stepped).tolist():
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
        result = np.asarray(self._result(name, *given))
        if result.shape != self._shape:
            raise ValueError(
                f"`{name}` must return one value for each of {self._shape[0]} rows, an array of "
                f"shape {self._shape}; got shape {result.shape}."
            )
        return result

    def _result(self, name: str, *given: Any) -> Any:
        """Calls a function of the caller."""
        function = self._functions[name]
        assert function is not None
        try:
            return function(*given)
        except Exception as error:
            add_note(error, f"in the function `{name}` of cartwheel.mujoco.make")
            named = [*self._fields.shapes, *self._inputs]
            if isinstance(error, KeyError) and error.args and error.args[0] not in named:
                add_note(
                    error,
                    f"`before` and `after` have what `observation` and `inputs` name: {named}",
                )
            raise


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name or name.startswith("_") or name in _RESERVED:
        raise ValueError(
            f"`infos` returned the key {shown(name)}: keys are text, do not begin with an "
            f"underscore, and are none of {', '.join(_RESERVED)}."
        )
    return name


class Fields:
    """Arrays of ``MjData``, such as those that an observation consists of, one after the other.

    Attributes:
        shapes: The shape of each array in one simulation, by name, in the order of the observation.
        size: Number of elements of an observation.
    """

    def __init__(
        self, mujoco: ModuleType, model: Any, names: Sequence[str], keyword: str = "observation"
    ) -> None:
        """Checks names of arrays by making a simulation and stepping it once.

        Args:
            mujoco: The imported package.
            model: A ``mujoco.MjModel``.
            keyword: The keyword that names them, for errors.
            names: Names of arrays and numbers of ``MjData``, such as ``"qpos"`` and ``"ncon"``.

        Raises:
            TypeError: ``names`` is a string, or an entry is not a string.
            ValueError: The array does not exist, it is named twice, its elements are neither
                ``float64`` nor ``int32``, or MuJoCo moves it in each step, as it does with contacts
                and constraints.
        """
        if isinstance(names, str):
            raise TypeError(
                f"`{keyword}` must be a list of names, got {names!r}: did you mean [{names!r}]?"
            )
        data = mujoco.MjData(model)
        arrays = {name: _array(data, name, keyword) for name in names}
        if len(arrays) < len(names) or (keyword == "observation" and not names):
            raise ValueError(f"`{keyword}` must name arrays, each once, got {shown(names)}.")
        places = {name: array.ctypes.data for name, array in arrays.items()}
        mujoco.mj_step(model, data)
        for name, place in places.items():
            if source_of(data, name).ctypes.data != place:
                raise ValueError(f"`{name}` cannot be observed: MuJoCo moves it in every step.")
        self.shapes = {name: array.shape for name, array in arrays.items()}
        self.size = sum(map(prod, self.shapes.values()))

    def sizes(self) -> list[tuple[str, int]]:
        """Returns the name of each array and its number of elements."""
        return [(name, prod(shape)) for name, shape in self.shapes.items()]

    def split(self, observations: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Returns views ``(..., *shape)``, by name, of observations ``(..., size)``."""
        split, start = {}, 0
        for name, shape in self.shapes.items():
            end = start + prod(shape)
            split[name] = observations[..., start:end].reshape(*observations.shape[:-1], *shape)
            start = end
        return split


def _array(data: Any, name: Any, keyword: str) -> NDArray[Any]:
    """Returns an array or a number of a simulation, checked."""
    if not isinstance(name, str):
        raise TypeError(f"`{keyword}` must be a list of names, got {shown(name)} in it.")
    array = source_of(data, name)
    if not isinstance(array, np.ndarray) or name.startswith("_"):
        names = {known for known in dir(data) if not known.startswith(("_", "efc_"))} - {name}
        kinds = (np.ndarray, int, float)
        named = [known for known in sorted(names) if isinstance(getattr(data, known), kinds)]
        meant = suggest(name, named)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise ValueError(
            f"`{keyword}` names {name!r}, which is not an array or a number of MjData{hint}"
        )
    if array.dtype not in (np.float64, np.int32) or not array.flags.c_contiguous:
        raise ValueError(
            f"`{name}` cannot be observed: it must be of float64 or int32, got {array.dtype}."
        )
    return array
