"""Does what users do, for `release.profile`: environments, executors, calls, estimators, wrappers.

What is left out here counts as code that does not run, and is made small instead of fast: without
estimators in the profile, GAE took three times as long.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from cartwheel import envpool, returns, wrappers

if TYPE_CHECKING:
    from collections.abc import Callable

NATIVE = (
    *("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"),
    *("Blackjack-v1", "FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"),
)
MUJOCO = ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Hopper-v5")
MODES = tuple(gym.vector.AutoresetMode)
BOX = gym.spaces.Box(-1, 1, (4,), np.float32)
SCREEN = gym.spaces.Box(0, 255, (210, 160, 3), np.uint8)
NESTED = gym.spaces.Dict({"box": BOX, "image": gym.spaces.Box(0, 255, (32, 32, 3), np.uint8)})


class Quick(gym.Env[Any, Any]):
    """Its episodes have 20 steps and some infos, and take hardly any time."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space: gym.Space[Any]) -> None:
        """Draws the only observation."""
        self.observation_space = space
        self._observation = space.sample()
        self._steps = 0

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        self._steps = 0
        return self._observation, {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Ends every twentieth step."""
        self._steps += 1
        over = self._steps >= 20
        infos = {"steps": self._steps, "speed": 0.5} if self._steps % 4 == 0 else {}
        return self._observation, 1.0, over, False, infos


def step(envs: Any, steps: int) -> None:
    """Steps vector environments; without autoreset, resets the rows that are over."""
    envs.reset(seed=1)
    actions = [envs.action_space.sample() for _ in range(16)]
    for at in range(steps):
        _, _, terminations, truncations, _ = envs.step(actions[at % 16])
        over = terminations | truncations
        if envs.metadata["autoreset_mode"] is gym.vector.AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
    envs.close()


def step_pool(rows: int, batch: int, steps: int) -> None:
    """``recv`` and ``send``, as users of EnvPool call them."""
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=rows, batch_size=batch, seed=1)
    pool.async_reset()
    actions = (np.arange(batch) % 2).astype(np.int32)
    for _ in range(steps):
        pool.send(actions, pool.recv()[-1]["env_id"])
    pool.close()


def estimate(envs: int, dtype: type[np.floating[Any]], runs: int) -> None:
    """Every estimator of a rollout of 128 steps, on one thread and on two."""
    rng = np.random.default_rng(1)
    rewards, values, following, ratios = rng.random((4, 128, envs)).astype(dtype)
    terminated, truncated = rng.random((2, 128, envs)) < 0.01
    discount: dict[str, Any] = {"gamma": 0.99}
    trace: dict[str, Any] = {"lambda_": 0.95, **discount}
    ended = {"terminated": terminated, "truncated": truncated}
    for run in range(runs):
        for valid in (None, rng.random((128, envs)) < 0.9):
            rows: dict[str, Any] = {**ended, "valid": valid, "num_threads": 1 + run % 2}
            for gae in (returns.gae, returns.gae_normalized):
                gae(rewards, values, following, gae_lambda=0.95, **discount, **rows)
            returns.lambda_returns(rewards, following, **trace, **rows)
            for corrected in (returns.vtrace, returns.retrace):
                corrected(rewards, values, following, ratios, **trace, **rows)
            after: dict[str, Any] = {"next_values": following, **discount, **rows}
            returns.discounted_returns(rewards, **after)
            returns.n_step_returns(rewards, n=3, **after)


def collect(mode: gym.vector.AutoresetMode) -> None:
    """Rollouts in each order, with what is computed from them."""
    for order in ("lockstep", "groups", "free"):
        envs = cartwheel.make_vec("cartwheel/CartPole-v1", 64, autoreset_mode=mode)
        collector = cartwheel.Collector(envs, lean, 64, seed=1, order=order)
        for _ in range(20):
            rollout = collector.collect()
            rollout.set_values(rollout.value_inputs()[:, 0])
            rollout.gae(gamma=0.99, gae_lambda=0.95)
            rollout.transitions()
        envs.close()


def lean(observations: Any) -> Any:
    """Pushes to where the pole falls."""
    return (observations[:, 2] > 0).astype(int)


def step_wrapped(mode: gym.vector.AutoresetMode) -> None:
    """Wrappers that work natively, over numbers and over images."""
    envs: Any = cartwheel.make_vec("cartwheel/Pendulum-v1", 64, autoreset_mode=mode)
    envs = wrappers.NormalizeReward(wrappers.NormalizeObservation(envs))
    step(wrappers.RecordEpisodeStatistics(envs), 500)
    envs = cartwheel.VectorEnv([partial(Quick, SCREEN)] * 8, autoreset_mode=mode)
    envs = wrappers.AtariPreprocessing(envs)
    step(wrappers.FrameStack(envs, 4), 50)


def main() -> None:
    """Does all of it, most of the time in the ways that are used most."""
    for envs, runs in ((8, 400), (64, 100), (4096, 2)):
        for dtype in (np.float32, np.float64):
            estimate(envs, dtype, runs)
    for mode in MODES:
        collect(mode)
        step_wrapped(mode)
    for name in MUJOCO:
        step(cartwheel.make_vec(f"cartwheel/{name}", 8), 200)
    for rows, steps in ((1, 40_000), (64, 20_000), (4096, 2000)):
        step(cartwheel.make_vec("cartwheel/CartPole-v1", rows, num_workers=1), steps)
    for name in NATIVE:
        for mode in MODES:
            step(cartwheel.make_vec(f"cartwheel/{name}", 64, autoreset_mode=mode), 1000)
    makes: list[Callable[[], Any]] = [partial(Quick, BOX), partial(Quick, NESTED)]
    makes.append(partial(gym.make, "CartPole-v1"))
    for make in makes:
        for rows in (1, 32):
            for executor in ("inline", "thread", "process"):
                step(cartwheel.VectorEnv([make] * rows, executor=executor), 2000)
    for rows, batch in ((1, 1), (64, 64), (64, 32), (1024, 512)):
        step_pool(rows, batch, 2000)


if __name__ == "__main__":
    main()
