"""A hopping robot of our own: its XML, its task for cartwheel, and the same for Gymnasium."""

import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box

ROWS, LIMIT, FRAME_SKIP, SCALE = 5, 40, 4, 5e-3
FIELDS = ("qpos", "qvel", "xpos", "cfrc_ext", "sensordata")
XML = """
<mujoco>
  <option timestep="0.004" integrator="RK4"/>
  <default>
    <joint armature="0.1" damping="0.5" limited="true"/>
    <geom density="900" condim="3"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 0.1" conaffinity="1"/>
    <body name="torso" pos="0 0 1.1">
      <joint name="x" type="slide" axis="1 0 0" limited="false" armature="0" damping="0"/>
      <joint name="z" type="slide" axis="0 0 1" limited="false" armature="0" damping="0"/>
      <joint name="tilt" type="hinge" axis="0 1 0" limited="false" armature="0" damping="0"/>
      <geom type="capsule" fromto="0 0 0.2 0 0 -0.2" size="0.05"/>
      <site name="eye" pos="0 0 0.2"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="hip" axis="0 -1 0" range="-100 20"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
        <body name="leg" pos="0 0 -0.4">
          <joint name="knee" axis="0 -1 0" range="-100 10"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.45" size="0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip" gear="120" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="knee" gear="90" ctrlrange="-0.5 1" ctrllimited="true"/>
  </actuator>
  <sensor><accelerometer site="eye"/></sensor>
</mujoco>
"""


class Hopping(MujocoEnv):
    """The same environment, as one writes it for Gymnasium."""

    metadata = {  # noqa: RUF012 - Gymnasium's form
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
        "render_fps": 62,
    }

    def __init__(self, path, noise="uniform"):
        super().__init__(path, FRAME_SKIP, observation_space=None)
        self._noise = noise
        self.observation_space = Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def _get_obs(self):
        return np.concatenate([getattr(self.data, name).ravel() for name in FIELDS])

    def step(self, action):
        before = self.data.qpos[0].copy()
        self.do_simulation(action, self.frame_skip)
        speed = (self.data.qpos[0] - before) / self.dt
        height = self.data.xpos[1, 2]
        reward = speed + 1.0 - 1e-3 * np.sum(np.square(action))
        terminated = bool(height < 0.75 or abs(self.data.qpos[2]) > 0.5)
        truncated = bool(self.data.qpos[0] > 0.02)
        return self._get_obs(), reward, terminated, truncated, {}

    def reset_model(self):
        qpos = self.init_qpos + self.np_random.uniform(-SCALE, SCALE, self.model.nq)
        if self._noise == "uniform":
            qvel = self.init_qvel + self.np_random.uniform(-SCALE, SCALE, self.model.nv)
        else:
            qvel = self.init_qvel + SCALE * self.np_random.standard_normal(self.model.nv)
        self.set_state(qpos, qvel)
        return self._get_obs()


def reward(before, actions, after):
    speed = (after["qpos"][:, 0] - before["qpos"][:, 0]) / (0.004 * FRAME_SKIP)
    return speed + 1.0 - 1e-3 * np.sum(np.square(actions), axis=1)


def terminated(_before, _actions, after):
    return (after["xpos"][:, 1, 2] < 0.75) | (np.abs(after["qpos"][:, 2]) > 0.5)


def truncated(_before, _actions, after):
    return after["qpos"][:, 0] > 0.02


TASK = {"reward": reward, "terminated": terminated, "truncated": truncated}
NO_TASK = {"reward": lambda *_: np.zeros(ROWS), "terminated": None, "truncated": None}
