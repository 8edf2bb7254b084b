"""Steps of the present episodes of all environments, and the episodes that are complete."""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.spaces import Dict, Text, Tuple

from cartwheel._internal import nested
from cartwheel.vector.infos import masks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gymnasium.spaces import Space
    from numpy.typing import DTypeLike, NDArray

#: Entries of the first chunk of an episode.
FIRST = 32
#: A chunk of all environments is not longer than this, so that a long episode of one environment
#: does not ask for memory of all in one piece. Pages that were never written cost nothing.
CHUNK_BYTES = 64 << 20


class Track:
    """One array of each episode, such as its rewards.

    Attributes:
        shape: The shape of an entry.
        dtype: Its dtype.
        fill: The value of entries that were not reported.
        first: 0 if the episode's first observation has an entry, 1 if only its steps have one.
        chunks: Arrays ``[num_envs, entries, *shape]``; together they hold every episode.
    """

    __slots__ = ("chunks", "dtype", "fill", "first", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike, fill: Any, first: int) -> None:
        self.shape, self.dtype, self.fill, self.first = shape, np.dtype(dtype), fill, first
        self.chunks: list[NDArray[Any]] = []

    def extend(self, num_envs: int, entries: int) -> None:
        """Adds a chunk."""
        shape = (num_envs, entries, *self.shape)
        if self.fill:
            self.chunks.append(np.full(shape, self.fill, self.dtype))
        else:
            self.chunks.append(np.zeros(shape, self.dtype))  # pages are made when written


