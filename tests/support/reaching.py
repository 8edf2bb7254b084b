"""An arm that reaches for targets, with a new target, new masses and new gains in each episode.

Its XML, its functions for cartwheel, and the same environment for Gymnasium.
"""

import mujoco
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

ROWS, LIMIT, FRAME_SKIP = 5, 25, 3
OBSERVED = ("qpos", "qvel", "site_xpos")
XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="target" mocap="true" pos="0.3 0 0.3">
      <geom size="0.02" contype="0" conaffinity="0"/>
    </body>
    <body name="upper" pos="0 0 0.5">
      <joint name="shoulder" axis="0 1 0" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.3"/>
        <body name="slide" pos="0.2 0 0">
          <joint name="reach" type="slide" axis="1 0 0" range="0 0.1" limited="true"/>
          <geom size="0.03" mass="0.1"/>
          <site name="tip"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="elbow" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
    <position joint="reach" kp="20" ctrlrange="0 0.1" ctrllimited="true"/>
  </actuator>
</mujoco>
"""
LOW, HIGH = (-0.3, -0.01, 0.2), (0.3, 0.01, 0.5)


class Reaching(MujocoEnv):
    """The environment, as one writes it for Gymnasium."""

    metadata = {  # noqa: RUF012 - Gymnasium's form
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
        "render_fps": 33,
    }

    def __init__(self, path):
        super().__init__(path, FRAME_SKIP, observation_space=None)
        self.observation_space = Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def _get_obs(self):
        return np.concatenate([getattr(self.data, name).ravel() for name in OBSERVED])

    def _distance(self):
        difference = self.data.site_xpos[0] - self.data.mocap_pos[0]
        x, y, z = np.square(difference)
        return float(np.sqrt(x + y + z))

    def step(self, action):
        before = self._distance()
        self.do_simulation(action, self.frame_skip)
        distance = self._distance()
        effort = 0.01 * float(np.square(action, dtype=np.float64).sum())
        terminated = distance < 0.12
        info = {"progress": before - distance, "success": terminated, "tip": self.tip()}
        return self._get_obs(), before - distance - effort, terminated, False, info

    def tip(self):
        return self.data.site_xpos[0].copy()

    def reset_model(self):
        self.data.mocap_pos[0] = self.np_random.uniform(LOW, HIGH)
        self.model.body_mass[2:] = self.np_random.uniform(0.1, 1.0, 3)
        self.model.actuator_gainprm[0, 0] = 1 + 0.5 * self.np_random.integers(0, 5)
        self._set_constants()
        qpos = self.init_qpos + self.np_random.normal(0, 0.1, self.model.nq)
        qpos[2] = 0.05
        self.set_state(qpos, self.init_qvel)
        return self._get_obs()

    def _set_constants(self):
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, self.data, state, spec)
        mujoco.mj_setConst(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state, spec)


def oracle_of(folder, mode):
    """The environments of Gymnasium, whose model is a file in a folder."""
    path = folder / "reaching.xml"
    path.write_text(XML)

    def env():
        return TimeLimit(Reaching(str(path)), LIMIT)

    return SyncVectorEnv([env] * ROWS, autoreset_mode=AutoresetMode(mode))


def reset(rng, _rows, fields):
    fields["mocap_pos"][:, 0] = rng.uniform(LOW, HIGH)
    fields["model.body_mass"][:, 2:] = rng.uniform(0.1, 1.0, 3)
    fields["model.actuator_gainprm"][:, 0, 0] = 1 + 0.5 * rng.integers(0, 5)
    fields["qpos"] += rng.normal(0, 0.1, 3)
    fields["qpos"][:, 2] = 0.05


def distance(fields):
    x, y, z = np.square(fields["site_xpos"][:, 0] - fields["mocap_pos"][:, 0]).T
    return np.sqrt(x + y + z)


def reward(before, actions, after):
    effort = 0.01 * np.square(actions, dtype=np.float64).sum(axis=1)
    return distance(before) - distance(after) - effort


def terminated(_before, _actions, after):
    return distance(after) < 0.12


def infos(before, _actions, after):
    now = distance(after)
    return {
        "progress": distance(before) - now,
        "success": now < 0.12,
        "tip": after["site_xpos"][:, 0],
    }


TASK = {
    "reward": reward,
    "terminated": terminated,
    "reset": reset,
    "model_per_row": True,
    "frame_skip": FRAME_SKIP,
    "max_episode_steps": LIMIT,
}
