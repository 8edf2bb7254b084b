"""Native CartPole-v1 against plain loops in Rust, EnvPool and Gymnasium's NumPy CartPole.

The plain loops have no interface at all, and there is one on each core. They are two ceilings: one
steps each row on its own, the other several rows at once with vector instructions, as the vector
environment does. One row shows what the call of ``step`` costs beyond the environment.
"""

from __future__ import annotations

import gymnasium as gym

from benchmarks.harness.claim import Claim, OverheadClaim, check, no_env
from cartwheel.bench.contenders import cartwheel_native, envpool, native_ceiling, own_vector_env
from cartwheel.bench.envpool import why_not_envpool

NATIVE, ENVPOOL = cartwheel_native("CartPole-v1"), envpool("CartPole-v1")
BY_ROWS, IN_BLOCKS = native_ceiling("CartPole-v1", blocks=False), native_ceiling("CartPole-v1")
NUMPY = own_vector_env(gym.spec("CartPole-v1"))
assert NUMPY is not None, "Gymnasium has a vector entry point for CartPole-v1"

if __name__ == "__main__":
    claims: dict[int, list[Claim | OverheadClaim]] = {
        1: [OverheadClaim(NATIVE, BY_ROWS, 2)],
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
