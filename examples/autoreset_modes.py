"""The three autoreset modes side by side: the right transitions for a replay buffer in each.

A transition is (observation, action, reward, next observation, terminated). The mode decides where
its parts are found. If they are taken from the wrong place, only the ends of episodes are wrong,
and no error shows it. This script fills a buffer in every mode, with a policy that depends only on
the observation, and checks that complete episodes gave exactly the same transitions.

Run it with ``python examples/autoreset_modes.py``.
"""

from __future__ import annotations

import argparse
import collections
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium as gym

    from cartwheel._internal.literals import ModeName

NUM_ENVS, EPISODES_EACH = 8, 20
MAX_EPISODE_STEPS = 40  # some episodes end before it (terminated), some at it (truncated)

Observations: TypeAlias = NDArray[np.float32]
#: Observation (4,), action, reward, next observation (4,), terminated.
Transition: TypeAlias = tuple[Observations, int, float, Observations, bool]


class Buffer:
    """Keeps the transitions of the first complete episodes of every row."""

    def __init__(self) -> None:
        """An empty buffer."""
        self.open: list[list[Transition]] = [[] for _ in range(NUM_ENVS)]
        self.episodes = [0] * NUM_ENVS
        self.transitions: list[Transition] = []

    def add(self, row: int, transition: Transition, *, last: bool) -> None:
        """Adds one transition of ``row``; ``last`` completes its episode."""
        self.open[row].append(transition)
        if last:
            if self.episodes[row] < EPISODES_EACH:
                self.transitions += self.open[row]
            self.episodes[row] += 1
            self.open[row] = []

    def counts(self) -> collections.Counter[tuple[bytes, int, float, bytes, bool]]:
        """Counts each transition, compared bit for bit."""
        return collections.Counter(
            (observation.tobytes(), action, reward, next_observation.tobytes(), terminated)
            for observation, action, reward, next_observation, terminated in self.transitions
        )

    def is_full(self) -> bool:
        """Whether every row has completed its episodes."""
        return min(self.episodes) >= EPISODES_EACH


def policy(observations: Observations) -> NDArray[np.int64]:
    """Pushes to the side to which the pole leans, so the pole falls soon; (8, 4) to (8,)."""
    return (observations[:, 2] > 0).astype(np.int64)


def next_step(envs: gym.vector.VectorEnv[Any, Any, Any], buffer: Buffer) -> int:
    """The step after the last one of an episode resets the row: it is not a transition."""
    observations, _ = envs.reset(seed=1)
    resetting = np.zeros(NUM_ENVS, np.bool_)
    steps = 0
    while not buffer.is_full():
        actions = policy(observations)
        next_observations, rewards, terminations, truncations, _ = envs.step(actions)
        over = terminations | truncations
        for row in np.flatnonzero(~resetting):  # drop rows whose action was ignored
            transition = (
                observations[row],
                int(actions[row]),
                float(rewards[row]),
                next_observations[row],  # right for the last step too
                bool(terminations[row]),
            )
            buffer.add(int(row), transition, last=bool(over[row]))
        resetting, observations, steps = over, next_observations, steps + 1
    return steps


def same_step(envs: gym.vector.VectorEnv[Any, Any, Any], buffer: Buffer) -> int:
    """The last step of an episode returns the first observation of the next episode.

    The true next observation is in ``infos["final_obs"]``.
    """
    observations, _ = envs.reset(seed=1)
    steps = 0
    while not buffer.is_full():
        actions = policy(observations)
        next_observations, rewards, terminations, truncations, infos = envs.step(actions)
        over = terminations | truncations
        for row in range(NUM_ENVS):
            true_next = infos["final_obs"][row] if over[row] else next_observations[row]
            transition = (
                observations[row],
                int(actions[row]),
                float(rewards[row]),
                true_next,
                bool(terminations[row]),
            )
            buffer.add(row, transition, last=bool(over[row]))
        observations, steps = next_observations, steps + 1
    return steps


def disabled(envs: gym.vector.VectorEnv[Any, Any, Any], buffer: Buffer) -> int:
    """Rows restart only when they are reset: every step is a transition."""
    observations, _ = envs.reset(seed=1)
    steps = 0
    while not buffer.is_full():
        actions = policy(observations)
        next_observations, rewards, terminations, truncations, _ = envs.step(actions)
        over = terminations | truncations
        for row in range(NUM_ENVS):
            transition = (
                observations[row],
                int(actions[row]),
                float(rewards[row]),
                next_observations[row],
                bool(terminations[row]),
            )
            buffer.add(row, transition, last=bool(over[row]))
        if over.any():
            next_observations, _ = envs.reset(options={"reset_mask": over})
        observations, steps = next_observations, steps + 1
    return steps


def main() -> None:
    """Runs the three loops and compares their buffers."""
    loops: dict[ModeName, Callable[[Any, Buffer], int]] = {
        "next_step": next_step,
        "same_step": same_step,
        "disabled": disabled,
    }
    buffers: dict[ModeName, Buffer] = {}
    print(f"{'mode':<11}{'steps':>7}{'episodes':>10}{'terminated':>12}{'transitions':>13}  equal")
    for mode, loop in loops.items():
        envs = cartwheel.make_vec(
            "CartPole-v1", NUM_ENVS, autoreset_mode=mode, max_episode_steps=MAX_EPISODE_STEPS
        )
        buffer = buffers[mode] = Buffer()
        steps = loop(envs, buffer)
        envs.close()
        equal = buffer.counts() == buffers["next_step"].counts()
        terminated = sum(transition[-1] for transition in buffer.transitions)
        print(
            f"{mode:<11}{steps:>7}{NUM_ENVS * EPISODES_EACH:>10}{terminated:>12}"
            f"{len(buffer.transitions):>13}  {'yes' if equal else 'NO'}"
        )
        if not equal:
            raise SystemExit(f"{mode} and next_step gave different transitions")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
