"""A rollout while it is recorded: which rows restart, what is kept of them, when it is complete."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.vector import AutoresetMode

import cartwheel.returns as estimators
from cartwheel.rollouts.carry import Carry
from cartwheel.rollouts.finals import Finals
from cartwheel.rollouts.rollout import Rollout
from cartwheel.rollouts.segment import Segment, join
from cartwheel.spaces import nested
from cartwheel.vector.infos import failed_rows
from cartwheel.vector.pool_env import PoolVectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record

#: What ``step`` returns.
Step: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]

#: Most steps that a rollout slab has.
MAX_STEPS = 65534


class Recording:
    """``num_steps`` steps. In every mode a row that is over restarts at once, or by its next step.

    Attributes:
        shown: The observations that are acted on next.
        is_complete: Whether no step is missing.
        is_lost: Whether the environments failed in a step; it cannot go on then.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        mode: AutoresetMode,
        carry: Carry,
        shown: Any,
        capacity: int,
    ) -> None:
        """Begins at the observations ``shown`` now, after the step of ``carry``."""
        self.envs, self.mode, self.carry = envs, mode, carry
        segment = Segment(envs, capacity, shown)
        self.segments = [segment]
        # A slab begins with the environments' own; what steps return may be a view of the slab
        # before, which is the caller's to write into.
        self.shown = shown if segment.copies else nested.at(segment.observations, 0)
        self.finals = Finals(envs.single_observation_space)
        self.is_complete = self.is_lost = False
        #: Steps that are no transitions for some environments, which were replaced in them. Not
        #: where one was terminated: its autoreset failed (in ``SAME_STEP``).
        self._failed: dict[int, NDArray[np.bool_]] = {}

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that are shown begin an episode, ``[N]``."""
        segment = self.segments[-1]
        # NEXT_STEP shows the final observation once more before the first one.
        ended = segment.steps - (2 if self.mode == AutoresetMode.NEXT_STEP else 1)
        if segment.steps == 0:
            return self.carry.is_first
        if ended < 0:
            return self.carry.done
        over: NDArray[np.bool_] = segment.terminated[ended] | segment.truncated[ended]
        return over

    def record(self, policy: Callable[[Any], Any]) -> None:
        """Steps until the recording is complete.

        If the policy raises, or what it gives does not fit, the recording is what it was before.
        """
        while not self.is_complete:
            segment = self.segments[-1]
            actions = segment.act(policy(self.shown))
            self.is_lost = True
            try:
                step = self.envs.step(actions)
            except BaseException:
                self.is_lost = not self._is_refused(segment)
                raise
            segment.take_in(step)
            failed = failed_rows(step[4]) if step[4] else None
            if failed is not None:
                step_of_all = sum(segment.steps for segment in self.segments) - 1
                self._failed[step_of_all] = failed & ~step[2]  # a termination was proper
            self._settle(segment, step)
            self.is_lost = False

    def _is_refused(self, segment: Segment) -> bool:
        """Whether a step that raised was not begun, as far as is known."""
        with contextlib.suppress(Exception):  # closed: there is nothing to go on with
            if isinstance(self.envs, PoolVectorEnv) and not segment.copies:
                return self.envs._pool.recorded_steps() == segment.steps
        return False

    def end(self) -> None:
        """Ends the rollout slab of the environments, which may have room for more steps."""
        if isinstance(self.envs, PoolVectorEnv) and not self.segments[-1].is_full:
            self.envs.end_rollout()

    def _without_failed(self, valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask, false where environments failed too."""
        for step, envs in self._failed.items():
            valid[step] &= ~envs
        return valid

    def _settle(self, segment: Segment, step: Step) -> None:
        """Restarts rows that are over, if the mode leaves it to us, and keeps what they lose."""
        self.shown = step[0]
        if self.mode == AutoresetMode.SAME_STEP:
            self.finals.add_infos(segment.steps - 1, step[4])
        elif self.mode == AutoresetMode.DISABLED:
            over = step[2] | step[3]
            if np.count_nonzero(over):
                self.finals.add(nested.at(self.shown, over))
                self.shown, _ = self.envs.reset(options={"reset_mask": over})
                # The others show what their step led to, unless their worker died just now.
                segment.show(over, nested.at(self.shown, over))
        self.is_complete = segment.is_full

    def rollout(self) -> Rollout:
        """The rollout, once it is complete.

        Raises:
            RuntimeError: Final observations are missing.
            ValueError: The flags cannot be those of the mode.
        """
        rows = join(self.segments)
        flags = (rows["terminated"], rows["truncated"])
        before = self.carry.done
        replaced = np.zeros((0, self.envs.num_envs), np.bool_)  # NEXT_STEP shows all of them
        if self.mode != AutoresetMode.NEXT_STEP:
            replaced = flags[0] | flags[1]
        finals, index = self.finals.joined(replaced)
        return Rollout(
            **rows,
            mode=self.mode,
            valid=self._without_failed(estimators.valid_mask(self.mode, *flags, before)),
            is_first=estimators.is_first(self.mode, *flags, before, self.carry.is_first),
            final_observations=finals,
            final_index=index,
            carry=self.carry,
        )


