"""EnvPool's forms of actions and observations.

Actions are arrays, or dictionaries that may have a key ``env_id``. In observations, integers are
``int32``, and a tuple of integers is one array.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from cartwheel._internal.nested import ARRAY_SPACES
from cartwheel._internal.suggestions import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: The key of an action space that is one array.
ACTION_KEY = "action"


class Addressed(NamedTuple):
    """A batch of actions and the ids of its environments."""

    #: An array, or nested dictionaries and tuples of arrays, in the form of the action space.
    actions: Any
    #: The value of the key ``env_id``, if there was one.
    env_id: Any = None
    #: The value of the key ``players.env_id``, if there was one.
    players_env_id: Any = None


def read_actions(space: Space[Any], action: dict[str, Any]) -> Addressed:
    """Separates actions and ids in EnvPool's second form of an action, a dictionary.

    Args:
        space: The single action space.
        action: A dictionary with the key ``"action"`` (for a space that is one array) or the keys
            of the space, and optionally ``"env_id"`` and ``"players.env_id"``. Nested keys may be
            joined by dots.

    Raises:
        ValueError: Keys are missing or unknown.
    """
    entries = _nested(action)
    env_id = entries.pop("env_id", None)
    players = entries.pop("players", {})
    players_env_id = players.get("env_id") if isinstance(players, dict) else players
    expected = space.spaces.keys() if isinstance(space, Dict) else {ACTION_KEY}
    if entries.keys() != set(expected):
        raise ValueError(
            f"the action must have the keys {sorted(expected)}, and optionally env_id and "
            f"players.env_id, got {sorted(map(str, entries))}"
        )
    batch = entries if isinstance(space, Dict) else entries[ACTION_KEY]
    return Addressed(batch, env_id, players_env_id)


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Returns the dictionary with keys such as ``"a.b"`` as nested dictionaries."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = _nested(value) if isinstance(value, dict) else value
    return nested


def checked(space: Space[Any], actions: Any, ids: NDArray[Any], key: str = ACTION_KEY) -> Any:
    """Checks a batch of actions and casts it to its space's dtype.

    Args:
        space: The single action space. For parts without a fixed shape, only the number of actions
            is checked.
        actions: One action for each entry of ``ids``, in the form of the space.
        ids: The environments, for errors.
        key: The name of the actions in errors.

    Raises:
        ValueError: The number or the shape of the actions is wrong, a discrete action is out of
            range, or an action is NaN.
        TypeError: The kind of the dtype differs from the space's: discrete actions must be
            integers. Or the actions are not a batch, such as a ``str`` where the space has no fixed
            shape.
    """
    if isinstance(space, Dict):
        if not isinstance(actions, dict) or actions.keys() != space.spaces.keys():
            raise ValueError(
                f"{key} must be a dictionary with the keys {sorted(space.spaces)}, got "
                f"{shown(actions)}"
            )
        parts = space.spaces.items()
        return {name: checked(part, actions[name], ids, name) for name, part in parts}
    if isinstance(space, Tuple):
        if not isinstance(actions, tuple | list) or len(actions) != len(space.spaces):
            raise ValueError(
                f"{key} must be a tuple of {len(space.spaces)} batches, got {shown(actions)}"
            )
        pairs = enumerate(zip(space.spaces, actions, strict=True))
        return tuple(checked(part, batch, ids, f"{key}.{at}") for at, (part, batch) in pairs)
    if not isinstance(space, ARRAY_SPACES):
        _check_objects(actions, len(ids), key)
        return actions
    array = np.asarray(actions)
    check_length(array, len(ids), key)
    shape = (len(ids), *(space.shape or ()))
    if array.shape != shape:
        raise ValueError(f"{key} must have shape {shape}, got {array.shape}")
    return _cast(space, array, ids, key)


def safe_dtypes(space: Space[Any]) -> frozenset[Any]:
    """Returns the dtypes that the core casts to the dtype of a space of arrays without loss."""
    if not isinstance(space, ARRAY_SPACES):
        return frozenset()
    dtype = np.dtype(space.dtype)
    codes = np.typecodes["AllInteger"] if dtype.kind in "iu" else np.typecodes["Float"]
    return frozenset(np.dtype(code) for code in codes if np.can_cast(code, dtype, "safe"))


def check_length(array: NDArray[Any], rows: int, key: str = ACTION_KEY) -> None:
    """Raises ``ValueError`` unless the array has ``rows`` rows."""
    if array.ndim == 0:
        raise ValueError(f"{key} must have {rows} rows, got a single value of shape ()")
    if len(array) != rows:
        raise ValueError(f"{key} has {len(array)} rows for {rows} environments")


def _check_objects(batch: Any, rows: int, key: str) -> None:
    """Raises unless ``batch`` is a batch of ``rows`` objects."""
    if isinstance(batch, np.ndarray):
        check_length(batch, rows, key)
        return
    if not isinstance(batch, Sized) or isinstance(batch, str | bytes | dict | set):
        raise TypeError(f"{key} must be a tuple or list of {rows} actions, got {batch!r}")
    if len(batch) != rows:
        raise ValueError(f"{key} has {len(batch)} rows for {rows} environments")


def _cast(space: Space[Any], array: NDArray[Any], ids: NDArray[Any], key: str) -> NDArray[Any]:
    dtype = np.dtype(space.dtype)
    if dtype.kind in "iu":
        # The values are checked, so any integer dtype is accepted.
        if array.dtype.kind not in ("iub" if isinstance(space, MultiBinary) else "iu"):
            raise TypeError(f"{key} must be integers ({dtype}), got {array.dtype}")
        low, high = _bounds(space, dtype)
        wrong = (array < low) | (array > high)
        _refuse(wrong, array, ids, key, f"is not from {_text(low)} to {_text(high)}")
    elif (array.dtype.kind == "b") != (dtype.kind == "b") or not np.can_cast(
        array.dtype, dtype, "same_kind"
    ):
        raise TypeError(f"{key} must be {dtype} or cast to it, got {array.dtype}")
    elif array.dtype.kind == "f":
        _refuse(np.isnan(array), array, ids, key, "is not a number")
    return array.astype(dtype, copy=False)


def _bounds(space: Space[Any], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Returns the minimum and the maximum action of an integer space."""
    if isinstance(space, Discrete):
        return int(space.start), int(space.start) + int(space.n) - 1
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, MultiBinary):
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _text(bound: Any) -> str:
    return str(bound.tolist() if isinstance(bound, np.ndarray) else bound)


def _refuse(
    wrong: NDArray[Any], array: NDArray[Any], ids: NDArray[Any], key: str, why: str
) -> None:
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        value = array[row].tolist()
        raise ValueError(f"{key} of row {row} (environment {ids[row]}) is {value}, which {why}")


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
