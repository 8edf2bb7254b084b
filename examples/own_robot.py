"""A custom robot learns to balance: each of 64 rows tries a policy.

Run it with ``python examples/own_robot.py``; it takes some seconds. Needs MuJoCo.

The model is a pole on a cart. MuJoCo steps all rows natively; three functions of NumPy say what the
task is. There is no library of learning, only augmented random search (H. Mania, A. Guy and B.
Recht, "Simple random search of static linear policies is competitive for reinforcement learning",
NeurIPS 2018) in its basic form: the rows play one episode each, with the weights of a linear policy
moved along 32 random directions, forwards and backwards; then the weights follow the returns.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import cartwheel.mujoco

POLE = """
<mujoco model="pole">
  <option timestep="0.01"/>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0" range="-2 2" limited="true" damping="0.1"/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/>
      <body name="pole" pos="0 0 0.05">
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02" mass="0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="slide" gear="20" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""
NUM_ENVS, LIMIT = 64, 300
Arrays = dict[str, NDArray[np.float64]]


def reward(before: Arrays, actions: NDArray[np.float64], after: Arrays) -> NDArray[np.float64]:
    """A point for each step, less for a cart that is away from the middle and for strong motors."""
    del before
    away = np.abs(after["qpos"][:, 0])
    return 1.0 - 0.2 * away - 0.01 * np.square(actions[:, 0])


def terminated(before: Arrays, actions: NDArray[np.float64], after: Arrays) -> NDArray[np.bool_]:
    """The pole has fallen."""
    del before, actions
    return np.abs(after["qpos"][:, 1]) > 0.4


def train(updates: int = 12, seed: int = 0) -> list[float]:
    """Searches weights, and returns the mean return of the rows in each update."""
    envs = cartwheel.mujoco.make(
        POLE,
        NUM_ENVS,
        frame_skip=2,
        observation=["qpos", "qvel"],
        reward=reward,
        terminated=terminated,
        reset_noise_scale=0.05,
        max_episode_steps=LIMIT,
        autoreset_mode="Disabled",
        on_done="freeze",  # a row that is over rests until all are
    )
    rng = np.random.default_rng(seed)
    observations, _ = envs.reset(seed=seed)
    size = observations.shape[1]
    weights, means = np.zeros(size), []
    for update in range(updates):
        directions = rng.standard_normal((NUM_ENVS // 2, size))
        tried = weights + 0.3 * np.concatenate([directions, -directions])  # (num_envs, size)
        observations, _ = envs.reset(seed=seed + update * NUM_ENVS)
        returns, running = np.zeros(NUM_ENVS), np.ones(NUM_ENVS, np.bool_)
        while running.any():
            actions = np.tanh((observations * tried).sum(axis=1, keepdims=True))  # (num_envs, 1)
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            returns += rewards  # a row that rests has reward 0
            running = ~(terminations | truncations)
        up, down = returns.reshape(2, -1)
        weights += ((up - down) @ directions) / (len(directions) * (returns.std() + 1e-8))
        means.append(float(returns.mean()))
    envs.close()
    return means


def main() -> None:
    """Prints how the returns grow."""
    for update, mean in enumerate(train()):
        print(f"update {update:2}: mean return {mean:6.1f} of at most {LIMIT}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
