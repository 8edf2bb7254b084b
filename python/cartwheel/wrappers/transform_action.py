"""Applies a function to actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Space, Tuple
from gymnasium.vector.utils import batch_space

from cartwheel.spaces import nested
from cartwheel.spaces.arrays import as_array
from cartwheel.wrappers.single_space import single_space
from cartwheel.wrappers.space_fit import Fit
from cartwheel.wrapping.wrapper import VectorWrapper, rows_of_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv


class ActionWrapper(VectorWrapper):
    """Replaces actions by a function of them; the results get the dtypes of their space.

    A subclass overrides :meth:`_decide`, which is called with a batch of any number of rows.
    """

    _changes_steps = False

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Keeps the space of the actions that go out."""
        super().__init__(envs)
        self._space_after: Space[Any] = envs.single_action_space

    def _decide(self, actions: Any) -> Any:
        """Returns the actions for the wrapped environment; never writes into ``actions``."""
        raise NotImplementedError

    def _set_action_space(self, single: Space[Any]) -> None:
        """Sets the space of one environment and that of a batch."""
        self.single_action_space = single
        self.action_space = batch_space(single, rows_of_batch(self.env))

    def _act(self, actions: Any, rows: Any) -> Any:
        del rows
        return as_space(self._space_after, self._decide(actions))


class TransformAction(ActionWrapper):
    """Applies a function to actions, batch by batch.

    Args:
        envs: A vector environment.
        func: Called with a batch of actions of **any number of rows**, in the form in which the
            caller gave it, which it does not write into. Returns as many actions for ``envs``; they
            get the dtypes of its space.
        action_space: The new space of a batch.
        single_action_space: The new space of one environment. By default it is found from
            ``action_space``; with neither, the space stays what it was.

    Raises:
        TypeError: ``func`` cannot be called.
        ValueError: The spaces contradict each other. From ``step`` and ``send``: the result does
            not fit the space of ``envs``; nothing was stepped.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        func: Callable[[Any], Any],
        action_space: Space[Any] | None = None,
        single_action_space: Space[Any] | None = None,
    ) -> None:
        """Checks the spaces; calls nothing."""
        super().__init__(envs)
        if not callable(func):
            raise TypeError(f"`func` must be a function of actions, got {type(func)}.")
        self.func = func
        spaces = action_space, single_action_space, self._space_after
        self._set_action_space(single_space("action_space", *spaces, rows_of_batch(envs)))
        self._fit = Fit("actions", self._space_after)

    def _act(self, actions: Any, rows: Any) -> Any:
        result = super()._act(actions, rows)
        # A batch for all rows has all of them, those of a batch of some rows as many as it names.
        wanted = self.num_envs if rows is None else np.size(rows)
        self._fit.check(result, wanted)
        return result

    def _decide(self, actions: Any) -> Any:
        return self.func(actions)


def as_space(space: Space[Any], batch: Any) -> Any:
    """Gives the arrays of a batch the dtypes of their space; ``space`` is the space of one row."""
    if isinstance(space, nested.ARRAY_SPACES):
        array = as_array("actions", batch)
        try:
            return array if array.dtype == space.dtype else array.astype(space.dtype)
        except (TypeError, ValueError):  # no numbers: what gets the batch says what it needs
            return batch
    if isinstance(space, Dict) and isinstance(batch, dict):
        parts = space.spaces
        return {
            key: as_space(parts[key], value) if key in parts else value
            for key, value in batch.items()
        }
    if isinstance(space, Tuple) and isinstance(batch, tuple):
        if len(batch) != len(space.spaces):
            return batch
        return tuple(as_space(part, value) for part, value in zip(space.spaces, batch, strict=True))
    return batch
