"""CartPole-v1 in worker processes, stepped in turn with a policy that computes.

While a policy computes, no worker should use the processors; the next step should begin as fast as
if no worker had slept. So a step after a policy is compared with the two apart: steps without a
policy, and the policy without steps. Below 1, workers disturb the policy or wake late after it.

A policy multiplies matrices, as many as take its time: with NumPy, whose library chooses the number
of threads, and with torch, where it is installed, on two threads.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import time
import timeit
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

MILLISECONDS = (0.1, 1.0, 10.0)
WIDTH, TRIAL = 256, 200
BOUND = 0.9


def numpy_product() -> Callable[[], Any]:
    """Multiplies two matrices of floats."""
    matrix = np.random.default_rng(0).random((WIDTH, WIDTH), np.float32)
    result = np.empty_like(matrix)
    return lambda: np.matmul(matrix, matrix, out=result)


def torch_product() -> Callable[[], Any]:
    """The same with torch."""
    import torch  # where it is installed

    torch.set_num_threads(2)
    matrix = torch.rand(WIDTH, WIDTH)
    result = torch.empty_like(matrix)
    return lambda: torch.matmul(matrix, matrix, out=result)


class InTurn:
    """Steps and calls of a policy: one after the other, or each by itself."""

    note = ""

    def __init__(self, env_fns: Sequence[EnvFn], policy: Callable[[], Any], *, apart: bool) -> None:
        """Makes worker processes and resets the environments."""
        self.envs = cartwheel.VectorEnv(env_fns, executor="process")
        self.envs.reset(seed=0)
        self._actions = sample_actions(self.envs.action_space)
        self._policy, self._apart = policy, apart
        self._turn_s = float("inf")  # in the last run

    def run(self, seconds: float) -> float:
        """Runs for about ``seconds``, at least one turn; returns environment steps per second."""
        turns = max(1, round(seconds / self._turn_s))
        batches = [self._actions[turn % len(self._actions)] for turn in range(turns)]
        start = time.perf_counter()
        if self._apart:
            for actions in batches:
                self.envs.step(actions)
            for _ in batches:
                self._policy()
        else:
            for actions in batches:
                self.envs.step(actions)
                self._policy()
        self._turn_s = (time.perf_counter() - start) / turns
        return self.envs.num_envs / self._turn_s

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


def claims(product: Callable[[], Any], name: str) -> list[Claim]:
    """One claim for each time that a policy takes."""
    product_s = statistics.median(timeit.repeat(product, number=1, repeat=TRIAL))
    found = []
    for milliseconds in MILLISECONDS:
        times = max(1, round(milliseconds / 1e3 / product_s))
        policy = functools.partial(timeit.timeit, product, number=times)
        together, apart = (
            Contender(
                f"{label}, {name} {milliseconds:g} ms",
                functools.partial(InTurn, policy=policy, apart=label == "apart"),
            )
            for label in ("in turn", "apart")
        )
        found.append(Claim(together, apart, BOUND))
    return found


if __name__ == "__main__":
    products = {"NumPy": numpy_product()}
    if importlib.util.find_spec("torch"):
        products["torch"] = torch_product()
    everything = [claim for name, product in products.items() for claim in claims(product, name)]
    env_fn = functools.partial(gym.make, "CartPole-v1")
    check("CartPole-v1 and a policy in turn", env_fn, {32: everything, 128: everything})
