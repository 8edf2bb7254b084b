"""A robot arm that reaches targets, of our own: model, resets, rewards and infos.

The arm has three joints with torque motors. Each episode has a target, a pose, masses and motor
gains of its own, which :func:`reset` draws; the policy observes neither masses nor gains.
``examples/reach_arm.py`` trains, records and plays it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel.mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]

ARM = """
<mujoco model="arm">
  <option timestep="0.005" integrator="implicitfast"/>
  <visual><quality shadowsize="256" offsamples="1"/><headlight ambient="0.5 0.5 0.5"/></visual>
  <default>
    <joint type="hinge" damping="0.6" armature="0.02"/>
    <geom contype="0" conaffinity="0" rgba="0.11 0.6 0.67 1"/>
    <motor ctrllimited="true" ctrlrange="-1 1"/>
  </default>
  <worldbody>
    <light pos="0 -1 2" dir="0 0.5 -1"/>
    <camera name="side" pos="1.1 -1.1 0.9" xyaxes="0.707 0.707 0 -0.3 0.3 0.9"/>
    <geom type="plane" size="1.5 1.5 0.1" rgba="0.85 0.85 0.85 1"/>
    <body name="base" pos="0 0 0.15">
      <joint name="yaw" axis="0 0 1"/>
      <geom type="cylinder" size="0.06 0.15" mass="2" rgba="0.3 0.3 0.35 1"/>
      <body name="upper" pos="0 0 0.17">
        <joint name="shoulder" axis="0 1 0" range="-110 110" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.035" mass="1"/>
        <body name="lower" pos="0 0 0.3">
          <joint name="elbow" axis="0 1 0" range="-140 140" limited="true"/>
          <geom type="capsule" fromto="0 0 0 0 0 0.27" size="0.028" mass="0.6"/>
          <body name="load" pos="0 0 0.3">
            <geom type="sphere" size="0.04" mass="0.2" rgba="0.88 0.62 0.25 1"/>
            <site name="tip"/>
          </body>
        </body>
      </body>
    </body>
    <body name="target" mocap="true" pos="0.3 0 0.3">
      <geom type="sphere" size="0.05" rgba="0.71 0.28 0.18 0.6"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="yaw" gear="5"/>
    <motor joint="shoulder" gear="16"/>
    <motor joint="elbow" gear="8"/>
  </actuator>
</mujoco>
"""
#: The fields that the policy observes, and the rewards are computed from.
FIELDS = ("qpos", "qvel", "site_xpos", "mocap_pos")
#: Steps of MuJoCo in a step of the environment.
FRAME_SKIP = 4
#: Steps of an episode, which are 2 seconds.
LIMIT = 100
#: A target counts as reached within this distance, in meters.
REACHED = 0.06
UPPER, LOWER, LOAD = 2, 3, 4  # numbers of bodies
MASSES, GEARS = np.array([1.0, 0.6, 0.2]), np.array([5.0, 16.0, 8.0])


def reset(rng: Any, rows: NDArray[np.int64], fields: Any) -> None:
    """Draws targets, poses, masses and gains of the rows that begin an episode."""
    del rows
    radius, height = rng.uniform(0.25, 0.5), rng.uniform(0.15, 0.6)  # (K,)
    angle = rng.uniform(-2.0, 2.0)
    target = [radius * np.cos(angle), radius * np.sin(angle), height]
    fields["mocap_pos"][:, 0] = np.stack(target, axis=1)
    fields["qpos"][:] = rng.uniform(-0.5, 0.5, (3,))
    scales = rng.uniform(0.7, 1.4, (3,))
    fields["model.body_mass"][:, UPPER : LOAD + 1] = MASSES * scales
    fields["model.actuator_gear"][:, :, 0] = GEARS * rng.uniform(0.8, 1.2, (3,))


def distances(fields: Arrays) -> NDArray[np.float64]:
    """Distances from the tip to the target, in meters."""
    away = fields["site_xpos"][..., 0, :] - fields["mocap_pos"][..., 0, :]
    return np.asarray(np.linalg.norm(away, axis=-1))


def infos(before: Arrays, actions: NDArray[Any], after: Arrays) -> dict[str, NDArray[Any]]:
    """The terms of the reward, and success."""
    del before
    distance = distances(after)
    return {
        "distance": distance,
        "near": np.exp(-np.square(distance / 0.12)),
        "torque": np.square(actions, dtype=np.float64).sum(axis=1),
        "success": distance < REACHED,
    }


def reward(before: Arrays, actions: NDArray[Any], after: Arrays) -> NDArray[np.float64]:
    """More near the target, less for torques."""
    terms = infos(before, actions, after)
    return np.asarray(terms["near"] - terms["distance"] - 0.01 * terms["torque"])


def make(num_envs: int, model: Any = ARM, **keywords: Any) -> cartwheel.mujoco.SimulationVectorEnv:
    """Makes arms."""
    given: dict[str, Any] = {"frame_skip": FRAME_SKIP, "max_episode_steps": LIMIT}
    return cartwheel.mujoco.make(
        model,
        num_envs,
        observation=FIELDS,
        reward=reward,
        reset=reset,
        infos=infos,
        model_per_row=True,
        **{**given, "autoreset_mode": "SameStep", **keywords},
    )
