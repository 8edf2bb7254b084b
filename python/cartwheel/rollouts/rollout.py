"""The steps of a policy in vector environments, with all that is computed from them.

This file is above 300 lines because it has the documentation of every public method.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._device.sending import array_of, device_of, tensor_on
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel._internal.literals import Part, check_choice
from cartwheel._internal.suggestions import names_methods
from cartwheel.rollouts.buffers import Carry
from cartwheel.rollouts.estimators import Estimators
from cartwheel.rollouts.frames import frames, pairs
from cartwheel.rollouts.record import one_line
from cartwheel.rollouts.views import Episodes, Places, Rows, Transitions, Windows, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from cartwheel._internal.literals import Bootstrap, Order, RewardPlace
    from cartwheel._internal.nested import Array


@names_methods
class Rollout(Estimators):
    """``T`` steps of ``N`` environments, in any autoreset mode; see :class:`Collector`.

    Row ``(t, n)`` is step ``t`` of environment ``n``: the policy's observation, its action, and the
    results of the step. Observations and actions are nested like their spaces; shapes give the
    first dimensions of each of their arrays. All arrays are time-major and contiguous, and the
    caller may write into them.

    Attributes:
        observations: ``[T + 1, N, …]``. The last row is the first of the next rollout.
        actions: ``[T, N, …]``.
        rewards: ``float64``, ``[T, N]``. If environments have a ``reward_space`` of shape ``(k,)``,
            they are ``[T, N, k]``, and :meth:`scalarize` makes numbers of them.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Which rows are transitions, ``[T, N]``. Rows that only reset (``NEXT_STEP``), rest,
            or failed (``on_error="restart"``, ``on_worker_death="restart"``) are not: leave them
            out of losses and statistics.
        is_first: Which observations begin an episode, ``[T + 1, N]``: set the state of a recurrent
            policy to zero before these observations.
        final_observations: The true next observations that are not in the next row, because
            another episode begins there, ``[K, …]``, in the order of time. In ``NEXT_STEP``, ``K``
            is 0.
        final_index: Step and column of each final observation, ``int64``, ``[K, 2]``.
        extras: The extras of the policy, by name, ``[T, N, …]``. You may add arrays, such as
            ``rollout.extras["advantages"]``: :meth:`flatten`, :meth:`minibatches`, :meth:`windows`
            and :meth:`transitions` return them, too.
        autoreset_mode: The autoreset mode.
        carry: The results of the last step before the rollout.
        policy_version: Which policy made each action, ``int64``, ``[T, N]``: the number of calls of
            :meth:`Collector.update` before. With ``order="free"`` or ``"groups"``, rows that only
            reset have the version of the time of their step, too.
        env_index: The environment of each column, ``int64``, ``[N]``: ``0`` to ``N - 1``, unless
            the collector has ``columns``.
        device: ``None``, or the ``torch.device`` of :meth:`to` and of ``Collector(device=…)``, on
            which observations, actions, extras and final observations are tensors.
    """

    def __repr__(self) -> str:
        size = f"{self.num_steps} steps × {self.num_envs} envs"
        return one_line("Rollout", f"{size}, {self.autoreset_mode.name.lower()}", self.extras)

    # Devices

    def to(self, device: Any) -> Rollout:
        """Returns the rollout with PyTorch tensors on a device.

        Observations, actions, extras and final observations are tensors there. Rewards, flags,
        marks and indices stay arrays, which the estimators need. :meth:`flatten`,
        :meth:`minibatches`, :meth:`windows` and :meth:`transitions` return tensors of the device
        only, but for their indices. Arrays without a PyTorch dtype stay arrays.

        Args:
            device: A name, or a ``torch.device``. On the CPU, tensors have the memory of the
                arrays. To CUDA, arrays travel through pinned memory, for which nothing waits but
                the current stream.

        Raises:
            gymnasium.error.DependencyNotInstalled: PyTorch is not installed.
            RuntimeError: PyTorch does not have the device, or there is not enough memory on it.
        """
        place = device_of(device)
        if self.device == place:
            return self
        return self._with_parts(lambda part: tensor_on(place, part), place)

    def numpy(self) -> Rollout:
        """Returns the rollout with NumPy arrays; itself, if it has no device.

        From a device of another kind than the CPU, arrays are copies.
        """
        return self if self.device is None else self._with_parts(array_of, None)

    def _with_parts(self, convert: Callable[[Any], Any], device: Any) -> Rollout:
        names = ("observations", "actions", "extras", "final_observations")
        parts = {name: nested.apply(convert, getattr(self, name)) for name in names}
        other = dataclasses.replace(self, **parts, device=device)
        other._values = self._values
        return other

    # Values

    def next_observations(self) -> Any:
        """Returns the true next observation of each row, ``[T, N, …]``, in every mode.

        The result is a view of :attr:`observations` if there are no final observations, otherwise a
        copy. Rows that are not valid have the observation of the next row.
        """
        after = nested.at(self.observations, slice(1, None))
        if not len(self.final_index):
            return after
        if self.device is not None:
            after = nested.apply(lambda tensor: tensor.clone(), after)
            index = tuple(self._sent(column) for column in np.ascontiguousarray(self.final_index.T))
            nested.assign(after, index, self.final_observations)
            return after
        after = nested.apply(np.copy, after)
        nested.assign(after, tuple(self.final_index.T), self.final_observations)
        return after

    def value_inputs(self) -> Any:
        """Returns the inputs of a value function, ``[(T + 1) * N + K, …]``, for one call.

        They are :attr:`observations`, row by row, and then :attr:`final_observations`. Pass their
        values to :meth:`set_values`. Without final observations, the result is a view.
        """

        def fuse(shown: NDArray[Any], finals: NDArray[Any]) -> NDArray[Any]:
            flat = shown.reshape(math.prod(shown.shape[:2]), *shown.shape[2:])
            return nested.concat([flat, finals]) if len(finals) else flat

        return nested.apply(fuse, self.observations, self.final_observations)

    def scalarize(self, weights: Array) -> Rollout:
        """Returns the rollout with rewards that are numbers: weighted sums of the objectives.

        All other arrays, and values that were set, are those of this rollout.

        Example:
            >>> import numpy as np
            >>> rollout = ...  # of environments with a reward_space of shape (2,)  # doctest: +SKIP
            >>> rollout.scalarize([0.7, 0.3]).gae(0.99, 0.95)  # doctest: +SKIP

        Args:
            weights: One weight for each objective, ``[k]``, or such weights for each column,
                ``[N, k]``.

        Raises:
            ValueError: Rewards are numbers already, or ``weights`` has another shape.
        """
        if self.rewards.ndim == 2:
            raise ValueError("the rewards of this rollout are numbers: there is nothing to weigh.")
        array = np.asarray(weights, np.float64)
        num_envs, objectives = self.rewards.shape[1:]
        if array.shape not in ((objectives,), (num_envs, objectives)):
            raise ValueError(
                f"`weights` must have shape ({objectives},), or ({num_envs}, {objectives}) for "
                f"weights of each column; got {array.shape}."
            )
        carry = dataclasses.replace(
            self.carry,
            rewards=(self.carry.rewards * array).sum(-1),
            returns=(self.carry.returns * array).sum(-1),
        )
        rollout = dataclasses.replace(self, rewards=(self.rewards * array).sum(-1), carry=carry)
        rollout._values = self._values
        return rollout

    # Rows

    def transitions(
        self,
        order: Order = "time",
        n_step: int = 1,
        *,
        gamma: Array | None = None,
        bootstrap: Bootstrap = "truncated",
    ) -> Transitions:
        """Returns all transitions, with their true next observations, and no other rows.

        Args:
            order: ``"time"``: the first steps of all environments, then their second steps, and so
                on, as in BBRL's ``get_transitions``. ``"env"``: all steps of the first environment,
                then all steps of the second, and so on.
            n_step: Steps of each transition. It has fewer where its episode or the rollout ends,
                and then larger ``discounts``, so that targets stay correct.
            gamma: Discount, for the rewards of several steps and for ``discounts``.
            bootstrap: When the value after the end of an episode counts, as for
                :mod:`cartwheel.returns`; changes ``discounts``.

        Raises:
            ValueError: ``order`` or ``bootstrap`` is unknown, ``n_step`` is below 1 or needs
                ``gamma``, or ``gamma`` is outside [0, 1].
        """
        return Transitions.from_rollout(
            self, order=order, n_step=n_step, gamma=gamma, bootstrap=bootstrap
        )

    def flatten(self, *, valid_only: bool = True) -> Rows:
        """Returns the rows without their time axis, time-major.

        Args:
            valid_only: Leave out rows that are not transitions.

        Returns:
            Copies, or views of this rollout if no row is left out.

        Raises:
            TypeError: ``valid_only`` is not a ``bool``.
        """
        return Rows.from_rollout(self, valid_only=as_bool("valid_only", valid_only))

    def minibatches(
        self,
        batch_size: int,
        *,
        by: Part = "row",
        length: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int | np.random.Generator | None = None,
    ) -> Iterator[Rows | Windows]:
        """Divides the rollout into minibatches and iterates over them.

        Args:
            batch_size: Rows, environments or sequences of a minibatch; the last one may be smaller.
            by: ``"row"``: transitions, as :class:`Rows`. ``"env"``: environments with all of their
                steps, as :class:`Windows`. ``"sequence"``: sequences of ``length`` steps, which may
                cross the ends of episodes, as :class:`Windows`; the last sequence of an environment
                may be shorter. Windows have a mask, ``valid``.
            length: Steps of a sequence; only with ``by="sequence"``.
            shuffle: Whether the order is random.
            drop_last: Leave out a last minibatch that is smaller.
            seed: A seed or a generator for the random order.

        Raises:
            ValueError: A number is below 1, ``by`` is unknown, or ``length`` does not fit ``by``.
            TypeError: ``shuffle`` or ``drop_last`` is not a ``bool``.
        """
        check_choice("by", by, Part)
        as_bool("shuffle", shuffle)
        as_bool("drop_last", drop_last)
        size = as_integer("batch_size", batch_size, 1)
        if by == "sequence" and length is None:
            raise ValueError(f"by='sequence' needs `length`, got by={by!r}, length={length}.")
        if by != "sequence" and length is not None:
            raise ValueError(f"`length` needs by='sequence', got by={by!r}, length={length}.")
        take: Callable[[Any], Rows | Windows]
        if by == "row":
            rows = self.flatten()
            count, take = len(rows), rows.take
        else:
            steps = self.num_steps
            if length is not None:
                steps = as_integer("length", length, 1, limit=1 << 32)
            places = Places.from_rollout(self, steps, steps, stop_at_done=False)

            def windows(index: NDArray[np.int64]) -> Windows:
                return places.take(index).windows(self, steps)

            count, take = len(places.starts), windows
        order = np.arange(count)
        if shuffle:
            np.random.default_rng(seed).shuffle(order)
        if by == "row":
            order = self._sent(order)
        stops = range(size, count + 1 if drop_last else count + size, size)
        return (take(order[stop - size : stop]) for stop in stops)

    def episodes(self, *, complete_only: bool = False) -> Episodes:
        """Returns the episodes of the rollout, or their parts in it.

        Args:
            complete_only: Only episodes that end in this rollout; they may begin in an earlier one.

        Raises:
            TypeError: ``complete_only`` is not a ``bool``.
        """
        return Episodes.from_rollout(self, complete_only=as_bool("complete_only", complete_only))

    def windows(
        self, length: int, stride: int | None = None, *, stop_at_done: bool = True
    ) -> Windows:
        """Returns all windows of ``length`` consecutive rows of an environment.

        Args:
            length: Rows of a window.
            stride: Rows between the beginnings of two windows; ``length`` by default.
            stop_at_done: Windows begin with each episode and have rows of this episode only.
                Otherwise they begin with the rollout and cross the ends of episodes.

        Raises:
            ValueError: A number is below 1.
            TypeError: ``stop_at_done`` is not a ``bool``.
        """
        length = as_integer("length", length, 1, limit=1 << 32)
        stride = length if stride is None else as_integer("stride", stride, 1, limit=1 << 32)
        is_cut = as_bool("stop_at_done", stop_at_done)
        return Places.from_rollout(self, length, stride, stop_at_done=is_cut).windows(self, length)

    def tail(self, n: int) -> Rollout:
        """Returns the last ``n`` steps as a rollout of views.

        Raises:
            ValueError: ``n`` is below 1, or above ``num_steps``.
        """
        if as_integer("n", n, 1) > self.num_steps:
            raise ValueError(f"`n` must be at most {self.num_steps}, the number of steps; got {n}.")
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
            final_observations=self._at(self.final_observations, (np.flatnonzero(kept),)),
            final_index=self.final_index[kept] - np.array([cut, 0]),
            extras=nested.at(self._checked_extras(), after),
            autoreset_mode=self.autoreset_mode,
            carry=carry,
            policy_version=self.policy_version[after],
            env_index=self.env_index,
            device=self.device,
        )
        if self._values is not None:
            tail._values = self._values[0][after], self._values[1][kept]
        return tail

    # BBRL

    def to_workspace(self, reward_at: RewardPlace = "t+1") -> dict[str, NDArray[Any]]:
        """Returns the rollout as frames of a BBRL workspace, ``[T + 1, N, …]``, by BBRL's names.

        ``env/env_obs`` (or ``env/env_obs/<key>``), ``env/reward``, ``env/terminated``,
        ``env/truncated``, ``env/done``, ``env/cumulated_reward``, ``env/timestep``, ``action`` (or
        ``action/<key>``) and the extras. The last frame has no action yet, so it has zeros there.
        Add each array to a workspace by ``workspace.set_full(name, torch.from_numpy(array))``.

        Floats under ``env/`` are ``float32``, as in BBRL: rewards, their sums (computed in
        ``float64`` first) and observations. Flags are ``bool`` and ``env/timestep`` is ``int64``.
        Actions, extras and integer observations keep their dtype; BBRL converts integer
        observations to ``int64``.

        The frames equal those of ``ParallelGymAgent``: with ``autoreset=True`` for ``NEXT_STEP``,
        and with ``autoreset=False`` for ``until="all_done"``. In ``SAME_STEP``, and in ``DISABLED``
        with ``num_steps``, they equal those of ``include_last_state=False``: the frame that ends an
        episode shows the first observation of the next one. Use :meth:`workspace_transitions`
        there.

        Args:
            reward_at: ``"t+1"``: the reward of a step is in the frame after it. ``"t"``: it is in
                the frame before it, and the last frame has 0, as with BBRL's ``reward_at_t=True``.

        Raises:
            ValueError: ``reward_at`` is unknown.
        """
        return frames(self.numpy(), reward_at)

    def workspace_transitions(self, reward_at: RewardPlace = "t+1") -> dict[str, NDArray[Any]]:
        """Returns the transitions in the form of BBRL's ``get_transitions()``, ``[2, M, …]``.

        They are correct in every mode. Frame 0 has the observation, frame 1 the true next
        observation. Transitions are in the order of time, with all environments of a step together.
        Dtypes are the same as in :meth:`to_workspace`.

        Args:
            reward_at: As for :meth:`to_workspace`.

        Raises:
            ValueError: ``reward_at`` is unknown.
        """
        return pairs(self.numpy(), reward_at)
