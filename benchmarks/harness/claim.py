"""Claims about speed: measured ratios and the bounds that they must reach."""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from typing import TYPE_CHECKING, Any, NoReturn

from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line
from cartwheel.bench.race import Measurement, race

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.contenders import Contender

HEADER = (
    f"{'envs':>4}  {'contender':17}  {'steps/s':>11} spread  "
    f"{'against':22}  {'steps/s':>11} spread    ratio  bound"
)


@dataclasses.dataclass(frozen=True)
class Claim:
    """``contender`` is at least ``bound`` times as fast as ``against``."""

    contender: Contender
    against: Contender
    bound: float

    def result_line(self, measurement: Measurement) -> str:
        """Returns a line of the table: contenders, rates, ratio, bound and whether it holds."""
        ratio = measurement.ratio(self.contender.name, self.against.name)
        return (
            f"{_pair(measurement, self.contender, self.against)}  {ratio:7.2f}  "
            f"≥ {self.bound:<6g}  {_holds(ratio >= self.bound)}"
        )


@dataclasses.dataclass(frozen=True)
class OverheadClaim:
    """A step of the batch takes ``contender`` at most ``bound_us`` longer than ``against``."""

    contender: Contender
    against: Contender
    bound_us: float

    def result_line(self, measurement: Measurement) -> str:
        """A line below ``HEADER``, with microseconds instead of the ratio."""
        rates = (measurement.rates[one.name] for one in (self.contender, self.against))
        pairs = zip(*rates, strict=True)
        extra_s = statistics.median(1 / rate - 1 / other for rate, other in pairs)
        extra_us = 1e6 * measurement.num_envs * extra_s
        return (
            f"{_pair(measurement, self.contender, self.against)}  {extra_us:+.2f}µs  "
            f"≤ {self.bound_us:g} µs  {_holds(extra_us <= self.bound_us)}"
        )


def _pair(measurement: Measurement, contender: Contender, against: Contender) -> str:
    first, second = (
        f"{measurement.rate(name):11,.0f}  ±{measurement.spread(name):<4.0%}"
        for name in (contender.name, against.name)
    )
    return f"{measurement.num_envs:4}  {contender.name:17}  {first}  {against.name:22}  {second}"


def _holds(holds: bool) -> str:  # noqa: FBT001 - a word for a truth value
    return "holds" if holds else "MISSED"


def no_env() -> NoReturn:
    """The ``env_fn`` of a race without environments in Python."""
    raise TypeError("this race has no environments in Python")


def options_of(description: str | None, *, has_figures: bool = False) -> argparse.Namespace:
    """Returns ``seconds`` and ``rounds`` of the command line, and ``json`` if there are figures."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--seconds", type=positive(float), default=3.0, help="per contender and number of envs"
    )
    parser.add_argument("--rounds", type=positive(int), default=7, help="slices of these seconds")
    if has_figures:
        parser.add_argument("--json", action="store_true", help="print the figures of the pages")
    return parser.parse_args()


def raced(
    env_fn: EnvFn, num_envs: int, claims: Iterable[Any], *, seconds: float, rounds: int
) -> Measurement:
    """Races the contenders of claims, each once."""
    contenders = [each for claim in claims for each in (claim.contender, claim.against)]
    return race(env_fn, num_envs, [*dict.fromkeys(contenders)], seconds=seconds, rounds=rounds)


def ratios_of(measurement: Measurement, contender: Contender, against: Contender) -> list[float]:
    """Returns the ratio of two contenders in each round."""
    pairs = zip(*(measurement.rates[each.name] for each in (contender, against)), strict=True)
    return [rate / other for rate, other in pairs]


def check(work: str, env_fn: EnvFn, claims: Mapping[int, Sequence[Claim | OverheadClaim]]) -> None:
    """Measures claims and prints a line for each, whether it holds or not.

    Reads ``--seconds`` and ``--rounds`` from the command line.

    Args:
        work: What the environment does, in one line.
        env_fn: Makes one environment.
        claims: By number of environments; the contenders of one number run in one race.
    """
    arguments = options_of(work)
    print(machine_line())
    print(f"work: {work}, {arguments.seconds:g} s each in {arguments.rounds} rounds\n\n{HEADER}")
    for num_envs, ours in claims.items():
        measurement = raced(
            env_fn, num_envs, ours, seconds=arguments.seconds, rounds=arguments.rounds
        )
        for claim in ours:
            print(claim.result_line(measurement), flush=True)
        for name, note in measurement.notes.items():
            print(f"      {name}: {note}", flush=True)
