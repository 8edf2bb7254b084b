"""Collects while rows are in flight: the policy and the environments work at the same time.

Each row writes the :class:`~cartwheel.rollouts.collecting.columns.Columns` that rollouts are made
of. It is in one of four states:

* ``READY``: it shows an observation. It waits for the policy, or, in ``NEXT_STEP``, for the step
  that only resets it, or for permission to begin another column.
* ``STEPPING``, ``RESETTING``: it was sent and has not been received.
* ``OVER``: its episode is over, and the mode is ``DISABLED``: its reset must be sent.

Two orders, :class:`~cartwheel.rollouts.collecting.pipeline_orders.Free` and
:class:`~cartwheel.rollouts.collecting.pipeline_orders.Groups`, decide which rows the
policy gets next. Sending, receiving and waiting rows are here.
"""

from __future__ import annotations

import abc
import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel.errors import WorkerTimeoutError
from cartwheel.rollouts.buffers import Finals as FinalsOfInfos
from cartwheel.rollouts.collecting.block import Finals
from cartwheel.rollouts.collecting.columns import Columns
from cartwheel.rollouts.collecting.policy_calls import Stopped
from cartwheel.rollouts.recording import interrupted
from cartwheel.vector.infos import check_infos, failed_steps
from cartwheel.vector.sent_rows import drop_in_flight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.rollouts.buffers import Carry
    from cartwheel.rollouts.collecting.block import Standby
    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.rollout import Rollout
    from cartwheel.vector.calls import Calls

#: The states of a row.
READY, STEPPING, RESETTING, OVER = range(4)

#: Seconds after which a collection in the background looks whether it is to end.
GLANCE = 0.1


