"""Environments, the order in which they are collected, and statistics of both."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel._internal.logging import LOGGER
from cartwheel._internal.progress import Progress
from cartwheel._internal.reset_arguments import check_options
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.rollouts.buffers import Carry
from cartwheel.rollouts.collecting.auto import Auto
from cartwheel.rollouts.collecting.pipeline import Pipeline
from cartwheel.vector.episode_rules import whole_episodes
from cartwheel.vector.infos import check_infos
from cartwheel.vector.pool_owner import owner_of
from cartwheel.vector.state_dict import check_array, check_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.rollouts.collecting.block import Standby
    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.collecting.source import Source
    from cartwheel.rollouts.rollout import Rollout
    from cartwheel.vector.calls import Calls
    from cartwheel.wrappers.numpy_to_torch import NumpyToTorch

#: How many of the slowest rows the statistics name.
SLOWEST = 5
#: Counts of rollouts, attributes of :class:`Session` without the underscore.
_COUNTS = ("rollouts", "steps", "staleness", "max_staleness")
#: The entries of :meth:`Session.state`.
ENTRIES = (
    *("carry", "turn", "has_used_seed", "policy_version", "policy_calls", "policy_rows"),
    *_COUNTS,
)
#: Seconds after which a rollout has a progress bar.
LONG = 1.0


class Session:
    """Resets environments where it is needed, collects, and counts.

    A thread in the background refers to this object, and not to the collector.
    """

    def __init__(
        self,
        envs: Any,
        actor: Actor,
        source: Source,
        calls: Calls,
        order: str,
        standby: Standby | None,
        seed: Any,
        options: ResetOptions,
        on_device: NumpyToTorch | None,
    ) -> None:
        """Resets nothing yet.

        Args:
            envs: The environments, without what converts their arrays.
            actor: Calls the policy.
            source: Collects rollouts.
            calls: Of the environments.
            order: Its name.
            standby: Spare environments.
            seed: For the first reset.
            options: For every reset.
            on_device: Has the device of rollouts; ``None``: they are in arrays of the host.
        """
        self.envs, self.actor, self.source, self._calls = envs, actor, source, calls
        self._order, self._standby = order, standby
        self._seed = self._first_seed = seed
        self._options = options
        self._rollouts = self._steps = self._staleness = self._max_staleness = 0
        #: Seconds in which it collected, without the present time, and when that began. One tuple,
        #: because another thread may read it at any moment.
        self._clock: tuple[float, float | None] = (0.0, None)
        self._has_told = False
        self._on_device = on_device

    def check_reset(self, seed: Any, options: ResetOptions) -> None:
        """Raises what a reset refuses before it begins, as far as cartwheel's environments do."""
        if self._standby is not None:
            if seed is not None:
                as_integer("seed", seed, 0)
            seed = None  # each row gets one of its own
        options = self._options if options is None else options
        owner: Any = owner_of(self.envs.unwrapped)
        if owner is not None:
            check_options(options, owner.num_envs)
            owner._packed_reset(seed, options)

    def reset(self, seed: Any, options: ResetOptions) -> tuple[Any, dict[str, Any]]:
        """Resets every environment; the policy gets the returned observations next."""
        self.source.drop()
        options = self._options if options is None else options
        standby = self._standby
        if standby is not None:
            seed = standby.begin(seed)
        # A rollout that counts episodes has whole ones.
        whole = self.source.counts_episodes
        with whole_episodes(self.envs) if whole else contextlib.nullcontext():
            observations, infos = self.envs.reset(seed=seed, options=options)
        self._calls.note()
        check_infos(infos)
        num_rows, shown = self.envs.num_envs, observations
        if standby is not None:
            num_rows = standby.num_rows
            standby.keep(standby.spares, nested.at(observations, standby.spares))
            shown = nested.at(observations, slice(num_rows))
        self.source.begin(Carry.after_reset(num_rows, reward_shape_of(self.envs)), shown)
        self._seed = None
        return observations, infos

    def collect(self, *, progress: bool | Callable[[int, int], object] = False) -> Rollout:
        """Collects the next rollout, after a reset if one is needed."""
        if self.source.needs_reset or self._is_elsewhere():
            self.reset(self._seed, None)
        before, began = self._clock[0], time.perf_counter()
        self._clock = before, began
        try:
            with self._reporting(progress=progress):
                rollout = self.source.collect()
            if self._on_device is not None:
                rollout = rollout.to(self._on_device._place)
                rollout._ready = self._on_device._ready()
            return rollout
        finally:
            self._clock = before + time.perf_counter() - began, None

    def deliver(self, rollout: Rollout) -> None:
        """The current stream waits for the copies of a rollout, which another thread may make."""
        if self._on_device is not None and rollout._ready is not None:
            parts = (rollout.observations, rollout.actions, rollout.extras)
            self._on_device._deliver(rollout._ready, (*parts, rollout.final_observations))
            rollout._ready = None

    def state(self) -> dict[str, Any]:
        """Returns what the next rollout depends on, apart from the environments.

        Raises:
            RuntimeError: A rollout is unfinished, or orders are still compared.
        """
        source, actor = self.source, self.actor
        if isinstance(source, Auto) and source.is_measuring:
            raise RuntimeError(
                "`state_dict` while order='auto' measures: collect until `stats().reason` names "
                "the chosen order, or choose one."
            )
        if not source.is_between_rollouts:
            raise RuntimeError("`state_dict` with an unfinished rollout: complete it by `collect`.")
        carry = None
        if not source.needs_reset and not self._calls.others():
            assert source.carry is not None
            carry = {name: part.copy() for name, part in vars(source.carry).items()}
        return {
            "carry": carry,
            "turn": source.turn,
            "has_used_seed": self._seed is None,
            "policy_version": actor.version,
            "policy_calls": actor.calls,
            "policy_rows": actor.rows,
            **{name: getattr(self, f"_{name}") for name in _COUNTS},
        }

    def check_state(self, state: dict[str, Any]) -> None:
        """Checks a state of :meth:`state`.

        Raises:
            ValueError: It has another form.
        """
        like = Carry.after_reset(self.envs.num_envs, reward_shape_of(self.envs))
        if state["carry"] is not None:
            check_keys("state['carry']", state["carry"], vars(like))
            for name, part in vars(like).items():
                given = state["carry"][name]
                check_array(f"state['carry'][{name!r}]", given, part.shape, part.dtype)
        for name in ("turn", "policy_version", "policy_calls", "policy_rows", *_COUNTS):
            as_integer(f"state[{name!r}]", state[name], 0)
        as_bool("state['has_used_seed']", state["has_used_seed"])

    @contextlib.contextmanager
    def unchanged_if_refused(self) -> Iterator[None]:
        """Loads states of the environments, which have their old ones again if one is refused.

        After a call of another caller the next rollout would begin with a reset; not after this.
        """
        owner: Any = owner_of(self.envs.unwrapped)
        are_elsewhere = self._calls.others()
        try:
            yield
        except Exception:
            with contextlib.suppress(Exception):  # closed, or broken
                if not are_elsewhere and not owner.in_flight:
                    self._calls.note()
            raise

    def load(self, state: dict[str, Any], shown: Any) -> None:
        """Continues with a checked state; the rows show these observations."""
        self.source.drop()
        if state["carry"] is not None:
            self.source.begin(
                Carry(**{name: part.copy() for name, part in state["carry"].items()}), shown
            )
            self.source.turn = state["turn"]
        self._calls.note()
        self._seed = None if state["has_used_seed"] else self._first_seed
        self.actor.version = state["policy_version"]
        self.actor.calls, self.actor.rows = state["policy_calls"], state["policy_rows"]
        for name in _COUNTS:
            setattr(self, f"_{name}", state[name])

    def _is_elsewhere(self) -> bool:
        """Whether another caller has stepped or reset the environments, so that a reset is due."""
        if not self._calls.others():
            return False
        if not self._has_told:
            self._has_told = True
            LOGGER.warning(
                "%r was stepped or reset by another caller: the collector begins its next rollout "
                "with a reset, now and whenever that happens (this is said once)",
                self.envs,
            )
        return True

    @contextlib.contextmanager
    def _reporting(self, *, progress: bool | Callable[[int, int], object]) -> Iterator[None]:
        """Draws or reports how much of a rollout is there, before each call of the policy."""
        source, total = self.source, self.source.total
        if callable(progress):
            report = progress
            self.actor.before_call = lambda: report(source.done, total)
        elif progress and (bar := Progress(total, LONG)).is_visible:
            self.actor.before_call = lambda: bar.show("collected", source.done)
        else:
            yield
            return
        try:
            yield
        finally:
            self.actor.before_call = None
            if progress is True:
                bar.close()

    def count(self, rollout: Rollout) -> None:
        """Counts a rollout when the caller gets it."""
        now, versions = self.actor.version, rollout.policy_version
        self._rollouts += 1
        self._steps += versions.size
        self._staleness += now * versions.size - int(versions.sum())
        self._max_staleness = max(self._max_staleness, now - int(versions.min(initial=now)))

    def stats(self) -> CollectorStats:
        """Returns the measurements so far."""
        source, name, reason = self.source, self._order, ""
        if isinstance(source, Auto):
            name, reason = source.name, source.reason
        actor = self.actor
        policy, waiting = actor.seconds, source.waited  # before the clock, which goes on
        seconds, began = self._clock
        if began is not None:
            seconds += time.perf_counter() - began
        if seconds:
            policy, waiting = policy / seconds, waiting / seconds
        return CollectorStats(
            order=name,
            reason=reason,
            rollouts=self._rollouts,
            steps=self._steps,
            policy_calls=actor.calls,
            rows_per_call=actor.rows / max(actor.calls, 1),
            seconds=seconds,
            policy_share=policy,
            waiting_share=waiting,
            other_share=max(1.0 - policy - waiting, 0.0) if seconds else 0.0,
            version=actor.version,
            mean_staleness=self._staleness / max(self._steps, 1),
            max_staleness=self._max_staleness,
            slowest_rows=_slowest(source.present if isinstance(source, Auto) else source),
        )


