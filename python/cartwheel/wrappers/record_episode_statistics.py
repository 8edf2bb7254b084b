"""Returns, lengths and durations of episodes."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import TimedEpisodes
from cartwheel.arguments import as_integer
from cartwheel.wrapping.state import KeepsState
from cartwheel.wrapping.stats_key import check_stats_key, refuse_taken
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrapping.batch import Batch


class RecordEpisodeStatistics(KeepsState, VectorWrapper):
    """Reports the return, the length and the duration of each episode, in the step that ends it.

    Infos of a step that ends complete episodes get ``"episode"``, a dictionary of arrays with one
    entry for each row of the batch (zeros where no episode ended), and the mask ``"_episode"``:

    * ``"r"``: the sum of the rewards, ``float64``;
    * ``"l"``: the number of steps, ``int64``;
    * ``"t"``: seconds since the episode began, ``float64``, rounded to microseconds.

    Names and dtypes are Gymnasium's. They are at the same place in every autoreset mode: also in
    ``SAME_STEP`` not in ``final_info``. Only transitions count: neither the steps of ``NEXT_STEP``
    that reset a row, nor those of frozen rows.

    An episode is dropped if a failure cut it short (``on_error="restart"``, a worker that was
    restarted), or if one of its steps was lost because a call raised. It is not reported, is in no
    queue, and is counted in ``failed_count`` when it ends, and nowhere else.

    ``return_queue``, ``length_queue`` and ``time_queue`` have the last ``buffer_length`` complete
    episodes. They are brought up to date when they are read from the wrapper.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import RecordEpisodeStatistics
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=3)
        >>> envs = RecordEpisodeStatistics(envs)
        >>> _ = envs.reset(seed=1)
        >>> for _ in range(3):
        ...     infos = envs.step([0, 1])[4]
        >>> infos["episode"]["r"], infos["_episode"]
        (array([3., 3.]), array([ True,  True]))
        >>> list(envs.length_queue)
        [3, 3]
        >>> envs.close()

    Attributes:
        episode_count: The number of complete episodes.
        failed_count: The number of episodes that were dropped.

    Args:
        envs: A vector environment.
        buffer_length: How many episodes the queues keep.
        stats_key: The key in the infos.

    Raises:
        TypeError: ``stats_key`` is no string, or the infos are no dictionary, as behind
            ``DictInfoToList``.
        ValueError: ``buffer_length`` is below 1; the key is used by a wrapper inside; or, in a step
            or reset, infos have the key already.
    """

    _changes_steps = False
    _any_length = ("return_queue", "length_queue", "time_queue")

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        buffer_length: int = 100,
        stats_key: str = "episode",
    ) -> None:
        """Checks the arguments; steps nothing."""
        buffer_length = as_integer("buffer_length", buffer_length, 1, most=1 << 32)
        check_stats_key(envs, stats_key)
        super().__init__(envs)
        self._stats_key, self._mask_key = stats_key, f"_{stats_key}"
        is_same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._episodes = TimedEpisodes(self.num_envs, is_same_step, buffer_length)
        self._queues: tuple[deque[float], deque[int], deque[float]] = (
            deque(maxlen=buffer_length),
            deque(maxlen=buffer_length),
            deque(maxlen=buffer_length),
        )
        self.episode_count = 0
        self.failed_count = 0
        self._is_frozen = False

    @property
    def return_queue(self) -> deque[float]:
        """The returns of the last ``buffer_length`` complete episodes."""
        return self._filled_queues()[0]

    @property
    def length_queue(self) -> deque[int]:
        """The lengths of the last ``buffer_length`` complete episodes."""
        return self._filled_queues()[1]

    @property
    def time_queue(self) -> deque[float]:
        """The durations of the last ``buffer_length`` complete episodes, seconds."""
        return self._filled_queues()[2]

    def _filled_queues(self) -> tuple[deque[float], deque[int], deque[float]]:
        # Not in every step: hundreds of episodes may end in one, and most are never looked at.
        queues: tuple[deque[Any], ...] = self._queues
        for queue, values in zip(queues, self._episodes.take_recent(), strict=True):
            if not self._is_frozen:
                queue.extend(values)
        return self._queues

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        self._filled_queues()
        before, self._is_frozen = self._is_frozen, True
        try:
            yield
        finally:
            self._filled_queues()  # forgets the episodes of the evaluation
            self._is_frozen = before

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """The sum of rewards of each environment's present episode so far, ``[num_envs]``."""
        returns: NDArray[np.float64] = self._episodes.running()[0]
        return returns

    @property
    def episode_lengths(self) -> NDArray[np.int64]:
        """The number of steps of each environment's present episode so far, ``[num_envs]``."""
        lengths: NDArray[np.int64] = self._episodes.running()[1]
        return lengths

    def _transform(self, batch: Batch) -> None:
        if batch.infos:
            refuse_taken(batch.infos, self._stats_key, self._mask_key)
        if batch.rewards is None:
            self._episodes.begin(batch.rows, batch.kinds)
            return
        complete, dropped, report = self._episodes.step(
            (batch.rows, batch.kinds, batch.rewards, batch.terminations, batch.truncations)
        )
        if dropped and not self._is_frozen:
            self.failed_count += dropped
        if report is not None:
            values, mask = report
            batch.infos = {**batch.infos, self._stats_key: values, self._mask_key: mask}
            if not self._is_frozen:
                self.episode_count += complete

    def get_wrapper_state(self) -> dict[str, Any]:
        """The state: of each environment's present episode, the queues as arrays, the counts.

        The first are ``"returns"``, ``"lengths"``, ``"seconds"`` and ``"stale"`` (whether they are
        those of an episode before the present one). A wrapper that goes on with it keeps the last
        ``buffer_length`` entries of the queues.
        """
        return {
            **self._episodes.state(),
            "return_queue": np.array(self.return_queue, np.float64),
            "length_queue": np.array(self.length_queue, np.int64),
            "time_queue": np.array(self.time_queue, np.float64),
            "episode_count": self.episode_count,
            "failed_count": self.failed_count,
        }

    def _go_on(self, state: dict[str, Any]) -> None:
        self._episodes.set_state(state)
        queues: tuple[deque[Any], ...] = self._filled_queues()
        for name, queue in zip(self._any_length, queues, strict=True):
            queue.clear()
            queue.extend(state[name].tolist())
        self.episode_count, self.failed_count = state["episode_count"], state["failed_count"]
