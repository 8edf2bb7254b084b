"""Steps the rows that still play, in batches or in free order."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.arguments import check_sends_rows, mode_of
from cartwheel.vector.action_masks import with_allowed
from cartwheel.vector.infos import check_infos
from cartwheel.vector.sent_rows import drop_in_flight

if TYPE_CHECKING:
    from collections.abc import Iterator

    import gymnasium as gym
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._internal.literals import EvaluateOrder
    from cartwheel.vector.calls import Calls


class Stepping(Protocol):
    """A vector environment of which some rows play and the others rest.

    Attributes:
        rows: The next actions are for these rows, which play: all of them, ascending, or those that
            are not in flight. There may be none while others are.
        observations: One for each of ``rows``.
        first: Whether it is the first of an episode.
    """

    rows: NDArray[np.intp]
    observations: Any
    first: NDArray[np.bool_]

    def step(self, actions: Any) -> Step:
        """Steps ``rows`` and returns their results, or those of the rows that are done first."""

    def go_on(self, over: NDArray[np.bool_], finished: NDArray[np.bool_]) -> None:
        """Begins another episode of rows that are over; rows that have finished rest."""


def check_alone(calls: Calls) -> None:
    """Checks that no other caller has used the environments since the evaluation's last call.

    Raises:
        RuntimeError: One has; its steps would not count, and its resets could go on forever.
    """
    if calls.others():
        raise RuntimeError(
            "the environments were stepped or reset by another caller during `evaluate`: the "
            "policy and `progress` must not use them."
        )


@contextlib.contextmanager
def stepping(
    envs: gym.vector.VectorEnv[Any, Any, Any], order: EvaluateOrder, seed: Any, options: Any
) -> Iterator[Stepping]:
    """Resets all environments and ends a rollout; all rows play. At the end nothing is in flight.

    Raises:
        ValueError: The autoreset mode is not known, or batches are smaller than ``num_envs``.
        TypeError: The order needs rows that can be sent. Infos of the reset are not a dictionary.
    """
    # Wrappers of Gymnasium have no `batch_size`, though what they wrap may have one.
    batch_size = getattr(envs.unwrapped, "batch_size", envs.num_envs)
    if batch_size < envs.num_envs:
        raise ValueError(
            f"`envs` has batch_size={batch_size} below num_envs={envs.num_envs}: evaluate "
            "environments that are made without `batch_size`"
        )
    # In wrappers of Gymnasium rows cannot be stepped apart, nor rows with external rewards.
    by_row = getattr(envs, "steps_rows", False) and getattr(envs.unwrapped, "sends_rows", False)
    if order == "free":
        check_sends_rows(envs, order)
    elif not by_row:
        yield BatchStepping(envs, mode_of(envs), seed, options)
        return
    by_rows: Any = envs
    playing = (FreeStepping if order == "free" else RowStepping)(envs, seed, options)
    by_rows.end_rollout()  # whose batches have all rows
    with received_as_done(envs) if order == "free" else contextlib.nullcontext():
        yield playing


class PlayingRows:
    """Rows of cartwheel's environments, of which some play; those at rest are not stepped.

    A row begins its next episode right after the last, in every mode: in the modes that leave it to
    a later step, or to the caller, by a reset of these rows. So the policy sees the same
    observations in every mode.
    """

    def __init__(self, envs: Any, space: Space[Any], seed: Any, options: Any) -> None:
        """Resets all; ``space`` is that of the observations of a row."""
        self._envs, self._space = envs, space
        self.observations = self._reset(seed, options)
        self.rows = np.arange(envs.num_envs)
        self.first = np.ones(envs.num_envs, np.bool_)
        self._places = self.rows

    def _reset(self, seed: Any, options: Any) -> Any:
        """Resets rows and returns the observations of all."""
        observations, _ = self._envs.reset(seed=seed, options=options)
        return observations

    @property
    def _steps_all(self) -> bool:
        return bool(len(self.rows) == self._envs.num_envs)

    def go_on(self, over: NDArray[np.bool_], finished: NDArray[np.bool_]) -> None:
        """Resets rows that are over and have not finished, where the step did not."""
        self.first = over
        if not np.count_nonzero(over):
            return
        all_play = not np.count_nonzero(finished)
        same_step = self._envs.autoreset_mode is AutoresetMode.SAME_STEP
        if all_play and same_step:
            return
        playing = ~finished
        again = over & playing
        mask = np.zeros(self._envs.num_envs, np.bool_)
        mask[self.rows[again]] = True
        if not all_play:
            self.rows = self.rows[playing]
            self._places = np.arange(len(self.rows))
        self.first = again[playing]
        if np.count_nonzero(again) and not same_step:
            self.observations = self._reset(None, {"reset_mask": mask})
            if not self._steps_all:
                self.observations = nested.take(self._space, self.observations, self.rows)
        elif not all_play:
            self.observations = nested.take(self._space, self.observations, playing.nonzero()[0])


class RowStepping(PlayingRows):
    """Steps rows of vector environments, with or without cartwheel's wrappers."""

    def __init__(self, envs: Any, seed: Any, options: Any) -> None:
        """Resets all; ``envs`` have ``autoreset_mode`` and ``step(actions, env_index)``."""
        super().__init__(envs, envs.single_observation_space, seed, options)

    def step(self, actions: Any) -> Step:
        """Steps ``rows`` and no others."""
        every = self._steps_all
        result = self._envs.step(actions) if every else self._envs.step(actions, self.rows)
        self.observations, rewards, terminations, truncations, infos = result
        return Step(self.rows, rewards, terminations, truncations, infos, self._places)


