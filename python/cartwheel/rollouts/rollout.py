"""What a policy and its environments did for some steps.

Above 300 lines because every public method carries its documentation here.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.choices import Part, check_choice
from cartwheel.rollouts.carry import Carry
from cartwheel.rollouts.episodes import Episodes
from cartwheel.rollouts.estimators import Estimators
from cartwheel.rollouts.frames import frames, pairs, running
from cartwheel.rollouts.rows import Rows
from cartwheel.rollouts.transitions import Transitions
from cartwheel.rollouts.windows import Places, Windows
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cartwheel.choices import Bootstrap, Order, RewardPlace
    from cartwheel.spaces.arrays import Array


class Rollout(Estimators):
    """``T`` steps of ``N`` environments, in any autoreset mode; see :class:`Collector`.

    Row ``(t, n)`` is step ``t`` of environment ``n``: the observation that the policy saw, its
    action, and what the step came to. Observations and actions are nested as their spaces are; the
    first dimensions of each of their arrays are given here. Everything is time-major, contiguous
    and the caller's alone.

    Attributes:
        observations: ``[T + 1, N, …]``. The last are to be acted on in the next rollout.
        actions: ``[T, N, …]``.
        rewards: ``float64``, ``[T, N]``.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``. Not a row that only resets
            (``NEXT_STEP``), rests, or failed (``on_error="truncate"`` and its like): leave them out
            of every loss and statistic.
        is_first: Which observations begin an episode, ``[T + 1, N]``: set the state of a recurrent
            policy to zero before them.
        final_observations: The true next observations that are not in the next row, because
            another episode begins there, ``[K, …]``, in the order of time. (None in ``NEXT_STEP``.)
        final_index: Step and environment of each, ``int64``, ``[K, 2]``.
        extras: What else the policy gave, by name, ``[T, N, …]``. Arrays that are added here, such
            as ``rollout.extras["advantages"]``, come along in :meth:`flatten`, :meth:`minibatches`,
            :meth:`windows` and :meth:`transitions`.
        mode: The autoreset mode.
        carry: What the step before the rollout left behind.
    """

    def __repr__(self) -> str:
        """Its size, its mode and the names of its extras in one line."""
        extras = f", extras {', '.join(self.extras)}" if self.extras else ""
        return (
            f"<Rollout of {self.num_steps} steps of {self.num_envs} environments: "
            f"{int(self.valid.sum()):,} transitions, {self.mode.name.lower()}{extras}>"
        )

    # Values

    def next_observations(self) -> Any:
        """The true next observation of each row, ``[T, N, …]``, in every mode.

        A view of :attr:`observations` if all of them are there, otherwise a copy. Rows that are not
        valid hold the next row's observation.
        """
        after = nested.at(self.observations, slice(1, None))
        if not len(self.final_index):
            return after
        after = nested.apply(np.copy, after)
        nested.assign(after, tuple(self.final_index.T), self.final_observations)
        return after

    def value_inputs(self) -> Any:
        """All observations that a value is needed of, ``[(T + 1) * N + K, …]``, for one call.

        Those of :attr:`observations`, row by row, then the final ones. Give the values to
        :meth:`set_values`. A view of :attr:`observations` if there are no final ones.
        """

        def fuse(shown: NDArray[Any], finals: NDArray[Any]) -> NDArray[Any]:
            flat = shown.reshape(-1, *shown.shape[2:])
            return np.concatenate([flat, finals]) if len(finals) else flat

        return nested.apply(fuse, self.observations, self.final_observations)

    # Rows

    def transitions(
        self,
        order: Order = "time",
        n_step: int = 1,
        *,
        gamma: Array | None = None,
        bootstrap: Bootstrap = "truncated",
    ) -> Transitions:
        """The transitions, with their true next observations: no other row is among them.

        Args:
            order: ``"time"``: the environments' first steps, their second steps, and so on, as
                BBRL's ``get_transitions``; ``"env"``: all steps of the first environment, then
                those of the second.
            n_step: Most steps that each spans. It ends earlier where its episode does, and at the
                end of the rollout: then ``discounts`` are greater, and the targets right all the
                same.
            gamma: Discount, for the rewards of several steps and for ``discounts``.
            bootstrap: When a value counts after the end of an episode, as for
                :mod:`cartwheel.returns`; decides ``discounts``.

        Raises:
            ValueError: An unknown ``order`` or ``bootstrap``, ``n_step`` below 1 or without
                ``gamma``, or ``gamma`` outside of [0, 1].
        """
        return Transitions.of(self, order=order, n_step=n_step, gamma=gamma, bootstrap=bootstrap)

    def flatten(self, *, valid_only: bool = True) -> Rows:
        """The rows without their time axis, time-major.

        Args:
            valid_only: Leave out those that are no transitions.

        Returns:
            Copies, or views of this rollout if no row is left out.
        """
        return Rows.of(self, valid_only=valid_only)

    def minibatches(
        self,
        size: int,
        *,
        by: Part = "row",
        length: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int | np.random.Generator | None = None,
    ) -> Iterator[Rows | Windows]:
        """The rollout in parts, each of it once.

        Args:
            size: Rows, environments or sequences of a part; the last part may be smaller.
            by: ``"row"``: transitions, as :class:`Rows`. ``"env"``: environments with all of their
                steps, as :class:`Windows`. ``"sequence"``: stretches of ``length`` steps, whatever
                begins and ends in them, as :class:`Windows`; the last of an environment may be
                shorter. Windows have a mask, ``valid``.
            length: Steps of a sequence.
            shuffle: Whether the parts are drawn at random.
            drop_last: Leave out a last part that is smaller.
            seed: Of the shuffling, or a generator for it.

        Raises:
            ValueError: A number below 1, an unknown ``by``, or ``length`` without or not with it.
        """
        check_choice("by", by, Part)
        size = _positive("size", size)
        if (by == "sequence") != (length is not None):
            raise ValueError(f"`length` goes with by='sequence', got by={by!r}, length={length}.")
        rows = places = None
        if by == "row":
            rows = self.flatten()
            count = len(rows)
        else:
            length = self.num_steps if length is None else _positive("length", length)
            places = Places.of(self, length, length, stop_at_done=False)
            count = len(places.starts)
        order = np.arange(count)
        if shuffle:
            np.random.default_rng(seed).shuffle(order)
        stops = range(size, count + 1 if drop_last else count + size, size)

        def parts() -> Iterator[Rows | Windows]:
            for stop in stops:
                index = order[stop - size : stop]
                if rows is not None:
                    yield rows.take(index)
                elif places is not None and length is not None:
                    yield places.take(index).windows(self, length)

        return parts()

    def episodes(self, *, complete_only: bool = False) -> Episodes:
        """The episodes, or what the rollout shows of them.

        Args:
            complete_only: Only those that end in this rollout, wherever they began.
        """
        return Episodes.of(self, complete_only=complete_only)

    def windows(
        self, length: int, stride: int | None = None, *, stop_at_done: bool = True
    ) -> Windows:
        """All stretches of ``length`` rows.

        Args:
            length: Rows of a window.
            stride: Rows from the beginning of one to the beginning of the next; ``length`` by
                default.
            stop_at_done: Windows begin with their episode and hold nothing of another one; without,
                they begin with the rollout and run over the ends of episodes.

        Raises:
            ValueError: A number below 1.
        """
        length = _positive("length", length)
        stride = length if stride is None else _positive("stride", stride)
        return Places.of(self, length, stride, stop_at_done=stop_at_done).windows(self, length)

    def tail(self, n: int) -> Rollout:
        """The last ``n`` steps as a rollout, views of this one.

        Raises:
            ValueError: There are fewer, or ``n`` is below 1.
        """
        if _positive("n", n) > self.num_steps:
            raise ValueError(f"`n` must be at most {self.num_steps}, the steps there are; got {n}.")
        cut = self.num_steps - n
        kept = self.final_index[:, 0] >= cut
        sums, steps = running(self)
        carry = self.carry
        if cut:
            carry = Carry(
                rewards=self.rewards[cut - 1],
                terminated=self.terminated[cut - 1],
                truncated=self.truncated[cut - 1],
                is_first=self.is_first[cut],
                returns=sums[cut],
                lengths=steps[cut],
            )
        after = slice(cut, None)
        tail = Rollout(
            observations=nested.at(self.observations, after),
            actions=nested.at(self.actions, after),
            rewards=self.rewards[after],
            terminated=self.terminated[after],
            truncated=self.truncated[after],
            valid=self.valid[after],
            is_first=self.is_first[after],
            final_observations=nested.at(self.final_observations, kept),
            final_index=self.final_index[kept] - np.array([cut, 0]),
            extras=nested.at(self.checked_extras(), after),
            mode=self.mode,
            carry=carry,
        )
        if self._values is not None:
            tail._values = self._values[0][after], self._values[1][kept]
        return tail

    # BBRL

    def to_workspace(self, reward_at: RewardPlace = "t+1") -> dict[str, NDArray[Any]]:
        """The rollout as frames of a BBRL workspace, ``[T + 1, N, …]``, by its names.

        ``env/env_obs`` (or ``env/env_obs/<key>``), ``env/reward``, ``env/terminated``,
        ``env/truncated``, ``env/done``, ``env/cumulated_reward``, ``env/timestep``, ``action`` (or
        ``action/<key>``) and the extras. The last frame has no action yet, so it has zeros there.
        ``workspace.set_full(name, torch.from_numpy(array))`` takes each in.

        Floats under ``env/`` are ``float32``, as BBRL makes them: rewards, their sums (which are
        summed up in ``float64`` first) and observations. Flags are ``bool`` and ``env/timestep`` is
        ``int64``. Actions and extras keep the dtype that they have in the rollout, and so do
        observations that are integers, of which BBRL makes ``int64``.

        The frames are those of ``ParallelGymAgent``: with ``autoreset=True`` for ``NEXT_STEP``,
        with ``autoreset=False`` for ``until="all_done"``. ``SAME_STEP`` and ``DISABLED`` by steps
        are those of ``include_last_state=False``: the frame that ends an episode shows the first
        observation of another one. Take :meth:`workspace_transitions` then.

        Args:
            reward_at: ``"t+1"``: the reward of a step is in the frame after it. ``"t"``: in the
                frame before it, and 0 in the last, as BBRL has it with ``reward_at_t=True``.

        Raises:
            ValueError: An unknown ``reward_at``.
        """
        return frames(self, reward_at)

    def workspace_transitions(self, reward_at: RewardPlace = "t+1") -> dict[str, NDArray[Any]]:
        """What BBRL's ``get_transitions()`` should give, in every mode, as ``[2, M, …]``.

        Frame 0 is that of the observation, frame 1 that of the true next observation; the
        transitions are in the order of time, environments interleaved. Dtypes are those of
        :meth:`to_workspace`.

        Args:
            reward_at: As for :meth:`to_workspace`.

        Raises:
            ValueError: An unknown ``reward_at``.
        """
        return pairs(self, reward_at)


def _positive(name: str, number: Any) -> int:
    """An integer of at least 1.

    Raises:
        TypeError: It is no integer.
        ValueError: It is smaller.
    """
    integer = operator.index(number)
    if integer < 1:
        raise ValueError(f"`{name}` must be at least 1, got {number}.")
    return integer
