"""Wrappers that send actions that depend on earlier ones: smoothed, repeated at random, delayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector.utils import create_empty_array

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_fraction, as_integer
from cartwheel._internal.nested import as_array
from cartwheel.wrappers._shared.flattening import is_regular
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, RESET, TRANSITION
from cartwheel.wrappers.frame_stack import zero_of
from cartwheel.wrappers.rewards import is_transition

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.batch import ActionBatch, Batch

    #: Row numbers; or a slice of all rows, for which NumPy copies less.
    Rows = Any

#: All rows, in their order.
_ALL = slice(None)


class SentActions(KeepsState, VectorWrapper):
    """Sends actions that depend on those of the steps before in the same episode.

    An episode begins with any reset and with any restored row. What a step changes is kept when its
    result comes, or when it is known that the row went on although its result was lost. So a call
    that is refused changes nothing. Rows that only reset or rest change nothing either.

    A subclass overrides :meth:`_send` and :meth:`_keep`.
    """

    _changes_steps = False
    row_entries: ClassVar[tuple[str, ...]] = ("steps",)

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Checks the action space; steps nothing.

        Raises:
            TypeError: A part of the action space is not an array of fixed shape.
        """
        super().__init__(env)
        space = env.single_action_space
        if not is_regular(space):
            raise TypeError(
                f"{type(self).__name__} needs actions of Box, Discrete, MultiDiscrete and "
                f"MultiBinary spaces, or of nested Dict and Tuple spaces of these, got {space}."
            )
        self._space = space
        #: The steps of each environment's episode so far.
        self._steps = np.zeros(env.num_envs, np.int64)
        self._numbers = np.arange(env.num_envs)
        #: Whether an action was sent whose result has not come; the number of losses until then.
        self._waits = np.zeros(env.num_envs, np.bool_)
        self._losses = np.zeros(env.num_envs, np.int64)

    # What subclasses override

    def _send(self, rows: Rows, actions: Any) -> Any:
        """Returns what is sent for actions; notes what :meth:`_keep` needs."""
        raise NotImplementedError

    def _keep(self, rows: Rows) -> None:
        """The actions that were last sent for these rows were carried out."""
        raise NotImplementedError

    def _begin(self, rows: Rows, seeds: NDArray[np.int64] | None) -> None:
        """Episodes begin, with these seeds or -1; ``None``: no row was given one."""

    # Batches

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Returns the actions that are sent."""
        rows, steps = batch.rows, batch.kinds == TRANSITION
        values = _fitted(self._space, actions, len(rows))
        if self._source.unseen.flag.is_set or self._waits[rows].any():
            steps &= ~self._settle(rows)
        if steps.all():
            at: Any = _ALL if batch.env_index is None else rows
            sent = self._send(at, values)
            self._waits[at], self._losses[at] = True, self._source.unseen.number
            return sent
        if steps.any():
            places = np.flatnonzero(steps)
            sent = self._send(rows[places], nested.take(self._space, values, places))
            self._waits[rows[places]] = True
            self._losses[rows[places]] = self._source.unseen.number
            return nested.put(self._space, values, places, sent)
        return actions

    def _settle(self, rows: Rows) -> NDArray[np.bool_]:
        """Keeps what rows did although their results were lost.

        Returns:
            Which rows are in flight: the call is going to be refused.
        """
        flying = np.isin(rows, self._source.in_flight())
        idle = rows[~flying]
        went_on = self._carry_out_lost(idle)
        self._begun(went_on[self._source.unseen.begun(went_on)], None)
        self._waits[idle] = False
        self._losses[went_on] = self._source.unseen.number
        return flying

    def _carry_out_lost(self, rows: Rows) -> Rows:
        """Keeps what was sent for rows that went on in lost results; returns these rows."""
        went_on = rows[self._source.unseen.last[rows] > self._losses[rows]]
        self._carried_out(went_on[self._waits[went_on]])
        return went_on

    def transform(self, batch: Batch) -> None:
        """Keeps what the steps of a batch sent, which stays as it is."""
        rows, kinds = batch.rows, batch.kinds
        done = is_transition(kinds) & self._waits[rows]
        if batch.rewards is None:  # of a reset: a step that was refused since then does not count
            done &= self._source.unseen.last[rows] > self._losses[rows]
        if batch.env_index is None and done.all():
            self._carried_out(_ALL)
        else:
            self._carried_out(rows[done])
        begins = (kinds == RESET) | (kinds == FAILED)
        if self._source.is_same_step and batch.rewards is not None:
            begins |= np.logical_or(batch.terminations, batch.truncations)
        if batch.rejoined is not None:
            begins |= batch.rejoined
        if begins.any():
            self._carry_out_lost(rows[begins])
            self._begun(rows[begins], None if batch.seeds is None else batch.seeds[begins])

    def _carried_out(self, rows: Rows) -> None:
        self._keep(rows)
        self._steps[rows] += 1
        self._waits[rows] = False

    def _begun(self, rows: Rows, seeds: NDArray[np.int64] | None) -> None:
        self._steps[rows] = 0
        self._waits[rows] = False
        self._begin(rows, seeds)

    # The state of the wrapper

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"steps"`` of each environment's episode, and what a subclass adds."""
        self._settle(np.arange(self.num_envs))
        return {"steps": self._steps.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._steps[:] = state["steps"]
        self._waits[:] = False

    def _actions(self) -> Any:
        """One action of zeros for each environment."""
        return create_empty_array(self._space, self.num_envs, fn=np.zeros)


def _fitted(space: Space[Any], actions: Any, rows: int) -> Any:
    """A batch of actions with the dtypes and shapes of a space."""

    def fitted(part: Space[Any], values: Any) -> Any:
        wanted = (rows, *(part.shape or ()))
        array = as_array("actions", values)
        if array.shape != wanted and array.size != np.prod(wanted):
            raise ValueError(
                f"`actions` must have shape {wanted} for {rows} rows of {part}, got {array.shape}."
            )
        dtype: Any = part.dtype
        if array.dtype.kind not in "biu" and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"`actions` must be {dtype} for {part}, got {array.dtype}.")
        return array.astype(dtype, copy=False).reshape(wanted)

    try:
        nested.each(lambda *_: None, space, actions)
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"`actions` must be nested as the space {space} is.") from None
    return nested.each(fitted, space, actions)


