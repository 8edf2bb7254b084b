"""``python -m cartwheel bench``: measures this machine with an environment of choice."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel._internal.progress import Progress
from cartwheel.bench.contenders import (
    ASYNC,
    CEILING,
    EXECUTORS,
    RIVALS,
    SYNC,
    Contender,
    Rival,
    cartwheel_native,
    cartwheel_with,
    envpool,
    native_ceiling,
    own_vector_env,
    python_rivals,
    why_not,
)
from cartwheel.bench.machine import machine, machine_line
from cartwheel.bench.plot import can_plot, formats, plot, scaling_chart
from cartwheel.bench.race import Measurement, parts, race
from cartwheel.bench.scaling import SIZES, Run
from cartwheel.bench.scaling_table import scaling_table
from cartwheel.bench.table import records, table
from cartwheel.native.mujoco.env import is_simulated
from cartwheel.native.registration import NAMESPACE, NATIVE_ENTRY_POINT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.envs.registration import EnvSpec

    from cartwheel._internal.literals import Executor

NUM_ENVS = (1, 8, 32)
DESCRIPTION = """\
Measures cartwheel's executors beside Gymnasium's SyncVectorEnv and AsyncVectorEnv, beside the
vector environments of Stable-Baselines3, PufferLib and TorchRL, where they are installed, and
beside the ceiling, bare loops on all cores at once; native environments beside EnvPool and plain
loops in Rust. One run: alternating rounds, medians, ratios. The namespace cartwheel/ of an id makes
no difference: Gymnasium's contenders step Gymnasium's environments."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``bench`` to a parser's commands."""
    parser = commands.add_parser("bench", help="measure this machine", description=DESCRIPTION)
    add = parser.add_argument
    add("--env", default="CartPole-v1", metavar="ID", help="registered id (%(default)s)")
    add(
        "--num-envs",
        type=positive(int),
        nargs="+",
        metavar="N",
        help="numbers of environments, a race for each (1 8 32; --scaling: 1 to 65536)",
    )
    add(
        "--executors",
        nargs="+",
        choices=EXECUTORS,
        metavar="NAME",
        help=f"cartwheel's executors that take part ({' '.join(EXECUTORS)})",
    )
    add(
        "--rivals",
        nargs="*",
        choices=RIVALS,
        metavar="NAME",
        help=f"other packages that take part ({' '.join(RIVALS)}: those that are installed)",
    )
    add("--seconds", type=positive(float), default=2.0, help="per contender and N (%(default)s)")
    add("--rounds", type=positive(int), default=5, help="slices of the seconds (%(default)s)")
    add(
        "--scaling",
        action="store_true",
        help="measure what grows: steps per second by rows and by workers, memory, start-up",
    )
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
    if arguments.scaling and arguments.executors is not None:
        parser.error("--scaling measures process and native: leave --executors out")
    native_id = _native_id(env.spec)
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
    print(f"work: {env_id}, {arguments.seconds:g} s each in {arguments.rounds} rounds", flush=True)
    print("\n".join([*without, ""]), flush=True)
    if arguments.scaling:
        _run_scaling(env_id, native_id, rivals, before, arguments)
        return 0
    contenders = contenders_of(env.spec, arguments.executors or EXECUTORS, rivals)
    measurements = _measure(env_fn, contenders, arguments)
    print(table(measurements))
    _write_json(env_id, before, arguments, records=records(measurements))
    if arguments.plot:
        title = f"{env_id}: steps per second, and × gymnasium async"
        plot(measurements, title, machine_line(before), arguments.plot)
    return 0


def _native_id(spec: EnvSpec | None) -> str | None:
    """The id of the same environment in Rust, without the namespace, if there is one."""
    if spec is None:
        return None
    native_id = spec.id.removeprefix(NAMESPACE)
    return native_id if NAMESPACE + native_id in gym.registry else None


def _run_scaling(
    env_id: str,
    native_id: str | None,
    rivals: Sequence[Rival],
    before: dict[str, str | float],
    arguments: argparse.Namespace,
) -> None:
    """Measures what grows, prints the tables and writes the files that were asked for."""
    run = Run(
        env_id,
        native_id,
        sorted(set(arguments.num_envs or SIZES)),
        arguments.seconds,
        arguments.rounds,
        rivals,
    )
    scaling = run.measure()
    print(scaling_table(scaling))
    _write_json(env_id, before, arguments, records=scaling.records(), left_out=scaling.left_out)
    if arguments.plot:
        scaling_chart(scaling, f"{env_id}: what grows", machine_line(before), arguments.plot)


def _write_json(
    env_id: str, before: dict[str, str | float], arguments: argparse.Namespace, **outcome: Any
) -> None:
    """Writes what was measured, if that was asked for."""
    if arguments.json:
        whole = {"machine": before, "env": env_id, **outcome}
        arguments.json.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def raced_id(env_id: str) -> str:
    """Returns the id of the Python environments of a race.

    A native id gives the id of the same environment in Gymnasium, if there is one. Otherwise
    Gymnasium's contenders would step cartwheel's environments.
    """
    plain = env_id.removeprefix(NAMESPACE)
    return plain if plain in gym.registry else env_id


def contenders_of(
    spec: EnvSpec | None, executors: Sequence[Executor], rivals: Sequence[Rival]
) -> list[Contender]:
    """Returns all contenders that can step such an environment, in the order of their building."""
    contenders = [SYNC, ASYNC, *python_rivals(rivals)]
    contenders += [cartwheel_with(name) for name in EXECUTORS if name in executors]
    contenders.append(CEILING)
    if spec is None:
        return contenders
    own = own_vector_env(spec)
    if own is not None:
        contenders.append(own)
    native_id = _native_id(spec)
    if native_id is not None:
        if "envpool" in rivals:
            contenders.append(envpool(native_id))
        contenders.append(cartwheel_native(native_id))
        if not is_simulated(native_id):  # benchmarks/native/mujoco_envs.py has MuJoCo's bare loop
            contenders.append(native_ceiling(native_id))
    elif spec.vector_entry_point == NATIVE_ENTRY_POINT:
        contenders.append(cartwheel_native(spec.id))  # of a plugin, which has no plain loop
    return contenders


def _measure(
    env_fn: Callable[[], Any], contenders: Sequence[Contender], arguments: argparse.Namespace
) -> list[Measurement]:
    """Runs one race for each number of environments and shows how far it is."""
    sizes = dict.fromkeys(arguments.num_envs or NUM_ENVS)
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


def positive(number: type[int | float]) -> Callable[[str], float]:
    """An argument that must be a number above zero."""

    def convert(text: str) -> float:
        value = number(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be above zero, got {text}")
        return value

    convert.__name__ = number.__name__  # what argparse calls it when the text is no number
    return convert


def output_file(text: str) -> Path:
    """An argument that must be a file which can be written."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be written")
    return path
