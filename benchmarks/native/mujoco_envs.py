"""Native MuJoCo environments against all others that step them, and the bare loop of mj_step.

The bare loop is ``bare_mj_step.c``, which this script compiles with ``cc``: on each core a thread
that steps its share of the rows, with the functions of the installed MuJoCo, the same actions, and
resets where Gymnasium's environments end their episodes. EnvPool steps with its own MuJoCo.
"""

from __future__ import annotations

import ctypes
import functools
import math
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium.vector.utils import batch_space

from benchmarks.harness.claim import Claim, check
from cartwheel._cartwheel import shards, usable_cpus
from cartwheel.bench.contenders import (
    ASYNC,
    SYNC,
    Contender,
    cartwheel_native,
    cartwheel_with,
    envpool,
)
from cartwheel.bench.envpool import why_not_envpool
from cartwheel.bench.runner import sample_actions
from cartwheel.native.mujoco.library import addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.arguments import EnvFn

ENV_IDS = ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Hopper-v5")
STARTS = 256
"""States of reset environments that rows of the bare loop begin their episodes with, in turn."""
BOUNDS: dict[str, list[tuple[int | slice, float, float]]] = {
    "Ant-v5": [(2, 0.2, 1)],
    "Humanoid-v5": [(2, 1, 2)],
    "Hopper-v5": [(slice(2, None), -100, 100), (1, 0.7, math.inf), (2, -0.2, 0.2)],
}
"""Bounds of a running episode: places of positions and velocities, and their limits,
as Gymnasium's environments have them by default."""


class Task(ctypes.Structure):
    """``struct task`` of ``bare_mj_step.c``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("step", "reset", "forward", "forces", "model")),
        *((name, ctypes.c_long) for name in ("frame_skip", "nq", "nv", "nu", "limit")),
        *((name, ctypes.c_void_p) for name in ("low", "high", "actions")),
        *((name, ctypes.c_long) for name in ("batches", "rows")),
        ("starts", ctypes.c_void_p),
        ("num_starts", ctypes.c_long),
    )


class Row(ctypes.Structure):
    """``struct row`` of ``bare_mj_step.c``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("data", "qpos", "qvel", "ctrl")),
        *((name, ctypes.c_long) for name in ("steps", "starts")),
        ("over", ctypes.c_int),
    )


@functools.cache
def compiled() -> Any:
    """``bare_loop``, compiled anew."""
    source = Path(__file__).with_name("bare_mj_step.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "bare_mj_step.so")
        flags = ("-std=c11", "-O3", "-fPIC", "-shared")
        subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
        function = ctypes.CDLL(str(library)).bare_loop
    function.restype = ctypes.c_double
    function.argtypes = (
        ctypes.POINTER(Task),
        ctypes.POINTER(Row),
        ctypes.c_long,
        ctypes.c_long,
        ctypes.c_double,
    )
    return function


class BareLoop:
    """The bare loop of ``mj_step``, a thread for each usable core; nothing waits for others."""

    note = ""

    def __init__(self, env_fns: Sequence[EnvFn]) -> None:
        """Makes a simulation for each row; ``env_fns`` repeats one function."""
        env: Any = env_fns[0]()
        plain = env.unwrapped
        model, rows = plain.model, len(env_fns)
        self._shards = shards(rows, usable_cpus())
        self._simulations = [mujoco.MjData(model) for _ in range(rows)]
        self._rows = (Row * rows)(
            *(
                Row(data._address, *(_address(data, name) for name in ("qpos", "qvel", "ctrl")))
                for data in self._simulations
            )
        )
        for row in self._rows:
            row.over = True  # so the first turn is a reset
        actions = np.stack(sample_actions(batch_space(env.action_space, rows)))
        starts = np.stack([_start(env, seed) for seed in range(STARTS)])
        low, high = np.full((2, starts.shape[1]), np.finfo(np.float64).max) * [[-1], [1]]
        for place, least, most in BOUNDS.get(env.spec.id, []):
            low[place], high[place] = least, most
        found = addresses(mujoco)
        names = ("mj_step", "mj_resetData", "mj_forward", "mj_rnePostConstraint")
        sizes = (plain.frame_skip, model.nq, model.nv, model.nu, env.spec.max_episode_steps)
        self._task = Task(
            *(found[name] for name in names),
            model._address,
            *sizes,
            *(array.ctypes.data for array in (low, high, actions)),
            len(actions),
            rows,
            starts.ctypes.data,
            STARTS,
        )
        self._held = (model, low, high, actions, starts)
        env.close()

    def run(self, seconds: float) -> float:
        """Runs all loops at once for ``seconds`` and returns the sum of their steps per second."""
        rates: list[float] = []
        bare_loop = compiled()
        # The Python module of MuJoCo lets it read a clock in every step. A bare loop does not.
        clock = ctypes.c_void_p.from_address(addresses(mujoco)["mjcb_time"])
        before, clock.value = clock.value, None

        def loop(first: int, last: int) -> None:
            rates.append(bare_loop(self._task, self._rows, first, last, seconds))

        threads = [threading.Thread(target=loop, args=shard) for shard in self._shards]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock.value = before
        return sum(rates)

    def close(self) -> None:
        """Holds nothing but memory."""


def _address(data: Any, name: str) -> int:
    return int(getattr(data, name).ctypes.data)


def _start(env: Any, seed: int) -> NDArray[np.float64]:
    """Positions and velocities of a reset environment."""
    env.reset(seed=seed)
    return np.concatenate([env.unwrapped.data.qpos, env.unwrapped.data.qvel])


if __name__ == "__main__":
    bare, process = Contender("bare mj_step", BareLoop), cartwheel_with("process")
    for env_id in ENV_IDS:
        native, reason = cartwheel_native(env_id), why_not_envpool(env_id)
        if reason is not None:
            print(f"without envpool: {reason}")
        claims = {
            num_envs: [
                # Those with processes come first, so that they fork before there are threads.
                Claim(process, ASYNC, 1),
                Claim(native, ASYNC, 2),
                Claim(native, process, 1),
                Claim(native, SYNC, 2),
                *([Claim(native, envpool(env_id), bound)] if reason is None else []),
                Claim(native, bare, 0.95),
            ]
            for num_envs, bound in ((8, 1), (64, 1.3))
        }
        check(env_id, functools.partial(gym.make, env_id), claims)
        print()
