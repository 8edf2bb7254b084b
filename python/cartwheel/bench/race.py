"""The race: builds every contender, warms all of them up and times them in alternating rounds."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.contenders import Contender
    from cartwheel.bench.runner import Runner

WARM_UP_S = 0.1
"""Enough for caches, allocators and adaptive waits to settle, whatever a step costs."""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The result of one race.

    Attributes:
        num_envs: Number of environments of every contender.
        rates: Environment steps per second, a value for each round, by the contender's name.
        notes: Remarks on contenders, such as a choice that they made, by name.
    """

    num_envs: int
    rates: dict[str, list[float]]
    notes: dict[str, str] = dataclasses.field(default_factory=dict)

    def rate(self, name: str) -> float:
        """Median over the rounds, environment steps per second."""
        return statistics.median(self.rates[name])

    def spread(self, name: str) -> float:
        """Half the difference between the best and the worst round, as a fraction of the median."""
        rates = self.rates[name]
        return (max(rates) - min(rates)) / 2 / self.rate(name)

    def ratio(self, name: str, against: str) -> float:
        """Median of the rounds' ratios; in a round both ran within moments of each other."""
        pairs = zip(self.rates[name], self.rates[against], strict=True)
        return statistics.median(rate / other for rate, other in pairs)


def parts(num_contenders: int, rounds: int) -> int:
    """Returns how often :func:`race` reports its progress."""
    return num_contenders * (1 + rounds)


def race(
    env_fn: EnvFn,
    num_envs: int,
    contenders: Sequence[Contender],
    *,
    seconds: float,
    rounds: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Times ``contenders`` on ``num_envs`` environments, in alternating rounds.

    Args:
        env_fn: Makes one environment.
        num_envs: How many of them each contender steps.
        contenders: The ways to step the environments.
        seconds: Time that each of them gets, all rounds together.
        rounds: In how many slices; every other round runs in reverse order.
        progress: Called with the name of the contender before it is built and before each slice.
    """
    with contextlib.ExitStack() as stack:
        runners: dict[str, Runner] = {}
        for contender in contenders:
            progress(contender.name)
            runner = contender.build([env_fn] * num_envs)
            stack.callback(runner.close)
            runners[contender.name] = runner
        for runner in runners.values():
            runner.run(0)  # one step, to know what a step costs
            runner.run(WARM_UP_S)
        rates: dict[str, list[float]] = {name: [] for name in runners}
        order = list(runners)
        for _ in range(rounds):
            for name in order:
                progress(name)
                rates[name].append(runners[name].run(seconds / rounds))
            order.reverse()
        notes = {name: runner.note for name, runner in runners.items() if runner.note}
    return Measurement(num_envs, rates, notes)
