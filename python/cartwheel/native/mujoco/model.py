"""The parts of a vector environment of MuJoCo: the library, the model and the rows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import MujocoModel
from cartwheel.native.mujoco.library import addresses
from cartwheel.native.mujoco.simulations import DATA_FIELDS, SCENE, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

#: Fields of a model with the sizes of its arrays.
_SIZES = ("nq", "nv", "nu", "na", "nbody", "nsite", "ntendon")


class Simulation:
    """A model that Rust can step, and its rows.

    Attributes:
        model: The ``mujoco.MjModel`` that rows share, or of which each has a copy.
        frame_skip: Steps of MuJoCo in a step of an environment.
        rows: The simulations of rows.
        digest: A digest of the model as text, equal for equal models.
    """

    def __init__(
        self,
        mujoco: ModuleType,
        model: Any,
        *,
        frame_skip: int,
        init_qpos: Any,
        init_qvel: Any,
        action_low: Any,
        action_high: Any,
        model_per_row: bool = False,
        fields: Sequence[str] = (),
    ) -> None:
        """Registers a model with Rust, until this object is dropped.

        Args:
            mujoco: The imported package.
            model: A ``mujoco.MjModel``.
            frame_skip: Steps of MuJoCo in a step of an environment.
            init_qpos: Positions at the start of an episode, before noise; ``(nq,)``.
            init_qvel: Velocities at the start of an episode, before noise; ``(nv,)``.
            action_low: Lowest action, ``(nu,)``.
            action_high: Highest action, ``(nu,)``.
            model_per_row: Whether each row gets a copy of the model.
            fields: Arrays of ``MjData`` that Rust gets in addition to those of every row.

        Raises:
            ImportError: The library of the package does not fit.
        """
        self.model = model
        self.frame_skip = frame_skip
        names = (*DATA_FIELDS, *(name for name in fields if name not in DATA_FIELDS))
        self.rows = Rows(mujoco, model, names, model_per_row=model_per_row)
        self.digest = hashlib.sha256(compiled(mujoco, model)).hexdigest()
        # It refers to the rows, not to this object: a reference cycle through Rust is never
        # collected.
        self._registered = MujocoModel(
            functions=addresses(mujoco),
            sizes={name: int(getattr(model, name)) for name in _SIZES},
            frame_skip=frame_skip,
            timestep=model.opt.timestep,
            init_qpos=init_qpos.tolist(),
            init_qvel=init_qvel.tolist(),
            action_low=action_low.tolist(),
            action_high=action_high.tolist(),
            bodies={model.body(number).name: number for number in range(model.nbody)},
            state_spec=int(mujoco.mjtState.mjSTATE_INTEGRATION),
            fused_norms=_norms_are_fused(),
            scene=SCENE,
            make_row=self.rows.make,
        )

    @property
    def number(self) -> int:
        """The number of the model in Rust: the option ``simulation`` of an environment."""
        return self._registered.number


def compiled(mujoco: ModuleType, model: Any) -> bytes:
    """Returns a model in the form of a ``.mjb`` file."""
    saved = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, saved)
    return saved.tobytes()


def _norms_are_fused() -> bool:
    """Returns whether NumPy's norms of short vectors use fused multiply-add.

    ``np.linalg.norm`` leaves the sum of squares to the BLAS that NumPy comes with, which chooses
    its instructions by the processor. The last bit of the norm of this vector shows which.
    """
    x, y = 0.01, 0.18
    return bool(np.linalg.norm(np.array([x, y])) != np.sqrt(x * x + y * y))
