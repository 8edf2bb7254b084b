"""GAE over a rollout of 128 steps, against the loop over time that trainers write.

The loops are vectorized over environments, as in CleanRL: in NumPy, and in torch if it is
installed. Each uses one thread, since operations on one step are too small for more. All contenders
get the same ``float32`` arrays and write their results into the same two arrays in every run. A
step of the table is one row of the rollout.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.runners import Repeated
from cartwheel import returns
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS, NUM_ENVS = 128, 4096
EPISODE_STEPS = 200  # mean length of an episode
GAMMA, LAMBDA = 0.99, 0.95

#: Rewards, values and next values, terminated and truncated flags; ``[T, N]``.
Rollout = tuple[Any, Any, Any, Any, Any]
#: Output of advantages and returns, ``[T, N]``.
Pair = tuple[Any, Any]


def rollout(num_envs: int) -> tuple[NDArray[Any], ...]:
    """Unit-normal rewards and values; half of the episodes are terminated, half truncated."""
    rng = np.random.default_rng(0)
    shape = (STEPS, num_envs)
    floats = (rng.standard_normal(shape, np.float32) for _ in range(3))
    ends = (rng.random(shape) < 1 / (2 * EPISODE_STEPS) for _ in range(2))
    return (*floats, *ends)


def cartwheel_gae(rows: Rollout, out: Pair, num_threads: int | None = None) -> None:
    """GAE of cartwheel."""
    returns.gae(*rows, gamma=GAMMA, gae_lambda=LAMBDA, num_threads=num_threads, out=out)


def numpy_gae(rows: Rollout, out: Pair) -> None:
    """A loop over time in NumPy."""
    rewards, values, next_values, terminated, truncated = rows
    advantages, results = out
    advantage = np.zeros_like(rewards[0])
    for t in reversed(range(STEPS)):
        delta = rewards[t] + GAMMA * next_values[t] * ~terminated[t] - values[t]
        over = terminated[t] | truncated[t]
        advantages[t] = advantage = delta + GAMMA * LAMBDA * advantage * ~over
    np.add(advantages, values, out=results)


def torch_gae(rows: Rollout, out: Pair) -> None:
    """A loop over time in torch."""
    import torch

    rewards, values, next_values, terminated, truncated = rows
    advantages, results = out
    advantage = torch.zeros_like(rewards[0])
    for t in reversed(range(STEPS)):
        delta = rewards[t] + GAMMA * next_values[t] * ~terminated[t] - values[t]
        over = terminated[t] | truncated[t]
        advantages[t] = advantage = delta + GAMMA * LAMBDA * advantage * ~over
    torch.add(advantages, values, out=results)


#: Reads a rollout and writes advantages and returns.
Estimator = Callable[[Rollout, Pair], None]


def with_numpy(name: str, estimator: Estimator) -> Contender:
    """A contender that takes NumPy arrays."""

    def build(env_fns: Any) -> Repeated:
        rows: Any = rollout(len(env_fns))
        out = np.zeros_like(rows[0]), np.zeros_like(rows[0])
        return Repeated(functools.partial(estimator, rows, out), STEPS * len(env_fns))

    return Contender(name, build)


def with_torch(name: str, estimator: Estimator) -> Contender:
    """A contender that takes tensors."""

    def build(env_fns: Any) -> Repeated:
        import torch

        torch.set_num_threads(1)
        rows: Any = [torch.from_numpy(array) for array in rollout(len(env_fns))]
        out = torch.zeros_like(rows[0]), torch.zeros_like(rows[0])
        return Repeated(functools.partial(estimator, rows, out), STEPS * len(env_fns))

    return Contender(name, build)


def main() -> None:
    """Prints the claims."""
    ours = with_numpy("cartwheel", cartwheel_gae)
    single = with_numpy("cartwheel, 1 thread", functools.partial(cartwheel_gae, num_threads=1))
    loop = with_numpy("NumPy loop", numpy_gae)
    claims = [Claim(ours, loop, 5), Claim(single, loop, 5)]
    if importlib.util.find_spec("torch"):
        claims.append(Claim(ours, with_torch("torch loop", torch_gae), 5))
    check(f"GAE of {STEPS} steps", no_env, {NUM_ENVS: claims})


if __name__ == "__main__":
    main()
