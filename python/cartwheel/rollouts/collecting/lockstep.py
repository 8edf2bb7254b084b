"""Collects by steps of all rows: every batch waits for its slowest row."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from cartwheel._internal.rewards import reward_shape_of
from cartwheel.rollouts.buffers import Carry
from cartwheel.rollouts.collecting.policy_calls import Answers
from cartwheel.rollouts.recording import MAX_STEPS, EpisodeRecording, Recording, carry_after

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.vector import AutoresetMode, VectorEnv
    from numpy.typing import NDArray

    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.rollout import Rollout
    from cartwheel.vector.calls import Calls

#: The number of steps for which memory is made first if the length of episodes is unknown.
FIRST_STEPS = 32


class Lockstep:
    """Collects rollouts of all rows, step by step, in rollout slabs.

    Attributes:
        num_steps: Steps of a rollout, or their upper bound.
        episodes_per_env: Episodes of each row in one rollout, ``[N]``; ``None``: steps count.
        carry: The state before the next rollout; ``None``: a reset is needed.
        shown: The present observations.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        mode: AutoresetMode,
        actor: Actor,
        calls: Calls,
        num_steps: int | None,
        episodes_per_env: NDArray[np.int64] | None = None,
    ) -> None:
        self._envs, self._mode, self._actor, self._calls = envs, mode, actor, calls
        self.num_steps, self.episodes_per_env = num_steps, episodes_per_env
        self.carry: Carry | None = None
        self.shown: Any = None
        self._waited = 0.0
        self._answers = Answers(envs.single_action_space, envs.num_envs)
        self._recording: Recording | None = None
        self._capacity = FIRST_STEPS

    @property
    def waited(self) -> float:
        """Seconds in which the environments stepped."""
        recording = self._recording
        return self._waited + (0.0 if recording is None else recording.waited)

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that are shown begin an episode, ``[N]``."""
        if self._recording is not None:
            return self._recording.is_first.copy()
        carry = self.carry or Carry.after_reset(self._envs.num_envs, reward_shape_of(self._envs))
        return carry.is_first.copy()

    @property
    def counts_episodes(self) -> bool:
        """Whether a rollout has a number of whole episodes."""
        return self.episodes_per_env is not None

    @property
    def needs_reset(self) -> bool:
        """Whether the next rollout begins with a reset."""
        return self._recording is None and self.carry is None

    @property
    def is_between_rollouts(self) -> bool:
        """Whether no rollout has begun and not ended."""
        return self._recording is None

    @property
    def total(self) -> int:
        """Steps of all columns of a rollout, or its episodes."""
        if self.episodes_per_env is not None:
            return int(self.episodes_per_env.sum())
        return int(self.num_steps or 0) * self._envs.num_envs

    @property
    def done(self) -> int:
        """The number of them that the next rollout has already."""
        return 0 if self._recording is None else self._recording.done

    #: This order has no groups.
    turn = 0

    def begin(self, carry: Carry, shown: Any) -> None:
        """Continues at the observations ``shown``, after the step of ``carry``."""
        self.rest()
        self._recording, self.carry, self.shown = None, carry, shown

    def rest(self) -> None:
        """Releases the environments; an unfinished rollout stays."""
        if self._recording is not None and self._recording.has_steps:
            self._recording.pause()
        elif self._recording is not None:  # it begins again at the same observations
            self._recording.end()
            self._recording = None

    def drop(self) -> None:
        """Drops an unfinished rollout; a reset comes next."""
        if self._recording is not None:
            self._recording.end()
        self._recording = self.carry = None

    def collect(self) -> Rollout:
        """Collects the next rollout, or completes one that an error of the policy interrupted."""
        recording = self._recording or self._begin()
        try:
            recording.record(self._actor, self._calls)
        except BaseException:
            if recording.is_lost:
                self.carry = self._recording = None
            else:  # others may use the environments before the next call
                self.rest()
            self._end_rollout()
            raise
        finally:
            self._waited += recording.waited
            recording.waited = 0.0
        recording.end()
        self._recording, self.carry = None, None  # set again below, if the rollout is complete
        rollout = recording.rollout(self._actor.mirror)
        if self.episodes_per_env is None:
            self.carry, self.shown = carry_after(rollout), recording.shown
        else:
            self._capacity = max(FIRST_STEPS, 1 << (rollout.num_steps - 1).bit_length())
        return rollout

    def _begin(self) -> Recording:
        carry = self.carry or Carry.after_reset(self._envs.num_envs, reward_shape_of(self._envs))
        max_steps = self.num_steps or MAX_STEPS
        capacity = max_steps if self.episodes_per_env is None else min(self._capacity, max_steps)
        self._answers.extras = None  # each rollout may have others
        where = (self._envs, self._mode, carry, self.shown, self._answers, capacity)
        try:
            if self.episodes_per_env is None:
                self._recording = Recording(*where)
            else:
                self._recording = EpisodeRecording(
                    *where, episodes=self.episodes_per_env, num_steps=self.num_steps
                )
            self._calls.note()
        except BaseException:
            # A wait that was given up leaves a call pending, which a reset ends.
            self.carry = self._recording = None
            self._end_rollout()
            raise
        return self._recording

    def _end_rollout(self) -> None:
        """Ends the rollout slab of the environments, also one that Ctrl-C kept from being noted."""
        envs: Any = self._envs
        if getattr(envs, "fills_rollouts", False):
            with contextlib.suppress(Exception):  # closed or broken: there is none
                envs.end_rollout()