class EpisodeBuffer:
    """Stores steps batch by batch, and takes out an environment's episode when it is over.

    An entry is written once and read once, in chunks that double and are never copied. So a step
    costs the same in long episodes as in short ones.

    Attributes:
        lengths: The steps of the present episode of each environment, ``int64`` ``[num_envs]``.
    """

    def __init__(self, num_envs: int) -> None:
        self.lengths: NDArray[np.int64] = np.zeros(num_envs, np.int64)
        self._tracks: dict[Path, Track] = {}
        #: The first entry of each chunk, and the end of the last one.
        self._bounds = [0]

    def add_track(
        self, name: Path, shape: tuple[int, ...], dtype: DTypeLike, *, fill: Any = 0, first: int = 0
    ) -> None:
        """Adds an array to all episodes; in the present ones, earlier entries are ``fill``."""
        track = Track(shape, dtype, fill, first)
        for start, end in itertools.pairwise(self._bounds):
            track.extend(len(self.lengths), end - start)
        self._tracks[name] = track

    def track(self, name: Path) -> Track | None:
        """Returns a track, or ``None``."""
        return self._tracks.get(name)

    def drop_track(self, name: Path) -> None:
        """Removes an array from all episodes."""
        del self._tracks[name]

    def retype(self, name: Path, dtype: DTypeLike) -> None:
        """Changes the dtype of a track."""
        track = self._tracks[name]
        track.dtype = np.dtype(dtype)
        track.chunks = [chunk.astype(track.dtype) for chunk in track.chunks]

    def begin(self, rows: Any, entries: Mapping[Path, Any]) -> None:
        """Begins episodes of these environments; ``entries`` has arrays with one row for each."""
        self.lengths[rows] = 0
        self._write(rows, np.zeros(len(rows), np.int64), entries, first=0)

    def add(self, rows: NDArray[np.int64], entries: Mapping[Path, Any]) -> None:
        """Adds a step to the episodes of these environments."""
        lengths = self.lengths[rows] + 1
        self._write(rows, lengths, entries, first=1)
        self.lengths[rows] = lengths

    def cut(self, row: int) -> dict[Path, NDArray[Any]]:
        """Returns copies of the present episode of an environment, by track."""
        end = int(self.lengths[row]) + 1
        bounds = self._bounds[: bisect.bisect_left(self._bounds, end)]
        episode = {}
        for name, track in self._tracks.items():
            pieces = [
                chunk[row, max(track.first - start, 0) : end - start]
                for chunk, start in zip(track.chunks, bounds, strict=False)
            ]
            episode[name] = pieces[0].copy() if len(pieces) == 1 else np.concatenate(pieces)
        return episode

    def shrink(self) -> None:
        """Frees chunks that no present episode reaches, except one."""
        longest = int(self.lengths.max(initial=0))
        while len(self._bounds) > 3 and self._bounds[-3] > longest:
            self._bounds.pop()
            for track in self._tracks.values():
                track.chunks.pop()

    def _write(
        self,
        rows: NDArray[np.int64],
        at: NDArray[np.int64],
        entries: Mapping[Path, Any],
        first: int,
    ) -> None:
        if not len(rows):
            return
        lowest, highest = int(at.min()), int(at.max())
        while highest >= self._bounds[-1]:
            self._extend()
        low, high = (bisect.bisect_right(self._bounds, slot) - 1 for slot in (lowest, highest))
        for number in range(low, high + 1):
            start, end = self._bounds[number : number + 2]
            places: Any = slice(None)
            if low < high:
                places = np.flatnonzero((at >= start) & (at < end))
                if not len(places):
                    continue
            cells = rows[places] * (end - start) + (at[places] - start)
            for name, values in entries.items():
                track = self._tracks[name]
                if track.first <= first and 0 not in track.shape:
                    chunk = track.chunks[number]
                    chunk.reshape(-1, *track.shape)[cells] = values[places]

    def _extend(self) -> None:
        entries = max(self._bounds[-1], FIRST)
        tracks = self._tracks.values()
        size = sum(int(np.prod(one.shape)) * one.dtype.itemsize for one in tracks)
        entries = max(1, min(entries, CHUNK_BYTES // max(1, size * len(self.lengths))))
        for track in tracks:
            del track.chunks[len(self._bounds) - 1 :]  # of a call that Ctrl-C has ended
            track.extend(len(self.lengths), entries)
        self._bounds.append(self._bounds[-1] + entries)


#: The place of an array in an episode: ``("obs",)``, or ``("obs", "camera", 0)`` in nested spaces.
Path: TypeAlias = tuple[str | int, ...]


@dataclass
class Episode:
    """The steps and the metadata of one episode.

    Attributes:
        metadata: As ``episode_filter`` gets it and the JSON file has it.
        arrays: Copies; observations and infos have one entry more than actions and rewards.
        groups: Parts of observations and actions without any array, such as an empty dictionary.
    """

    metadata: dict[str, Any]
    arrays: dict[Path, NDArray[Any]]
    groups: list[Path] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def leaves(
    space: Space[Any], path: Path, *, texts: bool = False
) -> Iterator[tuple[Path, Space[Any]]]:
    """Yields the parts of a space that are arrays, or perhaps texts, each with its path.

    Raises:
        TypeError: A part is neither.
        ValueError: A key cannot be a name in a file.
    """
    if isinstance(space, Dict):
        for key, part in space.spaces.items():
            if not isinstance(key, str) or not all(map(is_name, key.split("/"))):
                raise ValueError(
                    f"the key {key!r} of {space} cannot be the name of a group in a file: names "
                    "are text, not empty, not '.', and without zeros; '/' stands between the names "
                    "of groups. Rename it in a wrapper of the environment."
                )
            yield from leaves(part, (*path, key), texts=texts)
    elif isinstance(space, Tuple):
        for number, part in enumerate(space.spaces):
            yield from leaves(part, (*path, number), texts=texts)
    elif texts and isinstance(space, Text):
        yield path, space
    elif space.shape is None or space.dtype is None or np.dtype(space.dtype).kind not in "biufc":
        advice = "`cartwheel.wrappers.FilterObservation` leaves parts of observations out."
        raise TypeError(
            f"episodes are recorded as arrays, but {space} at `{'/'.join(map(str, path))}` has no "
            f"fixed shape and dtype. {advice if texts and len(path) > 1 else ''}".rstrip()
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


def as_groups(path: Path) -> Path:
    """Returns a path in a file: a key with ``"/"`` is the names of several groups."""
    return tuple(
        name for key in path for name in (key.split("/") if isinstance(key, str) else (key,))
    )


def grouped(space: Space[Any]) -> Space[Any]:
    """Returns a space as a file has it: keys with ``"/"`` are the names of nested groups.

    Raises:
        ValueError: Two parts would have the same place, or one would be within an array.
    """
    if isinstance(space, Tuple):
        return Tuple([grouped(part) for part in space.spaces])
    return _as_space(_tree(space)) if isinstance(space, Dict) else space


def _tree(space: Dict) -> dict[str, Any]:
    """The groups of a space, as dictionaries; other spaces are their leaves."""
    tree: dict[str, Any] = {}
    for key, part in space.spaces.items():
        *above, last = str(key).split("/")
        inner: Any = {last: _tree(part) if isinstance(part, Dict) else grouped(part)}
        for name in reversed(above):
            inner = {name: inner}
        _merge(tree, inner, space)
    return tree


def _merge(tree: dict[str, Any], other: dict[str, Any], space: Dict, path: str = "") -> None:
    for name, part in other.items():
        if name not in tree:
            tree[name] = part
        elif isinstance(part, dict) and isinstance(tree[name], dict):
            _merge(tree[name], part, space, f"{path}{name}/")
        else:
            raise ValueError(
                f"two parts of {space} would have the place '{path}{name}' in a file, where '/' in "
                "a key stands between the names of groups: rename one in a wrapper of the "
                "environment."
            )


def _as_space(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    return Dict({name: _as_space(part) for name, part in tree.items()})


def is_name(text: str) -> bool:
    """Whether a text can be the name of a group or an array in an HDF5 file."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return text not in ("", ".") and "\0" not in text


#: Keys about the batch, not about an episode.
OF_THE_BATCH = frozenset(
    [
        "env_error",
        "env_index",
        "final_frame",
        "final_info",
        "final_obs",
        "final_observation",
        "infos_lost",
        "restarted",
        "worker_restarted",
    ]
)


def infos_of_ended(infos: dict[str, Any], reports: Iterable[str]) -> dict[str, Any]:
    """Returns the infos of places that ended an episode and show the next one, in ``SAME_STEP``.

    Args:
        infos: Of a batch.
        reports: Keys of infos that are about the episode that ended, wherever they are.
    """
    last = infos.get("final_info")  # in other modes an environment may have one of its own
    own = {key: infos[key] for key in reports if key in infos}
    return own | last if isinstance(last, dict) else own


def numbers(
    infos: dict[str, Any],
    size: int,
    leave_out: Callable[[Path, str], None] = lambda _path, _reason: None,
    path: Path = (),
) -> Iterator[tuple[Path, NDArray[Any], NDArray[np.bool_]]]:
    """Yields the numbers and flags in infos, but no other values.

    A key that is not text has the name ``str(key)``, as in its mask. One with ``"/"`` is a path.

    Args:
        infos: Of a batch.
        size: The rows of the batch.
        leave_out: Called with a path and a reason for numbers that cannot be recorded.
        path: The prefix of the paths.

    Yields:
        A path, an array ``[size, ...]`` and the mask of the rows that have it.
    """
    masks = masks_of(infos)
    for key, values in infos.items():
        name = str(key)
        own = (*path, *name.split("/"))
        if key in masks:
            if f"_{key}" in infos:  # it has a mask itself
                other = "/".join(map(str, (*path, name[1:])))
                leave_out(own, f"it has the name of the mask of `{other}`")
            continue
        if not path and key in OF_THE_BATCH:
            continue
        mask = infos.get(f"_{key}")
        if mask is None or len(mask) != size:
            mask = np.ones(size, np.bool_)
        if isinstance(values, dict):
            for inner, array, there in numbers(values, size, leave_out, own):
                yield inner, array, there & mask
            continue
        array = np.asarray(values)
        if array.ndim and array.dtype == object and len(array) == size:
            try:
                array = _of_objects(array, np.flatnonzero(mask))
            except ValueError:
                leave_out(own, "its values have no common shape")
                continue
        if array.ndim and len(array) == size and array.dtype.kind in "biuf":
            yield own, array, mask


def _of_objects(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Objects as numbers, if all are: Gymnasium keeps ``np.bool_`` and lists as they are.

    Raises:
        ValueError: They are ragged.
    """
    found = np.array(values[places].tolist())
    if found.dtype.kind not in "biuf" or not len(found):
        return values
    array = np.zeros((len(values), *found.shape[1:]), found.dtype)
    array[places] = found
    return array
