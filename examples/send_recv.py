"""Policy and environments at the same time: ``send`` and ``recv`` against ``step``.

With ``step`` either the environments work or the policy does, and every batch waits for its slowest
row. With batches of half of the rows, one half is stepped while the policy computes the actions of
the other half (double buffering). The rows of a batch are those that finished first, and
``infos["env_index"]`` says which ones they are. This script uses it to compute returns row by row,
and checks that every loop gives each row the same returns.

The environments' steps take 1 to 10 ms, as if they waited for a simulator; the policy takes 4 ms a
batch, as if it waited for an accelerator.

Run it with ``python examples/send_recv.py``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np

import cartwheel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_ENVS, STEPS_EACH = 16, 150
POLICY_S = 0.004

#: The returns of the complete episodes of each row, in order.
Returns: TypeAlias = list[list[float]]


class SlowCartPole(gym.Wrapper[Any, Any, Any, Any]):
    """CartPole whose steps take 1 to 10 ms, half of them less than 3.2 ms."""

    def __init__(self) -> None:
        """Creates the environment and a generator for the durations of its steps."""
        super().__init__(gym.make("CartPole-v1", max_episode_steps=20))
        self.durations = np.random.default_rng()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Waits, then steps."""
        time.sleep(10 ** self.durations.random() / 1000)
        return super().step(action)


def policy(observations: NDArray[np.float32]) -> NDArray[np.int64]:
    """Pushes to the side to which the pole falls; (rows, 4) to (rows,)."""
    time.sleep(POLICY_S)
    return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)


class Tally:
    """Adds up rewards, row by row."""

    def __init__(self) -> None:
        """Starts with no steps."""
        self.steps = np.zeros(NUM_ENVS, np.int64)
        self.running = np.zeros(NUM_ENVS)
        self.returns: Returns = [[] for _ in range(NUM_ENVS)]

    def add(self, rows: NDArray[np.int64], rewards: Any, over: NDArray[np.bool_]) -> None:
        """Counts a step of ``rows``, each of which occurs once; all of shape (rows,)."""
        counts = self.steps[rows] < STEPS_EACH  # further steps are not compared
        rows, rewards, over = rows[counts], rewards[counts], over[counts]
        self.steps[rows] += 1
        self.running[rows] += rewards
        for row in rows[over]:
            self.returns[row].append(float(self.running[row]))
        self.running[rows[over]] = 0.0


def in_lockstep() -> tuple[float, Returns]:
    """Runs the policy, then steps all rows; returns rows a second and the returns."""
    envs = cartwheel.VectorEnv([SlowCartPole] * NUM_ENVS, num_workers=NUM_ENVS)
    tally, rows = Tally(), np.arange(NUM_ENVS)
    observations, _ = envs.reset(seed=1)
    start = time.perf_counter()
    for _ in range(STEPS_EACH):
        observations, rewards, terminations, truncations, _ = envs.step(policy(observations))
        tally.add(rows, rewards, terminations | truncations)
    seconds = time.perf_counter() - start
    envs.close()
    return NUM_ENVS * STEPS_EACH / seconds, tally.returns


def in_batches(batch_size: int) -> tuple[float, Returns]:
    """Runs the policy on finished rows while the others are stepped; returns the same values."""
    envs = cartwheel.VectorEnv(
        [SlowCartPole] * NUM_ENVS, num_workers=NUM_ENVS, batch_size=batch_size
    )
    tally, stepped, started = Tally(), 0, np.zeros(NUM_ENVS, np.bool_)
    envs.send_reset(seed=1)
    start = time.perf_counter()
    while tally.steps.min() < STEPS_EACH:
        observations, rewards, terminations, truncations, infos = envs.recv()
        rows = infos["env_index"]  # (batch_size,)
        stepped += int(started[rows].sum())  # the first result of a row comes from its reset
        tally.add(
            rows[started[rows]], rewards[started[rows]], (terminations | truncations)[started[rows]]
        )
        started[rows] = True
        envs.send(policy(observations), rows)
    seconds = time.perf_counter() - start
    envs.close()
    return stepped / seconds, tally.returns


def main() -> None:
    """Runs the loops and compares them."""
    rate, returns = in_lockstep()
    print(f"{'loop':<22}{'rows a second':>14}{'gain':>7}  same returns")
    print(f"{'step':<22}{rate:>14,.0f}{1:>7.2f}")
    for batch_size in (NUM_ENVS // 2, NUM_ENVS // 4):
        other, own = in_batches(batch_size)
        name = f"recv, send of {batch_size}"
        print(f"{name:<22}{other:>14,.0f}{other / rate:>7.2f}  {'yes' if own == returns else 'NO'}")
        if own != returns:
            raise SystemExit("the returns differ from those of `step`")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
