"""One native CartPole-v1: the cost of the whole call of ``step`` beyond the environment itself."""

from __future__ import annotations

from benchmarks.harness.claim import OverheadClaim, check, no_env
from cartwheel.bench.contenders import cartwheel_native, native_ceiling

NATIVE = cartwheel_native("CartPole-v1")
ALONE = native_ceiling("CartPole-v1", blocks=False)

if __name__ == "__main__":
    check("one native CartPole-v1", no_env, {1: [OverheadClaim(NATIVE, ALONE, 2)]})
