"""``python -m benchmarks.scaling.costs``: what a step costs as rows, workers and bytes grow.

Three races give the microseconds of a row: by the number of rows, by the number of workers, and by
the bytes of an observation. A fourth one finds where processes begin to pay: for several numbers of
rows, from which computing time of a step `process` is faster than `inline`, with what
``executor="auto"`` chooses there. With ``--write``, the chart is drawn and the table is written
into ``docs/scaling.md``; the machine must be idle. Some three minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

import cartwheel
from benchmarks.figures.__main__ import MAX_LOAD
from benchmarks.harness.workloads import Idle, Timed, rounds_of
from benchmarks.scaling.chart import LINE_COLORS
from benchmarks.scaling.study import worker_counts
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.command import positive
from cartwheel.bench.contenders import ASYNC, cartwheel_native, cartwheel_with
from cartwheel.bench.machine import machine_line
from cartwheel.bench.plot import FAINT, INK
from cartwheel.bench.race import Measurement, race

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.contenders import Contender

PAGE = Path(__file__).parents[2] / "docs/scaling.md"
CHART = PAGE.with_name("cost-of-a-step.png")
BLOCK = re.compile(r"(?<=<!-- costs: begin -->\n).*?(?=<!-- costs: end -->)", re.DOTALL)
ENV_ID = "CartPole-v1"
ROWS = (1, 4, 16, 64, 256, 1024)
WORKER_ROWS, BYTE_ROWS = 64, 32
BYTES = (16, 1024, 16_384, 65_536, 262_144)
PAY_ROWS = (2, 8, 32)
STEP_US = (0, 3, 10, 30, 100, 300, 1000)
INLINE, PROCESS = cartwheel_with("inline"), cartwheel_with("process")


@dataclasses.dataclass
class Costs:
    """Results: microseconds of a row, by the contender and then by the number on the axis."""

    rows: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    workers: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    bytes: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    pays: list[tuple[int, int, float, str]] = dataclasses.field(default_factory=list)
    """Rows, microseconds of a step, `process` ÷ `inline`, and what ``"auto"`` chose."""


def measure(seconds: float, rounds: int) -> Costs:
    """Runs all races."""
    found = Costs()

    def run(env_fn: EnvFn, rows: int, contenders: Sequence[Contender]) -> Measurement:
        return race(env_fn, rows, contenders, seconds=seconds, rounds=rounds)

    def keep(into: dict[str, dict[int, float]], at: int, measured: Measurement) -> None:
        for name in measured.rates:
            into.setdefault(name, {})[at] = 1e6 / measured.rate(name)

    cartpole = functools.partial(gym.make, ENV_ID)
    for rows in ROWS:
        keep(found.rows, rows, run(cartpole, rows, [PROCESS, INLINE, cartwheel_native(ENV_ID)]))
        print(f"{rows} rows", flush=True)
    for count in sorted({*worker_counts(usable_cpus()), 2 * usable_cpus(), 4 * usable_cpus()}):
        workers = dataclasses.replace(cartwheel_with("process", count), name=PROCESS.name)
        keep(found.workers, count, run(cartpole, WORKER_ROWS, [workers]))
        print(f"{count} workers", flush=True)
    for size in BYTES:
        still = functools.partial(Idle, (size // 4,))
        keep(found.bytes, size, run(still, BYTE_ROWS, [ASYNC, PROCESS, INLINE]))
        print(f"{size} bytes", flush=True)
    a_ms = rounds_of(1e-3)
    for rows in PAY_ROWS:
        for step_us in STEP_US:
            works = functools.partial(Timed, step_us / 1000, rounds_a_ms=a_ms)
            ratio = run(works, rows, [PROCESS, INLINE]).ratio(PROCESS.name, INLINE.name)
            found.pays.append((rows, step_us, ratio, auto(works, rows)))
        print(f"where processes pay with {rows} rows", flush=True)
    return found


def auto(env_fn: EnvFn, rows: int) -> str:
    """The executor that ``executor="auto"`` with ``num_workers="auto"`` chooses."""
    envs = cartwheel.VectorEnv([env_fn] * rows, num_workers="auto")
    envs.reset(seed=0)
    chosen = f"`{envs.executor}`, {envs.num_workers}"
    envs.close()
    return chosen


def pays_from(found: Costs, rows: int) -> str:
    """The shortest step from which on processes are always faster, as the table says it."""
    faster = [step for number, step, ratio, _ in found.pays if number == rows and ratio > 1]
    slower = [step for number, step, ratio, _ in found.pays if number == rows and ratio <= 1]
    begin = min((step for step in faster if step > max(slower, default=-1)), default=None)
    return "no step up to 1 ms" if begin is None else f"{begin} µs"


def block(found: Costs, machine: str) -> str:
    """The chart and the table of the page, in Markdown."""
    head = " | ".join(f"{step} µs" for step in STEP_US)
    head = f"steps/s of `process` ÷ `inline`, computing time of a step | {head}"
    lines = [
        f"![Microseconds of a row by rows, workers and bytes of an observation]({CHART.name})",
        "",
        f"| {head} | pays from | `auto` chooses |",
        f"|---|{'--:|' * len(STEP_US)}--:|---|",
    ]
    for rows in PAY_ROWS:
        ours = [each for each in found.pays if each[0] == rows]
        ratios = " | ".join(f"{ratio:.2f}" for _, _, ratio, _ in ours)
        chosen = "; ".join(dict.fromkeys(choice for *_, choice in ours))
        lines.append(f"| {rows} rows | {ratios} | {pays_from(found, rows)} | {chosen} |")
    return "\n".join([*lines, "", machine[0].upper() + machine[1:] + ".", ""])


def draw(found: Costs, path: Path) -> None:
    """One chart of three parts."""
    from matplotlib.figure import Figure  # only here: it takes a second to load

    figure = Figure(figsize=(11.0, 3.9), layout="constrained")
    parts = [
        (found.rows, f"{ENV_ID}, by rows", "environments"),
        (found.workers, f"{WORKER_ROWS} {ENV_ID}, by workers", "worker processes"),
        (found.bytes, f"{BYTE_ROWS} rows that do nothing, by bytes", "bytes of an observation"),
    ]
    for axes, (lines, title, x) in zip(figure.subplots(1, 3), parts, strict=True):
        for name, costs in lines.items():
            color = LINE_COLORS[name]
            axes.plot(list(costs), list(costs.values()), "o-", color=color, label=name, ms=4)
        axes.set(xscale="log", yscale="log")
        if max(max(costs) for costs in lines.values()) < 10**3:  # decades would have no label
            shown = sorted({number for costs in lines.values() for number in costs})
            axes.xaxis.set_ticks(shown, [f"{number:,}" for number in shown])
            axes.xaxis.set_ticks([], minor=True)
            axes.set(yscale="linear", ylim=(0, None))
        axes.set_title(title, loc="left", fontsize=10, color=INK)
        axes.set_xlabel(x, color=FAINT, fontsize=8)
        axes.set_ylabel("microseconds of a row in a step", color=FAINT, fontsize=8)
        axes.tick_params(which="both", length=0, colors=INK, labelsize=8)
        axes.grid(color="#e4e6e9", linewidth=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    """Measures, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    add: Any = parser.add_argument
    add("--seconds", type=positive(float), default=0.6, help="for each contender (%(default)s)")
    add("--rounds", type=positive(int), default=3, help="slices of the seconds (%(default)s)")
    add("--write", action="store_true", help="write docs/scaling.md and its chart")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    if options.write and load > MAX_LOAD:
        sys.exit(f"this machine is not idle: its load is {load:.2f}, not at most {MAX_LOAD}")
    machine = machine_line()
    found = measure(options.seconds, options.rounds)
    print(found.rows, found.workers, found.bytes, sep="\n")
    print(block(found, machine))
    if options.write:
        draw(found, CHART)
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda _: block(found, machine), text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
