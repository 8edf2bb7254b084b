"""The attributes of native environments: parameters, random numbers and fields of MuJoCo's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cartwheel._internal.arguments import as_values
from cartwheel._internal.suggestions import suggest
from cartwheel.native.keywords import refused_values
from cartwheel.native.mujoco.env import HIDDEN
from cartwheel.native.mujoco.row_models import split_changes, with_changes
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.pool_owner import ActType, ObsType
from cartwheel.vector.state_dict import check_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.native.callbacks import Stream
    from cartwheel.native.mujoco.env import MujocoBackend


class NativeAttributes(PoolVectorEnv[ObsType, ActType]):
    """The part of a native vector environment that reads and sets attributes of its rows."""

    #: The MuJoCo part; ``None`` for environments that Rust computes itself.
    _mujoco: MujocoBackend | None

    @property
    def parameters(self) -> list[str]:
        """The names of the environment's parameters, for :meth:`get_attr` and :meth:`set_attr`."""
        names = self._callbacks.envs.parameters()
        return [name for name in names if self._mujoco is None or name not in HIDDEN]

    # Gymnasium has attributes of these names, which mypy does not let a property replace.
    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Copies of the rows' random number generators, which draw the same next numbers."""
        return tuple(as_generator(stream) for stream in self._streams("np_random"))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the rows' random numbers, also of rows that the caller did not seed."""
        return tuple(seed for seed, _ in self._streams("np_random_seed"))

    def get_attr(self, name: str, *, env_index: Any = None) -> tuple[Any, ...]:
        """Reads a parameter of environments, such as ``gravity``, or a name of :meth:`call`.

        Values equal Gymnasium's attributes, and arrays have the same dtypes. Integers are always
        Python integers; in Gymnasium they are NumPy integers after some calls. MuJoCo's
        environments also have ``model`` and ``data``, MuJoCo's own objects, and their fields:
        ``"data.qpos"``, copied.

        Args:
            name: The parameter.
            env_index: Row numbers, in any order: only these environments are read. By default all
                rows.

        Returns:
            One value for each of these rows, in this order.

        Raises:
            AttributeError: The environment has no such parameter.
            ValueError: ``env_index`` is empty, or a row does not exist or is named twice.
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
        """
        self._pool.check("get_attr", idle=True)
        return self._read("get_attr", name, env_index)

    def set_attr(self, name: str, values: Any, *, env_index: Any = None) -> None:
        """Sets a parameter of environments; if a value is refused, no parameter changes.

        A parameter takes effect at once, even if Gymnasium reads it only in the constructor
        (``is_slippery`` and ``desc`` of the toy environments). Of MuJoCo's environments, fields can
        be set: ``"data.qpos"``, and with ``model_per_row=True`` ``"model.body_mass"``.

        Args:
            name: The parameter.
            values: A list or tuple with one value for each of the rows; any other value is set on
                each of these environments. If the parameter is an array, its value may be a list of
                numbers.
            env_index: Row numbers, in any order: only these environments change. By default all
                rows.

        Raises:
            AttributeError: The environment has no such parameter.
            ValueError: The list or tuple has the wrong length, or a value is invalid; or as for
                :meth:`get_attr`.
            TypeError: As for :meth:`get_attr`.
        """
        self._pool.check("set_attr", idle=True)
        rows = self._named(env_index)
        by_row = as_values(name, values, self.num_envs, rows)
        if self._mujoco is not None and self._mujoco.sets(name):
            numbers = self._ask("set_attr", "simulation", rows)
            also = self._mujoco.write(name, numbers, by_row)
            for parameter, own in also.items():
                self._ask("set_attr", parameter, rows, own)
            return
        before = self._ask("set_attr", name, rows)
        refused = self._ask("set_attr", name, rows, by_row)
        one_value = len(by_row) == 1 or not isinstance(values, list | tuple)
        if refused:
            self._ask("set_attr", name, rows, before)  # all rows or none
            raise refused_values(name, refused, one_value=one_value)

    def call(self, name: str, *args: Any, env_index: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Reads a parameter, :attr:`np_random` or its seed, or calls the method ``render``.

        Args:
            name: The parameter, attribute or method.
            *args: None of them takes arguments.
            env_index: As for :meth:`get_attr`.
            **kwargs: None of them takes arguments.

        Returns:
            One result for each of these rows, in this order.

        Raises:
            AttributeError: The environment has no such parameter.
            TypeError: There are arguments, which a parameter does not take; or as for
                :meth:`get_attr`.
            ValueError: ``name`` is ``reset``, ``step`` or ``close``; or as for :meth:`get_attr`.
        """
        self._pool.check("call", idle=True)
        self._check_call(name, args, kwargs)
        return self._read("call", name, env_index)

    def call_async(self, name: str, /, *args: Any, env_index: Any = None, **kwargs: Any) -> None:
        """Begins to read a parameter; :meth:`call_wait` returns its values.

        Raises:
            Exception: As for :meth:`call`.
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        self._pool.check("call_async", idle=True)
        self._check_call(name, args, kwargs)
        rows = self._named(env_index)
        self._pool.call_async(self._packed(name, rows), rows, "call_async")

    def apply(self, function: Any, *args: Any, env_index: Any = None, **kwargs: Any) -> NoReturn:
        """Not possible: native environments are not objects of Python.

        Raises:
            TypeError: Always.
        """
        del function, args, env_index, kwargs
        raise TypeError(
            f"`apply` calls a function with environments in Python, and those of {self._shown_id} "
            "are native: use `get_attr` and `set_attr`, whose names are in `parameters`."
        )

    @staticmethod
    def _check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name in ("reset", "step", "close"):
            raise ValueError(  # Gymnasium's words
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        if args or kwargs:
            raise TypeError(
                f"`{name}` is a parameter of a native environment and takes no arguments: "
                f"`envs.set_attr({name!r}, value)` sets it"
            )

    def _read(self, calling: str, name: str, env_index: Any) -> tuple[Any, ...]:
        rows = self._named(env_index)
        if name in ("np_random", "np_random_seed"):
            values: tuple[Any, ...] = getattr(self, name)
            return values if rows is None else tuple(values[row] for row in rows)
        if self._mujoco is not None and self._mujoco.has(name):
            numbers, frame_skips = (
                self._ask(calling, parameter, rows) for parameter in ("simulation", "frame_skip")
            )
            return tuple(self._mujoco.read(name, numbers, frame_skips))
        return self._ask(calling, name, rows)

    @property
    def _has_own_models(self) -> bool:
        return self._mujoco is not None and self._mujoco.simulation.rows.model_per_row

    def _models(self, calling: str, rows: Sequence[int]) -> list[dict[str, Any]]:
        if self._mujoco is None or not self._has_own_models:
            return []
        return self._mujoco.model_changes(self._ask(calling, "simulation", list(rows)))

    def _set_models(self, calling: str, rows: Sequence[int], models: Any) -> None:
        if self._mujoco is None or not self._has_own_models:
            if models:
                raise ValueError(
                    "the state is of rows with models of their own: make the vector environment "
                    "with `model_per_row=True`."
                )
            return
        check_list("state['envs']['models']", models, len(rows))
        self._mujoco.set_model_changes(self._ask(calling, "simulation", list(rows)), models)

    def _with_models(self, rows: Sequence[int], states: list[bytes]) -> list[bytes]:
        models = self._models("get_state", rows)
        return list(map(with_changes, states, models)) if models else states

    def _without_models(
        self, rows: Sequence[int], states: Sequence[bytes]
    ) -> tuple[list[bytes], list[dict[str, Any]]]:
        own, models = [], []
        for row, state in zip(rows, states, strict=True):
            try:
                parts = split_changes(state)
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from None
            own.append(parts[0])
            models.append(parts[1])
        return own, models if self._has_own_models or any(models) else []

    def _streams(self, calling: str) -> tuple[Stream, ...]:
        """Returns every row's random number stream: seed, and ``state`` of its ``PCG64``."""
        return self._control(calling, self._callbacks.pack_streams(None))

    def _set_streams(self, streams: list[Stream]) -> None:
        """Sets every row's random number stream; only the ``state`` decides its numbers."""
        self._control("set_attr", self._callbacks.pack_streams(streams))

    def _ask(
        self, calling: str, name: str, rows: list[int] | None, values: Sequence[Any] | None = None
    ) -> tuple[Any, ...]:
        messages = self._packed(name, rows, values)
        answered = rows if values is None else None
        return self._pool.call(messages, answered, calling, self._callbacks.timeout)

    def _packed(
        self, name: str, rows: list[int] | None, values: Sequence[Any] | None = None
    ) -> list[Any]:
        """Packs a request to read a parameter of rows, or to set it."""
        if name not in self._callbacks.envs.parameters():
            names = self.parameters
            meant = suggest(name, names) if isinstance(name, str) else None
            rest = f"it has {', '.join(names) or 'none'}"
            if meant is not None:
                rest = f"did you mean {meant!r}?"
            raise AttributeError(f"{self._shown_id} has no parameter {name!r}; {rest}")
        messages: list[Any] = self._callbacks.pack_request(name, rows, values)
        return messages

    def _control(
        self, calling: str, messages: list[Any], rows: Sequence[int] | None = None
    ) -> tuple[Any, ...]:
        """Makes a control call with one message for each shard; returns the answers of rows."""
        self._pool.check(calling, idle=True)
        return self._pool.call(messages, rows, calling, self._callbacks.timeout)


def as_generator(stream: Stream) -> np.random.Generator:
    """Returns a generator that draws the next numbers of a stream."""
    seed, state = stream
    bits = np.random.PCG64(None if seed < 0 else seed)
    bits.state = state
    return np.random.Generator(bits)
