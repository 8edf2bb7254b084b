"""Calls of the policy: one at a time, versioned, timed and checked."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.nested import as_array
from cartwheel._internal.policy import (
    MASKS,
    actions_and_extras,
    as_function,
    mask_keywords,
    mask_parameter,
    with_masks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._device.mirror import Mirror
    from cartwheel._internal.policy import Policy
    from cartwheel.wrappers._shared.conversion import ConvertsArrays


#: The dtypes of extras: flags and numbers, which all orders store.
_NUMBERS = frozenset(map(np.dtype, "?bBhHiIqQefdFD"))


class Stopped(BaseException):
    """Ends a collection between two calls of the policy; nothing is lost."""


class Actor:
    """Calls the policy for some rows, and counts its updates.

    Attributes:
        recurrent: Whether the policy gets row numbers and beginnings of episodes.
        version: How many updates there were.
        before_call: Is called before each call of the policy, in its thread, so that no answer is
            lost where it raises; ``None``: nothing is.
        is_in_background: Whether a thread of its own collects.
        is_stopping: Set to end a collection.
        calls: How many calls there were.
        rows: For how many rows.
        seconds: For how long, in all.
        mirror: Allocates memory of a device for the observations of a rollout, whose rows the
            policy sees; ``None``: it sees copies or views of the arrays on the host.
    """

    def __init__(
        self,
        envs: Any,
        policy: Policy,
        *,
        recurrent: bool,
        conversion: ConvertsArrays | None = None,
        mirror: Callable[[Any], Mirror] | None = None,
    ) -> None:
        """Checks that the policy can be called; it sees arrays as ``conversion`` returns them."""
        self.mirror = mirror
        self._envs, self.recurrent, self._conversion = envs, recurrent, conversion
        self.policy = policy
        self.version = self.calls = self.rows = 0
        self.seconds = 0.0
        self.before_call: Callable[[], object] | None = None
        self.is_in_background = self.is_stopping = False
        self._lock = threading.Lock()
        #: Held by an update, also while it waits: a thread that calls the policy lets it pass.
        self._entrance = threading.Lock()
        #: The thread that is in a call of the policy.
        self._caller: int | None = None

    @property
    def policy(self) -> Policy:
        """May be set at any time; the next call is for the new one."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        function = as_function(policy, recurrent=self.recurrent)
        mask = mask_parameter(function)
        if self._conversion is not None:
            function = self._conversion._converted(function)
        self._called = function, mask
        self._policy = policy

    def shown(self, observations: Any) -> Any:
        """Returns observations as the policy sees them."""
        return observations if self._conversion is None else self._conversion._shown(observations)

    @property
    def is_called_here(self) -> bool:
        """Whether this thread is in a call of the policy."""
        return self._caller == threading.get_ident()

    def ask(
        self,
        observations: Any,
        rows: NDArray[np.intp],
        first: Callable[[], NDArray[np.bool_]],
        envs: NDArray[np.intp] | None = None,
        resting: NDArray[np.bool_] | None = None,
    ) -> tuple[Any, int]:
        """Calls the policy once.

        Args:
            observations: One for each of ``rows``.
            rows: Row numbers; the policy gets a copy.
            first: Returns whether each observation begins an episode, in an array for the policy.
            envs: The environments that play the rows, if they are others.
            resting: Which of the rows rest: their masks of actions are all true.

        Returns:
            What the policy returned, with masks of actions if it takes them, and the version that
            returned it.

        Raises:
            Stopped: The collection is to end.
            ValueError: The policy needs masks of actions, and the environments show none.
            Exception: The policy raised it, or what reports progress.
        """
        if self.before_call is not None:
            self.before_call()
        further = (rows.copy(), first()) if self.recurrent else ()
        if self._entrance.locked():
            with self._entrance:
                pass
        with self._lock:
            if self.is_stopping:
                raise Stopped
            began = time.perf_counter()
            function, mask = self._called
            masks = mask_keywords(self._envs, mask, rows if envs is None else envs)
            if masks and resting is not None:
                masks[MASKS][resting] = True
            try:
                self._caller = threading.get_ident()
                answer = with_masks(function(observations, *further, **masks), masks)
            finally:
                self._caller = None
                self.seconds += time.perf_counter() - began
            self.calls += 1
            self.rows += len(rows)
            version = self.version
        return answer, version

    def update(self, change: Callable[[], Any] | None) -> int:
        """Calls ``change`` between two calls of the policy; returns the new version.

        Raises:
            RuntimeError: The policy itself called this method.
            Exception: ``change`` raised it; the version stays.
        """
        if self.is_called_here:
            raise RuntimeError(
                "`update` was called by the policy itself: it waits for the call of the policy "
                "that is in progress. Call `update` where the learner is."
            )
        with self._entrance, self._lock:
            if change is not None:
                change()
            self.version += 1
            return self.version


