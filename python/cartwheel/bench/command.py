"""``python -m cartwheel bench``: measures this machine with an environment of choice."""

from __future__ import annotations

import contextlib
import functools
import json
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.bench.arguments import output_file, positive
from cartwheel.bench.contenders import (
    ASYNC,
    CEILING,
    EXECUTORS,
    SYNC,
    Contender,
    cartwheel_native,
    cartwheel_with,
    envpool,
    native_ceiling,
    own_vector_env,
)
from cartwheel.bench.envpool import why_not
from cartwheel.bench.machine import machine, machine_line
from cartwheel.bench.plot import can_plot, formats, plot
from cartwheel.bench.race import Measurement, parts, race
from cartwheel.bench.table import records, table
from cartwheel.native.registration import NAMESPACE, NATIVE_ENTRY_POINT
from cartwheel.native.simulated import is_simulated
from cartwheel.progress import Progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from gymnasium.envs.registration import EnvSpec

    from cartwheel.choices import Executor

DESCRIPTION = """\
Measures cartwheel's executors beside Gymnasium's SyncVectorEnv and AsyncVectorEnv and beside the
ceiling, bare loops on all cores at once; native environments beside EnvPool, if it is installed,
and beside plain loops in Rust. One run: alternating rounds, medians, ratios. The namespace
cartwheel/ of an id makes no difference: Gymnasium's contenders step Gymnasium's environments."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``bench`` to a parser's commands."""
    parser = commands.add_parser("bench", help="measure this machine", description=DESCRIPTION)
    add = parser.add_argument
    add("--env", default="CartPole-v1", metavar="ID", help="registered id (%(default)s)")
    add(
        "--num-envs",
        type=positive(int),
        nargs="+",
        default=[1, 8, 32],
        metavar="N",
        help="numbers of environments, a race for each (1 8 32)",
    )
    add(
        "--executors",
        nargs="+",
        choices=EXECUTORS,
        default=EXECUTORS,
        metavar="NAME",
        help=f"cartwheel's executors that take part ({' '.join(EXECUTORS)})",
    )
    add("--seconds", type=positive(float), default=2.0, help="per contender and N (%(default)s)")
    add("--rounds", type=positive(int), default=5, help="slices of the seconds (%(default)s)")
    add("--json", type=output_file, metavar="FILE", help="write every round to FILE")
    add("--plot", type=output_file, metavar="FILE.png", help="draw a chart; needs matplotlib")
    parser.set_defaults(run=functools.partial(run, parser))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Measures, prints the table and writes the files that were asked for."""
    if arguments.plot and not can_plot():
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if arguments.plot and arguments.plot.suffix[1:].lower() not in formats():
        parser.error(f"--plot {arguments.plot}: must end with one of {', '.join(formats())}")
    env_id = raced_id(arguments.env)
    env_fn = functools.partial(gym.make, env_id)
    try:
        env = env_fn()
        env.close()
    except (gym.error.Error, ModuleNotFoundError) as error:
        parser.error(f"--env {arguments.env}: {error}")
    print(machine_line())
    print(
        f"work: {env_id}, {arguments.seconds:g} s each in {arguments.rounds} rounds\n", flush=True
    )
    measurements = _measure(env_fn, contenders_of(env.spec, arguments.executors), arguments)
    print(table(measurements))
    if arguments.json:
        outcome = {"machine": machine(), "env": env_id, "records": records(measurements)}
        arguments.json.write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")
    if arguments.plot:
        title = f"{env_id}: steps per second, and × gymnasium async"
        plot(measurements, title, machine_line(), arguments.plot)
    return 0


def raced_id(env_id: str) -> str:
    """Returns the id of the Python environments of a race.

    A native id gives the id of the same environment in Gymnasium, if there is one. Otherwise
    Gymnasium's contenders would step cartwheel's environments.
    """
    plain = env_id.removeprefix(NAMESPACE)
    return plain if plain in gym.registry else env_id


def contenders_of(spec: EnvSpec | None, executors: Sequence[Executor]) -> list[Contender]:
    """Returns all contenders that can step such an environment, in the order of their building."""
    contenders = [SYNC, ASYNC, *(cartwheel_with(name) for name in EXECUTORS if name in executors)]
    contenders.append(CEILING)
    if spec is None:
        return contenders
    native_id = spec.id.removeprefix(NAMESPACE)
    own = own_vector_env(spec)
    if own is not None:
        contenders.append(own)
    if NAMESPACE + native_id in gym.registry:
        reason = why_not(native_id)
        if reason is None:
            contenders.append(envpool(native_id))
        else:
            print(f"without envpool: {reason}\n", flush=True)
        contenders.append(cartwheel_native(native_id))
        if not is_simulated(native_id):  # MuJoCo's bare loop is that of benchmarks/native_mujoco.py
            contenders.append(native_ceiling(native_id))
    elif spec.vector_entry_point == NATIVE_ENTRY_POINT:
        contenders.append(cartwheel_native(native_id))  # of a plugin, which has no plain loop
    return contenders


def _measure(
    env_fn: Callable[[], Any], contenders: Sequence[Contender], arguments: argparse.Namespace
) -> list[Measurement]:
    """Runs one race for each number of environments and shows how far it is."""
    sizes = dict.fromkeys(arguments.num_envs)
    total = parts(len(contenders), arguments.rounds) * len(sizes)
    with contextlib.closing(Progress(total)) as progress:

        def measure(num_envs: int) -> Measurement:
            return race(
                env_fn,
                num_envs,
                contenders,
                seconds=arguments.seconds,
                rounds=arguments.rounds,
                progress=lambda name: progress.advance(f"{num_envs} × {name}"),
            )

        return [measure(num_envs) for num_envs in sizes]
