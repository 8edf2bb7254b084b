"""The simulations of rows: models and datas of MuJoCo, and access to their fields."""

from __future__ import annotations

import contextlib
import copy
import itertools
import operator
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown, suggest
from cartwheel.native.mujoco.numbers import number
from cartwheel.native.mujoco.step_memory import ModelRanges, of_data

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from numpy.typing import NDArray

#: Arrays of ``MjData`` that frames are drawn from, in the order of the parameter ``scene``.
SCENE = (
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
    "xpos",
    "xmat",
    "xipos",
    "ximat",
    "subtree_com",
)
#: Arrays of ``MjData`` that Rust gets. Their memory does not move while the object exists. That of
#: contacts and constraints (``efc_*``) moves, so these are missing here.
DATA_FIELDS = (
    "qpos",
    "qvel",
    "act",
    "ctrl",
    "cinert",
    "cvel",
    "cfrc_ext",
    "qfrc_actuator",
    "qfrc_constraint",
    "ten_length",
    "ten_velocity",
    *SCENE,
)
#: Arrays of ``MjModel`` that environments read.
MODEL_FIELDS = ("body_mass",)

#: Fields of ``MjModel`` that ``mj_setConst`` computes from others, as far as a MuJoCo has them.
CONSTANTS = tuple(
    f"model.{name}"
    for name in (
        "actuator_acc0",
        "actuator_length0",
        "body_invweight0",
        "body_margin",
        "body_sameframe",
        "body_subtreemass",
        "bvh_aabb",
        "cam_mat0",
        "cam_pos0",
        "cam_poscom0",
        "dof_M0",
        "dof_invweight0",
        "dof_length",
        "eq_data",
        "flexedge_invweight0",
        "flexedge_length0",
        "geom_aabb",
        "geom_fluid",
        "geom_rbound",
        "geom_sameframe",
        "jnt_actuatorid",
        "light_dir0",
        "light_pos0",
        "light_poscom0",
        "site_sameframe",
        "stat.meaninertia",
        "tendon_actuatorid",
        "tendon_invweight0",
        "tendon_length0",
        "tendon_lengthspring",
    )
)
#: Beginnings of the names of fields on which these do not depend.
_WITHOUT_CONSTANTS = (
    "actuator_actlimited",
    "actuator_actrange",
    "actuator_biasprm",
    "actuator_ctrllimited",
    "actuator_ctrlrange",
    "actuator_forcelimited",
    "actuator_forcerange",
    "actuator_gainprm",
    "cam_fovy",
    "dof_damping",
    "dof_frictionloss",
    "dof_sol",
    "geom_friction",
    "geom_rgba",
    "geom_sol",
    "jnt_range",
    "jnt_sol",
    "jnt_stiffness",
    "light_ambient",
    "light_diffuse",
    "light_specular",
    "mat_",
    "opt.",
    "site_rgba",
    "tendon_damping",
    "tendon_frictionloss",
    "tendon_range",
    "tendon_rgba",
    "tendon_sol",
    "tendon_stiffness",
    "vis.",
)


def needs_constants(name: str) -> bool:
    """Whether ``mj_setConst`` follows when this field of a model, ``model.…``, was written."""
    return not name.removeprefix("model.").startswith(_WITHOUT_CONSTANTS)


#: The result of ``make_row``: the row's number, the addresses of its model and its data, address
#: and number of elements of each field, for fields that are copies of integers the addresses of
#: these, ranges of the memory that steps use most, and the object that keeps all of them alive.
MadeRow = tuple[
    int, tuple[int, int], dict[str, tuple[int, int]], dict[str, int], list[tuple[int, int]], object
]