class Answers:
    """Checks results of a policy; nothing is kept of a result that does not fit.

    Attributes:
        actions: Arrays of the form of a step's actions, ``[1, N, …]``; they have no values.
        extras: Arrays of the form of a step's extras, ``[1, N, …]``, by name; ``None`` until the
            first result.
    """

    def __init__(self, space: Space[Any], num_envs: int) -> None:
        """``space`` is the action space of one environment."""
        self.space, self.num_envs = space, num_envs
        # Pools of `cartwheel.envpool` have only the spaces of one environment.
        self.actions = nested.empty(batch_space(space, num_envs), 1, "actions")
        self.extras: dict[str, NDArray[Any]] | None = None

    def checked(
        self, answer: Any, count: int, step: int | None = None
    ) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Returns actions and extras of ``count`` rows as arrays.

        Args:
            answer: What the policy returned.
            count: The number of rows of the call.
            step: The step of the rollout, for errors.

        Raises:
            TypeError: There are no actions, actions or extras have another kind of dtype than
                before, extras are not numbers or flags, or the name of one is not a string.
            ValueError: There is not one action or one extra for each row, or the names of extras
                differ from before.
        """
        given, extras = actions_and_extras(answer, self.space)
        if given is None:
            raise TypeError(
                f"the policy returned None as `actions`, where {count} actions are expected."
            )
        actions = nested.as_batch(self._few(self.actions, count), given, "actions")
        if self.extras is None:
            arrays = {name: as_array(name, extra) for name, extra in extras.items()}
            for name, array in arrays.items():
                if not isinstance(name, str):
                    raise TypeError(f"extras have names, which are strings, got {name!r}.")
                if array.dtype not in _NUMBERS:
                    raise TypeError(
                        f"extra `{name}` must be numbers or flags, got dtype {array.dtype}."
                    )
                if array.shape[:1] != (count,):
                    raise ValueError(
                        f"extra `{name}` must have shape ({count}, …), one entry for each "
                        f"environment; got {array.shape}."
                    )
            self.expect(arrays)
            return actions, arrays
        if extras.keys() != self.extras.keys():
            where = "" if step is None else f" at step {step} of the rollout"
            raise ValueError(
                f"the policy gave the extras {sorted(extras, key=str)}{where}, and "
                f"{sorted(self.extras)} before."
            )
        kept = self._few(self.extras, count)
        return actions, {
            name: nested.as_batch(like, extras[name], name) for name, like in kept.items()
        }

    def expect(self, extras: Mapping[str, NDArray[Any]]) -> None:
        """Expects extras of the shapes and dtypes of these from now on, ``[K, …]`` each."""
        self.extras = {
            name: np.empty((1, self.num_envs, *extra.shape[1:]), extra.dtype)
            for name, extra in extras.items()
        }

    def _few(self, form: Any, count: int) -> Any:
        return form if count == self.num_envs else nested.at(form, (slice(None), slice(count)))
