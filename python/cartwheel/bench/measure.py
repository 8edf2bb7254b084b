"""The race: builds every contender, warms all of them up and times them in alternating rounds."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import statistics
import time
from typing import TYPE_CHECKING, Protocol

from cartwheel.bench.contenders import CEILING, AnyVectorEnv, Contender, EnvFn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WARM_UP_S = 0.1
"""Enough for caches, allocators and adaptive waits to settle, whatever a step costs."""
ACTION_BATCHES = 256
"""Sampled before the clock starts and replayed in turn; the same for every contender."""


class Runner(Protocol):
    """A contender that is built and ready to be timed."""

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds`` and returns the environment steps per second."""

    def close(self) -> None:
        """Releases what it holds."""


class VectorRunner:
    """Times ``envs.step`` in a loop that holds nothing else."""

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Takes over ``envs``, resets them and samples their actions."""
        self.envs = envs
        envs.action_space.seed(0)
        self._actions = [envs.action_space.sample() for _ in range(ACTION_BATCHES)]
        self._step_s = float("inf")  # what a step of the batch took in the last run
        envs.reset(seed=0)

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds`` and returns the environment steps per second.

        The number of steps is fixed beforehand, from the last run, so that the loop reads no clock.
        """
        turns = max(1, round(seconds / self._step_s))
        step = self.envs.step
        start = time.perf_counter()
        for actions in itertools.islice(itertools.cycle(self._actions), turns):
            step(actions)
        elapsed = time.perf_counter() - start
        self._step_s = elapsed / turns
        return turns * self.envs.num_envs / elapsed

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The outcome of one race.

    Attributes:
        num_envs: Number of environments of every contender but the ceiling.
        rates: Environment steps per second, a value for each round, by the contender's name.
    """

    num_envs: int
    rates: dict[str, list[float]]

    def rate(self, name: str) -> float:
        """Median over the rounds, environment steps per second."""
        return statistics.median(self.rates[name])

    def spread(self, name: str) -> float:
        """Half the distance between the best and the worst round, as a part of the median."""
        rates = self.rates[name]
        return (max(rates) - min(rates)) / 2 / self.rate(name)

    def ratio(self, name: str, against: str) -> float:
        """Median of the rounds' ratios; in a round both ran within moments of each other."""
        pairs = zip(self.rates[name], self.rates[against], strict=True)
        return statistics.median(rate / other for rate, other in pairs)


def race(
    env_fn: EnvFn,
    num_envs: int,
    contenders: Sequence[Contender],
    *,
    seconds: float,
    rounds: int,
    ceiling: Runner | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Times ``contenders`` on ``num_envs`` environments, side by side.

    Args:
        env_fn: Makes one environment.
        num_envs: How many of them each contender steps.
        contenders: Who takes part.
        seconds: Time that each of them gets, all rounds together.
        rounds: In how many slices; every other round runs in reverse order.
        ceiling: Takes part as well; it is left open for the next race.
        progress: Called with the name of the contender before each slice.
    """
    with contextlib.ExitStack() as stack:
        runners: dict[str, Runner] = {}
        for contender in contenders:
            progress(contender.name)
            runner = VectorRunner(contender.build([env_fn] * num_envs))
            stack.callback(runner.close)
            runners[contender.name] = runner
        if ceiling is not None:
            runners[CEILING] = ceiling
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
    return Measurement(num_envs, rates)
