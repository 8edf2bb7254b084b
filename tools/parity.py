"""Plays native environments next to Gymnasium's and counts the values that differ in any bit.

    python -m tools.parity [--episodes 1000] [--rows 72] [--seed 1] [id …]

Every id is played in the three autoreset modes, for 1,000 episodes each, and with other keywords
for a tenth of that; those of MuJoCo, whose episodes take longer, for a tenth of both in a third of
the rows, with float32 actions and with float64. Gymnasium's environments are stepped by
``SyncVectorEnv``. cartwheel gets the same actions, seeds and resets, once on the calling thread
alone and once on two threads; both results are compared with Gymnasium's. Half of the rows take
random actions; the other half take actions that bring episodes to their end. Now and then some rows
are reset, with seeds and without. The exit status is 1 if anything differs.
"""

import argparse
import platform
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel._internal.progress import Progress
from cartwheel.bench.machine import machine_line
from tests.support.cases import DEFAULTS, VARIANTS, choose, twins
from tests.support.comparison import count_differing, count_values
from tests.support.mujoco_cases import MUJOCO, MUJOCO_FLOAT64, MUJOCO_VARIANTS

PARTS = ("observations", "rewards", "flags", "infos", "final")
COLUMNS = ("mode", "episodes", "steps", "values", *PARTS)
WIDTHS = (9, 8, 10, 11, *map(len, PARTS))
#: Processor features by which numerical libraries choose their code.
FEATURES = ("fma", "avx2", "avx512f")
#: On average, one step in this many is followed by a reset of some rows.
RESET_EVERY = 150
#: The same for MuJoCo, where episodes of 1,000 steps have to come to their end.
RESET_PHYSICS_EVERY = 1000
#: Environments to play, and by how much the number of episodes is divided.
CASES = [
    *((case, 1) for case in DEFAULTS),
    *((case, 10) for case in (*VARIANTS, *MUJOCO, *MUJOCO_FLOAT64)),
    *((case, 100) for case in MUJOCO_VARIANTS),
]


@dataclass
class Count:
    """The result of one run; ``values`` counts all parts, once for each of both executors."""

    episodes: int = 0
    steps: int = 0
    values: int = 0
    differing: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))

    def compare(self, actual, expected):
        """Compares a result of ``reset`` or ``step`` and counts its values."""
        for part, value in parts(expected).items():
            self.values += count_values(value)
            self.differing[part] += count_differing(parts(actual)[part], value)

    def add(self, other):
        """Adds the counts of another run."""
        self.episodes += other.episodes
        self.steps += other.steps
        self.values += other.values
        for part in PARTS:
            self.differing[part] += other.differing[part]


def parts(result):
    """A result split into its parts; a reset has no rewards and flags."""
    infos = dict(result[-1])
    names = ("final_obs", "_final_obs", "final_info", "_final_info")
    final = {name: infos.pop(name) for name in names if name in infos}
    rewards, flags = (result[1], result[2:4]) if len(result) == 5 else ((), ())
    return dict(zip(PARTS, (result[0], rewards, flags, infos, final), strict=True))


def actions(case, space, observations, random):
    """Even rows: actions chosen from the observations. Odd rows: random, not always in bounds."""
    rows = len(space.sample())
    planned = choose(case, observations, random, rows)
    if planned.ndim == 1:
        wild = random.integers(0, space.nvec)
    else:
        wild = (1.2 * random.uniform(space.low, space.high)).astype(planned.dtype)
    odd = (np.arange(rows) % 2 == 1).reshape(rows, *[1] * (planned.ndim - 1))
    return np.where(odd, wild, planned)


def some_rows(random, rows):
    """Arguments of a reset of some rows: without seeds, with seeds for some of them, or for all."""
    mask = random.random(rows) < 0.125
    mask[random.integers(rows)] = True
    some = [int(seed) if seed % 2 else None for seed in random.integers(2**40, size=rows)]
    seed = [None, some, int(random.integers(2**40))][random.integers(3)]
    return {"seed": seed, "options": {"reset_mask": mask}}


