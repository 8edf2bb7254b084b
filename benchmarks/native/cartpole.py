"""Native CartPole-v1 against plain loops in Rust, EnvPool and Gymnasium's NumPy CartPole.

The plain loops have no interface at all, and there is one on each core. They are two ceilings: one
steps each row on its own, the other several rows at once with vector instructions, as the vector
environment does. One row shows what the call of ``step`` costs beyond the environment, and against
what any step has to make: four arrays, a tuple and a dictionary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np

from benchmarks.harness.claim import Claim, OverheadClaim, check, no_env
from cartwheel.bench.contenders import (
    Contender,
    cartwheel_native,
    envpool,
    native_ceiling,
    own_vector_env,
)
from cartwheel.bench.envpool import why_not_envpool
from cartwheel.bench.runner import AnyVectorEnv, VectorRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn


class Outputs:
    """A vector environment whose step makes the arrays of a step of CartPole, and nothing else.

    ``numpy.empty`` is the fastest function that makes an array in Python. Its arrays are not
    filled, and not aligned to 64 bytes.
    """

    def __init__(self, num_envs: int) -> None:
        """Remembers the shape of the arrays."""
        self.num_envs = num_envs
        self._shape = (num_envs, 4)

    def step(self, _: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Makes observations, rewards, flags and infos."""
        empty, rows = np.empty, self.num_envs
        return (
            empty(self._shape, np.float32),
            empty(rows),
            empty(rows, np.bool_),
            empty(rows, np.bool_),
            {},
        )

    def close(self) -> None:
        """Does nothing."""


def outputs(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """Makes the runner of what any step has to make."""
    envs = cast("AnyVectorEnv", Outputs(len(env_fns)))
    return VectorRunner(envs, [np.zeros(len(env_fns), np.int64)])


OUTPUTS = Contender("arrays and tuple", outputs)
NATIVE, ENVPOOL = cartwheel_native("CartPole-v1"), envpool("CartPole-v1")
BY_ROWS, IN_BLOCKS = native_ceiling("CartPole-v1", blocks=False), native_ceiling("CartPole-v1")
NUMPY = own_vector_env(gym.spec("CartPole-v1"))
assert NUMPY is not None, "Gymnasium has a vector entry point for CartPole-v1"

if __name__ == "__main__":
    claims: dict[int, list[Claim | OverheadClaim]] = {
        1: [OverheadClaim(NATIVE, BY_ROWS, 2), Claim(NATIVE, OUTPUTS, 1 / 1.2)],
        64: [],
        1024: [Claim(NATIVE, NUMPY, 3)],
        4096: [Claim(NATIVE, NUMPY, 3), Claim(NATIVE, BY_ROWS, 0.7), Claim(NATIVE, IN_BLOCKS, 0.7)],
    }
    reason = why_not_envpool("CartPole-v1")
    if reason is not None:
        print(f"without envpool: {reason}")
        del claims[64]
    else:
        for num_envs, bound in {1: 15, 64: 15, 1024: 20, 4096: 20}.items():
            claims[num_envs].append(Claim(NATIVE, ENVPOOL, bound))
    check("native CartPole-v1", no_env, claims)
