"""Costs of wrappers: a step of native CartPole-v1 with one of them, against the bare step.

The bounds are those of a step in ``NEXT_STEP`` on one thread: at most twice as long with 64 rows,
and 1.3 times with 1,024 and 4,096. Gymnasium's vector wrapper of the same name, where there is one,
is run over the same environments and has no bound. Names on the command line choose wrappers:
``python -m benchmarks.wrappers.overhead NormalizeReward FrameStack``.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from cartwheel import wrappers
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Wraps a vector environment.
    Wrap = Callable[[Any], Any]

#: How much longer a step may take, by the number of environments.
BOUNDS = {64: 2.0, 1024: 1.3, 4096: 1.3}
#: The wrappers, with the arguments of the benchmark, by the name of the class.
OURS: dict[str, Wrap] = {
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1, 1),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float64),
    "FlattenObservation": wrappers.FlattenObservation,
    "FrameStack": lambda envs: wrappers.FrameStack(envs, 4),
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "RecordMetrics": wrappers.RecordMetrics,
}
#: Gymnasium's of the same name.
GYMNASIUM: dict[str, Wrap] = {
    name: getattr(gym.wrappers.vector, name)
    for name in ("NormalizeObservation", "NormalizeReward", "RecordEpisodeStatistics")
}


def build(wrap: Wrap | None, env_fns: Sequence[Any]) -> VectorRunner:
    """Wraps native environments on one thread."""
    bare = cartwheel.NativeVectorEnv("CartPole-v1", len(env_fns), num_workers=1)
    envs = bare if wrap is None else wrap(bare)
    envs.reset(seed=0)
    return VectorRunner(envs, sample_actions(envs.action_space))


def contender(name: str, wrap: Wrap | None) -> Contender:
    """A contender with this name."""
    return Contender(name, functools.partial(build, wrap))


BARE = contender("bare", None)


def claims(num_envs: int, names: Sequence[str]) -> list[Claim]:
    """One claim for each wrapper, and a line without bound for Gymnasium's."""
    found = []
    for name in names:
        found.append(Claim(contender(name[:17], OURS[name]), BARE, 1 / BOUNDS[num_envs]))
        if name in GYMNASIUM:
            theirs = contender(f"gym {name}"[:17], GYMNASIUM[name])
            found.append(Claim(theirs, BARE, 0))
    return found


def chosen() -> list[str]:
    """The names on the command line, which are taken off it; all of them if there are none."""
    names = [name for name in sys.argv[1:] if name in OURS]
    sys.argv[1:] = [argument for argument in sys.argv[1:] if argument not in OURS]
    return names or list(OURS)


if __name__ == "__main__":
    np.seterr(all="ignore")  # Gymnasium's wrappers divide by counts of 0
    names = chosen()
    check("native CartPole-v1 in wrappers", no_env, {n: claims(n, names) for n in BOUNDS})
