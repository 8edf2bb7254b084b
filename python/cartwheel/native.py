"""Vector environments over environments written in Rust."""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel import _cartwheel
from cartwheel.arguments import (
    as_autoreset_mode,
    as_batch_size,
    as_num_workers,
    as_timeout,
    check_choice,
    check_max_slabs,
)
from cartwheel.faults import Fault, raise_first
from cartwheel.infos import add_info
from cartwheel.pool_env import PoolVectorEnv
from cartwheel.room import plan_room, spins
from cartwheel.spaces import describe

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: The namespace of native environments in Gymnasium's registry.
NAMESPACE = "cartwheel/"
_EXECUTORS = ("auto", "inline", "thread")


class NativeVectorEnv(PoolVectorEnv[Any, Any]):
    """Steps many copies of an environment written in Rust, on threads, without the GIL.

    Results are those of Gymnasium's environment of the same name, bit for bit: row ``i`` of a batch
    that is reset with ``seed=s`` is the single environment with seed ``s + i``. They do not depend
    on ``num_workers``.

    Actions are checked before anything is stepped: their number, shape and dtype (safe casts only),
    discrete actions for their range, and floats for NaN. Arrays are as for
    :class:`~cartwheel.VectorEnv`.

    Args:
        env_id: A native environment, with or without the namespace ``cartwheel/``; ``python -m
            cartwheel envs`` lists them.
        num_envs: Number of environments.
        autoreset_mode: When a finished environment restarts, as for :class:`~cartwheel.VectorEnv`.
        max_episode_steps: Steps after which an episode is truncated; by default that of Gymnasium's
            registry, ``None`` for no limit.
        executor: ``"thread"`` or ``"auto"``: threads and the calling thread share the rows; a batch
            that is too small to repay waking a thread is stepped by the caller alone.
            ``"inline"``: every batch is.
        num_workers: Threads, the calling one included; by default one per usable processor, or
            fewer for few rows of an environment that steps many of them at once.
        batch_size: As for :class:`~cartwheel.VectorEnv`.
        on_done: As for :class:`~cartwheel.VectorEnv`.
        timeout: As for :class:`~cartwheel.VectorEnv`.
        max_slabs: As for :class:`~cartwheel.VectorEnv`.
        thread_affinity_offset: Pin the threads (not the calling one) to consecutive processors from
            this one on; by default they run wherever the system puts them.
        **options: Keywords of the environment, those of Gymnasium's.

    Raises:
        ValueError: There is no such environment or option, or a value makes no sense.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 1024)
        >>> observations, infos = envs.reset(seed=7)
        >>> observations.shape
        (1024, 4)
        >>> envs.close()
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | str | None = "default",
        executor: str = "auto",
        num_workers: int | None = None,
        batch_size: int | None = None,
        on_done: str = "raise",
        timeout: float | None = None,
        max_slabs: int | None = None,
        thread_affinity_offset: int | None = None,
        **options: Any,
    ) -> None:
        """Makes the environments and starts the threads."""
        self.autoreset_mode = as_autoreset_mode(autoreset_mode)
        check_choice("on_done", on_done, ("raise", "freeze"))
        check_choice("executor", executor, _EXECUTORS)
        check_max_slabs(max_slabs)
        timeout = as_timeout(timeout)
        if not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise ValueError(f"`num_envs` must be a positive integer, got {num_envs!r}.")
        self.num_envs = int(num_envs)
        self.batch_size = as_batch_size(batch_size, self.num_envs)
        self.executor = "inline" if executor == "inline" else "thread"
        self.on_done = on_done
        self.env_id = env_id.removeprefix(NAMESPACE)
        block = _cartwheel.block_rows(self.env_id)
        most = self.num_envs if num_workers is not None else max(1, self.num_envs // block)
        threads = as_num_workers(num_workers, None, most)
        self.num_workers = 1 if executor == "inline" else threads
        limits = {name: limit for name, limit, _, _ in _cartwheel.native_envs()}
        limit = limits.get(self.env_id) if max_episode_steps == "default" else max_episode_steps
        if limit is not None:
            if not isinstance(limit, int | np.integer) or not 0 < limit < 2**32:
                raise ValueError(
                    f"`max_episode_steps` must be a positive integer below 2**32, got {limit!r}."
                )
            limit = int(limit)
        offset = thread_affinity_offset
        if offset is not None and (not isinstance(offset, int) or offset < 0):
            raise ValueError(f"`thread_affinity_offset` must not be negative, got {offset!r}.")

        shards = _cartwheel.fine_shards(self.num_envs, self.num_workers, block)
        envs = _cartwheel.NativeEnvs(
            self.env_id,
            _as_json(options),
            shards,
            autoreset_mode=self.autoreset_mode.value,
            freeze=on_done == "freeze",
            max_episode_steps=limit,
        )
        observation, action = envs.spaces()
        self.single_observation_space = _space(observation)
        self.single_action_space = _space(action)
        self.observation_space = batch_space(self.single_observation_space, self.batch_size)
        self.action_space = batch_space(self.single_action_space, self.batch_size)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.render_mode = None

        observations = describe(self.single_observation_space)
        actions = describe(self.single_action_space)
        memory = _cartwheel.Memory(
            observations,
            actions,
            shards,
            **plan_room(observations, shards, self.batch_size, max_slabs),
        )
        self._link = NativeLink(self, envs, shards, timeout)
        self._pool = _cartwheel.Pool(
            memory,
            observations,
            actions,
            shard=envs,
            pids=[],
            objects=[None] * len(shards),
            link=self._link,
            class_name=type(self).__name__,
            timeout=timeout,
            columnar=type(self)._add_info is gym.vector.VectorEnv._add_info,
            spin=spins(),
            inline=False,
            num_threads=self.num_workers,
            affinity_offset=thread_affinity_offset,
        )
        self._opened(_shut_down)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads a parameter of every environment, such as ``gravity``.

        Raises:
            AttributeError: The environment has no such parameter.
        """
        return self._ask("get_attr", name, None)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets a parameter of every environment, or of none when a value is refused.

        A parameter takes effect at once, also where Gymnasium only reads it in the constructor
        (``is_slippery`` and ``desc`` of the toy environments).

        Args:
            name: The parameter.
            values: A list or tuple with one value a row; anything else is set everywhere.

        Raises:
            AttributeError: The environment has no such parameter.
            ValueError: A list or tuple of the wrong length, or a value that does not fit.
        """
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        before = self._ask("set_attr", name, None)
        try:
            self._ask("set_attr", name, list(values))
        except (TypeError, ValueError):
            self._ask("set_attr", name, list(before))  # all rows or none
            raise

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Reads a parameter: native environments have no methods to call.

        Raises:
            AttributeError: The environment has no such parameter.
            TypeError: There are arguments.
        """
        if args or kwargs:
            raise TypeError(
                f"`{name}` is a parameter of a native environment and takes no arguments"
            )
        return self._ask("call_async", name, None)

    def _ask(self, calling: str, name: str, values: list[Any] | None) -> tuple[Any, ...]:
        self._pool.check(calling, idle=True)
        names = self._link.envs.parameters()
        if name not in names:
            raise AttributeError(
                f"{self.env_id} has no parameter {name!r}; it has {', '.join(names) or 'none'}"
            )
        self._pool.call_async(self._link.pack_request(name, values), calling)
        return self._pool.call_wait(self._link.timeout)


