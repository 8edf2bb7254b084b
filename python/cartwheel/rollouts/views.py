"""Views of a rollout: rows, transitions, windows, and episodes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import cartwheel.returns as estimators
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.literals import Order, check_choice
from cartwheel.rollouts.record import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cartwheel._internal.literals import Bootstrap
    from cartwheel._internal.nested import Array
    from cartwheel.rollouts.record import Record


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """``M`` transitions of one step, or of up to ``n_step`` steps.

    Every array is a copy with the first dimension ``M``. Observations and actions are nested like
    their spaces.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``; for several steps, their discounted sum.
        next_observations: The true next observation after the last step, never an observation of
            another episode.
        terminated: Whether the last step terminated the episode.
        truncated: Whether the last step truncated the episode.
        discounts: The factor of the value of the next observation, ``float64``: ``gamma`` to the
            power of ``lengths``, and 0 after a termination; ``None`` without a ``gamma``.
        lengths: The number of steps of each transition, ``int64``: fewer than ``n_step`` where the
            episode or the rollout ends.
        steps: The first step of each transition in the rollout, ``int64``.
        env_index: Its environment, ``int64``.
        episodes: The index of its episode in :meth:`Rollout.episodes`, ``int64``.
        extras: The extras of its first row, by name.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    next_observations: Any
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    discounts: NDArray[np.float64] | None
    lengths: NDArray[np.int64]
    steps: NDArray[np.int64]
    env_index: NDArray[np.int64]
    episodes: NDArray[np.int64]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        max_length = int(self.lengths.max(initial=1))
        steps = f" of up to {max_length} steps" if max_length > 1 else ""
        return one_line("Transitions", f"{len(self)} transitions{steps}", self.extras)

    @classmethod
    def from_rollout(
        cls,
        rollout: Record,
        *,
        order: Order = "time",
        n_step: int = 1,
        gamma: Array | None = None,
        bootstrap: Bootstrap = "truncated",
    ) -> Transitions:
        """Returns the transitions of a rollout, see :meth:`Rollout.transitions`."""
        steps, rows = ordered_rows(rollout.valid, order)
        n_step = as_integer("n_step", n_step, 1)
        if gamma is None and n_step != 1:
            raise ValueError(f"`n_step={n_step}` needs `gamma`, the discount of its rewards.")
        objectives = [
            estimators.n_step_returns(
                rewards,
                rollout.terminated,
                rollout.truncated,
                valid=rollout.valid,
                n=n_step,
                gamma=1.0 if gamma is None else gamma,
                bootstrap=bootstrap,
            )
            for rewards in _by_objective(rollout.rewards)
        ]
        windows = objectives[0]
        lengths = windows.lengths[steps, rows]
        last = steps + lengths - 1
        sent = rollout._sent
        return cls(
            observations=rollout._at(rollout.observations, (steps, rows)),
            actions=rollout._at(rollout.actions, (steps, rows)),
            rewards=sent(_joined(rollout, [each.returns[steps, rows] for each in objectives])),
            next_observations=next_observations(rollout, last, rows),
            terminated=sent(rollout.terminated[last, rows]),
            truncated=sent(rollout.truncated[last, rows]),
            discounts=None if gamma is None else sent(windows.discounts[steps, rows]),
            lengths=lengths,
            steps=steps,
            env_index=rollout.env_index[rows],
            episodes=numbers(rollout)[steps, rows],
            extras=rollout._at(rollout._checked_extras(), (steps, rows)),
        )


