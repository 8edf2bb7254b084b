"""A claim about speed: a measured ratio and the bound that it must reach."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartwheel.bench.measure import Measurement


@dataclasses.dataclass(frozen=True)
class Claim:
    """``contender`` is at least ``bound`` times as fast as ``against`` in ``measurement``."""

    measurement: Measurement
    contender: str
    against: str
    bound: float

    def __str__(self) -> str:
        """One line: who, both rates, the ratio, the bound and whether it holds."""
        ratio = self.measurement.ratio(self.contender, self.against)
        return (
            f"{self.measurement.num_envs:4} envs  "
            f"{self._rate(self.contender)}  against  {self._rate(self.against)}  "
            f"ratio {ratio:6.2f}  bound ≥ {self.bound:<4g}  "
            f"{'holds' if ratio >= self.bound else 'MISSED'}"
        )

    def _rate(self, name: str) -> str:
        rate, spread = self.measurement.rate(name), self.measurement.spread(name)
        return f"{name:17} {rate:11,.0f} steps/s ±{spread:<4.0%}"


def options(description: str | None) -> argparse.Namespace:
    """What every script of ``benchmarks/`` lets its caller choose: ``seconds`` and ``rounds``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="per contender and size")
    parser.add_argument("--rounds", type=int, default=7, help="alternating slices of the seconds")
    return parser.parse_args()


def report(work: str, claims: Iterable[Claim]) -> None:
    """Prints the machine, the work and a line for each claim as soon as it is measured."""
    print(machine_line())
    print(f"work: {work}")
    for claim in claims:
        print(claim, flush=True)
