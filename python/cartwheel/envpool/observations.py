"""EnvPool's form of observations: integers are ``int32``, and a tuple of integers is one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

_INT32 = np.iinfo(np.int32)


class Form(NamedTuple):
    """The form that a pool gives to observations of an environment."""

    #: The space of one observation in this form.
    space: Space[Any]
    #: Converts a batch of the environment's observations; ``None`` if they already have the form.
    convert: Callable[[Any], Any] | None = None


def form_of(space: Space[Any]) -> Form:
    """Returns the form of the observations of a space.

    Batches of ``Discrete`` spaces are ``int32``, as in EnvPool. A ``Tuple`` of ``Discrete`` spaces,
    as in Blackjack, becomes a ``Box`` of ``int32`` with one bound for all parts. Integers that do
    not fit into ``int32`` stay as they are. Everything else stays as it is, too.
    """
    if is_narrow(space):
        return Form(space, _narrowed)
    if isinstance(space, Dict):
        return _of_dict(space)
    if not isinstance(space, Tuple) or not space.spaces:
        return Form(space)
    if all(map(is_narrow, space.spaces)):
        parts: Any = space.spaces
        low = min(int(part.start) for part in parts)
        high = max(int(part.start + part.n) - 1 for part in parts)
        return Form(Box(low, high, (len(parts),), np.int32), _stacked)
    forms = [form_of(part) for part in space.spaces]
    if all(form.convert is None for form in forms):
        return Form(space)
    return Form(
        Tuple([form.space for form in forms]),
        lambda batch: tuple(
            _converted(form, part) for form, part in zip(forms, batch, strict=True)
        ),
    )


def is_narrow(space: Space[Any]) -> bool:
    """Whether a space is ``Discrete`` and all its values fit into ``int32``."""
    return (
        isinstance(space, Discrete)
        and int(space.start) >= _INT32.min
        and int(space.start) + int(space.n) - 1 <= _INT32.max
    )


def _of_dict(space: Dict) -> Form:
    forms = {key: form_of(part) for key, part in space.spaces.items()}
    if all(form.convert is None for form in forms.values()):
        return Form(space)
    return Form(
        Dict({key: form.space for key, form in forms.items()}),
        lambda batch: {key: _converted(form, batch[key]) for key, form in forms.items()},
    )


def _converted(form: Form, batch: Any) -> Any:
    return batch if form.convert is None else form.convert(batch)


def _narrowed(batch: NDArray[Any]) -> NDArray[np.int32]:
    return batch.astype(np.int32)


def _stacked(batch: tuple[NDArray[Any], ...]) -> NDArray[np.int32]:
    return np.stack(batch, axis=-1).astype(np.int32)
