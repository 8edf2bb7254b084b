"""Rewards and flags of all rows at once, by functions of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.errors import add_note
from cartwheel.near_misses import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cartwheel.mujoco.fields import Fields

    Arrays = dict[str, NDArray[np.float64]]
    Function = Callable[[Arrays, Any, Arrays], Any]


class Judge:
    """Calls the functions after each step, and checks what they return.

    It refers to no vector environment, since the pool owns it.
    """

    def __init__(
        self,
        fields: Fields,
        num_envs: int,
        *,
        reward: Function,
        terminated: Function | None,
        truncated: Function | None,
    ) -> None:
        """Keeps the functions.

        Raises:
            TypeError: One of them cannot be called.
        """
        self._fields = fields
        self._shape = (num_envs,)
        self._functions = {"reward": reward, "terminated": terminated, "truncated": truncated}
        for name, function in self._functions.items():
            if not callable(function) and not (function is None and name != "reward"):
                raise TypeError(
                    f"`{name}` must be a function of (before, actions, after), got "
                    f"{shown(function)}."
                )

    def __call__(
        self, before: bytes, actions: Any, after: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns rewards, terminations and truncations of all rows, each ``(num_envs,)``.

        Args:
            before: The elements of the observations before the step.
            actions: The actions, ``(num_envs, nu)``.
            after: The observations after it, ``(num_envs, size)``.

        Raises:
            TypeError: A function returned an array of another kind.
            ValueError: A function returned an array of another shape, or a reward is NaN.
            Exception: As a function raised it, with a note that names the function.
        """
        after = after.view()
        actions.flags.writeable = after.flags.writeable = False  # one function may spoil the next
        split = self._fields.split
        given = (split(np.frombuffer(before).reshape(after.shape)), actions, split(after))
        return (
            self._rewards(*given),
            self._flags("terminated", *given),
            self._flags("truncated", *given),
        )

    def _rewards(self, *given: Any) -> NDArray[np.float64]:
        rewards = self._called("reward", *given)
        if not np.can_cast(rewards.dtype, np.float64, "same_kind"):
            raise TypeError(f"`reward` must return floats, got an array of {rewards.dtype}.")
        rewards = np.ascontiguousarray(rewards, np.float64)
        if np.isnan(rewards).any():
            rows = np.flatnonzero(np.isnan(rewards)).tolist()
            raise ValueError(f"`reward` returned NaN for rows {shown(rows)}.")
        return rewards

    def _flags(self, name: str, *given: Any) -> NDArray[np.bool_]:
        if self._functions[name] is None:
            return np.zeros(self._shape, np.bool_)
        flags = self._called(name, *given)
        if flags.dtype != np.bool_:
            raise TypeError(f"`{name}` must return truth values, got an array of {flags.dtype}.")
        return np.ascontiguousarray(flags)

    def _called(self, name: str, *given: Any) -> NDArray[Any]:
        """Returns what a function of the caller returned, an array of one entry for each row."""
        function = self._functions[name]
        assert function is not None
        try:
            result = np.asarray(function(*given))
        except Exception as error:
            add_note(error, f"in the function `{name}` of cartwheel.mujoco.make")
            raise
        if result.shape != self._shape:
            raise ValueError(
                f"`{name}` must return one value for each of {self._shape[0]} rows, an array of "
                f"shape {self._shape}; got shape {result.shape}."
            )
        return result
