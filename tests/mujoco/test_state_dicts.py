"""A vector environment of an own model that loads a state continues as the saved one did."""

import pickle

import numpy as np

from cartwheel import mujoco
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE
from tests.support.runs import stepped

POLE = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
      <body name="pole" pos="0 0 0.1">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.03" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


def build(mode, **keywords):
    return mujoco.make(
        POLE,
        3,
        reward=lambda before, actions, after: (
            after["qpos"][:, 0] - before["qpos"][:, 0] + actions[:, 0]
        ),
        terminated=lambda _before, _actions, after: np.abs(after["qpos"][:, 1]) > 0.05,
        reset_noise_scale=0.02,
        frame_skip=5,
        max_episode_steps=9,
        autoreset_mode=mode,
        **keywords,
    )


@MODE
def test_rewards_of_the_first_step_see_what_the_saved_rows_showed(mode):
    envs, others = build(mode), build(mode, executor="inline")
    actions = np.random.default_rng(1).uniform(-1, 1, (25, 3, 1)).astype(np.float32)
    envs.reset(seed=1)
    shown = stepped(envs, actions[:6])[-1][0]
    state = pickle.loads(pickle.dumps(envs.state_dict()))
    expected = stepped(envs, actions[6:])
    for _ in range(2):
        assert_identical(others.load_state_dict(state), shown)
        assert_identical(stepped(others, actions[6:]), expected)
    for each in (envs, others):
        each.close()
