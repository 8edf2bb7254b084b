"""The order ``"free"``: rows are sent and received, and no row waits for another."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.evaluation.step import Step
from cartwheel.spaces import nested
from cartwheel.vector.in_flight import drop_in_flight
from cartwheel.vector.infos import check_infos

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class FreeStepping:
    """For cartwheel's own that send rows, in wrappers of cartwheel or without.

    A batch has the rows that are done, in the order in which they are. Those whose episode goes on,
    or begins, are the next ``rows``. Where the mode leaves a reset to a later step or to the
    caller, it is sent at once; the row comes back in a batch of its own, or among rows that were
    stepped.
    """

    def __init__(self, envs: Any, seed: Any, options: Any) -> None:
        """Resets all; ``envs`` have ``autoreset_mode``, ``send``, ``recv`` and ``async_reset``."""
        self._envs = envs
        self.observations, _ = envs.reset(seed=seed, options=options)
        self.rows = np.arange(envs.num_envs)
        self.first = np.ones(envs.num_envs, np.bool_)
        #: Whether a reset of the row is in flight.
        self._resetting = np.zeros(envs.num_envs, np.bool_)
        #: Of the last batch: which rows were reset.
        self._begun = self._resetting
        #: What was stepped of it, and where that is in the batch.
        self._stepped = self._places = self.rows

    def step(self, actions: Any) -> Step:
        """Sends ``rows``, if there are any, and receives those that are done, at least one."""
        if len(self.rows):
            # With row numbers even if it is all of them: otherwise they are received together.
            self._envs.send(actions, self.rows)
        received = self._envs.recv(min_rows=1, max_rows=self._envs.num_envs)
        self.observations, rewards, terminations, truncations, infos = received
        check_infos(infos)
        self.rows = np.asarray(infos["env_index"], np.intp)
        self._begun = self._resetting[self.rows]
        self._resetting[self.rows] = False
        at = self._places = np.flatnonzero(~self._begun)
        self._stepped = self.rows[at]
        flags = terminations[at], truncations[at]
        return Step(self._stepped, rewards[at], *flags, infos, at)

    def go_on(self, over: NDArray[np.bool_], finished: NDArray[np.bool_]) -> None:
        """Sends resets of rows that are over and have not finished, where the step did not."""
        at = self._places
        shown, self.first = np.ones(len(self.rows), np.bool_), self._begun.copy()
        if self._envs.autoreset_mode is AutoresetMode.SAME_STEP:
            self.first[at] = over
            shown[at] = ~finished
        else:
            shown[at] = ~over
            again = self._stepped[over & ~finished]
            if len(again):
                self._envs.async_reset(options={"env_index": again})
                self._resetting[again] = True
        if np.count_nonzero(shown) == len(shown):
            return
        self.rows, self.first = self.rows[shown], self.first[shown]
        space = self._envs.single_observation_space
        self.observations = nested.take(space, self.observations, shown.nonzero()[0])


@contextlib.contextmanager
def received_as_done(envs: Any) -> Iterator[None]:
    """Lets ``recv`` return rows in the order in which they are done; at the end, as before.

    At the end, also by an exception, what is in flight is received and dropped.
    """
    pool = envs.unwrapped
    own = pool.recv_order
    try:
        pool.recv_order = "done"
        yield
    finally:
        # The exception that ends the evaluation is raised, and not one of a row that is dropped. If
        # a row is later than the time-out allows, the next reset waits for it.
        with contextlib.suppress(Exception):
            drop_in_flight(envs)
        if not pool.in_flight:
            pool.recv_order = own