class NativeLink:
    """What the pool asks of Python when its environments are native."""

    def __init__(
        self,
        owner: NativeVectorEnv,
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

    def pack_reset(
        self,
        seeds: list[int | None],
        mask: NDArray[np.bool_] | None,
        options: dict[str, Any] | None,
    ) -> list[Any]:
        """Makes the messages for a reset."""
        chosen = _as_json(options) if options else None
        if chosen is not None:
            self.envs.check_reset_options(chosen)
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

    def post(self, messages: list[Any]) -> None:
        """Leaves one message with each shard."""
        for shard, (kind, *parts) in enumerate(messages):
            (self.envs.post_reset if kind == "reset" else self.envs.post_request)(shard, *parts)

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> list[tuple[int, Any]]:
        """Makes the messages for resets of rows that are sent: shards, rows, seeds, options."""
        chosen = _as_json(options) if options else None
        if chosen is not None:
            self.envs.check_reset_options(chosen)
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

    def receive_faults(self, shard: int) -> None:
        """Takes the faults of one shard and keeps them for :meth:`raise_faults`."""
        faults = self.envs.take_faults(shard)
        self._faults.extend(Fault.of(row, error, travels=False) for row, error in faults)

    def raise_faults(self) -> None:
        """Raises the fault of the lowest row."""
        faults, self._faults = self._faults, []
        raise_first(faults)

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


def _shut_down(pool: _cartwheel.Pool, grace: float) -> None:
    pool.close(grace)


def _as_json(options: dict[str, Any]) -> str:
    """Options as a JSON object.

    Raises:
        ValueError: A value has no form there.
    """
    parts = [
        f"{json.dumps(name)}: {_value_as_json(name, value)}" for name, value in options.items()
    ]
    return f"{{{', '.join(parts)}}}"


def _value_as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, default=lambda array: array.tolist(), allow_nan=False)
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"option {name} cannot be handed to a native environment: {value!r}"
        ) from error


def _space(description: Any) -> Space[Any]:
    """Gymnasium's space for what ``NativeEnvs.spaces`` gives."""
    kind, *parts = description
    if kind == "Box":
        dtype, shape, low, high = parts
        low, high = (
            np.full(shape, bound, dtype)
            if isinstance(bound, float)
            else np.asarray(bound, dtype).reshape(shape)
            for bound in (low, high)
        )
        return Box(low, high, tuple(shape), np.dtype(dtype).type)
    if kind == "Discrete":
        number, start = parts
        return Discrete(number, start=start)
    if kind == "MultiDiscrete":
        return MultiDiscrete(parts[0])
    if kind == "MultiBinary":
        return MultiBinary(parts[0])
    if kind == "Tuple":
        return Tuple([_space(part) for part in parts[0]])
    return Dict({key: _space(part) for key, part in parts[0]})