class Row:
    """One simulation: a model of MuJoCo and the state of one environment.

    Attributes:
        number: Its number, unique in the process.
        model: The ``mujoco.MjModel``, which rows share unless each has its own.
        data: The ``mujoco.MjData``.
        original: The original values of the fields that were set in the model of any row.
        integers: Fields of integers as ``float64``, which Rust copies after each call of MuJoCo.
    """

    _numbers = itertools.count()

    def __init__(self, mujoco: ModuleType, model: Any, original: dict[str, Any]) -> None:
        """Makes the data of a model.

        Raises:
            mujoco.FatalError: There is not enough memory.
        """
        self.number = next(self._numbers)
        self.model = model
        self.data = mujoco.MjData(model)
        self.original = original
        self.integers: dict[str, NDArray[np.float64]] = {}
        self._mujoco = mujoco

    def set_constants(self) -> None:
        """Computes the constants of the row's own model from its other fields."""
        self._mujoco.mj_setConst(self.model, self._mujoco.MjData(self.model))

    def data_of(self, qpos: Any, scene: Any) -> Any:
        """Returns another data in an earlier state of this row.

        Args:
            qpos: The positions of the state.
            scene: The values of :data:`SCENE` of the state. After a step they are older than
                ``qpos``.
        """
        data = self._mujoco.MjData(self.model)
        data.qpos[:] = qpos
        self._mujoco.mj_forward(self.model, data)
        begin = 0
        for name in SCENE:
            field = getattr(data, name)
            field[...] = np.reshape(scene[begin : begin + field.size], field.shape)
            begin += field.size
        return data


class Rows:
    """Makes the simulations of rows, and finds them by their numbers.

    Rust owns the simulations: one that it has dropped is not found anymore.

    Attributes:
        model: The model that rows share, or of which each has a copy.
        model_per_row: Whether each row has a copy.
    """

    def __init__(
        self,
        mujoco: ModuleType,
        model: Any,
        data_fields: tuple[str, ...] = DATA_FIELDS,
        model_fields: tuple[str, ...] = MODEL_FIELDS,
        *,
        model_per_row: bool,
    ) -> None:
        """Keeps the model; makes no row yet.

        Args:
            mujoco: The imported package.
            model: A ``mujoco.MjModel``.
            data_fields: The arrays of a row's data that Rust gets.
            model_fields: The arrays of a row's model that Rust gets.
            model_per_row: Whether each row gets a copy of the model.
        """
        self.model = model
        self.model_per_row = model_per_row
        self._mujoco = mujoco
        self._fields = (data_fields, model_fields)
        self._model_ranges = ModelRanges(model) if model_per_row else None
        self._original: dict[str, Any] = {}
        self._alive: weakref.WeakValueDictionary[int, Row] = weakref.WeakValueDictionary()

    def make(self) -> MadeRow:
        """Makes the simulation of another row; Rust calls it on any thread.

        Raises:
            mujoco.FatalError: There is not enough memory.
        """
        model = copy.copy(self.model) if self.model_per_row else self.model
        row = Row(self._mujoco, model, self._original)
        self._alive[row.number] = row
        fields, integers = {}, {}
        for owner, names in zip((row.data, model), self._fields, strict=True):
            for name in names:
                array = source_of(owner, name)
                if array.dtype == np.int32:
                    if array.size:
                        integers[name] = array.ctypes.data
                    array = row.integers[name] = np.zeros(array.shape)
                fields[name] = _memory(name, array)
        memory = of_data(row.data)
        if self._model_ranges is not None:
            memory += self._model_ranges.of(model)
        addresses = model._address, row.data._address
        return row.number, addresses, fields, integers, memory, row

    def note(self, names: Iterable[str]) -> None:
        """Notes that these fields, ``model.…``, differ from now on in models of rows.

        Names that this MuJoCo does not have are left out.
        """
        for name in names:
            if name not in self._original:
                value = self.model
                for part in name.split(".")[1:]:
                    value = getattr(value, part, None)
                if value is not None:
                    self._original[name] = copy.copy(value)

    def __contains__(self, number: int) -> bool:
        """Whether Rust still has the simulation of this number."""
        return number in self._alive

    def __getitem__(self, number: int) -> Row:
        """Returns the simulation of this number.

        Raises:
            KeyError: Rust has dropped it.
        """
        return self._alive[number]


def array_of(owner: Any, name: str) -> Any:
    """Returns an array of a data or a model; the number ``time`` of a data as an array, too."""
    value = getattr(owner, name, None)
    return number(owner, name) if name == "time" and value is not None else value


def source_of(data: Any, name: str) -> Any:
    """Returns an array of a data, or any number of it as an array."""
    value = array_of(data, name)
    return value if isinstance(value, np.ndarray) else number(data, name)


