"""``python -m benchmarks.scaling``: measures scaling with rows, workers and processes.

Stable-Baselines3, PufferLib, TorchRL and EnvPool take part where they are installed.
``docs/scaling.md`` explains the results.
"""

from __future__ import annotations

import argparse

from benchmarks.harness.rivals import RIVALS, why_not
from benchmarks.scaling.chart import scaling_chart
from benchmarks.scaling.study import SIZES, Run
from benchmarks.scaling.table import scaling_table
from cartwheel.bench.command import (
    add_arguments,
    check_plot,
    made_env,
    native_id_of,
    raced_id,
    write_json,
)
from cartwheel.bench.machine import machine, machine_line

DESCRIPTION = """\
Measures steps per second by rows and by workers, memory a row, and start-up. Stable-Baselines3,
PufferLib, TorchRL and EnvPool take part where they are installed."""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=DESCRIPTION)
    add_arguments(parser, "1 4 16 … 65536")
    parser.add_argument(
        "--rivals",
        nargs="*",
        choices=RIVALS,
        metavar="NAME",
        help=f"other packages that take part ({' '.join(RIVALS)}: those that are installed)",
    )
    parser.set_defaults(num_envs=SIZES)
    return parser


def main(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Measures, prints the tables and writes the files that were asked for."""
    check_plot(parser, arguments.plot)
    env_id = raced_id(arguments.env)
    env = made_env(parser, env_id)
    native_id = native_id_of(env.spec)
    rivals, without = [], []
    for rival in RIVALS if arguments.rivals is None else dict.fromkeys(arguments.rivals):
        reason = why_not(rival, env, native_id)
        if reason is not None and arguments.rivals is not None:
            parser.error(f"--rivals {rival}: {reason}")
        if reason is None:
            rivals.append(rival)
        elif rival != "envpool" or native_id is not None:
            without.append(f"without {rival}: {reason}")
    before = machine()  # the load is that of others, and not of what is measured
    print(machine_line(before))
    print(f"work: {env_id}, {arguments.seconds:g} s each in {arguments.rounds} rounds")
    print("\n".join([*without, ""]), flush=True)
    sizes = sorted(set(arguments.num_envs))
    run = Run(env_id, native_id, sizes, arguments.seconds, arguments.rounds, rivals)
    scaling = run.measure()
    print(scaling_table(scaling))
    if arguments.json:
        write_json(
            arguments.json, env_id, before, records=scaling.records(), left_out=scaling.left_out
        )
    if arguments.plot:
        scaling_chart(scaling, f"{env_id}: scaling", machine_line(before), arguments.plot)


if __name__ == "__main__":
    main(parser(), parser().parse_args())