def _by_objective(rewards: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Returns the rewards of each objective, ``[T, N]``; numbers are those of one."""
    if rewards.ndim == 2:
        return [rewards]
    return [np.ascontiguousarray(rewards[..., each]) for each in range(rewards.shape[2])]


def _joined(rollout: Record, objectives: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Returns one array, with a last axis for the objectives if the rollout has it."""
    return np.stack(objectives, axis=-1) if rollout.rewards.ndim > 2 else objectives[0]


def ordered_rows(
    valid: NDArray[np.bool_], order: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns steps and environments of the valid rows.

    Raises:
        ValueError: ``order`` is unknown.
    """
    check_choice("order", order, Order)
    if order == "time":
        steps, rows = np.nonzero(valid)
    else:
        rows, steps = np.nonzero(valid.T)
    return steps, rows


def next_observations(rollout: Record, steps: NDArray[np.int64], rows: NDArray[np.int64]) -> Any:
    """Returns copies of the true next observations of some rows."""
    after = rollout._at(rollout.observations, (steps + 1, rows))
    if len(rollout.final_index):
        slots = np.full(rollout.valid.shape, -1, np.int64)
        slots[rollout.final_index[:, 0], rollout.final_index[:, 1]] = np.arange(
            len(rollout.final_index)
        )
        slots = slots[steps, rows]
        replaced = slots >= 0
        finals = rollout._at(rollout.final_observations, (slots[replaced],))
        nested.assign(after, rollout._sent(np.flatnonzero(replaced)), finals)
    return after


class _WithExtras:
    """A part of a rollout whose extras are its items."""

    extras: dict[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Returns the extra of this name.

        Raises:
            KeyError: The rollout has none; the text has the names of those that it has.
        """
        try:
            return self.extras[name]
        except KeyError:
            raise KeyError(
                f"the rollout has the extras {list(self.extras)}, and not {name!r}; observations, "
                f"actions and so on are attributes of {type(self).__name__}"
            ) from None

    __iter__ = None  # otherwise Python would count up from the extra 0

    def __contains__(self, name: object) -> bool:
        return name in self.extras


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Rows(_WithExtras):
    """Some rows of a rollout; the first dimension of every array is ``M``.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``.
        terminated: Flags.
        truncated: Flags.
        extras: The extras of the rollout, by name; ``rows["advantages"]`` is one of them.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return one_line("Rows", f"{len(self)} rows", self.extras)

    def take(self, index: Any) -> Rows:
        """Returns copies of the rows at ``index``."""
        return Rows(**{name: nested.at(part, index) for name, part in vars(self).items()})

    @classmethod
    def from_rollout(cls, rollout: Record, *, valid_only: bool = True) -> Rows:
        """Returns the rows of a rollout: copies, or views if no row is left out."""
        num_steps, num_envs = rollout.valid.shape
        parts = {
            "observations": nested.at(rollout.observations, slice(num_steps)),
            "actions": rollout.actions,
            "rewards": rollout._sent(rollout.rewards),
            "terminated": rollout._sent(rollout.terminated),
            "truncated": rollout._sent(rollout.truncated),
            "extras": rollout._checked_extras(),
        }
        if valid_only and not rollout.valid.all():
            index = rollout.valid if rollout.device is None else rollout.valid.nonzero()
            return cls(**{name: rollout._at(part, index) for name, part in parts.items()})

        def flat(array: NDArray[Any]) -> NDArray[Any]:
            return array.reshape(num_steps * num_envs, *array.shape[2:])

        return cls(**{name: nested.apply(flat, part) for name, part in parts.items()})


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Windows(_WithExtras):
    """``W`` windows of ``L`` consecutive rows; copies of shape ``[L, W, …]`` unless noted.

    If a window has fewer than ``L`` rows, its last row is repeated, and ``valid`` and ``is_first``
    are false there.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``.
        terminated: Flags.
        truncated: Flags.
        valid: Which rows are transitions: leave the others out of losses and statistics.
        is_first: Which rows begin an episode: set the state of a recurrent policy to zero there.
        starts: The first step of each window in the rollout, ``[W]``.
        env_index: Its environment, ``[W]``.
        lengths: The number of its rows that are not repeated, ``[W]``.
        extras: The extras of the rollout, by name; ``windows["advantages"]`` is one of them. If the
            policy returns its recurrent state as an extra, row 0 has the state at the beginning of
            the window.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    starts: NDArray[np.int64]
    env_index: NDArray[np.int64]
    lengths: NDArray[np.int64]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        return one_line("Windows", f"{len(self.rewards)} steps × {len(self)} windows", self.extras)


@dataclasses.dataclass(frozen=True)
class Places:
    """The places of windows, ``[W]`` each: first step, column, number of rows."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> Places:
        """Returns the places at ``index``."""
        return Places(self.starts[index], self.columns[index], self.lengths[index])

    @classmethod
    def from_rollout(
        cls, rollout: Record, length: int, stride: int, *, stop_at_done: bool
    ) -> Places:
        """Returns the places of all windows of a rollout."""
        num_steps, num_envs = rollout.valid.shape
        if stop_at_done:
            first, rows, stop = runs(rollout)
        else:
            first, stop = np.zeros(num_envs, np.int64), np.full(num_envs, num_steps)
            rows = np.arange(num_envs)
        counts = -((first - stop) // stride)
        place = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        starts = np.repeat(first, counts) + stride * place
        lengths = np.minimum(length, np.repeat(stop, counts) - starts)
        return cls(starts, np.repeat(rows, counts), lengths)

    def windows(self, rollout: Record, length: int) -> Windows:
        """Returns the windows of a rollout at these places."""
        offsets = np.arange(length)[:, None]
        steps = self.starts + np.minimum(offsets, self.lengths - 1)
        index = (steps, np.broadcast_to(self.columns, steps.shape))
        inside = offsets < self.lengths
        sent = rollout._sent
        return Windows(
            observations=rollout._at(rollout.observations, index),
            actions=rollout._at(rollout.actions, index),
            rewards=sent(rollout.rewards[index]),
            terminated=sent(rollout.terminated[index]),
            truncated=sent(rollout.truncated[index]),
            valid=sent(rollout.valid[index] & inside),
            is_first=sent(rollout.is_first[index] & inside),
            starts=self.starts,
            env_index=rollout.env_index[self.columns],
            lengths=self.lengths,
            extras=rollout._at(rollout._checked_extras(), index),
        )


class Episode(NamedTuple):
    """One entry of :class:`Episodes`.

    Attributes:
        env_index: The environment. Its column is where :attr:`Rollout.env_index` has it.
        start: The episode's first row in the rollout.
        stop: The row after its last row.
        terminated: Whether it was terminated.
        truncated: Whether it was truncated.
        episode_return: The sum of its rewards, including earlier rollouts; a list of the sums of
            all objectives if rewards are arrays.
        length: The number of its steps, including earlier rollouts.
    """

    env_index: int
    start: int
    stop: int
    terminated: bool
    truncated: bool
    episode_return: float
    length: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Episodes:
    """The episodes of a rollout, or their parts in it; arrays ``[E]``.

    Episodes that end in the rollout come first, in the order of their ends. Episodes without an end
    follow: the rollout ended earlier, or their environment failed.

    Attributes:
        env_index: The environment of each episode.
        starts: Its first row in the rollout.
        stops: The row after its last row.
        terminated: Whether it was terminated.
        truncated: Whether it was truncated. Without either flag, it continues after the rollout, or
            its environment failed (``on_error="restart"``).
        returns: The sum of its rewards, including earlier rollouts; ``[E, k]`` with a
            ``reward_space`` of shape ``(k,)``.
        lengths: The number of its steps, including earlier rollouts: more than ``stops - starts``
            if it began there.
    """

    env_index: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        ended = np.count_nonzero(self.terminated | self.truncated)
        return f"Episodes({len(self)} episodes, {ended} of them complete)"

    def __iter__(self) -> Iterator[Episode]:
        columns = (getattr(self, field.name).tolist() for field in dataclasses.fields(self))
        return (Episode(*row) for row in zip(*columns, strict=True))

    @classmethod
    def from_rollout(cls, rollout: Record, *, complete_only: bool = False) -> Episodes:
        """Finds the episodes of a rollout; with ``complete_only``, only those that end in it."""
        steps, rows, stops = runs(rollout, complete_only=complete_only)
        carry = rollout.carry
        goes_on = (steps == 0) & ~rollout.is_first[0, rows]
        flags = rollout.terminated, rollout.truncated
        sums = [
            estimators.discounted_returns(rewards, *flags, valid=rollout.valid, gamma=1.0)
            for rewards in _by_objective(rollout.rewards)
        ]
        returns = _joined(rollout, [each[steps, rows] for each in sums])
        continued = goes_on if returns.ndim == 1 else goes_on[:, None]
        return cls(
            env_index=rollout.env_index[rows],
            starts=steps,
            stops=stops,
            terminated=rollout.terminated[stops - 1, rows],
            truncated=rollout.truncated[stops - 1, rows],
            returns=returns + np.where(continued, carry.returns[rows], 0.0),
            lengths=stops - steps + np.where(goes_on, carry.lengths[rows], 0),
        )


def runs(
    rollout: Record, *, complete_only: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns ``starts``, columns and ``stops``, in the order of :class:`Episodes`."""
    valid = rollout.valid
    over = rollout.terminated | rollout.truncated
    starts, ends = rollout.is_first[:-1].copy(), over.copy()
    starts[0] = ends[-1] = True  # the rollout cuts episodes at its first and last step
    ends[:-1] |= ~valid[1:]  # a failed step is not recorded, so its episode ends before it
    starts[1:] |= ~valid[:-1]  # and may go on after it, if only its infos were lost
    begins, begin_rows = np.divmod(np.flatnonzero(starts & valid), valid.shape[1])
    lasts, rows = np.divmod(np.flatnonzero(ends & valid), valid.shape[1])
    # Environment by environment, every start is followed by its end.
    firsts = np.empty_like(lasts)
    firsts[_by_row(rows)] = begins[_by_row(begin_rows)]
    has_end = over[lasts, rows]
    without = np.flatnonzero(~has_end)[: 0 if complete_only else None]
    order = np.concatenate([np.flatnonzero(has_end), without])
    return firsts[order], rows[order], lasts[order] + 1


def _by_row(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the order by environment, and in time within each."""
    # NumPy sorts numbers of 16 bits in linear time.
    few = rows.max(initial=0) < 2**16
    return np.argsort(rows.astype(np.uint16) if few else rows, kind="stable")


def numbers(rollout: Record) -> NDArray[np.int64]:
    """Returns the index of each row's episode in :class:`Episodes`, ``[T, N]``; -1 for none."""
    steps, rows, _ = runs(rollout)
    marks = np.full(rollout.valid.shape, -1, np.int64)
    marks[steps, rows] = np.arange(len(steps))
    # Find each environment's last mark so far. The steps of marks grow with time; the marks do not.
    place = np.where(marks >= 0, np.arange(len(marks))[:, None], 0)
    np.maximum.accumulate(place, axis=0, out=place)
    found: NDArray[np.int64] = np.take_along_axis(marks, place, axis=0)
    return np.where(rollout.valid, found, -1)


def running(rollout: Record) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the rewards and steps of the episode so far, for each frame, ``[T + 1, N]``.

    A frame that ends an episode has the numbers of the whole episode, also in the modes that show
    the first observation of the next episode there. Frames of resting rows repeat the numbers, and
    so does the frame of a failed step that ended its episode. After one that only lost its infos
    they begin anew, as the rest of the episode is one of its own (:func:`runs`).
    """
    num_steps, num_envs = rollout.valid.shape
    sums = np.empty((num_steps + 1, *rollout.carry.returns.shape))
    steps = np.empty((num_steps + 1, num_envs), np.int64)
    sums[0], steps[0] = rollout.carry.returns, rollout.carry.lengths
    for t in range(num_steps):
        first, valid = rollout.is_first[t], rollout.valid[t]
        # A row that is not a transition resets, or lost its infos; or it rests, or failed and ends
        # its episode.
        resets = ~(valid | rollout.terminated[t] | rollout.truncated[t])
        for so_far, gain in ((sums, rollout.rewards[t]), (steps, 1)):
            firsts, valids, resetting = (
                flags if so_far.ndim == 2 else flags[:, None] for flags in (first, valid, resets)
            )
            before = np.where(firsts, 0, so_far[t])
            so_far[t + 1] = np.where(valids, before + gain, np.where(resetting, 0, before))
    return sums, steps
