"""Vector environments of models of your own: MuJoCo steps them on threads, NumPy rewards them.

Example:
    >>> import numpy as np
    >>> import cartwheel.mujoco
    >>> XML = '''
    ... <mujoco><worldbody><body><joint name="slide" type="slide" axis="1 0 0"/>
    ... <geom size="0.1" mass="1"/></body></worldbody>
    ... <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator></mujoco>'''
    >>> def reward(before, actions, after):
    ...     return after["qpos"][:, 0] - 0.1 * np.square(actions).sum(axis=1)
    >>> envs = cartwheel.mujoco.make(XML, 8, frame_skip=5, reward=reward, max_episode_steps=100)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, *_ = envs.step(np.ones((8, 1)))
    >>> observations.shape, rewards.shape
    ((8, 2), (8,))
    >>> envs.close()

Gymnasium's own environments of MuJoCo are ``cartwheel.make_vec("cartwheel/Ant-v5", num_envs)``.
"""

from cartwheel.mujoco.random import RowGenerators
from cartwheel.mujoco.resets import RowFields
from cartwheel.mujoco.vector_env import SimulationVectorEnv, make

__all__ = ["RowFields", "RowGenerators", "SimulationVectorEnv", "make"]
