"""The methods that the native pool calls to communicate with native environments."""

from __future__ import annotations

import bisect
import weakref
from typing import TYPE_CHECKING, Any

from cartwheel._internal.logging import log_waiting
from cartwheel._internal.reset_arguments import by_row
from cartwheel.errors import WorkerTimeoutError, noted
from cartwheel.native.keywords import reset_as_json
from cartwheel.workers.faults import Fault, add_info, raise_first
from cartwheel.workers.serving.row_state import WHY_NOT_SAVED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from cartwheel._cartwheel import NativeEnvs, Pool, RolloutSlab
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.vector.base import PoolVectorEnv

#: The seed of a row's random number stream (``-1``: unknown), and the ``state`` of its PCG64.
Stream = tuple[int, Any]


class NativeCallbacks:
    """The Python methods that the pool calls when its environments are native.

    Attributes:
        envs: The environments.
        timeout: Seconds that a synchronous call may take; ``None`` for no limit.
        draw_kept: Draws terminal states from the values that rows kept.
    """

    draw_kept: Callable[[list[int], list[Any]], list[Any]]

    def __init__(
        self,
        owner: PoolVectorEnv[Any, Any],
        env_id: str,
        envs: NativeEnvs,
        shards: list[tuple[int, int]],
        timeout: float | None,
    ) -> None:
        """Keeps a weak reference to ``owner``."""
        self._owner = weakref.ref(owner)
        self._env_id = env_id
        self._shown_id = owner._shown_id
        self._shards = shards
        self._lasts = [last for _, last in shards]
        self.envs = envs
        self.timeout = timeout

    def pack_reset(
        self, seeds: list[int | None], mask: NDArray[np.bool_] | None, options: ResetOptions
    ) -> list[Any]:
        """Makes the message for a reset, one for all shards."""
        texts = self._texts(options)
        rows = None if mask is None else mask.tobytes()
        return [("reset", rows, None if seeds.count(None) == len(seeds) else seeds, texts)]

    def _texts(self, options: ResetOptions) -> str | list[str | None] | None:
        """Returns options as JSON, for all rows or for each, or raises if they are refused."""
        if not isinstance(options, list | tuple):
            return self._text(options)
        texts: dict[int, str | None] = {}  # rows may share a dictionary
        for at, own in enumerate(options):
            if id(own) not in texts:
                with noted(f"in `options[{at}]`"):
                    texts[id(own)] = self._text(own)
        return [texts[id(own)] for own in options]

    def _text(self, options: Mapping[str, Any] | None) -> str | None:
        if not options:
            return None
        text = reset_as_json(self._env_id, options, self._shown_id)
        self.envs.check_reset_options(text)
        return text

    def pack_request(
        self, name: str, rows: Sequence[int] | None, values: Sequence[Any] | None = None
    ) -> list[Any]:
        """Makes the messages to read a parameter of rows, or to set it to one value for each.

        Args:
            name: The parameter.
            rows: The rows, in any order; ``None`` for all rows.
            values: The values; ``None`` to read.
        """
        if rows is None:
            return [
                ("request", name, list(range(*shard)), values and values[slice(*shard)])
                for shard in self._shards
            ]
        given = dict(zip(rows, values, strict=True)) if values is not None else None
        return [
            ("request", name, own, given and [given[row] for row in own])
            for own in self._by_shard(rows)
        ]

    def pack_streams(self, streams: list[Stream] | None) -> list[Any]:
        """Makes the messages to read or to set the random number streams."""
        return [
            ("streams", None if streams is None else streams[first:last])
            for first, last in self._shards
        ]

    def pack_render(self, rows: Sequence[int], mode: int) -> list[Any]:
        """Makes the messages to draw rows, in the render mode of this number."""
        return [("render", own, mode) for own in self._by_shard(rows)]

    def pack_keep(self, rows: Sequence[int], mode: int | None) -> list[Any]:
        """Makes the messages to keep terminal states of these rows from now on.

        Args:
            rows: The rows; no others are kept any more.
            mode: The number of the render mode of frames; ``None`` for parameters.
        """
        return [("keep", own, mode) for own in self._by_shard(rows)]

    def _by_shard(self, rows: Sequence[int]) -> list[list[int]]:
        by_shard: list[list[int]] = [[] for _ in self._shards]
        for row in rows:
            by_shard[self.shard_of(row)].append(row)
        return by_shard

    def external_rewards(self, before: bytes, actions: Any, after: Any, stepped: bytes) -> Any:
        """Asks the vector environment for rewards and flags; the native pool calls it.

        The pool knows it by this method alone, since what a pool refers to is never collected as a
        part of a circle; and functions of users refer to anything.
        """
        owner: Any = self._owner()
        return owner._external_rewards(before, actions, after, stepped)

    def before_step(self) -> None:
        """Tells the vector environment that a step begins; the native pool calls it."""
        owner: Any = self._owner()
        owner._before_step()

    def external_resets(self, rows: list[int], numbers: list[int], streams: Any) -> Any:
        """Asks the vector environment for the first states of rows; the native pool calls it.

        The pool knows it by this method alone, as :meth:`external_rewards`.
        """
        owner: Any = self._owner()
        return owner._external_resets(rows, numbers, streams)

    def draw_terminal(self, rows: list[int], kept: list[Any]) -> list[Any]:
        """Returns frames of the terminal states that rows kept; the native pool calls it."""
        return self.draw_kept(rows, kept)

    def shard_of(self, row: int) -> int:
        """Returns the number of the shard that has a row."""
        return bisect.bisect_right(self._lasts, row)

    def check_state(self, state: bytes) -> None:
        """Raises unless this is the state of a row of such an environment."""
        self.envs.check_state(state)

    def next_reset_rows(self, _: Pool, __: str) -> list[int]:
        """Returns the rows whose next automatic reset has details that were not used yet."""
        return self.envs.next_reset_rows()

    def pack_sample(self, seeds: list[int | None]) -> list[Any]:
        """Makes the messages that reset rows for states to cache; ``None`` for other rows."""
        rows = [
            [row for row in range(first, last) if seeds[row] is not None]
            for first, last in self._shards
        ]
        return [("sample", own, [seeds[row] for row in own]) for own in rows]

    def sampled(self, answers: tuple[bytes, ...]) -> list[bytes]:
        """Returns the states from the answers, in the order of the rows."""
        return list(answers)

    def pack_cache(self, states: list[bytes], key: int, draws: list[tuple[int, int]]) -> list[Any]:
        """Makes the messages after which every reset loads a state.

        Raises:
            ValueError: A state was changed, or is of another environment or of other keywords.
        """
        self.envs.set_cache(states, key)
        return [("cache", draws[first:last]) for first, last in self._shards]

    def pack_draws(self) -> list[Any]:
        """Makes the messages that ask for the draws of every row."""
        return [("draws",)] * len(self._shards)

    def pack_save(self, rows: list[int]) -> list[Any]:
        """Makes the messages that ask for the states of rows."""
        return [("save", own) for own in self._by_shard(rows)]

    def first_unsaved(self, states: list[bytes]) -> tuple[int, str] | None:
        """Returns the place of the first state that cannot be loaded, and why."""
        place = self.envs.first_failed(states)
        return None if place is None else (place, WHY_NOT_SAVED[1])

    def pack_row_states(self, rows: list[int], states: list[bytes]) -> list[tuple[int, Any]]:
        """Makes the messages for rows that continue from states: shards, rows, states."""
        return [
            (shard, ("state", row, state))
            for shard, (first, last) in enumerate(self._shards)
            for row, state in zip(rows, states, strict=True)
            if first <= row < last
        ]

    def timed_out(self, call: str, seconds: float, rows: list[int]) -> WorkerTimeoutError:
        """Returns the exception for rows that have not answered in time."""
        return WorkerTimeoutError.from_call(call, seconds, rows, [])

    def still_waiting(self, call: str, seconds: float, outstanding: list[tuple[int, int]]) -> None:
        """Warns that ``call`` has waited for ``seconds``; ``outstanding`` are ranges of rows."""
        log_waiting(call, seconds, outstanding, self._shards)

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: ResetOptions
    ) -> list[tuple[int, Any]]:
        """Makes the messages for resets that ``send`` starts: shards, rows, seeds, options."""
        texts = by_row(self._texts(options), len(rows))
        return [
            (shard, ("reset", row, seed, own))
            for shard, (first, last) in enumerate(self._shards)
            for row, seed, own in zip(rows, seeds, texts, strict=True)
            if first <= row < last
        ]

    def keep_next_resets(
        self, _: Pool, rows: list[int], seeds: list[int | None], options: ResetOptions
    ) -> None:
        """Posts seeds and options of the next automatic resets of rows."""
        texts = by_row(self._texts(options), len(rows))
        for row, seed, own in zip(rows, seeds, texts, strict=True):
            self.envs.post_next_reset(self.shard_of(row), row, seed, own)

    def attach_rollout(self, pool: Pool, slab: RolloutSlab) -> None:
        """Does nothing: threads share the memory."""

    def raise_faults(
        self,
        announced: list[tuple[int, int | None, int]],
        received: list[int] | None,
        _seconds: object,
    ) -> None:
        """Takes the faults of shards or of single rows, and raises the fault of the lowest row."""
        faults = []
        for shard, row, _ in announced:
            faults += self.envs.take_faults(shard) if row is None else self._fault(shard, row)
        raise_first(
            [Fault.from_exception(row, error, is_remote=False) for row, error in faults], received
        )

    def _fault(self, shard: int, row: int) -> list[tuple[int, BaseException]]:
        fault = self.envs.take_fault(shard, row)
        return [] if fault is None else [fault]

    def receive_rest(self, announced: tuple[int, int, int], _seconds: object) -> bytes:
        """Takes the infos of a shard that did not fit into its region, from a row on."""
        shard, row, _ = announced
        return self.envs.take_rest(shard, row)

    def receive_answers(
        self, _: object, __: object, rows: list[int] | None, _seconds: object
    ) -> tuple[Any, ...]:
        """Takes the answers of every shard.

        Args:
            _: Not used.
            __: Not used.
            rows: The rows that were asked, in the order of the result; ``None`` for the order of
                the shards.
            _seconds: Not used.
        """
        taken = [self.envs.take_answer(shard) for shard in range(len(self._shards))]
        answers = [value for answer in taken if answer is not None for value in answer]
        if rows is None:
            return tuple(answers)
        asked = [row for own in self._by_shard(rows) for row in own]
        by_row = dict(zip(asked, answers, strict=True))
        return tuple(by_row[row] for row in rows)

    def discard(
        self,
        faults: list[tuple[int, int | None, int]],
        rests: list[tuple[int, int, int]],
        _seconds: object,
    ) -> None:
        """Takes and drops the faults and infos that shards announced."""
        for shard, row, _ in faults:
            self.envs.take_faults(shard) if row is None else self._fault(shard, row)
        for shard, row, _ in rests:
            self.envs.take_rest(shard, row)

    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int
    ) -> dict[str, Any]:
        """Adds one info to a batch of ``rows`` by the owner's ``_add_info``."""
        return add_info(self._owner(), infos, info, place, rows)
