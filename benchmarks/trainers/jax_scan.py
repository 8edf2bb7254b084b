"""Native CartPole-v1 in ``jax.lax.scan``, against a plain loop in Rust, ``step`` and EnvPool.

Each scan steps all rows some thousand times with actions that were drawn before, and returns the
rewards and terminations of all steps; ``step`` in a loop keeps nothing. Two rows compare like with
like: a loop that keeps what the scan does, and a scan that keeps nothing. EnvPool's pool is stepped
as the first scan, by its own ``xla()``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.runners import Repeated
from cartwheel.bench.contenders import Contender, cartwheel_native, native_ceiling
from cartwheel.bench.envpool import load_package, why_not_envpool
from cartwheel.bench.runner import ACTION_BATCHES
from cartwheel.jax import envs_to_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

ENV_ID = "CartPole-v1"
#: Steps of one compiled call, as many as a long rollout.
STEPS = 2048


def drawn(num_envs: int) -> Any:
    """Actions for a rollout, drawn before it."""
    batches = np.random.default_rng(0).integers(0, 2, (ACTION_BATCHES, num_envs))
    return np.concatenate([batches] * (STEPS // ACTION_BATCHES))


def kept_steps(env_fns: Sequence[EnvFn]) -> Repeated:
    """A loop over ``envs.step`` that keeps the rewards and terminations of all steps."""
    envs = cartwheel.NativeVectorEnv(ENV_ID, len(env_fns))
    envs.reset(seed=0)
    shape, batches = (STEPS, envs.num_envs), list(drawn(envs.num_envs))

    def collect() -> None:
        kept = np.empty(shape), np.empty(shape, bool)
        for actions, rewards, terminations in zip(batches, *kept, strict=True):
            _, rewards[:], terminations[:], _, _ = envs.step(actions)

    return Repeated(collect, STEPS * envs.num_envs, envs.close)


class Scans:
    """Times scans of one compiled function."""

    note = ""

    def __init__(self, envs: Any, scan: Callable[[Any, Any], Any], carry: Any) -> None:
        """Takes over ``envs``, which ``scan`` steps once for each batch of actions."""
        self._envs, self._scan, self._carry = envs, jax.jit(scan), carry
        self._actions = jax.device_put(drawn(envs.num_envs).astype(np.int32))
        self._scan_s = float("inf")
        self.run(0)  # compiles

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``; returns environment steps per second."""
        turns = max(1, round(seconds / self._scan_s))
        start = time.perf_counter()
        for _ in range(turns):
            self._carry, results = self._scan(self._carry, self._actions)
        jax.block_until_ready((self._carry, results))
        self._scan_s = (time.perf_counter() - start) / turns
        return float(self._envs.num_envs * STEPS / self._scan_s)

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()


def ours(env_fns: Sequence[EnvFn], *, keeps: bool = True) -> Scans:
    """A scan of cartwheel's ``step``, which keeps rewards and flags, or the last batch alone."""
    envs = cartwheel.NativeVectorEnv(ENV_ID, len(env_fns))
    init, step, _ = envs_to_jax(envs)

    def body(carry: Any, actions: Any) -> Any:
        state, timestep = step(carry[0], actions)
        kept = (timestep.rewards, timestep.terminations) if keeps else None
        return (state, timestep.observations), kept

    state, timestep = init(0)
    carry = state, timestep.observations
    return Scans(envs, lambda *given: jax.lax.scan(body, *given), carry)


def theirs(env_fns: Sequence[EnvFn]) -> Scans:
    """The same of EnvPool's, with as many threads as it chooses itself."""
    envs = load_package("envpool").make_gymnasium(ENV_ID, num_envs=len(env_fns), seed=0)
    handle, _, _, step = envs.xla()
    observations, _ = envs.reset()

    def body(carry: Any, actions: Any) -> Any:
        handle, results = step(carry[0], actions)
        return (handle, results[0]), (results[1], results[2])

    carry = handle, jax.numpy.asarray(observations)
    return Scans(envs, lambda *given: jax.lax.scan(body, *given), carry)


SCAN, ENVPOOL = Contender("scan", ours), Contender("envpool xla", theirs)
SCAN_ALONE = Contender("scan keeps none", lambda env_fns: ours(env_fns, keeps=False))
STEP_KEPT = Contender("step keeps the same", kept_steps)
STEP, LOOP = cartwheel_native(ENV_ID), native_ceiling(ENV_ID, blocks=False, threads=1)

if __name__ == "__main__":
    claims = {
        64: [Claim(SCAN, LOOP, 0.9), Claim(SCAN, STEP, 1.0)],
        1024: [Claim(SCAN, LOOP, 1.1), Claim(SCAN, STEP, 1.0)],
    }
    for each in claims.values():
        each += [Claim(SCAN, STEP_KEPT, 1.0), Claim(SCAN_ALONE, STEP, 1.0)]
    reason = why_not_envpool(ENV_ID)
    if reason is not None:
        print(f"without envpool: {reason}")
    else:
        for each in claims.values():
            each.append(Claim(SCAN, ENVPOOL, 20))
    check("native CartPole-v1 in compiled functions", no_env, claims)
