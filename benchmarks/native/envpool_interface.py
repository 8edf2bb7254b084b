"""Native CartPole-v1 through ``cartwheel.envpool``, against EnvPool: steps of all or half the rows.

The bounds are those of ``native_envpool.py``. With ``batch_size = num_envs / 2`` both contenders
receive the rows that finish first and send actions to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel import envpool
from cartwheel.bench.contenders import Contender
from cartwheel.bench.envpool import envpool_runner, fastest_envpool, why_not_envpool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.runner import Runner

ENV_ID = "CartPole-v1"
BOUNDS = {1: 15, 64: 15, 1024: 20}


def ours(env_fns: Sequence[EnvFn]) -> Runner:
    """Steps of all."""
    return envpool_runner(envpool, ENV_ID, len(env_fns))


def ours_by_halves(env_fns: Sequence[EnvFn]) -> Runner:
    """Batches of half of the environments."""
    return envpool_runner(envpool, ENV_ID, len(env_fns), len(env_fns) // 2)


def theirs(env_fns: Sequence[EnvFn]) -> Runner:
    """Steps of all."""
    return fastest_envpool(ENV_ID, len(env_fns))


def theirs_by_halves(env_fns: Sequence[EnvFn]) -> Runner:
    """Batches of half of the environments."""
    return fastest_envpool(ENV_ID, len(env_fns), len(env_fns) // 2)


WHOLE = Contender("cartwheel.envpool", ours), Contender("envpool", theirs)
HALVES = (
    Contender("cartwheel halves", ours_by_halves),
    Contender("envpool halves", theirs_by_halves),
)

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
