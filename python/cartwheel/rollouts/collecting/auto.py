"""The order ``"auto"``: measures, and chooses one of the others."""

from __future__ import annotations

import math
import time
import weakref
from typing import TYPE_CHECKING, Any

from cartwheel._internal.logging import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cartwheel.rollouts.collecting.pipeline import Pipeline
    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.collecting.source import Source
    from cartwheel.rollouts.rollout import Rollout

#: Seconds. Environments that step all rows in less are not worth a trial: a call of another order
#: costs as much.
SHORTEST_STEP = 300e-6
#: The least fraction of the time that another order could hide.
LEAST_SHARE = 0.1
#: How much faster than lockstep another order must be.
LEAST_GAIN = 1.05
#: Rollouts of a trial: during the first, rows reach a steady state.
TRY = 2


class Auto:
    """Tries the orders that can gain and keeps the fastest.

    The first rollout, in lockstep, is not counted, because code is loaded and compiled in it. The
    second measures a step of all rows and a call of the policy. If one of them could hide
    a part of the other, or if rows could wait less for each other, ``groups`` and ``free`` play two
    rollouts each, and lockstep a third one. An order is changed only where every row is at the
    beginning of a rollout.

    Attributes:
        name: The order of the last rollout.
        reason: Why this order.
        is_measuring: Whether orders are still compared.
    """

    def __init__(
        self, actor: Actor, lockstep: Source, makers: dict[str, Callable[[], Pipeline]]
    ) -> None:
        """``makers`` make the other orders, by name."""
        self._actor, self._makers = actor, makers
        self._pipelines: dict[str, Pipeline] = {}
        self._source: Source = lockstep
        self._lockstep = lockstep
        #: Seconds of waiting in orders before the present one, and of the present one before that.
        self._waited = self._before = 0.0
        self.name, self.reason = "lockstep", "nothing was measured yet"
        self.is_measuring = True
        # A generator that had this object itself would be in a cycle with it, and the environments.
        self._choice = Auto._choices(weakref.proxy(self))
        #: Whether no exception ended the last call: the next one collects the rest of a rollout.
        self._is_whole = True
        #: Steps a second of the last rollout, and the seconds of a step of all rows that the policy
        #: and the environments took.
        self._speed = 0.0
        self._measured = (0.0, 0.0)

    @property
    def present(self) -> Source:
        """The order of the next rollout."""
        return self._source

    # The interface of an order

    def __getattr__(self, name: str) -> Any:
        """Other names are those of the present order."""
        return getattr(self._source, name)

    #: Whether a rollout has a number of whole episodes.
    counts_episodes = False

    @property
    def num_steps(self) -> Any:
        """Steps of a rollout."""
        return self._lockstep.num_steps

    @num_steps.setter
    def num_steps(self, num_steps: int) -> None:
        self._lockstep.num_steps = self._source.num_steps = num_steps

    @property
    def waited(self) -> float:
        """Seconds in which it waited for environments."""
        return self._waited + self._source.waited - self._before

    @property
    def turn(self) -> int:
        """The group that the policy gets next; 0 without groups."""
        return self._source.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        self._source.turn = turn

    def collect(self) -> Rollout:
        """Collects the next rollout, then measures or chooses."""
        was_whole, self._is_whole = self._is_whole, False
        began, waited, thought = time.perf_counter(), self.waited, self._actor.seconds
        rollout = self._source.collect()
        self._is_whole = True
        if not was_whole:
            return rollout
        seconds = time.perf_counter() - began
        self._speed = math.prod(rollout.rewards.shape[:2]) / seconds
        per_step = 1.0 / rollout.num_steps
        self._measured = (
            (self._actor.seconds - thought) * per_step,
            (self.waited - waited) * per_step,
        )
        try:
            next(self._choice, None)
        except BaseException:  # Ctrl-C has ended the generator: the present order stays
            self.is_measuring, self.reason = False, "the comparison of orders was interrupted"
            raise
        return rollout

    # Choosing

    def _choices(self) -> Iterator[None]:
        """Goes on after each rollout, as long as there is something to choose."""
        yield  # after the first rollout
        speeds = {"lockstep": self._speed}
        policy, envs = self._measured
        known = f"a step takes {envs * 1e3:.2f} ms, a call of the policy {policy * 1e3:.2f} ms"
        tries = []
        if envs >= SHORTEST_STEP and envs >= LEAST_SHARE * (policy + envs):
            tries.append("free")
            if policy >= LEAST_SHARE * (policy + envs):
                tries.insert(0, "groups")
        tries = [name for name in tries if name in self._makers]
        if tries:  # lockstep gets as many rollouts as the others, or it would seem slower
            yield
            speeds["lockstep"] = max(speeds["lockstep"], self._speed)
        for name in tries:
            pipeline = self._pipelines[name] = self._makers[name]()
            ahead = pipeline.run_ahead
            self._switch(name, pipeline)
            best = 0.0
            for _ in range(TRY):
                yield
                best = max(best, self._speed)
            speeds[name] = best
            pipeline.run_ahead = 0  # brings every row to the beginning of a rollout
            try:
                while not pipeline.is_between_rollouts:
                    yield
            finally:
                pipeline.run_ahead = ahead
        best_name = max(speeds, key=lambda name: speeds[name])
        if speeds[best_name] < LEAST_GAIN * speeds["lockstep"]:
            best_name = "lockstep"
        if best_name != self.name:
            self._switch(best_name, self._pipelines.get(best_name, self._lockstep))
        seen = ", ".join(f"{name} {speed:,.0f}" for name, speed in speeds.items())
        self.is_measuring = False
        self.reason = f"{known}; steps a second: {seen}"
        LOGGER.info("the collector chose the order %r: %s", self.name, self.reason)

    def _switch(self, name: str, source: Source) -> None:
        """Passes the rows to another order."""
        carry, shown = self._source.carry, self._source.shown
        assert carry is not None
        self._source.rest()
        self._waited += self._source.waited - self._before
        self._before = source.waited
        source.num_steps = self._source.num_steps
        source.begin(carry, shown)
        self._source, self.name = source, name
