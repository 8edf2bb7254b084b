"""Records a rollout: restarts finished rows and keeps final observations."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from gymnasium.vector import AutoresetMode

import cartwheel.returns as estimators
from cartwheel._internal import nested
from cartwheel.multiagent.agent_rows import AgentRows
from cartwheel.rollouts.buffers import Carry, Finals, Segment, join, join_mirrors
from cartwheel.rollouts.rollout import Rollout
from cartwheel.vector.action_masks import with_allowed
from cartwheel.vector.infos import failed_steps
from cartwheel.vector.pool_owner import pool_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._device.mirror import Mirror
    from cartwheel.rollouts.collecting.policy_calls import Actor, Answers
    from cartwheel.rollouts.record import Record
    from cartwheel.vector.calls import Calls

    #: Which rows are transitions, which begin an episode, and which have a final observation that
    #: the next row does not show.
    Marks = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]

#: The result of ``step``.
Step: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]

#: The most steps of a rollout slab.
MAX_STEPS = 65534


class Recording:
    """Records ``num_steps`` steps. Finished rows restart at once, or by their next step.

    Attributes:
        shown: The present observations, on which the policy acts next.
        is_complete: Whether all steps are recorded.
        is_lost: Whether the environments failed in a step, so that the recording cannot continue.
        waited: Seconds in which the environments stepped.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        mode: AutoresetMode,
        carry: Carry,
        shown: Any,
        answers: Answers,
        capacity: int,
    ) -> None:
        """Begins at the present observations ``shown``, after the step of ``carry``."""
        self.envs, self.mode, self.carry = envs, mode, carry
        self._answers, self._capacity = answers, capacity
        segment = Segment(envs, capacity, shown, answers)
        self.segments = [segment]
        # A slab has its own copy of the first observations. Those of the last step may be a view of
        # the slab before, into which the caller may write.
        self.shown = shown if segment.copies else nested.at(segment.observations, 0)
        self.finals = Finals(envs.single_observation_space)
        self.is_complete = self.is_lost = False
        self.waited = 0.0
        self._rows = np.arange(envs.num_envs)
        #: Records steps that are not copied.
        self._pool: Any = pool_of(envs.unwrapped)
        #: The rows whose actions are ignored, ``[N]``; ``None``: as the environments know.
        self._ignored: NDArray[np.bool_] | None = None
        #: Calls of the environments, if they are the pool's: where steps are copied, wrappers may
        #: make several for one.
        self._own = 0
        #: For each step, the version of the policy.
        self._versions: list[int] = []
        #: For each step with failures, the environments for which it is not a transition.
        self._failed: dict[int, NDArray[np.bool_]] = {}
        self._of_agents = isinstance(envs.unwrapped, AgentRows)
        #: Of rows of agents: after each step, which of their observations begin an episode.
        self._begun: list[NDArray[np.bool_]] = []

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that are shown begin an episode, ``[N]``."""
        if self._begun:
            return self._begun[-1]
        # NEXT_STEP shows the final observation once more before the first one.
        back = 2 if self.mode == AutoresetMode.NEXT_STEP else 1
        for segment in reversed(self.segments):
            if segment.steps >= back:
                ended = segment.steps - back
                over: NDArray[np.bool_] = segment.terminated[ended] | segment.truncated[ended]
                return over
            back -= segment.steps
        return self.carry.done if self.has_steps else self.carry.is_first

    @property
    def has_steps(self) -> bool:
        """Whether any step is recorded."""
        return bool(self._versions)

    @property
    def done(self) -> int:
        """Recorded steps of all environments."""
        return len(self._versions) * self.envs.num_envs

    def record(self, actor: Actor, calls: Calls) -> None:
        """Steps until the recording is complete.

        If the policy raises, or its actions do not fit, the recording is not changed.

        Raises:
            RuntimeError: Another caller stepped or reset the environments meanwhile.
            Exception: The policy or an environment raised it.
        """
        self._own = 0
        try:
            self._step_on(actor, calls)
        finally:
            if not self.segments[-1].copies:
                calls.made(self._own)
        if calls.others():
            self.is_lost = True
            raise interrupted(self.done)

    def _step_on(self, actor: Actor, calls: Calls) -> None:
        def first() -> NDArray[np.bool_]:
            return self.is_first.copy()

        recorded: Any = getattr(self._pool, "recorded_steps", None)  # looked up once
        while not self.is_complete:
            if self.segments[-1].is_full:
                self._grow()
            segment = self.segments[-1]
            shown = self.shown if actor.mirror is None else segment.on_device(actor.mirror)
            answer, version = actor.ask(shown, self._rows, first, resting=self._ignored)
            actions = segment.act(answer, len(self._versions))
            self.is_lost = True
            if calls.others() if segment.copies else recorded() != segment.steps:
                raise interrupted(self.done)
            if self._ignored is not None:  # these rows go on in the environments
                actions = with_allowed(self.envs, actions, np.flatnonzero(self._ignored))
            began = time.perf_counter()
            try:
                step = self.envs.step(actions)
            except BaseException:
                self.is_lost = not self._is_refused(segment, calls)
                raise
            self.waited += time.perf_counter() - began
            self._own += 1
            segment.take_in(step)
            self._versions.append(version)
            failed = failed_steps(step[4], step[2], self.mode) if step[4] else None
            if self._of_agents:  # rows of absent agents are not transitions
                idle = ~step[4]["acted"]
                failed = idle if failed is None else failed | idle
                self._begun.append(self._beginnings(step))
            if failed is not None:
                self._failed[len(self._versions) - 1] = failed
            self._settle(segment, step)
            if segment.copies:
                calls.note()
            self.is_lost = False

    def _beginnings(self, step: Step) -> NDArray[np.bool_]:
        """Which rows of agents show the beginning of an episode, or will: rows of absent agents.

        An agent that ends before its environment is absent until that begins again.
        """
        _, _, terminations, truncations, infos = step
        over, others = terminations | truncations, ~infos["acted"]
        begun: NDArray[np.bool_] = others | over
        if self.mode != AutoresetMode.SAME_STEP:  # which shows last observations of agents
            begun &= ~over | cast("AgentRows", self.envs.unwrapped)._lives
        return begun

    def _is_refused(self, segment: Segment, calls: Calls) -> bool:
        """Whether a step that raised is known not to have begun."""
        with contextlib.suppress(Exception):  # closed: the recording cannot continue
            if segment.copies:
                return calls.sees_all and not calls.others()
            return bool(self._pool.recorded_steps() == segment.steps)
        return False

    def pause(self) -> None:
        """Ends the rollout slab of the environments; the next step begins another one."""
        segment = self.segments[-1]
        self.end()
        if not segment.copies:
            segment.capacity = segment.steps
            if segment.steps == 0 and len(self.segments) > 1:
                self.segments.pop()

    def end(self) -> None:
        """Ends the rollout slab of the environments if it has room for more steps."""
        segment, envs = self.segments[-1], cast("Any", self.envs)
        if not segment.copies and not segment.is_full:
            envs.end_rollout()

    def _settle(self, segment: Segment, step: Step) -> None:
        """Restarts finished rows if the mode is ``DISABLED``, and keeps final observations."""
        self.shown = step[0]
        if self.mode == AutoresetMode.SAME_STEP:
            self.finals.add_infos(len(self._versions) - 1, step[4])
        elif self.mode == AutoresetMode.DISABLED:
            over = step[2] | step[3]
            rows = np.flatnonzero(over)  # faster than a mask for few of many rows
            if len(rows):
                self.finals.add(nested.at(self.shown, rows))
                self.shown, _ = self.envs.reset(options={"reset_mask": over})
                self._own += 1
                # Only these rows: the others keep the result of their step, even if their worker
                # died in the reset.
                segment.show(rows, nested.at(self.shown, rows))
        self.is_complete = len(self._versions) == self._capacity

    def _grow(self) -> None:
        """Makes room for the rest of the steps."""
        self._append(self._capacity - len(self._versions))

    def _append(self, capacity: int) -> None:
        segment = Segment(self.envs, capacity, self.shown, self._answers)
        nested.assign(segment.observations, 0, self.shown)  # resting rows repeat their last frame
        self._own += 1
        self.segments.append(segment)
        self.shown = nested.at(segment.observations, 0)

    def rollout(self, mirror: Callable[[Any], Mirror] | None = None) -> Rollout:
        """Returns the complete rollout.

        Args:
            mirror: Of the actor; the observations are on its device.

        Raises:
            RuntimeError: Final observations are missing.
            ValueError: The flags are impossible in this mode.
        """
        rows = join(self.segments)
        if mirror is not None:
            rows["observations"] = join_mirrors(self.segments, mirror)
        valid, is_first, replaced = self._marks(rows["terminated"], rows["truncated"])
        for step, envs in self._failed.items():
            valid[step] &= ~envs
            if self.mode == AutoresetMode.SAME_STEP:  # where final observations may be lost
                replaced[step] &= ~envs
        finals, index = self.finals.joined(replaced)
        return Rollout(
            **rows,
            autoreset_mode=self.mode,
            valid=valid,
            is_first=is_first,
            final_observations=finals,
            final_index=index,
            carry=self.carry,
            policy_version=np.repeat(np.array(self._versions, np.int64), len(valid[0])).reshape(
                valid.shape
            ),
            env_index=self._rows,
        )

    def _marks(self, terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]) -> Marks:
        """Returns the marks of the rollout's rows."""
        mode, flags, before = self.mode, (terminated, truncated), self.carry.done
        if self._of_agents:  # one that ended may have come again, and act in the next step
            valid = np.ones_like(terminated)
            is_first = np.array([self.carry.is_first, *self._begun])
        else:
            valid = estimators.valid_mask(mode, *flags, before)
            is_first = estimators.is_first(mode, *flags, before, self.carry.is_first)
        if mode == AutoresetMode.NEXT_STEP:  # which shows all final observations
            return valid, is_first, np.zeros((0, self.envs.num_envs), np.bool_)
        return valid, is_first, terminated | truncated