def play(case, mode, *, episodes, rows, seed, progress=None):
    """Plays at least ``episodes`` episodes and compares every result."""
    oracle = twins(case, rows, mode)
    natives = [
        cartwheel.NativeVectorEnv(
            case.env_id, rows, autoreset_mode=mode, num_workers=num_workers, **case.keywords
        )
        for num_workers in (1, 2)
    ]
    count, random = Count(), np.random.default_rng(seed)
    reset_every = RESET_EVERY if case.dtype is None else RESET_PHYSICS_EVERY

    def both(name, *args, **keywords):
        """Calls a method of all three, each with a copy of ``options``: Gymnasium changes them."""
        results = []
        for envs in (*natives, oracle):
            if options := keywords.get("options"):
                keywords["options"] = dict(options)
            results.append(getattr(envs, name)(*args, **keywords))
        *actual, expected = results
        for result in actual:
            count.compare(result, expected)
        return expected

    result = both("reset", seed=seed)
    while count.episodes < episodes:
        result = both("step", actions(case, oracle.action_space, result[0], random))
        over = result[2] | result[3]
        count.steps += rows
        count.episodes += int(over.sum())
        if progress is not None:
            progress.show(f"episodes of {case} {mode.value}", min(count.episodes, episodes))
        if mode is AutoresetMode.DISABLED and over.any():
            result = both("reset", options={"reset_mask": over})
        if random.integers(reset_every) == 0:
            result = both("reset", **some_rows(random, rows))
    for envs in (*natives, oracle):
        envs.close()
    return count


def platform_line():
    """Everything that affects the last bits, except the versions that every machine line has."""
    flags = set()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = cpus.read_text(encoding="utf-8").splitlines()
        flags = {flag for line in lines if line.startswith("flags") for flag in line.split()}
    features = [name for name in FEATURES if name in flags]
    library = " ".join(platform.libc_ver())
    return f"mujoco {version('mujoco')}, {library}, {' '.join(features) or f'no {FEATURES}'}"


def row(mode, count):
    """One line of the table."""
    numbers = (count.episodes, count.steps, count.values, *count.differing.values())
    cells = (mode, *(f"{number:,}" for number in numbers))
    return " ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def headline(case):
    """The subject of the next lines of the table."""
    keywords = ", ".join(f"{name}={value!r}" for name, value in case.keywords.items())
    actions = "" if case.dtype is None else f" {np.dtype(case.dtype)} actions"
    return f"{case.env_id} {keywords}".rstrip() + actions


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", metavar="id", help="environments (default: all)")
    parser.add_argument("--episodes", type=int, default=1000, help="episodes for each id and mode")
    parser.add_argument("--rows", type=int, default=72, help="environments in a batch")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random numbers")
    arguments = parser.parse_args(words)
    unknown = set(arguments.ids) - {case.env_id for case, _ in CASES}
    if unknown:
        parser.error(f"no such environments: {', '.join(sorted(unknown))}")
    print(f"{machine_line()}, {platform_line()}\n", flush=True)
    print(" ".join(name.rjust(width) for name, width in zip(COLUMNS, WIDTHS, strict=True)))
    total, start = Count(), time.monotonic()
    for case, divisor in CASES:
        if arguments.ids and case.env_id not in arguments.ids:
            continue
        episodes = max(arguments.episodes // divisor, 1)
        rows = arguments.rows if case.dtype is None else -(-arguments.rows // 3)
        print(headline(case), flush=True)
        for mode in AutoresetMode:
            progress = Progress(episodes)
            count = play(
                case, mode, episodes=episodes, rows=rows, seed=arguments.seed, progress=progress
            )
            progress.close()
            print(row(mode.value, count), flush=True)
            total.add(count)
    print(row("all", total))
    differing = sum(total.differing.values())
    seconds = time.monotonic() - start
    print(f"{differing:,} of {total.values:,} values differ in any bit; {seconds:,.0f} s")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
