"""``python -m cartwheel bench``: measures this machine with an environment of choice."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.bench.ceiling import Ceiling
from cartwheel.bench.contenders import ASYNC, EXECUTORS, SYNC, cartwheel_with
from cartwheel.bench.machine import machine, machine_line
from cartwheel.bench.measure import Measurement, race
from cartwheel.bench.plot import can_plot, plot
from cartwheel.bench.progress import Progress
from cartwheel.bench.table import records, table

if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTION = """\
Measures cartwheel's executors beside Gymnasium's SyncVectorEnv and AsyncVectorEnv and beside the
ceiling, bare loops on all cores at once. All in one run: alternating rounds, medians, ratios."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``bench`` to a parser's commands."""
    parser = commands.add_parser("bench", help="measure this machine", description=DESCRIPTION)
    add = parser.add_argument
    add("--env", default="CartPole-v1", metavar="ID", help="registered id (default: %(default)s)")
    add("--num-envs", type=_positive(int), nargs="+", default=[1, 8, 32], metavar="N")
    add("--executors", nargs="+", choices=EXECUTORS, default=EXECUTORS, metavar="NAME")
    add("--seconds", type=_positive(float), default=2.0, help="per contender and number of envs")
    add("--rounds", type=_positive(int), default=5, help="slices of these seconds")
    add("--json", type=_new_file, metavar="FILE", help="write every round to FILE")
    add("--plot", type=_new_file, metavar="FILE.png", help="draw a chart; needs matplotlib")
    parser.set_defaults(run=functools.partial(run, parser))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Measures, prints the table and writes the files that were asked for."""
    if arguments.plot and not can_plot():
        parser.error("--plot needs matplotlib, which comes with: pip install 'cartwheel[bench]'")
    env_fn = functools.partial(gym.make, arguments.env)
    try:
        env_fn().close()
    except (gym.error.Error, ModuleNotFoundError) as error:
        parser.error(f"--env {arguments.env}: {error}")
    print(machine_line())
    print(f"work: {arguments.env}, {arguments.seconds:g} s each in {arguments.rounds} rounds\n")
    measurements = _measure(env_fn, arguments)
    print(table(measurements))
    if arguments.json:
        outcome = {"machine": machine(), "env": arguments.env, "records": records(measurements)}
        arguments.json.write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")
    if arguments.plot:
        title = f"{arguments.env}: environment steps per second, and × AsyncVectorEnv"
        plot(measurements, title, machine_line(), arguments.plot)
    return 0


def _measure(env_fn: Callable[[], Any], arguments: argparse.Namespace) -> list[Measurement]:
    executors = dict.fromkeys(arguments.executors)
    contenders = [SYNC, ASYNC, *map(cartwheel_with, executors)]
    # Each contender is built once and timed in every round; the ceiling is built once for all.
    parts = len(contenders) + (len(contenders) + 1) * arguments.rounds
    progress = Progress(parts * len(arguments.num_envs))
    with contextlib.closing(progress), contextlib.closing(Ceiling(env_fn)) as ceiling:
        return [
            race(
                env_fn,
                num_envs,
                contenders,
                seconds=arguments.seconds,
                rounds=arguments.rounds,
                ceiling=ceiling,
                progress=lambda name, num_envs=num_envs: progress.advance(f"{num_envs} × {name}"),
            )
            for num_envs in arguments.num_envs
        ]


def _positive(number: type[int | float]) -> Callable[[str], float]:
    """An argument that must be a number above zero."""

    def convert(text: str) -> float:
        value = number(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be above zero, got {text}")
        return value

    convert.__name__ = number.__name__  # what argparse calls it when the text is no number
    return convert


def _new_file(text: str) -> Path:
    """A path that can be written to, found out before the measuring and not after it."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"no folder {path.parent}")
    return path
