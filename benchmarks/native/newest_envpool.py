"""Native environments against the newest EnvPool, also through its interface and in JAX.

EnvPool has left Python 3.11, so this runs in an environment of its own, with a newer Python:
``make bench-envpool``. ``benchmarks.native.cartpole`` and ``envpool_interface`` measure the same
against the newest one for the Python of the tests. Its MuJoCo is its own, so its trajectories and
the lengths of its episodes differ.
"""

from __future__ import annotations

from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from benchmarks.native.envpool_interface import HALVES, WHOLE
from cartwheel.bench.contenders import cartwheel_native, envpool
from cartwheel.bench.envpool import why_not_envpool, why_not_loaded

CARTPOLE, CHEETAH = "CartPole-v1", "HalfCheetah-v5"


def races() -> list[PeerRace]:
    """One for each number of rows and interface."""
    from benchmarks.trainers import jax_scan  # only here: it imports JAX

    rival = version_of("envpool")
    native = Claim(cartwheel_native(CARTPOLE), envpool(CARTPOLE), 15)
    cheetah = Claim(cartwheel_native(CHEETAH), envpool(CHEETAH), 1.3)
    whole, halves = Claim(*WHOLE, 15), Claim(*HALVES, 15)
    scan = Claim(jax_scan.SCAN, jax_scan.ENVPOOL, 20)
    interface = f"{CARTPOLE}, native, `cartwheel.envpool`"
    compiled = f"{CARTPOLE}, native, `jax.lax.scan` of 2,048 steps against `xla()`"
    found = [
        PeerRace(rows, [PeerClaim("cartpole", f"{CARTPOLE}, native", native, rival)])
        for rows in (1, 64, 4096)
    ]
    found.append(PeerRace(64, [PeerClaim("halfcheetah", f"{CHEETAH}, native", cheetah, rival)]))
    both = [
        PeerClaim("interface", interface, whole, rival),
        PeerClaim("halves", f"{interface}, batches of half", halves, rival),
    ]
    found.append(PeerRace(64, both))
    with_jax = version_of("envpool", "jax")
    found += [PeerRace(rows, [PeerClaim("xla", compiled, scan, with_jax)]) for rows in (64, 1024)]
    return found


if __name__ == "__main__":
    reason = why_not_envpool(CARTPOLE) or why_not_loaded("jax", ": make bench-envpool")
    if reason is None:
        measure(__doc__, races())
    else:
        print(f"skipped: {reason}")
