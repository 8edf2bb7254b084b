"""Initial states and models of episodes, by a function of the caller over stacked arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import copy_fields
from cartwheel._internal.suggestions import shown, suggest
from cartwheel.errors import add_note
from cartwheel.mujoco.random import RowGenerators
from cartwheel.native.mujoco.simulations import CONSTANTS, array_of, needs_constants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from cartwheel._cartwheel import RowStreams
    from cartwheel.native.mujoco.simulations import Row, Rows

    ResetFunction = Callable[[RowGenerators, NDArray[np.int64], "RowFields"], None]

#: Answers for Rust, see ``Fields`` of the crate ``cartwheel-mujoco``.
_PLAIN, _CONSTANTS = 1, 2
#: The prefix of names of fields of a model.
_OF_MODEL = "model."


class SimulationArrays:
    """The arrays of the simulations of all rows, by name and by row.

    MuJoCo's arrays stay where they are as long as their row exists. Their addresses are looked up
    once; then Rust copies the arrays of many rows at once. So rows are kept until others follow:
    between the halves of a step, Rust has already dropped those that it replaced.
    """

    def __init__(self, mujoco: ModuleType, rows: Rows, numbers: Sequence[int]) -> None:
        self._mujoco = mujoco
        self._rows = rows
        self._numbers = np.array(numbers, np.int64)
        self._kept = [rows[int(number)] for number in numbers]
        self._integers = self._kept[0].integers.keys()
        #: Address in each row, dtype and shape, by name.
        self._known: dict[str, tuple[NDArray[np.int64], np.dtype[Any], tuple[int, ...]]] = {}

    def follow(self, rows: NDArray[np.int64], numbers: Sequence[int]) -> None:
        """Notes the simulations of rows, of which some may have been replaced."""
        present = np.array(numbers, np.int64)
        changed = present != self._numbers[rows]
        for row, number in zip(rows[changed], present[changed], strict=True):
            self._numbers[row] = number
            self._kept[row] = followed = self._rows[int(number)]
            for name, (addresses, _, _) in self._known.items():
                addresses[row] = _array(followed, name).ctypes.data

    def read(self, name: str, rows: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Returns copies of an array of these rows, ``(len(rows), *shape)``.

        Raises:
            KeyError: The name is unknown; the text lists those that exist.
        """
        addresses, dtype, shape = self._of(name)
        of_rows = addresses[rows]
        values = np.empty((len(of_rows), *shape), dtype)
        copy_fields(of_rows, _as_bytes(values), write=False)
        return values

    def write(self, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Writes what :meth:`read` returned; MuJoCo does not recompute anything."""
        addresses, _, _ = self._of(name)
        copy_fields(addresses[rows], _as_bytes(values), write=True)

    def check_writable(self, name: str) -> None:
        """Raises for integers that are observed: their arrays here are copies.

        Raises:
            KeyError: The name is that of one.
        """
        if name in self._integers:
            raise KeyError(f"{name!r} cannot be written: MuJoCo computes it")

    def note(self, names: Sequence[str]) -> None:
        """Notes that fields of rows' own models differ from the original ones, for states."""
        self._rows.note(names)

    def _of(self, name: str) -> tuple[NDArray[np.int64], np.dtype[Any], tuple[int, ...]]:
        known = self._known.get(name)
        if known is None:
            if name not in self._integers:
                self._check(name)
            arrays = [_array(row, name) for row in self._kept]
            addresses = np.array([array.ctypes.data for array in arrays], np.int64)
            known = self._known[name] = (addresses, arrays[0].dtype, arrays[0].shape)
        return known

    def _check(self, name: Any) -> None:
        """Raises unless each row has an array of this name that does not move."""
        if not isinstance(name, str):
            raise KeyError(f"fields have names, got {shown(name)}")
        model = self._rows.model
        if name.startswith(_OF_MODEL):
            if not self._rows.model_per_row:
                raise KeyError(
                    f"{name!r} is a field of the model, which all rows share: make the vector "
                    "environment with `model_per_row=True`, which gives each row a copy"
                )
            owner, names = model, _arrays_of(model)
            array = _value(model, name.removeprefix(_OF_MODEL))
        else:
            owner = self._mujoco.MjData(model)
            names = _arrays_of(owner)
            array = _value(owner, name)
        if array is None:
            raise KeyError(_unknown(name, owner, model, names))
        if owner is not model:
            place = array.ctypes.data
            self._mujoco.mj_step(model, owner)
            moved = _value(owner, name)
            if moved is None or moved.ctypes.data != place:
                raise KeyError(f"{name!r} cannot be used: MuJoCo moves it in every step")


class RowFields:
    """Fields of the rows that begin an episode: the argument ``fields`` of ``reset``.

    ``fields["qpos"]`` is an array of ``MjData``, ``fields["model.body_mass"]`` one of the rows' own
    models, with the rows as the first axis. The arrays are copies; what is written into them takes
    effect when the function has returned.
    """

    __iter__ = None  # by default, Python would read fields 0, 1, …
    __contains__ = None

    def __init__(self, arrays: SimulationArrays, rows: NDArray[np.int64]) -> None:
        self._arrays: SimulationArrays | None = arrays
        self._rows = rows
        self._values: dict[str, NDArray[Any]] = {}

    def __repr__(self) -> str:
        return f"RowFields of {len(self._rows)} rows, used: {list(self._values)}"

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Returns an array with present values, ``(num_rows, *shape)``, to be written.

        Raises:
            KeyError: The name is unknown, or is that of a field of a model that rows share.
        """
        if name not in self._values:
            if self._arrays is None:
                raise RuntimeError(
                    "`fields` can be used only during the call of `reset` that got them."
                )
            self._arrays.check_writable(name)
            self._values[name] = self._arrays.read(name, self._rows)
        return self._values[name][...]  # a view: its memory cannot be resized

    def __setitem__(self, name: str, value: Any) -> None:
        """Writes into the array ``fields[name]``: ``value`` is broadcast to its shape.

        Raises:
            KeyError: As for reading.
            ValueError: The shape does not fit.
        """
        array = self[name]
        try:
            array[...] = value
        except ValueError as error:
            raise ValueError(
                f"fields[{name!r}] has the shape {array.shape}, got {shown(value)} of shape "
                f"{np.shape(value)}."
            ) from error

    def close(self) -> dict[str, NDArray[Any]]:
        """Ends the use of the fields; returns the arrays that were used."""
        self._arrays = None
        return self._values


class EpisodeStarts:
    """Calls the function for the rows that begin an episode, and writes what it changed.

    The pool calls it, so it does not refer to a vector environment.

    Attributes:
        function: The function; ``None`` where rows are only followed.
    """

    def __init__(self, function: ResetFunction | None) -> None:
        """Keeps the function; ``None`` only follows the rows.

        Raises:
            TypeError: It cannot be called.
        """
        if function is not None and not callable(function):
            raise TypeError(
                f"`reset` must be a function of (rng, rows, fields), got {shown(function)}."
            )
        self.function = function
        #: The arrays of all rows, once the rows exist.
        self.arrays: SimulationArrays | None = None

    def __call__(self, rows: list[int], numbers: list[int], streams: RowStreams) -> int | None:
        """Writes the first states of rows, in order, by the random numbers of their simulations.

        Returns:
            Number of ``Fields`` in Rust: what takes effect now. ``None``: nothing was written.

        Raises:
            TypeError: The function returned something.
            ValueError: A value is NaN.
            Exception: As the function raised it, with a note that names the rows.
        """
        assert self.arrays is not None
        own = np.array(rows, np.int64)
        self.arrays.follow(own, numbers)
        if self.function is None:
            return None
        fields = RowFields(self.arrays, own)
        try:
            result = self.function(RowGenerators(streams, len(rows)), own.copy(), fields)
            written = _checked(result, fields.close(), own)
        except BaseException as error:
            add_note(
                error,
                f"in the function `reset` of cartwheel.mujoco.make, for rows {shown(rows)}: it "
                "changed nothing, and the rows of the call need a reset",
            )
            raise
        finally:
            fields.close()
        for name, values in written.items():
            self.arrays.write(name, own, values)
        of_model = [name for name in written if name.startswith(_OF_MODEL)]
        constants = any(map(needs_constants, of_model))
        if of_model:
            self.arrays.note([*of_model, *(CONSTANTS if constants else ())])
        return _CONSTANTS if constants else _PLAIN


def _checked(
    result: Any, written: dict[str, NDArray[Any]], rows: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Returns the arrays that a function used, once its result and the numbers are checked."""
    if result is not None:
        raise TypeError(f"`reset` writes into `fields` and returns None, got {shown(result)}.")
    for name, values in written.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            wrong = rows[np.isnan(values).reshape(len(rows), -1).any(axis=1)].tolist()
            raise ValueError(f"fields[{name!r}] has NaN for rows {shown(wrong)}.")
    return written


def _as_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.reshape(len(values), -1).view(np.uint8)


def _array(row: Row, name: str) -> NDArray[Any]:
    """Returns an array of a row that :meth:`SimulationArrays._check` has accepted."""
    of_model = name.startswith(_OF_MODEL)
    if name in row.integers:
        return row.integers[name]
    array = _value(row.model if of_model else row.data, name.removeprefix(_OF_MODEL))
    assert array is not None
    return array


def _value(owner: Any, name: str) -> NDArray[Any] | None:
    """Returns an array of MuJoCo's, such as ``"body_mass"`` or ``"opt.gravity"``, or ``None``."""
    value = owner
    for part in name.split("."):
        value = None if part.startswith("_") else array_of(value, part)
    is_array = isinstance(value, np.ndarray) and value.flags.c_contiguous
    return value if is_array else None


def _unknown(name: str, owner: Any, model: Any, names: list[str]) -> str:
    """Returns what is wrong with a name that is not that of an array."""
    bare, prefix = name.removeprefix(_OF_MODEL), _OF_MODEL if owner is model else ""
    number: Any = owner
    for part in bare.split("."):
        number = getattr(number, part, None)
    if isinstance(number, int | float):
        rest = ": `set_attr` sets it in rows" if owner is model else ""
        return f"{name!r} is a number of {type(owner).__name__}, not an array{rest}"
    meant = suggest(bare.removeprefix("data."), names)
    if meant is None and owner is not model:
        meant, prefix = suggest(bare, _arrays_of(model)), _OF_MODEL
    hint = "" if meant is None else f": did you mean {prefix + meant!r}?"
    return f"{name!r} is not an array of {type(owner).__name__}{hint}"


def _arrays_of(owner: Any) -> list[str]:
    names = [name for name in dir(owner) if not name.startswith(("_", "efc_"))]
    return [name for name in names if _value(owner, name) is not None]
