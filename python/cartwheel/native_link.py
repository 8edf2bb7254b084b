"""The caller's side of native environments' mailboxes, as the native pool uses it."""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.faults import Fault, raise_first
from cartwheel.infos import add_info
from cartwheel.log import log_waiting

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel import _cartwheel

#: The seed of a row's random stream, ``-1`` when nobody knows it, and the ``state`` of its PCG64.
Stream = tuple[int, Any]


class NativeLink:
    """What the pool asks of Python when its environments are native.

    Attributes:
        envs: The environments.
        timeout: Seconds that a synchronous call may take, or ``None``.
        begun: Which rows have ever been reset, ``bool`` of shape ``(num_envs,)``.
    """

    def __init__(
        self,
        owner: VectorEnv[Any, Any, Any],
        envs: _cartwheel.NativeEnvs,
        shards: list[tuple[int, int]],
        timeout: float | None,
    ) -> None:
        """Links ``owner``, which is not kept alive by it, to its environments."""
        self._owner = weakref.ref(owner)
        self._shards = shards
        self._faults: list[Fault] = []
        self.envs = envs
        self.timeout = timeout
        self.begun = np.zeros(shards[-1][1], np.bool_)

    def pack_reset(
        self,
        seeds: list[int | None],
        mask: NDArray[np.bool_] | None,
        options: dict[str, Any] | None,
    ) -> list[Any]:
        """Makes the messages for a reset."""
        chosen = reset_as_json(options) if options else None
        if chosen is not None:
            self.envs.check_reset_options(chosen)
        self.begun |= True if mask is None else mask
        rows = [True] * len(seeds) if mask is None else mask.tolist()
        return [
            ("reset", rows[first:last], seeds[first:last], chosen) for first, last in self._shards
        ]

    def pack_request(self, name: str, values: list[Any] | None) -> list[Any]:
        """Makes the messages to read a parameter, or to set it."""
        return [
            ("request", name, None if values is None else values[first:last])
            for first, last in self._shards
        ]

    def pack_streams(self, streams: list[Stream] | None) -> list[Any]:
        """Makes the messages to read the random streams, or to set them."""
        return [
            ("streams", None if streams is None else streams[first:last])
            for first, last in self._shards
        ]

    def still_waiting(self, call: str, seconds: float, owed: list[tuple[int, int]]) -> None:
        """Warns that ``call`` has waited for ``seconds``; ``owed`` are the rows it waits for."""
        log_waiting(call, seconds, owed, self._shards)

    def post(self, messages: list[Any]) -> None:
        """Leaves one message with each shard."""
        envs = self.envs
        posts: dict[str, Any] = {
            "reset": envs.post_reset,
            "request": envs.post_request,
            "streams": envs.post_streams,
        }
        for shard, (kind, *parts) in enumerate(messages):
            posts[kind](shard, *parts)

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> list[tuple[int, Any]]:
        """Makes the messages for resets of rows that are sent: shards, rows, seeds, options."""
        chosen = reset_as_json(options) if options else None
        if chosen is not None:
            self.envs.check_reset_options(chosen)
        self.begun[rows] = True
        return [
            (shard, (row, seed, chosen))
            for shard, (first, last) in enumerate(self._shards)
            for row, seed in zip(rows, seeds, strict=True)
            if first <= row < last
        ]

    def post_some(self, messages: list[tuple[int, Any]]) -> None:
        """Leaves resets of rows that are sent with their shards."""
        for shard, (row, seed, options) in messages:
            self.envs.post_row_reset(shard, row, seed, options)

    def attach_rollout(self, pool: _cartwheel.Pool, slab: _cartwheel.RolloutSlab) -> None:
        """Needs nothing: threads share the memory."""

    def receive_faults(self, shard: int) -> None:
        """Takes the faults of one shard and keeps them for :meth:`raise_faults`."""
        faults = self.envs.take_faults(shard)
        self._faults.extend(Fault.of(row, error, travels=False) for row, error in faults)

    def raise_faults(self, received: list[int] | None = None) -> None:
        """Raises the fault of the lowest row, which came with the rows ``received``, if any."""
        faults, self._faults = self._faults, []
        raise_first(faults, received)

    def receive_fault(self, shard: int, row: int) -> None:
        """Takes the fault of one row that was sent and keeps it for :meth:`raise_faults`."""
        fault = self.envs.take_fault(shard, row)
        if fault is not None:
            self._faults.append(Fault.of(*fault, travels=False))

    def receive_rest(self, shard: int, row: int) -> bytes:
        """Takes infos that did not fit into their region and begin with row ``row``."""
        return self.envs.take_rest(shard, row)

    def receive_answers(self) -> tuple[Any, ...]:
        """Takes the answers of every shard, one a row."""
        answers = [self.envs.take_answer(shard) for shard in range(len(self._shards))]
        return tuple(value for answer in answers if answer is not None for value in answer)

    def discard(self, shard: int, failed: bool, spilled: bool, row: int) -> None:  # noqa: FBT001
        """Drops what a shard announced."""
        if failed:
            self.envs.take_faults(shard)
        if spilled:
            self.envs.take_rest(shard, row)

    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int
    ) -> dict[str, Any]:
        """Adds one info to a batch of ``rows`` by ``VectorEnv._add_info``, or a subclass's own."""
        return add_info(self._owner(), infos, info, place, rows)


def as_json(options: dict[str, Any]) -> str:
    """Keywords of an environment as a JSON object.

    Raises:
        ValueError: A value has no form there.
    """
    return _object({name: _value_as_json(name, value) for name, value in options.items()})


def reset_as_json(options: dict[str, Any]) -> str:
    """Options of a reset as a JSON object.

    An environment ignores options that it does not have, so they may be anything; what has no form
    there becomes a text, which is refused where a number is wanted.
    """
    return _object({str(name): _any_as_json(name, value) for name, value in options.items()})


def _object(parts: dict[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name)}: {part}' for name, part in parts.items())}}}"


def _any_as_json(name: str, value: Any) -> str:
    try:
        return _value_as_json(name, value)
    except ValueError:
        return json.dumps(repr(value))


def _value_as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"option {name} cannot be handed to a native environment: {value!r}"
        ) from error


def _plain(value: Any) -> Any:
    """An array or NumPy scalar as Python's own; letters that NumPy keeps as bytes as text."""
    return value.decode() if isinstance(value, bytes) else value.tolist()