class BatchStepping:
    """For other vector environments, which only step all rows at once.

    Rows that have finished continue with their last action, or where environments show masks of
    actions with one that is allowed; their results are ignored.
    """

    def __init__(
        self,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        mode: AutoresetMode,
        seed: Any,
        options: Any,
    ) -> None:
        self._envs = envs
        self._mode = mode
        self.observations, infos = envs.reset(seed=seed, options=options)
        check_infos(infos)
        self.rows = np.arange(envs.num_envs)
        self.first = np.ones(envs.num_envs, np.bool_)
        self._finished = np.zeros(envs.num_envs, np.bool_)
        #: The actions of all rows.
        self._actions: Any = None
        #: All observations of the last step, and the episodes that it ended.
        self._batch: Any = None
        self._over = np.zeros(envs.num_envs, np.bool_)

    def step(self, actions: Any) -> Step:
        """Steps all rows and returns the results of those that play."""
        if len(self.rows) < self._envs.num_envs:
            space = self._envs.single_action_space
            actions = nested.put(space, self._actions, self.rows, actions)
        rewards, terminations, truncations, infos = self._step(actions)
        rows = self.rows
        return Step(rows, rewards[rows], terminations[rows], truncations[rows], infos, rows)

    def _step(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        self._actions = with_allowed(self._envs, actions, np.flatnonzero(self._finished))
        self._batch, rewards, terminations, truncations, infos = self._envs.step(self._actions)
        self._over = np.logical_or(terminations, truncations)
        return rewards, terminations, truncations, infos

    def go_on(self, over: NDArray[np.bool_], finished: NDArray[np.bool_]) -> None:
        """Waits for the resets of the next step, or makes them, as the mode requires."""
        self._finished[self.rows[finished]] = True
        done = bool(self._finished.all())
        began = np.zeros(self._envs.num_envs, np.bool_)
        began[self.rows[over]] = True
        if self._mode == AutoresetMode.NEXT_STEP:
            # Rows that were over before this step were reset by it; those of now wait for the next.
            began = ~self._over
            began[self.rows] = False
            while not done and not (~self._finished & ~self._over).any():
                began = self._over
                self._step(self._actions)
            playing = ~self._finished & ~self._over
        else:
            if self._mode == AutoresetMode.DISABLED and self._over.any() and not done:
                self._batch, _ = self._envs.reset(options={"reset_mask": self._over.copy()})
            playing = ~self._finished
        self.rows = playing.nonzero()[0]
        self.first = began[self.rows]
        whole = len(self.rows) == self._envs.num_envs
        space = self._envs.single_observation_space
        self.observations = self._batch if whole else nested.take(space, self._batch, self.rows)


class FreeStepping:
    """For cartwheel's vector environments that send rows, with or without its wrappers.

    A batch has the rows that are done, in the order in which they are. Those whose episode
    continues, or begins, are the next ``rows``. Where the mode leaves a reset to a later step or to
    the caller, it is sent at once; the row comes back in a batch of its own, or among rows that
    were stepped.
    """

    def __init__(self, envs: Any, seed: Any, options: Any) -> None:
        """Resets all; ``envs`` have ``autoreset_mode``, ``send``, ``recv`` and ``send_reset``."""
        self._envs = envs
        self.observations, _ = envs.reset(seed=seed, options=options)
        self.rows = np.arange(envs.num_envs)
        self.first = np.ones(envs.num_envs, np.bool_)
        #: Whether a reset of the row is in flight.
        self._resetting = np.zeros(envs.num_envs, np.bool_)
        #: Of the last batch: which rows were reset.
        self._begun = self._resetting
        #: The rows that were stepped, and their places in the batch.
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
                self._envs.send_reset(options={"env_index": again})
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
        try:
            with contextlib.suppress(Exception):
                drop_in_flight(envs)
        finally:  # also after Ctrl-C, which gives up what is in flight
            with contextlib.suppress(Exception):  # closed or broken
                pool.recv_order = own


class Step(NamedTuple):
    """The results of rows that were stepped, in their order."""

    rows: NDArray[np.intp]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, Any]
    #: Where each row is in the arrays of ``infos``, ascending.
    places: NDArray[np.intp]
