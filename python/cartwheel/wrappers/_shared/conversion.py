"""Wrappers that return another kind of arrays, which evaluations and collectors leave out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import chain

if TYPE_CHECKING:
    from collections.abc import Callable


#: Methods that a subclass overrides to change more than the kind of arrays.
_STEPPING = (
    *("act", "transform", "step", "step_async", "step_wait", "send", "recv"),
    *("reset", "reset_async", "reset_wait", "send_reset", "set_state"),
)


class ConvertsArrays(VectorWrapper):
    """A wrapper that converts NumPy arrays, and that changes nothing else."""

    #: For those that cannot import this file.
    _converts_arrays = True

    def _shown(self, observations: Any) -> Any:
        """Returns observations as the wrapper does."""
        raise NotImplementedError

    def _shown_infos(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Returns infos as the wrapper does."""
        raise NotImplementedError

    def _shown_masks(self, masks: Any) -> Any:
        """Returns masks of actions in the form of observations."""
        raise NotImplementedError

    def _as_arrays(self, actions: Any) -> Any:
        """Returns actions, or actions and extras, as NumPy arrays."""
        raise NotImplementedError

    def _options_as_arrays(self, options: Any) -> Any:
        """Returns the options of a reset with NumPy arrays."""
        raise NotImplementedError

    def _converted(self, policy: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the policy as a function of NumPy arrays, which returns such arrays."""

        def act(observations: Any, *further: Any, **masks: Any) -> Any:
            shown = {name: self._shown_masks(mask) for name, mask in masks.items()}
            return self._as_arrays(policy(self._shown(observations), *further, **shown))

        return act

    def _overridden(self) -> list[str]:
        """The methods by which a subclass of a conversion changes more."""
        own = itertools.takewhile(
            lambda kind: ConvertsArrays not in kind.__bases__, type(self).__mro__
        )
        return [name for kind in own for name in _STEPPING if name in vars(kind)]


def without_conversion(envs: Any) -> tuple[Any, ConvertsArrays | None]:
    """Takes off the outermost wrapper if it converts arrays.

    Evaluations and collectors index and keep NumPy arrays; only the policy sees others.

    Returns:
        The environments inside, and the wrapper; or ``envs`` and ``None``.

    Raises:
        TypeError: A wrapper that converts arrays is not the outermost one, or changes more.
    """
    outer = envs if isinstance(envs, ConvertsArrays) else None
    if outer is not None and (more := outer._overridden()):
        raise TypeError(
            f"an evaluation or a collector leaves out what converts arrays, but "
            f"{type(outer).__name__} overrides {', '.join(more)}: do that in a wrapper of its own, "
            "inside of the conversion."
        )
    inner = envs if outer is None else outer.env
    for found in chain(inner):
        if isinstance(found, ConvertsArrays):
            raise TypeError(
                f"{type(found).__name__} must be the outermost wrapper, around all others, for an "
                f"evaluation or a collector: it is inside of {type(envs).__name__}."
            )
    return inner, outer
