"""Vector environments of models of the caller's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.mujoco.judge import Judge
from cartwheel.mujoco.own_model import OwnModel
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.mujoco.judge import Function
    from cartwheel.native.simulated import Simulated

#: The environment in Rust, which is not listed.
_ID = "_Simulation-v0"


class SimulationVectorEnv(NativeVectorEnv[Any, Any]):
    """Steps simulations of one model natively, and rewards them by functions; see :func:`make`."""

    #: Rows are judged together, so they are neither sent nor stepped apart.
    sends_rows = False

    def __init__(
        self,
        model: Any,
        num_envs: int,
        *,
        reward: Function,
        terminated: Function | None = None,
        truncated: Function | None = None,
        frame_skip: int = 1,
        observation: Sequence[str] = ("qpos", "qvel"),
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
        if keywords.get("action_repeat", 1) != 1:
            raise ValueError("`action_repeat` is 1 here: `frame_skip` repeats controls.")
        if keywords.get("batch_size") not in (None, num_envs):
            raise ValueError("`batch_size` is `num_envs` here: rows are judged together.")
        self._own = OwnModel(
            model,
            frame_skip=frame_skip,
            observation=observation,
            reset_noise_scale=reset_noise_scale,
            reset_noise=reset_noise,
            init_qpos=init_qpos,
            init_qvel=init_qvel,
            model_per_row=model_per_row,
            width=width,
            height=height,
            camera_id=camera_id,
            camera_name=camera_name,
        )
        self._judge = Judge(
            self._own.fields,
            num_envs,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
        )
        super().__init__(_ID, num_envs, max_episode_steps=max_episode_steps, **keywords)
        self.env_id = self._shown_id

    def _known_id(self, env_id: Any, options: dict[str, Any]) -> str:
        for name in options:
            raise TypeError(f"`{name}` is not a keyword of cartwheel.mujoco.make.")
        return str(env_id)

    def _simulation_of(self, options: dict[str, Any]) -> Simulated:  # noqa: ARG002 - the hook's signature
        return self._own

    @property
    def _shown_id(self) -> str:
        return "cartwheel.mujoco"

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
    **keywords: Any,
) -> SimulationVectorEnv:
    """Makes a vector environment of a model of your own: MuJoCo steps it natively, on threads.

    A step carries out ``frame_skip`` steps of MuJoCo in every row, on all processors. Then your
    functions are called once for all rows; time limits, automatic resets and final observations
    are those of any vector environment of cartwheel. A step calls MuJoCo as
    Gymnasium's ``MujocoEnv.do_simulation`` does, and a reset as its ``reset_model`` with noise: an
    environment that was written for it has the same bits.

    The functions get three arguments:

    * ``before`` and ``after``: dictionaries with the arrays named by ``observation``, before the
      step and after it: ``after["qpos"]`` has the shape ``(num_envs, nq)``, ``after["xpos"]``
      ``(num_envs, nbody, 3)``, all ``float64``. They are read-only views; keep copies only.
    * ``actions``: a read-only copy of the actions, ``(num_envs, nu)``, ``float32`` or ``float64``
      as they were passed.

    Values of rows that a step resets (``NEXT_STEP``), or that are over (``DISABLED``), are not
    used. The functions may not step or reset the vector environment. If one raises, or returns
    what does not fit, the step raises it, and the rows that were stepped need a reset, as after any
    failed step; the vector environment goes on after :meth:`~cartwheel.NativeVectorEnv.reset`.

    Args:
        model: A ``mujoco.MjModel``, the path of a file (XML, or ``.mjb``), or XML as text.
        num_envs: Number of rows.
        reward: Returns the rewards, numbers of shape ``(num_envs,)`` without NaN.
        terminated: Returns which episodes ended, ``bool`` of shape ``(num_envs,)``; by default
            none does.
        truncated: Returns which episodes were cut short, likewise, besides those that reach
            ``max_episode_steps``.
        **keywords: Any of:

            * ``frame_skip`` (1): steps of MuJoCo in a step, which is ``frame_skip *
              model.opt.timestep`` seconds long.
            * ``observation`` (``("qpos", "qvel")``): names of ``float64`` arrays of ``MjData``. An
              observation is all of them, one after the other, in MuJoCo's order of elements;
              :meth:`SimulationVectorEnv.fields` splits it.
            * ``reset_noise_scale`` (0.0) and ``reset_noise`` (``"uniform"``): initial positions get
              uniform noise of this scale, and velocities uniform or ``"normal"`` noise.
            * ``init_qpos`` and ``init_qvel``: initial state; by default the model's.
            * ``model_per_row`` (False): each row has a copy of the model, whose fields
              ``set_attr("model.body_mass", …)`` sets.
            * ``width``, ``height``, ``camera_id``, ``camera_name``: how rows are drawn.
            * ``max_episode_steps``, ``autoreset_mode``, ``render_mode``, ``executor``,
              ``num_workers``, ``final_obs`` and other keywords of
              :class:`~cartwheel.NativeVectorEnv`. ``action_repeat`` and ``batch_size`` cannot be
              used, nor ``send``, nor steps of rows by ``env_index``: rows are judged together.

    Raises:
        ImportError: MuJoCo is not installed, or is too old.
        TypeError: A keyword does not exist, or a function cannot be called.
        ValueError: MuJoCo cannot read the model, a field does not exist, or a value is invalid.
        FileNotFoundError: There is no such file.
    """
    return SimulationVectorEnv(
        model, num_envs, reward=reward, terminated=terminated, truncated=truncated, **keywords
    )
