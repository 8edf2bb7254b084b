"""Parts of nested observations, named by ``keys``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Box, Dict, Tuple
from gymnasium.spaces.utils import flatten_space

from cartwheel._internal import nested
from cartwheel._internal.versions import dict_like

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space

#: Keys and places from the outermost space to a part.
Path = tuple[Any, ...]


class Parts:
    """The parts of nested observations that a wrapper changes; the others pass unchanged.

    A key that exists literally is taken first; then dots go down into dictionaries and tuples, of
    which places are numbers: ``"camera"``, ``"state.joints"``, ``"pair.0"``.

    Args:
        space: The space of one observation.
        keys: The argument ``keys`` of the wrapper.

    Raises:
        TypeError: ``keys`` is not a sequence of strings.
        ValueError: The space is neither a ``Dict`` nor a ``Tuple``; there is no key, or a part is
            named twice; a key does not exist, or names a ``Dict`` or ``Tuple`` itself.

    Attributes:
        spaces: The space of each part, by key.
    """

    def __init__(self, space: Space[Any], keys: Sequence[str]) -> None:
        if isinstance(keys, str) or not isinstance(keys, Sequence):
            raise TypeError(f"`keys` must be a sequence of strings, got {keys!r}.")
        if not all(isinstance(key, str) for key in keys):
            raise TypeError(f"`keys` must be strings, got {list(keys)}.")
        if not isinstance(space, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - the keys are wrong for it
                f"`keys` name parts of Dict and Tuple observations, got the space {space}: leave "
                "`keys` out."
            )
        if not keys:
            raise ValueError("`keys` must name at least one part of the observations, got none.")
        self._space = space
        self._paths = {key: _resolved(space, key) for key in keys}
        for number, key in enumerate(keys):
            same = [other for other in keys[:number] if self._paths[other] == self._paths[key]]
            if same:
                raise ValueError(f"`keys` names one part twice, by {same[0]!r} and {key!r}.")
        self.spaces: dict[str, Space[Any]] = {
            key: _at(space, path) for key, path in self._paths.items()
        }
        #: Keys by the parts on the way to them: nested dictionaries.
        self._tree: dict[Any, Any] = {}
        for key, path in self._paths.items():
            inner = self._tree
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
            inner[path[-1]] = key

    def of(self, observations: Any) -> dict[str, Any]:
        """Returns the parts of an observation, or of a batch, by key."""
        found = {}
        for key, path in self._paths.items():
            part = observations
            for step in path:
                part = part[step]
            found[key] = part
        return found

    def replaced(self, observations: Any, parts: dict[str, Any]) -> Any:
        """Returns observations with other parts; the rest is shared, and nothing is written."""
        return _replaced(self._tree, observations, parts)

    def space_with(self, spaces: dict[str, Space[Any]]) -> Space[Any]:
        """Returns the space of observations with other spaces of the parts."""
        return _space_with(self._tree, self._space, spaces)


def _resolved(space: Space[Any], key: str) -> Path:
    found = _path(space, key)
    if found is None:
        raise ValueError(f"`keys` has {key!r}, but observations have the parts {_named(space)}.")
    part = _at(space, found)
    if isinstance(part, Dict | Tuple):
        inner = [f"{key}.{name}" for name in _named(part)]
        raise ValueError(  # noqa: TRY004 - the key is wrong
            f"`keys` has {key!r}, which is a {type(part).__name__}: name its parts, {inner}."
        )
    return found


def _path(space: Space[Any], key: str) -> Path | None:
    names: Any = {}
    if isinstance(space, Dict | Tuple):
        names = {str(name): (name, part) for name, part in nested.parts(space)}
    if key in names:
        return (names[key][0],)
    at = len(key)
    while (at := key.rfind(".", 0, at)) >= 0:  # the longest name first
        if key[:at] in names:
            name, part = names[key[:at]]
            rest = _path(part, key[at + 1 :])
            if rest is not None:
                return (name, *rest)
    return None


def _at(space: Any, path: Path) -> Any:
    for part in path:
        space = space.spaces[part]
    return space


def _named(space: Space[Any], prefix: str = "") -> list[str]:
    """The keys of all leaves."""
    if not isinstance(space, Dict | Tuple):
        return [prefix]
    dotted = f"{prefix}." if prefix else ""
    return [key for name, part in nested.parts(space) for key in _named(part, f"{dotted}{name}")]


def _replaced(tree: dict[Any, Any], observations: Any, parts: dict[str, Any]) -> Any:
    changed = {}
    for name, below in tree.items():
        is_part = isinstance(below, str)
        changed[name] = parts[below] if is_part else _replaced(below, observations[name], parts)
    if isinstance(observations, tuple):
        return tuple(changed.get(place, part) for place, part in enumerate(observations))
    return {**observations, **changed}


def _space_with(tree: Any, space: Any, spaces: dict[str, Space[Any]]) -> Space[Any]:
    if isinstance(tree, str):
        return spaces[tree]
    if tree is None:
        # A copy: making a batched space seeds the parts of the space that it is made from, and they
        # may be those of an environment in this process.
        return copy.deepcopy(space)
    parts = nested.parts(space)
    changed = {name: _space_with(tree.get(name), part, spaces) for name, part in parts}
    return dict_like(space, changed) if isinstance(space, Dict) else Tuple([*changed.values()])


def advised(
    error: TypeError | ValueError, space: Space[Any], convert: Callable[[Space[Any]], Any]
) -> TypeError | ValueError:
    """Returns the error with advice to give ``keys``, if parts of the space can be converted.

    Args:
        error: Of the whole space.
        space: The space of one observation.
        convert: Raises where a space cannot be converted.
    """
    if not isinstance(space, Dict | Tuple):
        return error
    fitting = []
    for key in _named(space):
        try:
            convert(Parts(space, [key]).spaces[key])
        except (TypeError, ValueError):
            continue
        fitting.append(key)
    if not fitting:
        return error
    words = str(error).rstrip(".")
    joint = ", or" if words.endswith("FlattenObservation") else ":"
    return type(error)(f"{words}{joint} name the parts to change, keys={fitting}.")


def flattens(space: Space[Any]) -> bool:
    """Whether ``FlattenObservation`` makes one array of observations of this space."""
    try:
        return isinstance(flatten_space(space), Box)
    except (TypeError, ValueError, NotImplementedError):
        return False
