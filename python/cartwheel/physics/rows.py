"""The simulations of rows: models and datas of MuJoCo, whose memory Rust reads and writes."""

from __future__ import annotations

import copy
import itertools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

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
#: Arrays of ``MjData`` that Rust gets. Their memory does not move while the object lives; that of
#: contacts and constraints (``efc_*``) does, so it is not here.
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

#: What ``make_row`` answers: the row's number, the addresses of its model and its data, and of each
#: field the address and the number of elements, and the object that keeps all of them alive.
MadeRow = tuple[int, int, int, dict[str, tuple[int, int]], object]


class Row:
    """One simulation: a model of MuJoCo and the state of one environment.

    Attributes:
        number: Its number, which no other simulation of the process has.
        model: The ``mujoco.MjModel``, which rows share unless each has its own.
        data: The ``mujoco.MjData``.
        original: Of the model's fields that were set, the values before.
    """

    _numbers = itertools.count()

    def __init__(self, mujoco: ModuleType, model: Any) -> None:
        """Makes the data of a model.

        Raises:
            mujoco.FatalError: There is no memory for it.
        """
        self.number = next(self._numbers)
        self.model = model
        self.data = mujoco.MjData(model)
        self.original: dict[str, Any] = {}
        self._mujoco = mujoco

    def data_of(self, qpos: Any, scene: Any) -> Any:
        """Returns another data that looks as this row's looked once.

        Args:
            qpos: The positions then.
            scene: The numbers of :data:`SCENE` then. After a step they are older than ``qpos``.
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

    Rust owns the simulations: one that it dropped is found no more.

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
        self._alive: weakref.WeakValueDictionary[int, Row] = weakref.WeakValueDictionary()

    def make(self) -> MadeRow:
        """Makes the simulation of one more row; Rust calls it, on any thread.

        Raises:
            mujoco.FatalError: There is no memory for it.
        """
        model = copy.copy(self.model) if self.model_per_row else self.model
        row = Row(self._mujoco, model)
        self._alive[row.number] = row
        fields = {}
        for owner, names in zip((row.data, model), self._fields, strict=True):
            for name in names:
                fields[name] = _memory(owner, name)
        return row.number, model._address, row.data._address, fields, row

    def __getitem__(self, number: int) -> Row:
        """Returns the simulation of this number.

        Raises:
            KeyError: Rust has dropped it.
        """
        return self._alive[number]


def _memory(owner: Any, name: str) -> tuple[int, int]:
    """Returns the address of an array and the number of its elements."""
    array = getattr(owner, name)
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise TypeError(
            f"`{name}` of {type(owner).__name__} must be contiguous and of float64, got "
            f"{array.dtype}"
        )
    return array.ctypes.data, array.size
