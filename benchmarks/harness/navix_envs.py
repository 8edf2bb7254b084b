"""NAVIX on the CPU, in a Python of its own, for ``benchmarks/native/minigrid_envs.py``.

NAVIX (https://github.com/epignatelli/navix) has environments after MiniGrid's in JAX. They are
other environments: other random numbers and rewards, and as its documentation says no equal
trajectories. The id is the one whose agent, key and door begin in random places, as MiniGrid's do,
and it is asked for MiniGrid's view of 7 x 7 cells and its limit of steps.

Rows are stepped by ``jax.vmap`` in one compiled ``jax.lax.scan`` of 16 steps, which is the way its
authors measure: no step returns to Python. The sum of all observations is a result, so that the
compiler leaves none out. Actions are drawn before.

It imports nothing of this repository. ``NavixRunner`` starts it, writes seconds to it and reads
steps per second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

LEVEL = "Navix-DoorKey-Random-8x8-v0"
MAX_STEPS = 640  # MiniGrid's limit
STEPS = 16  # of one call: some steps are as slow as milliseconds


class NavixRunner:
    """NAVIX as a contender, in a process of the Python that has it."""

    note = ""

    def __init__(self, python: str, rows: int) -> None:
        """Starts the process and waits until its steps are compiled.

        Raises:
            RuntimeError: It has ended.
        """
        self._process: Any = subprocess.Popen(
            [python, __file__, str(rows)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.run(0)

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``, at least once; returns environment steps per second."""
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"NAVIX ended with {self._process.wait()}, see above")
        return float(line)

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def serve(rows: int) -> None:
    """Steps for as many seconds as each line of the standard input says."""
    import jax
    import navix

    env: Any = navix.make(
        LEVEL, observation_fn=navix.observations.symbolic_first_person, max_steps=MAX_STEPS
    )
    step = jax.vmap(env.step)

    @jax.jit
    def run(shown: Any, actions: Any) -> Any:
        def body(carry: Any, chosen: Any) -> Any:
            shown, total = carry
            shown = step(shown, chosen)
            return (shown, total + shown.observation.astype("int32").sum()), None

        return jax.lax.scan(body, (shown, jax.numpy.int32(0)), actions)[0]

    shown = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), rows))
    actions = jax.random.randint(jax.random.key(1), (STEPS, rows), 0, len(env.action_set))
    shown = jax.block_until_ready(run(shown, actions))[0]  # compiles
    assert shown.observation.shape == (rows, 7, 7, 3), shown.observation.shape
    for line in sys.stdin:
        start, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - start < float(line):
            shown = jax.block_until_ready(run(shown, actions))[0]
            calls += 1
        print(calls * STEPS * rows / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