class SmoothAction(SentActions):
    """Sends ``smoothing * last + (1 - smoothing) * action``; ``last`` was sent a step before.

    The first action of an episode is sent as it is. The mean is computed in ``float64`` and sent in
    the dtype of the action space.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import SmoothAction
        >>> envs = SmoothAction(cartwheel.NativeVectorEnv("Pendulum-v1", 2), 0.5)
        >>> observations, infos = envs.reset(seed=1)
        >>> _ = envs.step([[2.0], [0.0]])
        >>> _ = envs.step([[0.0], [0.0]])  # sends [[1.0], [0.0]]
        >>> envs.close()

    Args:
        env: A vector environment whose actions are of a ``Box`` of floating-point numbers.
        smoothing: The weight of what was sent last, from 0 to 1.

    Raises:
        TypeError: The action space is not such a ``Box``.
        ValueError: ``smoothing`` is not from 0 to 1. From ``step`` and ``send``: actions do not fit
            the space; nothing was stepped.
    """

    row_entries = ("steps", "last")

    def __init__(self, env: VectorEnv[Any, Any, Any], smoothing: float) -> None:
        self.smoothing = as_fraction("smoothing", smoothing)
        super().__init__(env)
        if not isinstance(self._space, Box) or self._space.dtype.kind != "f":
            raise TypeError(
                f"SmoothAction needs actions of a Box of floating-point numbers, got {self._space}."
            )
        self._last, self._next = self._actions(), self._actions()

    def _send(self, rows: Rows, actions: Any) -> Any:
        last, given = self._last[rows].astype(np.float64), actions.astype(np.float64)
        smooth = self.smoothing * last + (1 - self.smoothing) * given
        smooth = smooth.astype(actions.dtype)
        sent = np.where(_per_row(self._steps[rows] == 0, actions), actions, smooth)
        self._next[rows] = sent
        return sent

    def _keep(self, rows: Rows) -> None:
        self._last[rows] = self._next[rows]

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"steps"`` of each environment's episode, and ``"last"``, what was sent."""
        return {**super().get_own_state(), "last": self._last.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._last[:] = state["last"]


class DelayAction(SentActions):
    """Sends each action ``delay`` steps later, and ``fill`` in the first ``delay`` steps.

    Values are checked when they are sent: a NaN is refused then, and again until the row is reset.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import DelayAction
        >>> envs = DelayAction(cartwheel.NativeVectorEnv("CartPole-v1", 2), 2)
        >>> observations, infos = envs.reset(seed=1)
        >>> _ = envs.step([1, 1])  # sends [0, 0]
        >>> envs.close()

    Args:
        env: A vector environment whose actions are arrays of fixed shape, possibly nested in
            dictionaries and tuples.
        delay: The number of steps, at least 0.
        fill: An action. By default the one nearest to 0 in a ``Box``, ``start`` of a ``Discrete``
            or ``MultiDiscrete`` space.

    Raises:
        TypeError: A part of the action space is not an array of fixed shape.
        ValueError: ``delay`` is below 0, or ``fill`` is not in the action space. From ``step`` and
            ``send``: actions do not fit the space; nothing was stepped.
    """

    row_entries = ("steps", "waiting")

    def __init__(self, env: VectorEnv[Any, Any, Any], delay: int, fill: Any = None) -> None:
        self._delay = as_integer("delay", delay, 0, limit=65536)
        super().__init__(env)
        self.fill = zero_of(self._space, "actions") if fill is None else _one(self._space, fill)
        self._next = self._actions()
        #: Given actions ``[num_envs, delay, …]``: that of step ``t`` is at ``t % delay``.
        self._waiting = nested.apply(
            lambda array: np.repeat(array[:, None], self._delay, axis=1), self._actions()
        )

    @property
    def delay(self) -> int:
        """The number of steps; fixed, because as many actions are kept."""
        return self._delay

    def _send(self, rows: Rows, actions: Any) -> Any:
        if self._delay == 0:
            return actions
        steps = self._steps[rows]
        at = (self._numbers[rows], steps % self._delay)

        def sent(given: Any, later: Any, waiting: Any, fill: Any) -> Any:
            later[rows] = given
            return np.where(_per_row(steps >= self._delay, given), waiting[at], fill)

        return nested.apply(sent, actions, self._next, self._waiting, self.fill)

    def _keep(self, rows: Rows) -> None:
        if self._delay:
            at = (self._numbers[rows], self._steps[rows] % self._delay)
            nested.assign(self._waiting, at, nested.at(self._next, rows))

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"steps"`` of each environment's episode, and ``"waiting"`` actions."""
        state = super().get_own_state()
        waiting = {path: array.copy() for path, array in nested.named(self._waiting, "actions")}
        return {**state, "waiting": waiting}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for path, array in nested.named(self._waiting, "actions"):
            array[:] = state["waiting"][path]


class StickyAction(SentActions):
    """Sends the last action again, with a probability, instead of the one that is given.

    Each environment has random numbers of its own: one is drawn for each step but the first of an
    episode. They do not depend on the mode, nor on the order in which rows are stepped.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import StickyAction
        >>> envs = StickyAction(cartwheel.NativeVectorEnv("CartPole-v1", 2), 0.25, seed=1)
        >>> observations, infos = envs.reset(seed=1)
        >>> _ = envs.step([0, 1])
        >>> envs.close()

    Args:
        env: A vector environment whose actions are arrays of fixed shape, possibly nested in
            dictionaries and tuples.
        probability: That an action is repeated, from 0 to 1.
        seed: Of the random numbers. A reset of a row with a seed begins its numbers anew, from both
            seeds. ``None``: numbers begin with others in each run, and from the seed of a reset
            alone.

    Raises:
        TypeError: A part of the action space is not an array of fixed shape.
        ValueError: ``probability`` is not from 0 to 1, or ``seed`` is below 0. From ``step`` and
            ``send``: actions do not fit the space; nothing was stepped.
    """

    row_entries = ("steps", "last", "stream", "drawn")

    def __init__(
        self, env: VectorEnv[Any, Any, Any], probability: float, seed: int | None = None
    ) -> None:
        self.probability = as_fraction("probability", probability)
        number = None if seed is None else as_integer("seed", seed, 0)
        super().__init__(env)
        self._last, self._next = self._actions(), self._actions()
        rows = np.arange(1, env.num_envs + 1, dtype=np.uint64)
        self._key = _key_of(0 if number is None else number)
        first = self._key if number is not None else _key_of(None)
        #: The random numbers of each environment, and one that was drawn and not used yet, or -1.
        self._stream = _mixed(first + rows * _STEP)
        self._drawn = np.full(env.num_envs, -1.0)

    def _begin(self, rows: Rows, seeds: NDArray[np.int64] | None) -> None:
        if seeds is not None:
            given = seeds >= 0
            begun = rows[given]
            self._stream[begun] = _mixed(self._key + _mixed(seeds[given].astype(np.uint64) + _STEP))
            self._drawn[begun] = -1.0

    def _send(self, rows: Rows, actions: Any) -> Any:
        later = self._steps[rows] > 0
        drawing = self._numbers[rows][later & (self._drawn[rows] < 0)]
        self._stream[drawing] += _STEP
        self._drawn[drawing] = (_mixed(self._stream[drawing]) >> _SHIFT) * 2.0**-53
        repeats = later & (self._drawn[rows] < self.probability)

        def sent(given: Any, last: Any, following: Any) -> Any:
            chosen = np.where(_per_row(repeats, given), last[rows], given)
            following[rows] = chosen
            return chosen

        return nested.apply(sent, actions, self._last, self._next)

    def _keep(self, rows: Rows) -> None:
        nested.assign(self._last, rows, nested.at(self._next, rows))
        self._drawn[self._numbers[rows][self._steps[rows] > 0]] = -1.0

    def get_own_state(self) -> dict[str, Any]:
        """The state: of each environment ``"steps"``, ``"last"``, and its random numbers."""
        state = super().get_own_state()
        last = {path: array.copy() for path, array in nested.named(self._last, "actions")}
        return {**state, "last": last, "stream": self._stream.copy(), "drawn": self._drawn.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for path, array in nested.named(self._last, "actions"):
            array[:] = state["last"][path]
        self._stream[:], self._drawn[:] = state["stream"], state["drawn"]


def _per_row(flags: NDArray[np.bool_], actions: NDArray[Any]) -> NDArray[np.bool_]:
    """Flags of rows, in a shape that fits their actions."""
    return flags.reshape((-1, *[1] * (actions.ndim - 1)))


def _one(space: Space[Any], action: Any) -> Any:
    try:
        fitted = nested.each(lambda part, value: np.asarray(value, part.dtype), space, action)
        fits = bool(space.contains(fitted))
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"`fill` must be an action of the space {space}, got {action!r}.")
    return fitted


# SplitMix64 (Steele, Lea and Flood 2014), for many environments at once.

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(11)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _key_of(seed: int | None) -> NDArray[np.uint64]:
    """An array of one number, which wraps around without a warning."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (numbers ^ (numbers >> np.uint64(30))) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _FACTORS[1]
    return mixed ^ (mixed >> np.uint64(31))
