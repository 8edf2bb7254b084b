"""Races against other packages: claims, and the figures of the table of peers on docs/speed.md."""

from __future__ import annotations

import dataclasses
import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

from benchmarks.harness.claim import HEADER, Claim, no_env, options_of, raced, ratios_of
from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cartwheel._internal.arguments import EnvFn


@dataclasses.dataclass(frozen=True)
class PeerClaim:
    """A claim about another package.

    Attributes:
        key: Of its figure; the number of environments is appended.
        work: What is stepped, and how, as the page has it.
        claim: The contenders, and what the ratio must be.
        rival: The package and its version.
    """

    key: str
    work: str
    claim: Claim
    rival: str


@dataclasses.dataclass(frozen=True)
class PeerRace:
    """Claims that are measured together, with one number of environments."""

    num_envs: int
    claims: Sequence[PeerClaim]
    env_fn: EnvFn = no_env


def version_of(package: str, *others: str) -> str:
    """The package and its version, and those of packages that it steps with."""
    names = {"mujoco": "MuJoCo", "envpool": "EnvPool", "torchrl": "TorchRL"}
    names |= {"pufferlib": "PufferLib", "lerobot": "LeRobot", "jax": "JAX"}
    return ", ".join(
        f"{names.get(each, each)} {metadata.version(each)}" for each in (package, *others)
    )


def measure(description: str | None, races: Iterable[PeerRace]) -> None:
    """Measures all races and prints a line for each claim, or with ``--json`` their figures."""
    options = options_of(description, has_figures=True)
    if not options.json:
        print(machine_line())
        print(f"{options.seconds:g} s each in {options.rounds} rounds\n\n{HEADER}")
    found: list[list[Any]] = []
    for entry in races:
        claims = [peer.claim for peer in entry.claims]
        measured = raced(
            entry.env_fn, entry.num_envs, claims, seconds=options.seconds, rounds=options.rounds
        )
        for peer in entry.claims:
            ratios = ratios_of(measured, peer.claim.contender, peer.claim.against)
            found.append([peer.key, peer.work, entry.num_envs, ratios, peer.rival])
            if not options.json:
                print(f"{peer.claim.result_line(measured)}  {peer.work}", flush=True)
        if not options.json:
            for name, note in measured.notes.items():
                print(f"      {name}: {note}", flush=True)
    if options.json:
        print_figures(found)


def print_figures(found: list[list[Any]]) -> None:
    """Prints the last line of a run with ``--json``, which ``benchmarks.figures`` reads.

    Args:
        found: For each figure its key, its work, the number of environments, the ratio of each
            round, and the package that it is about.
    """
    print(json.dumps(found))
