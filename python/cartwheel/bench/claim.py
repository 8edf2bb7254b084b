"""Claims about speed: measured ratios and the bounds that they must reach."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from cartwheel.bench.arguments import positive
from cartwheel.bench.machine import machine_line
from cartwheel.bench.race import Measurement, race

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cartwheel.bench.contenders import Contender, EnvFn

HEADER = (
    f"{'envs':>4}  {'contender':17}  {'steps/s':>9} spread  "
    f"{'against':15}  {'steps/s':>9} spread   ratio  bound"
)


@dataclasses.dataclass(frozen=True)
class Claim:
    """``contender`` is at least ``bound`` times as fast as ``against``."""

    contender: Contender
    against: Contender
    bound: float

    def verdict(self, measurement: Measurement) -> str:
        """A line below ``HEADER``: who, both rates, their ratio, the bound, whether it holds."""
        first, second = self.contender.name, self.against.name
        ratio = measurement.ratio(first, second)
        return (
            f"{measurement.num_envs:4}  {first:17}  {_rate(measurement, first)}  "
            f"{second:15}  {_rate(measurement, second)}  "
            f"{ratio:6.2f}  ≥ {self.bound:<4g}  {'holds' if ratio >= self.bound else 'MISSED'}"
        )


def _rate(measurement: Measurement, name: str) -> str:
    return f"{measurement.rate(name):9,.0f}  ±{measurement.spread(name):<4.0%}"


def check(work: str, env_fn: EnvFn, claims: Mapping[int, Sequence[Claim]]) -> None:
    """Measures claims and prints a line for each, whether it holds or not.

    Reads ``--seconds`` and ``--rounds`` from the command line.

    Args:
        work: What the environment does, in one line.
        env_fn: Makes one environment.
        claims: By number of environments; all who are named in those of one number run one race.
    """
    parser = argparse.ArgumentParser(description=work)
    parser.add_argument(
        "--seconds", type=positive(float), default=3.0, help="per contender and number of envs"
    )
    parser.add_argument("--rounds", type=positive(int), default=7, help="slices of these seconds")
    arguments = parser.parse_args()
    print(machine_line())
    print(f"work: {work}, {arguments.seconds:g} s each in {arguments.rounds} rounds\n\n{HEADER}")
    for num_envs, ours in claims.items():
        contenders = [who for claim in ours for who in (claim.contender, claim.against)]
        measurement = race(
            env_fn,
            num_envs,
            list(dict.fromkeys(contenders)),
            seconds=arguments.seconds,
            rounds=arguments.rounds,
        )
        for claim in ours:
            print(claim.verdict(measurement), flush=True)
