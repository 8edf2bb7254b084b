"""Vector environments of the caller's own models."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel._internal.suggestions import check_keywords, keywords_of, shown
from cartwheel.mujoco.description import describe, describe_model
from cartwheel.mujoco.resets import EpisodeStarts, SimulationArrays
from cartwheel.mujoco.rewards import ExternalRewards, Fields
from cartwheel.native.mujoco.env import MujocoBackend
from cartwheel.native.mujoco.library import load_mujoco, logged_warnings
from cartwheel.native.mujoco.model import Simulation, compiled
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel.mujoco.resets import ResetFunction
    from cartwheel.mujoco.rewards import Function

#: The environment in Rust, which is not listed.
_ID = "_Simulation-v0"


class SimulationVectorEnv(NativeVectorEnv[Any, Any]):
    """Steps simulations of one model natively, and rewards them by functions; see :func:`make`."""

    #: The functions reward all rows together, so rows cannot be sent or stepped separately.
    sends_rows = False

    def __init__(
        self,
        model: Any,
        num_envs: int,
        *,
        reward: Function,
        terminated: Function | None = None,
        truncated: Function | None = None,
        reset: ResetFunction | None = None,
        infos: Function | None = None,
        frame_skip: int = 1,
        observation: Sequence[str] = ("qpos", "qvel"),
        inputs: Sequence[str] = (),
        reset_noise_scale: float = 0.0,
        reset_noise: str = "uniform",
        init_qpos: Any = None,
        init_qvel: Any = None,
        model_per_row: bool = False,
        width: int = 480,
        height: int = 480,
        camera_id: int | None = None,
        camera_name: str | None = None,
        max_episode_steps: int | None = None,
        **keywords: Any,
    ) -> None:
        """Makes the simulations and starts the threads, see :func:`make`."""
        self._arguments = describe(SimulationVectorEnv.__init__, dict(locals()))
        if keywords.get("action_repeat", 1) != 1:
            raise ValueError("`action_repeat` is 1 here: `frame_skip` repeats controls.")
        if keywords.get("batch_size") not in (None, num_envs):
            raise ValueError("`batch_size` is `num_envs` here: all rows are rewarded together.")
        self._own = OwnModel(
            model,
            frame_skip=frame_skip,
            observation=observation,
            inputs=inputs,
            reset_noise_scale=reset_noise_scale,
            reset_noise=reset_noise,
            init_qpos=init_qpos,
            init_qvel=init_qvel,
            model_per_row=model_per_row,
            width=width,
            height=height,
            camera_id=camera_id,
            camera_name=camera_name,
            external_resets=reset is not None,
        )
        self._starts = EpisodeStarts(reset)
        self._external_rewards = ExternalRewards(
            self._own.fields,
            num_envs,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            infos=infos,
            inputs=self._own.inputs,
        )
        follows = reset is not None or bool(self._own.inputs)
        if follows:
            self._external_resets = self._starts
        if self._own.inputs:
            self._before_step = self._external_rewards.begin_step
        super().__init__(_ID, num_envs, max_episode_steps=max_episode_steps, **keywords)
        self.env_id = self._shown_id
        if follows:
            numbers = self._ask("make", "simulation", None)
            rows = self._own.simulation.rows
            arrays = SimulationArrays(self._own.mujoco, rows, numbers)
            self._starts.arrays = self._external_rewards.arrays = arrays

    @property
    def writes_first_states(self) -> bool:
        """Whether the function ``reset`` writes the first state of each episode."""
        return self._starts.function is not None

    def send_reset(self, seed: Seeds = None, options: ResetOptions = None) -> None:
        """Like :meth:`cartwheel.VectorEnv.send_reset`, without a function ``reset``.

        Raises:
            ValueError: There is a function ``reset``.
            Exception: As for :meth:`cartwheel.VectorEnv.send_reset`.
        """
        if self.writes_first_states:
            raise ValueError(
                "resets are not sent where a function `reset` writes the first states of all rows "
                "together: use `reset`, or `reset_async` and `reset_wait`"
            )
        super().send_reset(seed, options)

    def _known_id(self, env_id: Any, options: dict[str, Any]) -> str:
        known = keywords_of(SimulationVectorEnv) | keywords_of(NativeVectorEnv) - {"env_id"}
        check_keywords("cartwheel.mujoco.make", options, known)
        return str(env_id)

    def _mujoco_backend(self, options: dict[str, Any]) -> MujocoBackend:  # noqa: ARG002 - the hook's signature
        return self._own

    @property
    def _shown_id(self) -> str:
        return "cartwheel.mujoco"

    @property
    def description(self) -> dict[str, Any]:
        """Description of this vector environment, for recordings.

        ``env_kwargs`` and ``max_episode_steps`` are the arguments of :func:`make` that are not
        defaults. ``functions`` are names, as functions cannot be written. ``model`` has the
        ``sha256`` of :meth:`compiled_model`, the version of ``mujoco``, and the ``xml`` from which
        it was loaded, if it was; files that the XML names are not in it.
        """
        return {**self._arguments, "model": self._own.describe()}

    def compiled_model(self) -> bytes:
        """Returns the model that rows share or began with, as MuJoCo's ``.mjb`` file has it.

        ``make`` loads such a file, with the version of MuJoCo that wrote it.
        """
        return self._own.compiled()

    def fields(self, observations: Any) -> dict[str, Any]:
        """Returns views of the arrays that observations consist of.

        Args:
            observations: ``(..., size)``: of a batch, of a rollout, or one of ``final_obs``.

        Returns:
            Each array by its name in ``observation``, with MuJoCo's shape: ``xpos`` is
            ``(..., nbody, 3)``.
        """
        return self._own.fields.split(np.asarray(observations))


def make(
    model: Any,
    num_envs: int,
    *,
    reward: Function,
    terminated: Function | None = None,
    truncated: Function | None = None,
    reset: ResetFunction | None = None,
    infos: Function | None = None,
    **keywords: Any,
) -> SimulationVectorEnv:
    """Makes a vector environment of a model of your own: MuJoCo steps it natively, on threads.

    A step carries out ``frame_skip`` steps of MuJoCo in every row, on all processors. Then your
    functions are called once for all rows; time limits, automatic resets and final observations
    are those of any vector environment of cartwheel. A step calls MuJoCo as
    Gymnasium's ``MujocoEnv.do_simulation`` does, and a reset as its ``reset_model`` with noise: an
    environment that was written for it gives the same bits.

    The functions get three arguments:

    * ``before`` and ``after``: dictionaries with the arrays named by ``observation`` and
      ``inputs``, before the step and after it: ``after["qpos"]`` has the shape
      ``(num_envs, nq)``, ``after["xpos"]`` ``(num_envs, nbody, 3)``, all ``float64``. They are
      read-only views: copy what you keep.
    * ``actions``: a read-only copy of the actions, ``(num_envs, nu)``, ``float32`` or ``float64``
      as they were passed.

    Values of rows that a step resets (``NEXT_STEP``), or that are over (``DISABLED``), are not
    used. The functions may not step or reset the vector environment. If one raises, or returns
    what does not fit, the step raises it, and the rows that were stepped need a reset, as after any
    failed step; the vector environment continues after :meth:`~cartwheel.NativeVectorEnv.reset`.

    ``reset(rng, rows, fields)`` writes the initial states of the rows that begin an episode, in any
    mode and by any reset, in one call for all of them. MuJoCo's data has been reset, with the
    initial state and its noise. Its arguments:

    * ``rng``: draws numbers for these rows, each from its own stream: ``rng.uniform(low, high,
      size)`` has the shape ``(len(rows), *size)``, and entry ``j`` is what the generator
      ``np_random`` of row ``rows[j]`` would draw. There are ``random``, ``uniform``,
      ``standard_normal``, ``normal`` and ``integers``. See
      :class:`~cartwheel.mujoco.RowGenerators`.
    * ``rows``: the numbers of these rows, ``int64``, in ascending order.
    * ``fields``: their fields by name, to be read and written; entry ``j`` is that of row
      ``rows[j]``. They are arrays of ``MjData`` such as ``fields["qpos"]``,
      ``fields["mocap_pos"]`` or ``fields["ctrl"]``, and with ``model_per_row=True`` those of each
      row's own model, such as ``fields["model.body_mass"]``, which last until they are written
      again. See :class:`~cartwheel.mujoco.RowFields`.

    After it, ``mj_setConst`` computes the constants of models whose fields need it, without an
    effect on the state, and ``mj_forward`` follows. If it raises, nothing was written: the call
    raises it, and its rows need a reset.

    Args:
        model: A ``mujoco.MjModel``, the path of a file (XML, or ``.mjb``), or XML as text.
        num_envs: Number of rows.
        reward: Returns the rewards, numbers of shape ``(num_envs,)``; none that is used is NaN.
        terminated: Returns which episodes ended, ``bool`` of shape ``(num_envs,)``; by default
            none does.
        truncated: Returns which episodes were cut short, in addition to those that reach
            ``max_episode_steps``.
        reset: Writes initial states; by default episodes begin with the initial state and its
            noise.
        infos: Returns a dictionary of arrays, ``(num_envs, ...)``, of numbers or truth values, such
            as the terms of the reward or whether the task was done. They are infos of the step, as
            if each environment had returned its entries: with masks, without entries for rows that
            the step only reset, and in ``SAME_STEP`` within ``final_info`` for rows that ended.
        **keywords: Any of:

            * ``frame_skip`` (1): steps of MuJoCo in a step, which is ``frame_skip *
              model.opt.timestep`` seconds long.
            * ``observation`` (``("qpos", "qvel")``): names of arrays of ``MjData``, of ``float64``
              or ``int32``, and of its numbers, such as ``time`` and ``ncon``. An observation is
              all of them as ``float64``, one after the other, in MuJoCo's order of elements;
              :meth:`SimulationVectorEnv.fields` splits it.
            * ``inputs`` (none): names of further ones that the functions see, while observations
              leave them out. Numbers are arrays with one entry for each row.
            * ``reset_noise_scale`` (0.0) and ``reset_noise`` (``"uniform"``): initial positions get
              uniform noise of this scale, and velocities uniform or ``"normal"`` noise.
            * ``init_qpos`` and ``init_qvel``: initial state; by default the model's.
            * ``model_per_row`` (False): each row has a copy of the model, whose fields
              ``set_attr("model.body_mass", …)`` sets.
            * ``width``, ``height``, ``camera_id``, ``camera_name``: how rows are drawn.
            * ``max_episode_steps``, ``autoreset_mode``, ``render_mode``, ``executor``,
              ``num_workers``, ``final_obs`` and other keywords of
              :class:`~cartwheel.NativeVectorEnv`. ``action_repeat`` and ``batch_size`` cannot be
              used, nor ``send``, nor steps of rows by ``env_index``: all rows are rewarded
              together.

    Raises:
        ImportError: MuJoCo is not installed, or is too old.
        TypeError: A keyword does not exist, or a function cannot be called.
        ValueError: MuJoCo cannot read the model, a field does not exist, or a value is invalid.
        FileNotFoundError: The file does not exist.
    """
    return SimulationVectorEnv(
        model,
        num_envs,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        reset=reset,
        infos=infos,
        **keywords,
    )


#: How the noise of initial velocities may be distributed.
_NOISES = ("uniform", "normal")


class OwnModel(MujocoBackend):
    """The model and the simulations of a vector environment without an id.

    Attributes:
        mujoco: The imported package.
        fields: The observed arrays.
        inputs: Names of the fields that only functions see.
    """

    def __init__(
        self,
        model: Any,
        *,
        frame_skip: int,
        observation: Sequence[str],
        inputs: Sequence[str],
        reset_noise_scale: float,
        reset_noise: str,
        init_qpos: Any,
        init_qvel: Any,
        model_per_row: bool,
        width: int,
        height: int,
        camera_id: int | None,
        camera_name: str | None,
        external_resets: bool,
    ) -> None:
        """Loads the model; the arguments are those of :func:`cartwheel.mujoco.make`."""
        self.mujoco = mujoco = load_mujoco("cartwheel.mujoco")
        frame_skip = as_integer("frame_skip", frame_skip, 1, limit=2**32 - 1)
        if reset_noise not in _NOISES:
            raise ValueError(f"`reset_noise` must be one of {_NOISES}, got {shown(reset_noise)}.")
        with logged_warnings(mujoco, logging.WARNING):
            loaded, self._xml = _load(mujoco, model)
            self.fields = Fields(mujoco, loaded, observation)
            of_data = Fields(mujoco, loaded, inputs, "inputs")
        if twice := self.fields.shapes.keys() & of_data.shapes.keys():
            raise ValueError(f"`inputs` names {min(twice)!r}, which `observation` names, too.")
        self.inputs = tuple(inputs)
        width, height = as_integer("width", width, 1), as_integer("height", height, 1)
        _check_camera(loaded, camera_id, camera_name)
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
            fields=(*self.fields.shapes, *of_data.shapes),
        )
        self.options = {
            "_simulation": self.simulation.number,
            "model": self.simulation.digest,
            "reset_noise_scale": reset_noise_scale,
            "normal_velocities": reset_noise == "normal",
            "fields": [*self.fields.sizes(), *of_data.sizes()],
            "num_observed": len(self.fields.shapes),
            "_external_resets": external_resets,
        }
        self.visual_options = None
        seconds = loaded.opt.timestep * frame_skip
        modes = ["human", "rgb_array", "depth_array", "rgbd_tuple"]
        self.env = SimpleNamespace(  # the attributes of Gymnasium's environments
            metadata={"render_modes": modes, "render_fps": max(1, round(1 / seconds))},
            mujoco_renderer=SimpleNamespace(default_cam_config=None, max_geom=1000),
            width=width,
            height=height,
            camera_id=camera_id,
            camera_name=camera_name,
            fullpath=str(model) if isinstance(model, str | os.PathLike) else None,
            observation_structure=dict(self.fields.sizes()),
        )

    def describe(self) -> dict[str, Any]:
        """Returns the hash and the XML of the model."""
        return describe_model(self.mujoco, self.simulation.model, self._xml)

    def compiled(self) -> bytes:
        """Returns the model in the form of a ``.mjb`` file."""
        return compiled(self.mujoco, self.simulation.model)


def _load(mujoco: ModuleType, model: Any) -> tuple[Any, str | None]:
    """Returns the model of a file, of a text, or the model itself; and its XML, if there is any."""
    if isinstance(model, mujoco.MjModel):
        return model, None
    if isinstance(model, str) and model.lstrip().startswith("<"):
        return mujoco.MjModel.from_xml_string(model), model
    if isinstance(model, str | os.PathLike):
        path = Path(model).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r} with a model of MuJoCo")
        if path.suffix == ".mjb":
            return mujoco.MjModel.from_binary_path(str(path)), None
        return mujoco.MjModel.from_xml_path(str(path)), path.read_text("utf-8", "replace")
    raise TypeError(
        f"`model` must be a mujoco.MjModel, the path of a file, or XML, got {shown(model)}."
    )


def _check_camera(model: Any, camera_id: int | None, camera_name: str | None) -> None:
    """Refuses a camera that the model does not have: MuJoCo would draw from the free one."""
    if camera_id is not None:
        as_integer("camera_id", camera_id, -1, model.ncam - 1)
        if camera_name is not None:
            raise ValueError("`camera_id` and `camera_name` name one camera: pass one of them.")
    names = [model.camera(number).name for number in range(model.ncam)]
    if camera_name is not None and camera_name not in names:
        raise ValueError(f"`camera_name` must be one of {names}, got {shown(camera_name)}.")


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
