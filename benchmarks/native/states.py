"""Milliseconds to save and to load all rows: 4,096 native CartPoles and 64 HalfCheetahs.

The wrappers are those of most training programs. A step of all rows, in the same process and at the
same time, is the yardstick. It has no bound: a checkpoint is made once in many steps.
"""

from __future__ import annotations

import pickle
import statistics
import time
from typing import TYPE_CHECKING, Any

import cartwheel
from cartwheel.wrappers import NormalizeObservation, NormalizeReward, RecordMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

REPETITIONS = 20


def milliseconds(call: Callable[[], Any]) -> float:
    """Returns the median time of a call."""
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def wrapped(envs: Any) -> Any:
    """The wrappers."""
    return NormalizeReward(NormalizeObservation(RecordMetrics(envs)))


def measure(env_id: str, num_envs: int, *, wraps: bool) -> None:
    """Prints what a state of these environments costs, without wrappers or with them."""
    envs: Any = cartwheel.make_vec(env_id, num_envs)
    envs = wrapped(envs) if wraps else envs
    envs.reset(seed=1)
    actions = envs.action_space.sample()
    for _ in range(50):
        envs.step(actions)
    state = envs.state_dict()
    size = len(pickle.dumps(state)) / 1e6
    step = milliseconds(lambda: envs.step(actions))
    save, load = milliseconds(envs.state_dict), milliseconds(lambda: envs.load_state_dict(state))
    print(
        f"{num_envs:>5} {env_id}, {3 * wraps} wrappers: step {step:.2f} ms, state_dict "
        f"{save:.2f} ms, load_state_dict {load:.2f} ms, {size:.2f} MB"
    )
    envs.close()


if __name__ == "__main__":
    for wraps in (False, True):
        measure("cartwheel/CartPole-v1", 4096, wraps=wraps)
        measure("cartwheel/HalfCheetah-v5", 64, wraps=wraps)
