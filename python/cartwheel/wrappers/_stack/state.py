"""States of wrappers around a vector environment: all of them are saved and loaded together."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cartwheel._internal.arguments import as_bool, as_rows
from cartwheel.vector.pool_owner import pool_of
from cartwheel.vector.state_dict import (
    check_described,
    check_header,
    check_wrappers,
    described,
    new_state,
)
from cartwheel.workers.envs.attributes import own_attribute
from cartwheel.wrappers._stack.source import Source
from cartwheel.wrappers.batch import SHOWN, Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.wrappers._stack.step_recording import StepRecording


class Stack:
    """Wrappers and the vector environment inside them.

    Attributes:
        envs: The vector environment.
        wrappers: The wrappers, from the innermost to the outermost.
    """

    def __init__(self, outermost: Any, calling: str) -> None:
        """Finds the members for the method ``calling``.

        Raises:
            TypeError: One of them has no state.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        """
        self.wrappers: list[Any] = []
        inner = outermost
        while not hasattr(type(inner), "_load_rows"):  # rows of agents and EnvPool's pools, too
            if not isinstance(own_attribute(inner, "_source"), Source):
                raise TypeError(
                    f"`{calling}` needs vector environments and wrappers of cartwheel: "
                    f"{type(inner).__module__}.{type(inner).__qualname__} has no state."
                )
            self.wrappers.insert(0, inner)
            inner = inner.env
        self.envs: Any = inner
        pool = pool_of(inner)
        assert pool is not None, "it saves the rows of a pool"
        pool.check(calling, idle=True)

    def state(self, *, with_envs: bool) -> dict[str, Any]:
        """Returns the state of all members; without environments, numbers of all rows only.

        Raises:
            TypeError: What a wrapper keeps is not a dictionary.
            Exception: A wrapper or an environment raised it.
        """
        # First, because sources find out what was lost, which the wrappers note then.
        sources = [
            wrapper._source.get_rows() if self._begins_source(wrapper) else None
            for wrapper in self.wrappers
        ]
        wrappers = []
        for wrapper, rows in zip(self.wrappers, sources, strict=True):
            own = wrapper.get_own_state()
            if not isinstance(own, dict):
                raise TypeError(
                    f"`get_own_state` of {_name(wrapper)} must return a dictionary, got {type(own)}"
                )
            if not with_envs:
                own = {name: own[name] for name in own if name not in wrapper.row_entries}
            kept = rows if with_envs else None
            wrappers.append({"class": _name(wrapper), "state": own, "rows": kept})
        envs = self.envs._rows(envs=with_envs)
        return new_state("vector_env", **described(self.envs), wrappers=wrappers, envs=envs)

    def load(self, state: Any) -> Any:
        """Loads a state, all of it or nothing; returns what the rows last showed.

        Raises:
            TypeError: The state is not a dictionary, or one of another wrapper.
            ValueError: The state is of another version, or of other wrappers or environments.
            Exception: A wrapper or an environment raised it.
        """
        check_header(state, "vector_env", (*described(self.envs), "wrappers", "envs"))
        check_wrappers(state["wrappers"], [_name(wrapper) for wrapper in self.wrappers])
        check_described(state, self.envs)  # before what has the shape of all rows
        is_whole = state["envs"] is not None
        coming = [
            self._checked(wrapper, entry, f"state['wrappers'][{at}]", is_whole=is_whole)
            for at, (wrapper, entry) in enumerate(
                zip(self.wrappers, state["wrappers"], strict=True)
            )
        ]
        before = [wrapper.get_own_state() for wrapper in self.wrappers]
        loaded = 0
        try:
            for wrapper, own in zip(self.wrappers, coming, strict=True):
                loaded += 1
                wrapper.set_own_state(own)
            observations = self.envs._load_rows(state)
        except BaseException:
            for wrapper, own in zip(self.wrappers[:loaded], before, strict=False):
                with contextlib.suppress(Exception):  # closed, or broken
                    wrapper.set_own_state(own)
            raise
        if not is_whole:
            return None
        for wrapper, entry in zip(self.wrappers, state["wrappers"], strict=True):
            if entry["rows"] is not None:
                wrapper._source.set_rows(entry["rows"])
            wrapper._loaded()
        for wrapper in self.wrappers:
            observations = wrapper._show_again(observations)
        return observations

    def _checked(
        self, wrapper: Any, entry: dict[str, Any], path: str, *, is_whole: bool
    ) -> dict[str, Any]:
        """Checks the state of a wrapper; returns what it is going to get."""
        own: Any = entry["state"]
        present = wrapper.get_own_state()
        rows = [name for name in present if name in wrapper.row_entries]
        if not isinstance(own, dict):
            raise ValueError(f"`{path}['state']` must be a dictionary, got {type(own)}")  # noqa: TRY004 - a part of a state
        if is_whole:
            if self._begins_source(wrapper):
                wrapper._source.check_rows(entry["rows"], f"{path}['rows']")
            elif entry["rows"] is not None:
                raise ValueError(f"`{path}['rows']` must be None, got {type(entry['rows'])}")
        kept = {} if is_whole else {name: present[name] for name in rows}
        coming: dict[str, Any] = {**own, **kept}
        try:
            wrapper._check_own_state(coming)
        except ValueError as error:
            raise ValueError(f"{type(wrapper).__name__}: {error}") from error
        return coming

    def _begins_source(self, wrapper: Any) -> bool:
        return own_attribute(wrapper.env, "_source") is not wrapper._source


class SavedWrapper:
    """The methods of a wrapper that save and load states."""

    #: The entries of :meth:`get_own_state` that are about single rows. A state without environments
    #: does not have them, so that it can be loaded with any number of rows.
    row_entries: ClassVar[tuple[str, ...]] = ()
    num_envs: int
    _source: Source
    _recording: StepRecording | None

    def _called(self, call: Callable[..., Batch], *arguments: Any) -> Batch:
        """Makes a call of the source and passes its batch on."""
        raise NotImplementedError

    def _as_reset(self, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """Returns the result of a reset, or of states that were restored."""
        return batch.as_reset()

    def get_own_state(self) -> dict[str, Any]:
        """Returns what this wrapper alone keeps from one call to the next. Override it.

        Wrappers around it, and it itself, get what they keep back in :meth:`set_own_state`. Neither
        method is about the wrapped environment.

        Returns:
            Plain data that does not change later. It consists of dictionaries with text as keys,
            lists, arrays, numbers, text, bytes and ``None``.
        """
        return {}

    def set_own_state(self, state: dict[str, Any]) -> None:
        """Continues with a state of :meth:`get_own_state`. Override both, or neither.

        It is called by :meth:`load_state_dict`, before the environments are restored, and begins no
        episode. If it raises, the states of all other wrappers are set back.

        Args:
            state: A state of a wrapper of this class, for as many rows.

        Raises:
            ValueError: The wrapper does not override it, and there is something to continue with.
        """
        if state:
            raise ValueError(
                f"{type(self).__name__} has no `set_own_state`, which takes what `get_own_state` "
                f"returned: {sorted(map(str, state))}"
            )

    def _check_own_state(self, state: dict[str, Any]) -> None:
        """Raises ``ValueError`` unless :meth:`set_own_state` can be given this state."""

    def set_state(self, env_index: Any, states: Any) -> tuple[Any, dict[str, Any]]:
        """Continues rows from states; for the wrappers, an episode begins there.

        Args:
            env_index: Row numbers; ``None`` for all rows.
            states: One state for each row, from ``get_state``.

        Returns:
            Observations and infos of these rows, in their order.

        Raises:
            Exception: As for the wrapped environment.
        """
        if self._recording is not None:
            self._recording.check_reset(in_parts=True)
        rows = range(self.num_envs) if env_index is None else as_rows(env_index, self.num_envs)
        numbers = np.array(rows, np.int64)
        return self._as_reset(self._called(self._source.set_state, env_index, numbers, states))

    def state_dict(self, *, envs: bool = True) -> dict[str, Any]:
        """Saves this wrapper, the wrappers inside it and the environments.

        Args:
            envs: As for :meth:`cartwheel.VectorEnv.state_dict`.

        Raises:
            TypeError: A wrapper or the vector environment is not cartwheel's.
            Exception: As for the wrapped environment.
        """
        return Stack(self, "state_dict").state(with_envs=as_bool("envs", envs))

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Continues from a state of :meth:`state_dict`, into wrappers of the same classes.

        Returns:
            What this wrapper last showed of all rows; ``None`` for a state without environments,
            which may be of another number of rows.

        Raises:
            TypeError: A wrapper or the vector environment is not cartwheel's.
            ValueError: The state is of other wrappers, or the state of a wrapper does not fit it.
                Nothing has changed.
            Exception: As for the wrapped environment.
        """
        return Stack(self, "load_state_dict").load(state)

    def _show_again(self, observations: Any) -> Any:
        """Returns what this wrapper shows of the last observations of all rows."""
        return shown_by(self, observations)


def shown_by(wrapper: Any, observations: Any) -> Any:
    """Returns what a wrapper shows of all rows that show their last observation again."""
    kinds = np.full(wrapper.num_envs, SHOWN, np.uint8)
    batch = Batch(None, kinds, observations, None, None, None, {})
    batch.absent = getattr(wrapper.unwrapped, "_absent_in_state", None)
    wrapper.transform(batch)
    return batch.observations


def _name(wrapper: Any) -> str:
    return f"{type(wrapper).__module__}.{type(wrapper).__qualname__}"
