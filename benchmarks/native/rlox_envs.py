"""Native CartPole-v1 and Pendulum-v1 against rlox's ``VecEnv``, in Rust with rayon.

A step of rlox is ``step_all`` with an array, which returns a dictionary of new arrays, and a list
of the last observations of episodes. It resets a row in the step that ends its episode, and so does
cartwheel here, in ``SAME_STEP``. Its Pendulum computes in ``float64``, too; its "HalfCheetah" is a
simplification without MuJoCo, and is not compared.

rlox imports torch, so this runs in an environment of its own: ``make bench-rlox``.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from benchmarks.harness.runners import stepping
from cartwheel.bench.contenders import Contender, cartwheel_native
from cartwheel.bench.envpool import load_package, why_not_loaded
from cartwheel.bench.runner import sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.runner import VectorRunner

ENV_IDS = ("CartPole-v1", "Pendulum-v1")
#: Rows of a race, and what cartwheel's rate must be, in rlox's.
BOUNDS = {64: 2.0, 4096: 2.0}


def rlox_runner(env_id: str, env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``VecEnv``, with a thread for each core, as it chooses."""
    num_envs = len(env_fns)
    space = cartwheel.NativeVectorEnv(env_id, 1).single_action_space
    # Lists of integers, which it takes as quickly as arrays; other actions as ``float32``.
    dtype: Any = np.uint32 if space.dtype == np.int64 else np.float32
    actions = [each.astype(dtype) for each in sample_actions(batch_space(space, num_envs))]
    envs = load_package("rlox").VecEnv(num_envs, 0, env_id)
    envs.reset_all()
    return stepping(num_envs, envs.step_all, actions)


def races() -> list[PeerRace]:
    """One for each environment and number of rows."""
    found = []
    for env_id in ENV_IDS:
        own = cartwheel_native(env_id, autoreset_mode="SameStep")
        theirs = Contender("rlox", functools.partial(rlox_runner, env_id))
        key = re.sub(r"\W+", "_", env_id.lower())
        work = f"{env_id}, native, `SAME_STEP`"
        for rows, bound in BOUNDS.items():
            claim = PeerClaim(key, work, Claim(own, theirs, bound), version_of("rlox"))
            found.append(PeerRace(rows, [claim]))
    return found


if __name__ == "__main__":
    reason = why_not_loaded("rlox", ": make bench-rlox")
    if reason is None:
        measure(__doc__, races())
    else:
        print(f"skipped: {reason}")
