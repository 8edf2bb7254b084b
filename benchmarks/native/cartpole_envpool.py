"""Native CartPole-v1 beside EnvPool's, which is written in C++."""

from __future__ import annotations

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import cartwheel_native, envpool
from cartwheel.bench.envpool import why_not_envpool

NATIVE, ENVPOOL = cartwheel_native("CartPole-v1"), envpool("CartPole-v1")
BOUNDS = {1: 15, 64: 15, 1024: 20, 4096: 20}

if __name__ == "__main__":
    reason = why_not_envpool("CartPole-v1")
    if reason is not None:
        print(f"skipped: {reason}")
    else:
        claims = {num_envs: [Claim(NATIVE, ENVPOOL, bound)] for num_envs, bound in BOUNDS.items()}
        check("native CartPole-v1", no_env, claims)