class Pipeline(Columns, abc.ABC):
    """Collects rollouts whose rows are at different steps.

    Attributes:
        waited: Seconds in which the collector waited for environments.
        busy: For each row, the seconds from its sends to their receipts.
        steps: For each row, the number of its steps.
    """

    #: Whether a rollout has a number of whole episodes.
    counts_episodes = False
    #: The group that the policy gets next.
    turn = 0
    #: The order in which the vector environment returns rows.
    _recv_order: str

    def __init__(
        self,
        envs: Any,
        mode: AutoresetMode,
        actor: Actor,
        calls: Calls,
        num_steps: int,
        *,
        run_ahead: int,
        columns: int | None,
        standby: Standby | None,
    ) -> None:
        num_rows: int = envs.num_envs if standby is None else standby.num_rows
        super().__init__(
            envs,
            mode,
            actor,
            num_steps,
            run_ahead=run_ahead,
            columns=columns,
            num_rows=num_rows,
        )
        self._envs, self._calls, self._standby = envs, calls, standby
        self.waited = 0.0
        self.busy, self.steps = np.zeros(num_rows), np.zeros(num_rows, np.int64)
        self._finals = FinalsOfInfos(self._space)
        self._idle = nested.each(_nearest_to_zero, envs.single_action_space)
        self._own_order: str | None = None
        self._is_begun = False
        #: Whether the last send or receive has been recorded.
        self._is_whole = True

    # Beginning and ending

    @property
    def num_steps(self) -> int:
        """Steps of a column; may be set where every row is at the beginning of the next one."""
        return self._num_steps

    @num_steps.setter
    def num_steps(self, num_steps: int) -> None:
        if self.needs_reset:
            self._num_steps = num_steps
        else:
            shown = self.shown  # of a block with the old number of steps
            self._num_steps = num_steps
            self.begin(self._carry, shown)

    def begin(self, carry: Carry, shown: Any) -> None:
        """Continues at the observations ``shown``, after the step of ``carry``."""
        self._is_begun = False  # until all is as it should be
        self._begin_columns(carry, shown)
        self._state = np.full(self._num_rows, READY, np.int8)
        self._first = carry.is_first.copy()
        #: Rows whose next step only resets them.
        self._resets = carry.done.copy()
        if self._mode != AutoresetMode.NEXT_STEP:
            self._resets[:] = False
        self._sent_at = np.zeros(self._num_rows)
        #: The last received batch, if all of its rows wait for the policy.
        self._fresh: tuple[NDArray[np.int64], Any] | None = None
        self._flying = 0
        self._is_begun = self._is_whole = True

    @property
    def needs_reset(self) -> bool:
        """Whether the next rollout begins with a reset: at first, and after a failure."""
        return not (self._is_begun and self._is_consistent())

    @property
    def is_between_rollouts(self) -> bool:
        """Whether every row is at the beginning of the next rollout."""
        if not self._is_begun:
            return True
        at_rest = bool((self._state == READY).all()) and not self._flying and not self._complete
        return at_rest and not self._step.any() and bool((self._column == self._rollouts).all())

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that rows show begin an episode, ``[N]``."""
        return self._first.copy() if self._is_begun else np.ones(self._num_rows, np.bool_)

    def rest(self) -> None:
        """Receives all rows in flight and sends none, so that others can use the environments."""
        if self.needs_reset:
            self.drop()
            return
        with self._left_if_raised():
            while self._flying:
                self._receive(1, None)
        self._give_order_back()

    def drop(self) -> None:
        """Drops all columns; a reset comes next. What another caller has sent stays in flight.

        Raises:
            Exception: Rows cannot be received, because a worker died or is late.
        """
        is_own = self._is_begun and not (self._is_whole and self._calls.others())
        self._is_begun = False
        self._blocks = {}
        if is_own:
            drop_in_flight(self._envs)
        self._give_order_back()

    def _give_order_back(self) -> None:
        """Restores the order in which the vector environment returns rows."""
        if self._own_order is not None:
            with contextlib.suppress(AlreadyPendingCallError):  # others have sent rows
                self._envs.unwrapped.recv_order = self._own_order
                self._own_order = None

    def _is_consistent(self) -> bool:
        """Whether every row that was sent has arrived or is in flight.

        It is not after an exception of an environment, whose batch is lost, or after a Ctrl-C in
        the wrong moment.
        """
        with contextlib.suppress(Exception):  # closed, or forked
            return self._is_whole and len(self._envs.unwrapped.in_flight) == self._flying
        return False

    def __del__(self) -> None:
        """Lets a reset drop what is in flight: this collector receives it no more."""
        with contextlib.suppress(Exception):  # closed, or never begun
            if self.needs_reset or self._calls.others():
                self._give_order_back()
            else:
                self._leave()

    def _leave(self) -> None:
        """Lets a reset by another caller drop the rows in flight, unless they are received.

        Rows that the other caller sends then are received in the order of before.
        """
        self._envs.unwrapped._pool.give_up()
        self._give_order_back()

    @contextlib.contextmanager
    def _left_if_raised(self) -> Iterator[None]:
        """Leaves the rows that an exception, such as Ctrl-C, keeps in flight."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):  # closed, or broken
                self._leave()
            raise

    # Collecting

    def collect(self) -> Rollout:
        """Collects until a rollout is complete, and returns it.

        If the policy raises, its rows wait; the next call continues.
        """
        with self._left_if_raised():
            return self._collected()

    def _collected(self) -> Rollout:
        if self.is_between_rollouts:
            self._answers.extras = None
        if self._own_order is None:
            self._own_order = self._envs.unwrapped.recv_order
            self._envs.unwrapped.recv_order = self._recv_order
        self._send_resets(np.flatnonzero(self._state == OVER))
        while not self._is_complete():
            self._advance()
        self._is_whole = False
        rollout = self._hand_out()
        self._is_whole = True
        if not self._flying:
            self._give_order_back()
        return rollout

    @abc.abstractmethod
    def _advance(self) -> None:
        """Calls the policy once, or receives rows once."""

    # Sending

    def _ask(self, rows: NDArray[np.int64], observations: Any) -> tuple[Any, dict[str, Any], int]:
        """Returns actions, extras and the version of the policy for rows."""
        mirror = self._actor.mirror
        if mirror is not None and self._columns is None:
            observations = self._actor.shown(observations)
            for block, at in self._by_column(rows):
                which = rows[at]
                block.on_device(mirror).take_in(
                    self._step[which], which, nested.at(observations, at)
                )
        first, envs = (lambda: self._first[rows]), self._playing(rows)
        answer, version = self._actor.ask(observations, rows, first, envs)
        return *self._answers.checked(answer, len(rows)), version

    def _send(
        self, rows: NDArray[np.int64], actions: Any, extras: dict[str, Any], version: int
    ) -> None:
        """Sends actions, then writes them to the blocks: the environments work meanwhile."""
        self._is_whole = False
        if self._calls.others():
            raise interrupted(self.done)
        try:
            self._envs.send(actions, self._playing(rows))
        except Exception:
            self._is_whole = True  # refused: nothing was sent
            raise
        self._calls.note()
        self._fresh = None
        self._note_sent(len(rows))
        self._state[rows] = STEPPING
        self._sent_at[rows] = time.perf_counter()
        for block, places in self._by_column(rows):
            which = rows[places]
            chosen = nested.at(actions, places), nested.at(extras, places)
            block.act(self._step[which], which, *chosen, version)
        self._is_whole = True

    def _pass(self, rows: NDArray[np.int64]) -> None:
        """Sends steps that only reset; the policy is not called."""
        if len(rows):
            self._send(rows, self._no_actions(len(rows)), {}, self._actor.version)

    def _no_actions(self, count: int) -> Any:
        """Returns a batch of the action nearest to 0, for rows that ignore it."""
        return nested.apply(lambda one: np.repeat(one[None], count, axis=0), self._idle)

    def _send_resets(self, rows: NDArray[np.int64]) -> None:
        """Sends the resets of rows whose episode is over, or lets their spares play."""
        if not len(rows):
            return
        if self._standby is None:
            self._envs.send_reset(options={"env_index": rows})
            self._calls.note()
            self._state[rows] = RESETTING
            self._note_sent(len(rows))
            return
        resets = self._standby.replace(rows)
        self._state[rows] = RESETTING
        if resets.envs:
            self._envs.send_reset(seed=resets.seeds, options={"env_index": resets.envs})
            self._calls.note()
            self._note_sent(len(resets.envs))
        if resets.rows:
            self._restart(np.array(resets.rows), resets.observations())

    def _playing(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows if self._standby is None else self._standby.env_of[rows]

    def _note_sent(self, count: int) -> None:
        """So many rows were sent together."""
        self._flying += count

    # Receiving

    def _note_received(self, count: int) -> None:
        """So many rows were received."""
        self._flying -= count

    def _wanted(self, min_rows: int) -> dict[str, int]:
        """Returns the bounds of the next batch."""
        return {"min_rows": min(min_rows, self._flying), "max_rows": self._envs.num_envs}

    def _receive(self, min_rows: int, timeout: float | None) -> None:
        """Receives a batch; without one in ``timeout`` seconds, a ``TimeoutError``."""
        began = time.perf_counter()
        try:
            batch = self._recv(min_rows, timeout)
        finally:
            self.waited += time.perf_counter() - began
        self._is_whole = False
        self._take_in(*batch)
        self._is_whole = True

    def _recv(self, min_rows: int, timeout: float | None) -> Any:
        """Calls ``recv``; in the background, in short waits, because it may have to end."""
        wanted = self._wanted(min_rows)
        if timeout is not None or not self._actor.is_in_background:
            return self._envs.recv(timeout, **wanted)
        limit = self._envs.unwrapped.timeout
        began = time.monotonic()
        while True:
            try:
                return self._envs.recv(GLANCE, **wanted)
            except WorkerTimeoutError as error:  # expected
                if error.results_lost:
                    raise
                if self._actor.is_stopping:
                    raise Stopped from None
                if limit is not None and time.monotonic() - began > limit:
                    rows, workers = error.env_index, error.workers
                    raise WorkerTimeoutError.from_call("recv", limit, rows, workers) from None

    def _take_in(
        self,
        observations: Any,
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        infos: dict[str, Any],
    ) -> None:
        """Writes the received batch to the blocks, and moves rows to their next state."""
        check_infos(infos)
        envs = np.asarray(infos["env_index"], np.int64)
        self._note_received(len(envs))
        self._fresh = None
        every = np.arange(len(envs))
        if self._standby is None:
            rows = envs
        else:
            rows = self._standby.row_of[envs]
            spares = np.flatnonzero(rows < 0)
            if len(spares):
                self._standby.keep(envs[spares], nested.at(observations, spares))
                every = np.flatnonzero(rows >= 0)
        state = self._state[rows[every]]
        stepped, reset = every[state == STEPPING], every[state == RESETTING]
        whole = len(stepped) == len(envs)
        if len(stepped):
            at = slice(None) if whole else stepped
            self._take_steps(
                rows[at],
                nested.at(observations, at),
                (rewards[at], terminated[at], truncated[at]),
                infos,
                stepped,
            )
        if len(reset):
            self._restart(rows[reset], nested.at(observations, reset))
        shows_finals = self._mode == AutoresetMode.DISABLED and (terminated | truncated).any()
        if whole and not shows_finals and not self._resets[rows].any():
            self._fresh = rows, observations

    def _take_steps(
        self,
        rows: NDArray[np.int64],
        observations: Any,
        results: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]],
        infos: dict[str, Any],
        places: NDArray[np.int64],
    ) -> None:
        """Writes steps; ``places`` are those of ``rows`` in the arrays of ``infos``."""
        rewards, terminated, truncated = results
        over = terminated | truncated
        failed = failed_steps(infos, terminated, self._mode, places)
        self.busy[rows] += time.perf_counter() - self._sent_at[rows]
        self.steps[rows] += 1
        for block, at in self._by_column(rows):
            which = rows[at]
            block.take_in(
                self._step[which],
                which,
                nested.at(observations, at),
                (rewards[at], terminated[at], truncated[at]),
                None if failed is None else failed[at],
            )
        if self._standby is not None:
            self._standby.lengths[rows] += 1
        self._state[rows] = READY
        if self._mode == AutoresetMode.NEXT_STEP:
            self._first[rows], self._resets[rows] = self._resets[rows], over
        else:
            self._first[rows] = kept = over
            if failed is not None and self._mode == AutoresetMode.SAME_STEP:
                kept = over & ~failed  # final observations may be lost
            if np.count_nonzero(kept):
                self._keep_finals(rows, kept, observations, infos, places)
        if self._mode == AutoresetMode.DISABLED and np.count_nonzero(over):
            self._state[rows[over]] = OVER
            self._count_steps(rows[~over])
            self._send_resets(rows[over])
        else:
            self._count_steps(rows)

    def _keep_finals(
        self,
        rows: NDArray[np.int64],
        over: NDArray[np.bool_],
        observations: Any,
        infos: dict[str, Any],
        places: NDArray[np.int64],
    ) -> None:
        ended = rows[over]
        if self._mode == AutoresetMode.SAME_STEP:
            marks = np.zeros(len(infos["env_index"]), np.bool_)
            marks[places[over]] = True
            # The observations are in the order of the batch, and so are `places`.
            finals = self._finals.of_infos(int(self._step[ended[0]]), infos, marks)
        else:
            finals = nested.at(observations, over)
        for block, at in self._by_column(ended):
            which = ended[at]
            block.add_finals(Finals(self._step[which], which, nested.at(finals, at)))

    def _restart(self, rows: NDArray[np.int64], observations: Any) -> None:
        """Shows the first observations of rows that were reset."""
        for block, at in self._by_column(rows):
            which = rows[at]
            block.show(self._step[which] + 1, which, nested.at(observations, at))
        self._first[rows], self._state[rows] = True, READY
        self._count_steps(rows)

    def _observations(self, rows: NDArray[np.int64]) -> Any:
        """Returns the present observations of rows, in their order."""
        if self._fresh is not None and np.array_equal(self._fresh[0], rows):
            return self._fresh[1]
        parts, order = [], []
        for block, at in self._by_column(rows):
            which = rows[at]
            parts.append(nested.at(block.observations, (self._step[which], which)))
            order.append(np.arange(len(rows))[at])
        if len(parts) == 1:
            return parts[0]
        return nested.at(nested.concat(parts), np.argsort(np.concatenate(order)))


def _nearest_to_zero(space: Space[Any]) -> NDArray[Any]:
    """The action nearest to 0: native environments refuse what is not in their space."""
    nearest = np.zeros(space.shape or (), space.dtype)
    if isinstance(space, Box):
        nearest = nearest.clip(space.low, space.high)
    elif isinstance(space, Discrete):
        nearest = nearest.clip(space.start, space.start + space.n - 1)
    elif isinstance(space, MultiDiscrete):
        nearest = nearest.clip(space.start, space.start + space.nvec - 1)
    return np.asarray(nearest, space.dtype)
