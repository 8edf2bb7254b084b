"""Sending actions to rows of a vector environment, and receiving their results."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

from cartwheel._internal.arguments import as_integer, as_timeout
from cartwheel._internal.literals import RecvOrder, check_choice
from cartwheel.errors import add_note, is_raised_by_env
from cartwheel.vector.pool_owner import ActType, ObsType, PoolOwner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SentRows(PoolOwner[ObsType, ActType]):
    """The methods of a vector environment that send rows and receive them."""

    def send(self, actions: ActType, env_index: Any = None) -> None:
        """Sends actions to environments and returns at once; :meth:`recv` returns the results.

        Several sends may be in flight if their rows differ. A row is in flight until it is
        received, and cannot be sent again before. Actions without a fixed shape go through a
        channel, which holds a few hundred kilobytes; with more, this method waits until the worker
        process has taken some of them.

        Args:
            actions: One action for each row, as for :meth:`step`. Actions go through shared memory
                as long as their dtype is the same as that of the actions in flight; another dtype
                takes longer.
            env_index: The rows, an array or list of integers, in any order. By default all rows,
                even if :attr:`action_space` has fewer. For a batch of some rows, pass its
                ``infos["env_index"]``.

        Raises:
            ValueError: A row does not exist or is named twice, or the number of actions is wrong.
            TypeError: Row numbers are not integers, or actions have another kind of dtype.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight, or another call is pending.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset.
            RuntimeError: Only some rows, while a :meth:`rollout` is recorded.
        """
        try:
            self._pool.send(actions, env_index)
        except ValueError as error:
            if env_index is None and self.batch_size < self.num_envs:
                add_note(
                    error,
                    f"without `env_index` all {self.num_envs} rows are sent; for a batch of "
                    f'batch_size={self.batch_size} pass its `infos["env_index"]`',
                )
            raise

    def recv(
        self,
        timeout: float | None = None,
        *,
        min_rows: int | None = None,
        max_rows: int | None = None,
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Receives the next batch: the first ``batch_size`` rows in flight that are done.

        If fewer rows are in flight, the batch has all of them. :attr:`recv_order` is their order.
        With ``min_rows`` the batch has all rows that are done as soon as that many are. It may
        have fewer, because each ``batch_size`` rows in flight share memory, and a batch does not
        cross its end. Rows that :meth:`send` sent without ``env_index``
        are one batch in any case, if ``batch_size`` is ``num_envs``.

        Args:
            timeout: Seconds to wait; by default the ``timeout`` of this object. With ``min_rows``,
                the batch then has the rows that are done, if any are.
            min_rows: The minimum number of rows, at least 1; by default ``max_rows``.
            max_rows: The maximum number of rows, at most ``batch_size``, which is the default.

        Returns:
            The same five values as :meth:`step`, with one entry for each received row;
            ``infos["env_index"]`` (``int64``) has the row numbers. A row that was reset has reward
            0 and false flags. An environment's own info with the name ``env_index`` is replaced.

        Raises:
            ValueError: ``min_rows`` or ``max_rows`` is out of range.
            gymnasium.error.NoAsyncCallError: Nothing is in flight.
            WorkerTimeoutError: Environments are still busy; nothing is lost.
            Exception: The environment of the lowest failing row of the batch raised it. The other
                rows of the batch were stepped and can be sent again; the rows that raised must be
                reset. A note names the rows of the batch.
        """
        seconds = self._callbacks.timeout if timeout is None else as_timeout(timeout)
        if min_rows is None and max_rows is None:
            return self._pool.recv(seconds)
        size = self.batch_size
        limit = as_integer("max_rows", size if max_rows is None else max_rows, 1)
        if limit > size:
            raise ValueError(f"`max_rows` must be at most batch_size={size}, got {limit}.")
        minimum = as_integer("min_rows", limit if min_rows is None else min_rows, 1, limit)
        try:
            result = self._pool.recv(seconds, (minimum, limit))
        except multiprocessing.TimeoutError as late:
            if min_rows is None or minimum == 1 or not _can_be_repeated(late):
                raise
            try:
                result = self._pool.recv(0.0, (1, limit))
            except multiprocessing.TimeoutError as error:
                if not _can_be_repeated(error):
                    raise
                raise late from None  # which has the seconds of the caller
        return result

    @property
    def recv_order(self) -> RecvOrder:
        """The order in which :meth:`recv` returns rows: ``"sent"`` or ``"done"``.

        ``"sent"``: the order of the sends. So after two sends, ``recv(min_rows=n, max_rows=n)``
        with the number of rows of the first one returns exactly its rows, in their order.
        ``"done"``: the order in which rows are done. At first it is ``"sent"`` if ``batch_size`` is
        ``num_envs``, otherwise ``"done"``. It may be set while nothing is in flight, and where a
        reset would drop what is: after a wait that timed out or was interrupted.

        ``step(actions, env_index)`` and ``reset(options={"env_index": …})`` return their rows in
        the order of ``env_index``, if ``batch_size`` is ``num_envs`` and nothing else is in flight.

        Raises:
            ValueError: The new value is neither.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight, in the present order.
        """
        return "sent" if self._pool.receives_in_order() else "done"

    @recv_order.setter
    def recv_order(self, order: RecvOrder) -> None:
        check_choice("recv_order", order, RecvOrder)
        self._pool.receive_in_order(order == "sent")

    @property
    def in_flight(self) -> list[int]:
        """The rows that were sent and have not been received, in ascending order.

        A pending :meth:`step_async` or :meth:`reset_async` of all rows does not count.
        """
        return self._pool.in_flight()


def _can_be_repeated(late: multiprocessing.TimeoutError) -> bool:
    """Whether a wait that has timed out may be repeated: its results are still to come."""
    return not (is_raised_by_env(late) or getattr(late, "results_lost", False))


def drop_in_flight(envs: Any) -> None:
    """Receives and drops all rows in flight, including batches that are lost to an exception.

    Args:
        envs: A vector environment with ``recv``, whose ``unwrapped`` has ``in_flight``.

    Raises:
        Exception: A ``recv`` raised it and received nothing, because a worker died or timed out.
    """
    owner = envs.unwrapped
    try:
        while flying := owner.in_flight:
            try:
                envs.recv()
            except Exception:  # the batch is lost, the next one may not be
                if owner.in_flight == flying:
                    raise
    except BaseException:  # Ctrl-C between two batches: a reset may drop the rest
        owner._pool.give_up()
        raise