def _slowest(source: Source) -> tuple[tuple[int, float], ...]:
    """The rows whose steps take longest, and their seconds."""
    if not isinstance(source, Pipeline):
        return ()
    seconds = source.busy / np.maximum(source.steps, 1)
    slowest = np.argsort(-seconds)[:SLOWEST]
    return tuple((int(row), float(seconds[row])) for row in slowest)


@dataclasses.dataclass(frozen=True)
class CollectorStats:
    """Counts and times of a :class:`~cartwheel.Collector` since it was made.

    Attributes:
        order: The order of the last rollout: ``"lockstep"``, ``"groups"`` or ``"free"``.
        reason: With ``order="auto"``, why this order; otherwise ``""``.
        rollouts: Complete rollouts.
        steps: Steps in them, ``T × N`` each.
        policy_calls: Calls of the policy.
        rows_per_call: Rows of a call, on average.
        seconds: Time in which the collector collected so far. In the background, time in which the
            thread waited for room does not count.
        policy_share: Part of this time in the policy, from 0 to 1.
        waiting_share: Part of this time in which the collector waited for environments.
        other_share: The rest: sending, copying, counting.
        version: Calls of :meth:`~cartwheel.Collector.update`.
        mean_staleness: How many updates there were between an action and the hand-out of its
            rollout, on average.
        max_staleness: At most.
        slowest_rows: Up to five rows, slowest first, and the seconds from the send of a step to its
            receipt, on average. Empty in ``"lockstep"``: see :meth:`~cartwheel.VectorEnv.stats`.
    """

    order: str
    reason: str
    rollouts: int
    steps: int
    policy_calls: int
    rows_per_call: float
    seconds: float
    policy_share: float
    waiting_share: float
    other_share: float
    version: int
    mean_staleness: float
    max_staleness: int
    slowest_rows: tuple[tuple[int, float], ...]