class EpisodeRecording(Recording):
    """Records a number of whole episodes for each row, which then rests and repeats its last frame.

    Without ``on_done="freeze"`` the environments cannot rest: they continue, but are not recorded.
    """

    def __init__(self, *where: Any, episodes: NDArray[np.int64], num_steps: int | None) -> None:
        """As for a recording, after a reset; ``num_steps``, if given, is an upper bound."""
        super().__init__(*where)
        self.left, self.num_steps = episodes.copy(), num_steps
        self._episodes = int(episodes.sum())
        self.freezes = getattr(self.envs.unwrapped, "on_done", "raise") == "freeze"
        no_rows = np.zeros(self.envs.num_envs, np.bool_)
        self.resting, self.resetting = no_rows, no_rows
        self._flags = (no_rows, no_rows)
        self._valid: list[NDArray[np.bool_]] = []
        self._first = [self.carry.is_first]
        self._replaced: list[NDArray[np.bool_]] = []

    @property
    def done(self) -> int:
        """Episodes that have ended, of all environments."""
        return self._episodes - int(self.left.sum())

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that are shown begin an episode, ``[N]``."""
        return self._first[-1]

    def _settle(self, segment: Segment, step: Step) -> None:
        """Lets rows rest after their last episode, and restarts the others."""
        after, resting = segment.steps, self.resting
        flags = segment.terminated[after - 1], segment.truncated[after - 1]
        over = flags[0] | flags[1]  # in the environments
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
        self.resting = self._ignored = resting | (ended & (self.left == 0))
        self.is_complete = bool(self.resting.all()) or len(self._valid) == self.num_steps
        if self.mode == AutoresetMode.NEXT_STEP:
            self._first.append(self.resetting)
            self._replaced.append(np.zeros_like(restarting))  # the rows show all of them
            self.resetting = restarting
        else:
            self._first.append(restarting)
            self._replaced.append(restarting)
            if over.any():
                self._restart(segment, step[4], ended, restarting, over)
        self.shown = nested.at(segment.observations, after)

    def _restart(
        self,
        segment: Segment,
        infos: dict[str, Any],
        ended: NDArray[np.bool_],
        restarting: NDArray[np.bool_],
        over: NDArray[np.bool_],
    ) -> None:
        """Keeps final observations, and shows the first observations of restarted rows."""
        failed = self._failed.get(len(self._valid) - 1)
        if self.mode == AutoresetMode.SAME_STEP and failed is not None:
            # Their final observations may be lost: rows that rest repeat the ones before.
            at_rest = ended & failed & ~restarting
            before = nested.at(segment.observations, segment.steps - 1)
            segment.show(at_rest, nested.at(before, at_rest))
            ended = ended & ~failed
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
                self._own += 1
                segment.show(rows[goes_on], nested.at(observations, rows[goes_on]))

    def _grow(self) -> None:
        """Doubles the room for steps, up to the upper bound."""
        steps = len(self._valid)
        max_steps = steps if self.num_steps is None else self.num_steps - steps
        self._append(min(steps, max_steps, MAX_STEPS))

    def _marks(self, terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]) -> Marks:
        del terminated, truncated
        return np.array(self._valid), np.array(self._first), np.array(self._replaced)


def interrupted(steps: int) -> RuntimeError:
    """The error of a rollout during which another caller used the environments."""
    return RuntimeError(
        "the environments were stepped or reset, or their rollout was ended, by another caller "
        f"while the collector collected: the rollout is lost, {steps} steps in all rows so far, "
        "and the next one begins with a reset. Use them between two calls of `collect`, in the "
        "background after `pause`, and not from within the policy."
    )


def carry_after(rollout: Record) -> Carry:
    """Returns the :class:`Carry` after the last step of a rollout of ``num_steps`` steps."""
    before, num_steps = rollout.carry, rollout.num_steps
    # The rows from the last beginning on belong to one episode, which may have no step yet: one
    # begins after a step that is not a transition and ends none, which has reset or lost its infos.
    # (The mark after the last step may tell that it ended an episode, whose numbers are wanted.)
    # This is computed for every rollout, and comparisons of `int16` are faster.
    begun = rollout.is_first.copy()
    begun[-1] = False
    begun[1:] |= ~(rollout.valid | rollout.terminated | rollout.truncated)
    places = np.arange(len(begun), dtype=np.int16 if num_steps < 2**15 else np.int64)[:, None]
    last = np.where(begun, places, -1).max(axis=0)
    counted = (places[:num_steps] >= np.maximum(last, 0)) & rollout.valid
    goes_on = last < 0
    counted_of, goes_on_of = counted, goes_on
    if rollout.rewards.ndim > 2:  # of several objectives
        counted_of, goes_on_of = counted[..., None], goes_on[:, None]
    # Half of the time of a sum with `where`, and the same bits.
    sums = np.where(counted_of, rollout.rewards, 0.0).sum(axis=0)
    return Carry(
        rewards=rollout.rewards[-1].copy(),
        terminated=rollout.terminated[-1].copy(),
        truncated=rollout.truncated[-1].copy(),
        is_first=rollout.is_first[-1].copy(),
        returns=sums + np.where(goes_on_of, before.returns, 0.0),
        lengths=np.count_nonzero(counted, axis=0) + np.where(goes_on, before.lengths, 0),
    )
