"""Native CartPole-v1 through ``cartwheel.envpool``, against EnvPool: steps of all or half the rows.

The bounds are those of ``cartpole.py``. With ``batch_size = num_envs / 2`` both contenders
receive the rows that finish first and send actions to them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel import envpool
from cartwheel.bench.contenders import Contender
from cartwheel.bench.envpool import envpool_runner, fastest_envpool, why_not_envpool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.runner import Runner

ENV_ID = "CartPole-v1"
BOUNDS = {1: 15, 64: 15, 1024: 20}


def pair(ours: str, rival: str, parts: int = 1) -> tuple[Contender, Contender]:
    """Returns both contenders, of which a batch has one part of the environments."""

    def build(make: Callable[..., Runner], env_fns: Sequence[EnvFn]) -> Runner:
        return make(ENV_ID, len(env_fns), len(env_fns) // parts if parts > 1 else None)

    return (
        Contender(ours, functools.partial(build, functools.partial(envpool_runner, envpool))),
        Contender(rival, functools.partial(build, fastest_envpool)),
    )


WHOLE = pair("cartwheel.envpool", "envpool")
HALVES = pair("cartwheel halves", "envpool halves", parts=2)

if __name__ == "__main__":
    reason = why_not_envpool(ENV_ID)
    if reason is not None:
        print(f"skipped: {reason}")
    else:
        claims = {
            num_envs: [Claim(*pair, bound) for pair in (WHOLE, HALVES)[: min(num_envs, 2)]]
            for num_envs, bound in BOUNDS.items()
        }
        check("native CartPole-v1 through EnvPool's interface", no_env, claims)
