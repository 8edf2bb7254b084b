"""States of wrappers around a vector environment: all of them are saved and loaded together."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

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


def shown_by(wrapper: Any, observations: Any) -> Any:
    """Returns what a wrapper shows of all rows that show their last observation again."""
    kinds = np.full(wrapper.num_envs, SHOWN, np.uint8)
    batch = Batch(None, kinds, observations, None, None, None, {})
    batch.absent = getattr(wrapper.unwrapped, "_absent_in_state", None)
    wrapper.transform(batch)
    return batch.observations


def _name(wrapper: Any) -> str:
    return f"{type(wrapper).__module__}.{type(wrapper).__qualname__}"
