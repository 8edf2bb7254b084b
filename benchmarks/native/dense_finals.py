"""Native CartPole-v1 in SAME_STEP, against NEXT_STEP, which resets in later steps.

With ``final_obs="dense"`` every step has the true next observations of all rows in one array. With
``final_obs="object"``, as in Gymnasium, a step has an array for each row that ended; this pair has
no bound, it only shows what objects cost.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import Contender, cartwheel_native

BOUND = 1 / 1.25  # a step with dense final observations takes at most 25 % longer


def contender(name: str, threads: int, **keywords: Any) -> Contender:
    """Native CartPole-v1 on so many threads."""
    build = cartwheel_native("CartPole-v1", num_workers=threads, **keywords).build
    return Contender(f"{name}, {threads} thread{'s' * (threads > 1)}", build)


def claims(threads: int) -> list[Claim]:
    """Dense final observations and objects, against none."""
    none = contender("next_step", threads, autoreset_mode="next_step")
    dense = contender("dense", threads, autoreset_mode="same_step", final_obs="dense")
    objects = contender("objects", threads, autoreset_mode="same_step")
    return [Claim(dense, none, BOUND), Claim(objects, none, 0)]


if __name__ == "__main__":
    check("native CartPole-v1 with final observations", no_env, {4096: [*claims(1), *claims(2)]})
