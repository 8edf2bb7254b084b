"""MuJoCo models against mjbatch, a C++ pool for MuJoCo: the same model, rewards and resets.

``benchmarks.harness.mjbatch_envs`` has the loops around mjbatch: the arm of ``examples/arm.py``,
and the eleven environments of Gymnasium, three of them without contact forces, which mjbatch does
not compute; cartwheel computes them here, too, and uses them for nothing. Both contenders reset a
row in the step after its last one, and return copies of the observations. The random numbers of
resets come from a generator for each row in cartwheel, and from one for all rows in the loop.

Before the race, the simulations of both must have the same bits after the same actions, and the
same observations and rewards.

mjbatch asks for one version of MuJoCo, so this runs in an environment of its own:
``make bench-mjbatch``.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.mjbatch_envs import GYMNASIUM, WITHOUT_FORCES, Arms, MjbatchEnvs
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from cartwheel.bench.contenders import Contender
from cartwheel.bench.envpool import why_not_loaded
from cartwheel.bench.runner import VectorRunner, sample_actions
from examples import arm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Rows of a race, and what cartwheel's rate must be, in mjbatch's.
BOUNDS = {64: 1.0, 4096: 1.0}
#: Steps whose bits are compared, in an episode.
COMPARED = 15
M_MMAP_THRESHOLD = -3
"""A parameter of ``mallopt``: larger blocks are mapped, and unmapped when they are freed."""


def own_arms(num_envs: int) -> Any:
    """The arms in cartwheel."""
    return arm.make(num_envs, autoreset_mode="NextStep")


def native(env_id: str) -> Callable[[int], Any]:
    """Makes native environments of an id."""
    options = WITHOUT_FORCES.get(env_id, {})
    return lambda num_envs: cartwheel.NativeVectorEnv(env_id, num_envs, **options)


def name_of(env_id: str) -> str:
    """The name of the environment in tables."""
    return f"{env_id} without contact forces" if env_id in WITHOUT_FORCES else env_id


RACES: dict[str, tuple[Callable[[int], Any], type[MjbatchEnvs]]] = {
    "arm of `examples/arm.py`": (own_arms, Arms),
    **{name_of(each.env_id): (native(each.env_id), each) for each in GYMNASIUM},
}


def contenders(work: str) -> tuple[Contender, Contender]:
    """Cartwheel and mjbatch's loop."""
    make, theirs = RACES[work]

    def own_runner(env_fns: Sequence[Any]) -> VectorRunner:
        envs = make(len(env_fns))
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    def their_runner(env_fns: Sequence[Any]) -> VectorRunner:
        envs = make(1)
        actions = sample_actions(batch_space(envs.single_action_space, len(env_fns)))
        envs.close()
        runner: Any = theirs(len(env_fns))
        return VectorRunner(runner, actions)

    return Contender("cartwheel", own_runner), Contender("mjbatch", their_runner)


def compare_bits(work: str, num_envs: int = 7) -> None:
    """Steps both from the same states with the same actions.

    Raises:
        AssertionError: A bit of a position, an observation, a reward or an end differs.
    """
    make, theirs = RACES[work]
    envs, other = make(num_envs), theirs(num_envs)
    envs.reset(seed=1)
    rows = np.arange(num_envs)
    names = ("qpos", "mocap_pos") if isinstance(other, Arms) else ("qpos", "qvel")
    now = {name: np.stack(envs.get_attr(f"data.{name}")) for name in names}
    if isinstance(other, Arms):
        drawn = {
            name: np.stack(envs.get_attr(name))
            for name in ("model.body_mass", "model.actuator_gear")
        }
        other.write(rows, {**now, **drawn})
    else:
        other.fields["qpos"][:], other.fields["qvel"][:] = now["qpos"], now["qvel"]
        other.batch.reset(rows)
    other.start()
    envs.action_space.seed(1)
    for _ in range(COMPARED):
        actions = envs.action_space.sample()
        observations, rewards, terminations, *_ = envs.step(actions)
        seen, theirs_rewards, theirs_terminations, *_ = other.step(actions)
        qpos = np.stack(envs.get_attr("data.qpos"))
        lives = ~(terminations | theirs_terminations)
        np.testing.assert_array_equal(qpos[lives], other.fields["qpos"][lives])
        np.testing.assert_array_equal(terminations, theirs_terminations)
        # Sums of other dtypes, and sines of another library.
        np.testing.assert_allclose(rewards, theirs_rewards, rtol=1e-6, atol=1e-9)
        own = np.concatenate([flat.reshape(num_envs, -1) for flat in leaves(observations)], axis=1)
        np.testing.assert_allclose(own[lives], seen[lives], rtol=1e-12)
        if not lives.all():
            break
    envs.close()
    other.close()


def leaves(observations: Any) -> list[Any]:
    """The arrays of an observation."""
    return list(observations.values()) if isinstance(observations, dict) else [observations]


def races() -> Iterator[PeerRace]:
    """One for each model and number of rows, after its bits were compared."""
    # A simulation reserves up to 14 MB, of which it uses a part. Where glibc takes the memory of
    # the next race from that of the last one, thousands of rows use all of it in the end: 12 GB.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)
    for work in RACES:
        compare_bits(work)
        ours, theirs = contenders(work)
        key = re.sub(r"\W+", "_", work.lower()).strip("_")
        for rows, bound in BOUNDS.items():
            claim = Claim(ours, theirs, bound)
            version = version_of("mjbatch", "mujoco")
            yield PeerRace(rows, [PeerClaim(key, f"{work}, native", claim, version)])


if __name__ == "__main__":
    reason = why_not_loaded("mjbatch", ": make bench-mjbatch")
    if reason is None:
        measure(__doc__, races())
    else:
        print(f"skipped: {reason}")