def _memory(name: str, array: NDArray[Any]) -> tuple[int, int]:
    """Returns the address of an array and the number of its elements."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise TypeError(f"`{name}` must be contiguous and of float64 or int32, got {array.dtype}")
    return array.ctypes.data, array.size


_OWNERS = ("model", "data")


def is_of_row(name: Any) -> bool:
    """Whether a name is ``model`` or ``data``, or one of their fields: ``data.qpos``."""
    return isinstance(name, str) and name.partition(".")[0] in _OWNERS


def read(row: Row, name: str) -> Any:
    """Returns an attribute: MuJoCo's object, or the value of a field; arrays are copied.

    Raises:
        AttributeError: The field does not exist.
    """
    value = row
    for part in name.split("."):
        value = _part(value, part, name)
    return value.copy() if isinstance(value, np.ndarray) else value


def convert(row: Row, name: str, value: Any) -> Any:
    """Converts a value to the shape and dtype of a field, for :func:`write`.

    Raises:
        AttributeError: The field does not exist.
        ValueError: The field cannot be set, or the value does not fit.
    """
    if name in _OWNERS:
        raise ValueError(f"`{name}` cannot be replaced: set its fields, as in `{name}.qpos`.")
    present = read(row, name)
    if isinstance(present, np.ndarray):
        given = np.asarray(value)
        if given.shape != present.shape or not np.can_cast(given.dtype, present.dtype, "same_kind"):
            raise ValueError(
                f"`{name}` must have the shape {present.shape} of {present.dtype}, got the shape "
                f"{given.shape} of {given.dtype}."
            )
        with np.errstate(over="ignore"):
            converted = given.astype(present.dtype)
        is_float = present.dtype.kind == "f"
        lost = np.isinf(converted) & np.isfinite(given) if is_float else converted != given
        if lost.any():
            raise ValueError(
                f"`{name}` has elements of {present.dtype}, which cannot be {given[lost][0]}."
            )
        return converted
    if isinstance(present, int | float):
        kind = type(present)
        number: Any = None
        if not isinstance(value, str | bytes):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                # `int` would cut fractions off.
                number = kind(operator.index(value) if isinstance(present, int) else value)
        if number is None:
            text = f"`{name}` must be a number of type {kind.__name__}, got {shown(value)}."
            raise ValueError(text)
        write(row, name, number)  # only MuJoCo knows whether it takes it
        write(row, name, present)
        return number
    raise ValueError(f"`{name}` is a {type(present).__name__}, which cannot be set.")


def write(row: Row, name: str, value: Any) -> None:
    """Sets a field to a result of :func:`convert`; MuJoCo does not recompute anything.

    Raises:
        ValueError: MuJoCo does not let the field be set.
    """
    if name.startswith("model."):
        row.original.setdefault(name, read(row, name))
    owner: Any = row
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    present = getattr(owner, last)
    if isinstance(present, np.ndarray):
        present[...] = value
        return
    try:
        setattr(owner, last, value)
    except AttributeError as error:
        raise ValueError(f"`{name}` cannot be set: MuJoCo fixes it.") from error
    except TypeError as error:
        raise ValueError(f"`{name}` cannot be {value}: MuJoCo's type is smaller.") from error


def write_model(row: Row, values: dict[str, Any]) -> None:
    """Sets fields of a row's own model to results of :func:`convert`.

    Where they have constants, ``mj_setConst`` computes all of them first, since some are numbers
    that cannot be set, such as that of bodies with compensated gravity.
    """
    for name, value in values.items():
        write(row, name, value)
    if not values.keys().isdisjoint(CONSTANTS):
        row.set_constants()
        for name, value in values.items():
            write(row, name, value)


def changed(row: Row) -> list[str]:
    """Returns the fields of the row's model that :func:`write` has set to other values."""
    return [
        name for name, value in row.original.items() if not np.array_equal(read(row, name), value)
    ]


def _part(owner: Any, part: str, name: str) -> Any:
    try:
        return getattr(owner, part)
    except AttributeError:
        fields = [known for known in dir(owner) if not known.startswith("_")]
        meant = suggest(part, fields)
        hint = "" if meant is None else f": did you mean {meant!r}?"
        raise AttributeError(
            f"{name!r}: {type(owner).__name__} of MuJoCo has no field {part!r}{hint}"
        ) from None
