"""The MuJoCo part of a native vector environment: the model, the rows and their attributes.

MuJoCo's objects belong to Python, and Rust steps them. Values without a form in Rust, such as a
model or an image, are read from the objects while the pool is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import env_keywords
from cartwheel._internal.arguments import as_bool, as_positive
from cartwheel.native.mujoco.gymnasium_env import GymnasiumEnv
from cartwheel.native.mujoco.library import load_mujoco
from cartwheel.native.mujoco.model import Simulation
from cartwheel.native.mujoco.simulations import (
    CONSTANTS,
    changed,
    convert,
    is_of_row,
    needs_constants,
    read,
    write,
    write_model,
)
from cartwheel.native.registration import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cartwheel.native.mujoco.simulations import Row

#: Internal keywords of an environment in Rust: the number of its model, and the digest by which
#: saved states of other models are refused.
_NUMBER, _DIGEST = "_simulation", "model"
#: Parameters in Rust that only cartwheel uses: the number of a row, the scene of frames, and what
#: was written into the row.
HIDDEN = ("simulation", "scene", "written")
#: The keyword that names a body.
_BODY = "main_body"
#: The seconds of a step of MuJoCo: the parameter in Rust, which divides by it, and MuJoCo's field.
_TIMESTEP, _TIMESTEP_OF_MODEL = "timestep", "model.opt.timestep"
#: The keyword of vector environments of MuJoCo that Gymnasium does not have.
_MODEL_PER_ROW = "model_per_row"
#: Attributes of Gymnasium's environments that never change here.
_CONSTANTS = ("fullpath", "width", "height", "camera_id", "camera_name", "observation_structure")
#: Effects of the keywords that Rust does not read.
KEYWORD_TEXTS = {
    "xml_file": "The model: a file of Gymnasium's, or a path that begins with . or / or ~.",
    "frame_skip": "Steps of MuJoCo in a step of the environment.",
    "default_camera_config": "Attributes of the camera of frames.",
    "width": "Width of frames in pixels.",
    "height": "Height of frames in pixels.",
    "camera_id": "Number of the camera of frames; -1 for the free one.",
    "camera_name": "Name of the camera of frames, instead of its number.",
    "max_geom": "Maximum number of shapes in a frame.",
    "visual_options": "Flags of MuJoCo's `MjvOption` for frames, by their numbers.",
    _MODEL_PER_ROW: "Whether each row has a copy of the model, whose fields `set_attr` can set.",
}


def is_mujoco(env_id: str) -> bool:
    """Whether an environment that comes with cartwheel is stepped by MuJoCo."""
    return "/" not in env_id and _NUMBER in (env_keywords(env_id) or ())


def mujoco_keywords(env_id: str) -> dict[str, Any]:
    """Returns the keywords of Gymnasium's environment and cartwheel's own, with their defaults.

    Raises:
        ImportError: MuJoCo is not installed, or is too old.
    """
    load_mujoco(NAMESPACE + env_id)
    return {**GymnasiumEnv(env_id).keywords, _MODEL_PER_ROW: False}


class MujocoBackend:
    """The model and the simulations of a vector environment.

    Attributes:
        env: Gymnasium's environment, with the spaces, the metadata and the renderer.
        visual_options: The keyword of this name, for frames.
        options: The keywords that Rust reads.
        simulation: The model in Rust.
    """

    def __init__(self, env_id: str, keywords: Mapping[str, Any]) -> None:
        """Loads the model.

        Args:
            env_id: The environment, without ``cartwheel/``.
            keywords: Keywords of the caller, all of which are in :func:`mujoco_keywords`.

        Raises:
            ImportError: MuJoCo is not installed, or is too old.
            TypeError: A keyword cannot be native.
            ValueError: A value is invalid.
            Exception: As Gymnasium's environment raises it.
        """
        mujoco = load_mujoco(NAMESPACE + env_id)
        of_env = dict(keywords)
        per_row = as_bool(_MODEL_PER_ROW, of_env.pop(_MODEL_PER_ROW, False))
        source = GymnasiumEnv(env_id)
        self.visual_options = of_env.get("visual_options", source.keywords["visual_options"])
        native = set(env_keywords(env_id) or ()) - {_NUMBER, _DIGEST}
        self.options = source.native_options(of_env, native)
        self.env = env = source.make(mujoco, of_env)
        if _BODY in self.options:  # a number or a name, in Rust a number
            self.options[_BODY] = int(env.data.body(self.options[_BODY]).id)
        self.simulation = Simulation(
            mujoco,
            env.model,
            frame_skip=env.frame_skip,
            init_qpos=env.init_qpos,
            init_qvel=env.init_qvel,
            action_low=env.action_space.low,
            action_high=env.action_space.high,
            model_per_row=per_row,
        )
        self.options |= {_NUMBER: self.simulation.number, _DIGEST: self.simulation.digest}

    def row(self, number: int) -> Row:
        """Returns a row's simulation, by the row's parameter ``simulation``."""
        return self.simulation.rows[number]

    def has(self, name: Any) -> bool:
        """Whether an attribute is read from MuJoCo's objects, and not from a parameter in Rust."""
        return name in _CONSTANTS or name == "dt" or is_of_row(name)

    def read(self, name: str, numbers: Sequence[int], frame_skips: Sequence[int]) -> list[Any]:
        """Returns an attribute of rows.

        Args:
            name: The attribute.
            numbers: The rows' parameters ``simulation``.
            frame_skips: The rows' parameters ``frame_skip``.

        Raises:
            AttributeError: The attribute does not exist.
        """
        if name in _CONSTANTS:
            return [getattr(self.env, name)] * len(numbers)
        rows = map(self.row, numbers)
        if name == "dt":
            pairs = zip(rows, frame_skips, strict=True)
            return [row.model.opt.timestep * frame_skip for row, frame_skip in pairs]
        return [read(row, name) for row in rows]

    def sets(self, name: Any) -> bool:
        """Whether an attribute is set on MuJoCo's objects."""
        return name == _TIMESTEP or self.has(name)

    def write(
        self, name: str, numbers: Sequence[int], values: Sequence[Any]
    ) -> dict[str, list[Any]]:
        """Sets a field of the models or datas of rows: of all of them, or of none.

        Returns:
            Parameters in Rust that depend on it, with their values for these rows.

        Raises:
            AttributeError: The field does not exist.
            ValueError: It cannot be set, the value does not fit, or rows share the model.
        """
        if name == _TIMESTEP:
            name = _TIMESTEP_OF_MODEL
        if not is_of_row(name):
            raise ValueError(
                f"`{name}` is read-only: `frame_skip` can be set, and fields of `data` and of "
                "`model`, such as 'data.qpos'."
            )
        if name.startswith("model.") and not self.simulation.rows.model_per_row:
            raise ValueError(
                f"`{name}` cannot be set, because all rows share one model: make the vector "
                f"environment with `{_MODEL_PER_ROW}=True`, which gives each row a copy."
            )
        if name == _TIMESTEP_OF_MODEL:
            values = [as_positive(name, value) for value in values]
        rows = [self.row(number) for number in numbers]
        converted = [convert(row, name, value) for row, value in zip(rows, values, strict=True)]
        for row, value in zip(rows, converted, strict=True):
            write(row, name, value)
        return {_TIMESTEP: converted} if name == _TIMESTEP_OF_MODEL else {}

    def model_changes(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Returns for each row the fields of its own model that were set, with their values."""
        rows = map(self.row, numbers)
        return [{name: read(row, name) for name in changed(row)} for row in rows]

    def set_model_changes(self, numbers: Sequence[int], models: Sequence[dict[str, Any]]) -> None:
        """Sets fields of the rows' own models, and sets back all others: in all rows or in none.

        Raises:
            AttributeError: A field does not exist.
            ValueError: A value does not fit.
        """
        rows = [self.row(number) for number in numbers]
        if any(map(needs_constants, {name for own in models for name in own})):
            self.simulation.rows.note(CONSTANTS)
        coming = [
            {name: convert(row, name, value) for name, value in {**row.original, **own}.items()}
            for row, own in zip(rows, models, strict=True)
        ]
        for row, own in zip(rows, coming, strict=True):
            write_model(row, own)