class EpisodeRecording(Recording):
    """Whole episodes: a number for each row, which then rests and repeats its last frame.

    Where the environments cannot let a row rest (``on_done="freeze"`` can), it plays on unseen.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        mode: AutoresetMode,
        carry: Carry,
        shown: Any,
        capacity: int,
        *,
        episodes: NDArray[np.int64],
        num_steps: int | None,
    ) -> None:
        """Begins after a reset; ``num_steps``, if given, are the most there may be."""
        super().__init__(envs, mode, carry, shown, capacity)
        self.left, self.num_steps = episodes.copy(), num_steps
        self.freezes = getattr(envs.unwrapped, "on_done", "raise") == "freeze"
        no_rows = np.zeros(envs.num_envs, np.bool_)
        self.resting, self.resetting = no_rows, no_rows
        self._flags = (no_rows, no_rows)
        self._valid: list[NDArray[np.bool_]] = []
        self._first = [carry.is_first]
        self._replaced: list[NDArray[np.bool_]] = []

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that are shown begin an episode, ``[N]``."""
        return self._first[-1]

    def _settle(self, segment: Segment, step: Step) -> None:
        """Lets rows rest that have played their episodes, and restarts the others."""
        after, resting = segment.steps, self.resting
        flags = segment.terminated[after - 1], segment.truncated[after - 1]
        over = flags[0] | flags[1]  # as the environments see it
        if resting.any():
            before = nested.at(segment.observations, after - 1)
            segment.show(resting, nested.at(before, resting))
            segment.rewards[after - 1, resting] = 0.0
            for flag, last in zip(flags, self._flags, strict=True):
                flag[resting] = last[resting]
        self._flags = flags
        self._valid.append(~(resting | self.resetting))

        ended = over & ~resting
        self.left = self.left - ended
        restarting = ended & (self.left > 0)
        self.resting = resting | (ended & (self.left == 0))
        self.is_complete = bool(self.resting.all()) or len(self._valid) == self.num_steps
        if self.mode == AutoresetMode.NEXT_STEP:
            self._first.append(self.resetting)
            self._replaced.append(np.zeros_like(restarting))  # all are shown
            self.resetting = restarting
        else:
            self._first.append(restarting)
            self._replaced.append(restarting)
            if over.any():
                self._restart(segment, step[4], ended, restarting, over)
        self.shown = nested.at(segment.observations, after)
        if segment.is_full and not self.is_complete:
            self._grow()

    def _restart(
        self,
        segment: Segment,
        infos: dict[str, Any],
        ended: NDArray[np.bool_],
        restarting: NDArray[np.bool_],
        over: NDArray[np.bool_],
    ) -> None:
        """Keeps what rows ended with, and shows what those that go on begin with."""
        rows = np.flatnonzero(ended)
        goes_on = restarting[rows]
        if self.mode == AutoresetMode.SAME_STEP:
            finals = self.finals.of_infos(len(self._valid) - 1, infos, ended)
            segment.show(rows[~goes_on], nested.at(finals, ~goes_on))
        else:
            finals = nested.at(segment.observations, (segment.steps, rows))
        if goes_on.any():
            self.finals.add(nested.at(finals, goes_on))
        if self.mode == AutoresetMode.DISABLED:
            mask = restarting if self.freezes else over
            if mask.any() and not self.is_complete:
                observations, _ = self.envs.reset(options={"reset_mask": mask})
                segment.show(rows[goes_on], nested.at(observations, rows[goes_on]))

    def _grow(self) -> None:
        """Makes room for as many steps as there are, or as there may be."""
        steps = len(self._valid)
        most = steps if self.num_steps is None else self.num_steps - steps
        segment = Segment(self.envs, min(steps, most, MAX_STEPS), self.shown)
        nested.assign(segment.observations, 0, self.shown)  # rows that rest show what they did
        segment.expect(self.segments[-1].extras or {})
        self.segments.append(segment)
        self.shown = nested.at(segment.observations, 0)

    def rollout(self) -> Rollout:
        """The rollout, once it is complete."""
        finals, index = self.finals.joined(np.array(self._replaced))
        return Rollout(
            **join(self.segments),
            mode=self.mode,
            valid=self._without_failed(np.array(self._valid)),
            is_first=np.array(self._first),
            final_observations=finals,
            final_index=index,
            carry=self.carry,
        )


def carry_after(rollout: Record) -> Carry:
    """What the last step of a rollout that was collected by steps left behind."""
    before, num_steps = rollout.carry, rollout.num_steps
    # What follows the last end before the last step is one episode. Numbers as small as steps
    # are compared faster as `int16`, and this is done for every rollout.
    steps = np.arange(num_steps, dtype=np.int16 if num_steps < 2**15 else np.int64)[:, None]
    over = rollout.terminated[:-1] | rollout.truncated[:-1]
    last = np.where(over, steps[:-1], -1).max(axis=0, initial=-1)
    first = last + 1
    if rollout.mode == AutoresetMode.NEXT_STEP:  # after a row that only resets
        first += (last >= 0) | ~rollout.valid[0]
    goes_on = (first == 0) & ~before.is_first
    sums = np.where(steps >= first, rollout.rewards, 0.0).sum(axis=0)
    return Carry(
        rewards=rollout.rewards[-1].copy(),
        terminated=rollout.terminated[-1].copy(),
        truncated=rollout.truncated[-1].copy(),
        is_first=rollout.is_first[-1].copy(),
        returns=sums + np.where(goes_on, before.returns, 0.0),
        lengths=num_steps - first.astype(np.int64) + np.where(goes_on, before.lengths, 0),
    )
