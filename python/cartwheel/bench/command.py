"""``python -m cartwheel bench``: measures this machine with any environment."""

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

from cartwheel._cartwheel import memory_left
from cartwheel._internal.progress import Progress
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
from cartwheel.bench.envpool import why_not_envpool
from cartwheel.bench.machine import machine, machine_line
from cartwheel.bench.plot import can_plot, formats, plot
from cartwheel.bench.race import Measurement, parts, race
from cartwheel.bench.table import records, table
from cartwheel.native.mujoco.env import is_mujoco
from cartwheel.native.registration import NAMESPACE, NATIVE_ENTRY_POINT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.envs.registration import EnvSpec

    from cartwheel._internal.literals import Executor

NUM_ENVS = (1, 8, 32)
#: Less than a process of ``AsyncVectorEnv`` writes for itself: 3.8 MiB with ``CartPole-v1``.
PROCESS_BYTES = 2 << 20
DESCRIPTION = """\
Measures cartwheel's executors against Gymnasium's SyncVectorEnv and AsyncVectorEnv and against the
ceiling, bare loops on all cores at once; native environments against EnvPool, where it is
installed, and plain loops in Rust. One run: alternating rounds, medians, ratios. The namespace
cartwheel/ of an id makes no difference: Gymnasium's contenders step Gymnasium's environments."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``bench`` to a parser's commands."""
    parser = commands.add_parser("bench", help="measure this machine", description=DESCRIPTION)
    add_arguments(parser, " ".join(map(str, NUM_ENVS)))
    parser.add_argument(
        "--executors",
        nargs="+",
        choices=EXECUTORS,
        metavar="NAME",
        help=f"cartwheel's executors that take part ({' '.join(EXECUTORS)})",
    )
    parser.set_defaults(run=run, parser=parser)


def add_arguments(parser: argparse.ArgumentParser, sizes: str) -> None:
    """Adds what every command that measures has; ``sizes`` are the numbers without --num-envs."""
    add, positives = parser.add_argument, positive(int)
    add("--env", default="CartPole-v1", metavar="ID", help="registered id (%(default)s)")
    sizes = f"numbers of environments, a race for each ({sizes})"
    add("--num-envs", type=positives, nargs="+", metavar="N", help=sizes)
    add("--seconds", type=positive(float), default=2.0, help="per contender and N (%(default)s)")
    add("--rounds", type=positives, default=5, help="slices of the seconds (%(default)s)")
    add("--json", type=output_file, metavar="FILE", help="write every round to FILE")
    add("--plot", type=output_file, metavar="FILE.png", help="draw a chart; needs matplotlib")


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Measures, prints the table and writes the requested files."""
    check_plot(parser, arguments.plot)
    check_memory(parser, max(arguments.num_envs or NUM_ENVS))
    env_id = raced_id(arguments.env)
    spec = made_env(parser, env_id).spec
    native_id = native_id_of(spec)
    missing = None if native_id is None else why_not_envpool(native_id)
    before = machine()  # the load is that of others, and not of what is measured
    print(machine_line(before))
    print(f"work: {env_id}, {arguments.seconds:g} s each in {arguments.rounds} rounds")
    print("" if missing is None else f"without envpool: {missing}\n", flush=True)
    contenders = contenders_of(spec, arguments.executors or EXECUTORS, with_envpool=missing is None)
    measurements = _measure(functools.partial(gym.make, env_id), contenders, arguments)
    print(table(measurements))
    if arguments.json:
        write_json(arguments.json, env_id, before, records=records(measurements))
    if arguments.plot:
        title = f"{env_id}: steps per second, and × gymnasium async"
        plot(measurements, title, machine_line(before), arguments.plot)
    return 0


def check_plot(parser: argparse.ArgumentParser, path: Path | None) -> None:
    """Ends the program if the chart cannot be drawn."""
    if path and not can_plot():
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if path and path.suffix[1:].lower() not in formats():
        parser.error(f"--plot {path}: must end with one of {', '.join(formats())}")


def check_memory(parser: argparse.ArgumentParser, num_envs: int) -> None:
    """Ends the program if the contender with the most processes cannot fit into memory."""
    left, needed = memory_left(), PROCESS_BYTES * num_envs
    if left is not None and needed > left:
        parser.error(
            f"--num-envs {num_envs}: Gymnasium's AsyncVectorEnv takes part with a process for each "
            f"environment, {needed / 2**30:,.1f} GiB of memory at least, and {left / 2**30:,.1f} "
            f"GiB are left: at most {left // PROCESS_BYTES} environments"
        )


def made_env(parser: argparse.ArgumentParser, env_id: str) -> gym.Env[Any, Any]:
    """Returns one of the environments, closed; ends the program if it cannot be made."""
    try:
        env = gym.make(env_id)
        env.close()
    except (gym.error.Error, ModuleNotFoundError) as error:
        parser.error(f"--env {env_id}: {error}")
    return env


def native_id_of(spec: EnvSpec | None) -> str | None:
    """Returns the id of the same environment in Rust, without the namespace, if there is one."""
    if spec is None:
        return None
    native_id = spec.id.removeprefix(NAMESPACE)
    return native_id if NAMESPACE + native_id in gym.registry else None


def write_json(path: Path, env_id: str, before: dict[str, str | float], **results: Any) -> None:
    """Writes results, with the machine as it was before."""
    whole = {"machine": before, "env": env_id, **results}
    path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def raced_id(env_id: str) -> str:
    """Returns the id of the Python environments of a race.

    A native id gives the id of the same environment in Gymnasium, if there is one. Otherwise
    Gymnasium's contenders would step cartwheel's environments.
    """
    plain = env_id.removeprefix(NAMESPACE)
    return plain if plain in gym.registry else env_id


def contenders_of(
    spec: EnvSpec | None, executors: Sequence[Executor], *, with_envpool: bool = False
) -> list[Contender]:
    """Returns all contenders that can step such an environment, in building order."""
    contenders = [SYNC, ASYNC, *(cartwheel_with(name) for name in EXECUTORS if name in executors)]
    contenders.append(CEILING)
    if spec is None:
        return contenders
    own = own_vector_env(spec)
    if own is not None:
        contenders.append(own)
    native_id = native_id_of(spec)
    if native_id is not None:
        if with_envpool:
            contenders.append(envpool(native_id))
        contenders.append(cartwheel_native(native_id))
        if not is_mujoco(native_id):  # benchmarks/native/mujoco_envs.py has MuJoCo's bare loop
            contenders.append(native_ceiling(native_id))
    elif spec.vector_entry_point == NATIVE_ENTRY_POINT:
        contenders.append(cartwheel_native(spec.id))  # of a plugin, which has no plain loop
    return contenders


def _measure(
    env_fn: Callable[[], Any], contenders: Sequence[Contender], arguments: argparse.Namespace
) -> list[Measurement]:
    """Runs one race for each number of environments and shows the progress."""
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
    """Returns the type of an argument that must be a number above zero."""

    def convert(text: str) -> float:
        value = number(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be above zero, got {text}")
        return value

    convert.__name__ = number.__name__  # what argparse calls it when the text is not a number
    return convert


def output_file(text: str) -> Path:
    """Converts an argument that must be a writable file."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be written")
    return path
