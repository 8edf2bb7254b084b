"""Native CartPole-v1 beside plain loops in Rust, one on each core, with no interface at all.

There are two ceilings: plain loops that step each row on its own, and plain loops that step several
rows at once with vector instructions, as the vector environment does.
"""

from __future__ import annotations

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import cartwheel_native, native_ceiling

NATIVE = cartwheel_native("CartPole-v1")
BY_ROWS = native_ceiling("CartPole-v1", blocks=False)
IN_BLOCKS = native_ceiling("CartPole-v1")

if __name__ == "__main__":
    check(
        "native CartPole-v1",
        no_env,
        {4096: [Claim(NATIVE, BY_ROWS, 0.7), Claim(NATIVE, IN_BLOCKS, 0.7)]},
    )
