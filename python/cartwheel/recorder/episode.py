"""An episode that was taken out of its buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel.spaces import nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: Where an array of an episode is: ``("obs",)``, or ``("obs", "camera", 0)`` in nested spaces.
Path: TypeAlias = tuple[str | int, ...]


@dataclass
class Episode:
    """The steps of one episode, and what is known of it.

    Attributes:
        about: What ``episode_filter`` is given and the JSON file has.
        arrays: Copies; observations and infos have one entry more than actions and rewards.
        groups: Parts of observations and actions without any array, such as an empty dictionary.
    """

    about: dict[str, Any]
    arrays: dict[Path, NDArray[Any]]
    groups: list[Path] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def leaves(space: Space[Any], path: Path) -> Iterator[tuple[Path, Space[Any]]]:
    """Yields the parts of a space that are arrays, each with its path.

    Raises:
        TypeError: A part has no fixed shape and dtype.
        ValueError: A key cannot be a name in a file.
    """
    if isinstance(space, Dict):
        for key, part in space.spaces.items():
            if not isinstance(key, str) or "/" in key or not is_name(key):
                raise ValueError(
                    f"the key {key!r} of {space} cannot be the name of a group in a file: names "
                    "are text, not empty, not '.', and without '/' and zeros. Rename it in a "
                    "wrapper of the environment."
                )
            yield from leaves(part, (*path, key))
    elif isinstance(space, Tuple):
        for number, part in enumerate(space.spaces):
            yield from leaves(part, (*path, number))
    elif space.shape is None or space.dtype is None or np.dtype(space.dtype).kind not in "biufc":
        raise TypeError(
            f"episodes are recorded as arrays, but {space} at `{'/'.join(map(str, path))}` has no "
            "fixed shape and dtype."
        )
    else:
        yield path, space


def empty_groups(space: Space[Any], path: Path) -> Iterator[Path]:
    """Yields the paths of parts of a space that have no parts themselves."""
    if isinstance(space, Dict | Tuple):
        if not len(space.spaces):
            yield path
        for key, part in nested.parts(space):
            yield from empty_groups(part, (*path, key))


def is_name(text: str) -> bool:
    """Whether a text can be the name of a group or an array in an HDF5 file."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return text not in ("", ".") and "\0" not in text
