"""A model of the caller's own, and what its rows are drawn with."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.arguments import as_bool, as_integer
from cartwheel.mujoco.fields import Fields
from cartwheel.native.simulated import Simulated
from cartwheel.near_misses import shown
from cartwheel.physics.library import load_mujoco, logged_warnings
from cartwheel.physics.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

#: How the noise of initial velocities may be distributed.
_NOISES = ("uniform", "normal")


class OwnModel(Simulated):
    """The model and the simulations of a vector environment without an id.

    Attributes:
        name: What it is called in errors.
        fields: What is observed.
    """

    def __init__(
        self,
        model: Any,
        *,
        frame_skip: int,
        observation: Sequence[str],
        reset_noise_scale: float,
        reset_noise: str,
        init_qpos: Any,
        init_qvel: Any,
        model_per_row: bool,
        width: int,
        height: int,
        camera_id: int | None,
        camera_name: str | None,
    ) -> None:
        """Loads the model; the arguments are those of :func:`cartwheel.mujoco.make`."""
        mujoco = load_mujoco("cartwheel.mujoco")
        frame_skip = as_integer("frame_skip", frame_skip, 1)
        if reset_noise not in _NOISES:
            raise ValueError(f"`reset_noise` must be one of {_NOISES}, got {shown(reset_noise)}.")
        with logged_warnings(mujoco, logging.WARNING):
            loaded = _load(mujoco, model)
            self.fields = Fields(mujoco, loaded, observation)
        low, high = _control_ranges(loaded)
        data = mujoco.MjData(loaded)  # its positions are the model's own, as after `mj_resetData`
        self.simulation = Simulation(
            mujoco,
            loaded,
            frame_skip=frame_skip,
            init_qpos=_numbers("init_qpos", init_qpos, data.qpos),
            init_qvel=_numbers("init_qvel", init_qvel, data.qvel),
            action_low=low,
            action_high=high,
            model_per_row=as_bool("model_per_row", model_per_row),
            fields=tuple(self.fields.shapes),
        )
        self.options = {
            "_simulation": self.simulation.number,
            "model": self.simulation.digest,
            "reset_noise_scale": reset_noise_scale,
            "normal_velocities": reset_noise == "normal",
            "fields": self.fields.sizes(),
        }
        self.visual_options = None
        seconds = loaded.opt.timestep * frame_skip
        modes = ["human", "rgb_array", "depth_array", "rgbd_tuple"]
        self.env = SimpleNamespace(  # what Gymnasium's environments have
            metadata={"render_modes": modes, "render_fps": round(1 / seconds)},
            mujoco_renderer=SimpleNamespace(default_cam_config=None, max_geom=1000),
            width=width,
            height=height,
            camera_id=camera_id,
            camera_name=camera_name,
            fullpath=str(model) if isinstance(model, str | os.PathLike) else None,
            observation_structure=dict(self.fields.sizes()),
        )


def _load(mujoco: ModuleType, model: Any) -> Any:
    """Returns the model of a file, of a text, or the model itself."""
    if isinstance(model, mujoco.MjModel):
        return model
    if isinstance(model, str) and model.lstrip().startswith("<"):
        return mujoco.MjModel.from_xml_string(model)
    if isinstance(model, str | os.PathLike):
        path = Path(model).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r} with a model of MuJoCo")
        if path.suffix == ".mjb":
            return mujoco.MjModel.from_binary_path(str(path))
        return mujoco.MjModel.from_xml_path(str(path))
    raise TypeError(
        f"`model` must be a mujoco.MjModel, the path of a file, or XML, got {shown(model)}."
    )


def _control_ranges(model: Any) -> NDArray[np.float32]:
    """Returns the lowest and the highest controls, ``(2, nu)``; infinite without a limit."""
    ranges = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, np.inf)
    ranges[:, 0] = np.where(model.actuator_ctrllimited != 0, ranges[:, 0], -np.inf)
    return np.ascontiguousarray(ranges.T, np.float32)


def _numbers(name: str, given: Any, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns initial positions or velocities: the caller's, or the model's own."""
    if given is None:
        return own.copy()
    numbers = np.asarray(given, np.float64)
    if numbers.shape != own.shape or not np.isfinite(numbers).all():
        raise ValueError(
            f"`{name}` must be finite numbers of shape {own.shape}, got {shown(given)}."
        )
    return numbers
