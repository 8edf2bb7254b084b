"""Records the steps of all environments, episode by episode."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Text

from cartwheel._internal import nested
from cartwheel._internal.nested import as_array
from cartwheel.recorder.buffer import (
    EpisodeBuffer,
    Path,
    as_groups,
    empty_groups,
    grouped,
    is_name,
    leaves,
    numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.wrappers.batch import Batch

    Rows = NDArray[np.int64]
    #: Whether an episode was terminated, and whether it was truncated.
    Flags = tuple[bool, bool]

#: The infos that both layouts have.
FLAGS = ("success", "fail")
#: The maximum number of recorded infos of the present episodes: each has an entry for every step.
MAX_INFOS = 512
#: The maximum number of warnings about infos that are left out.
MAX_WARNINGS = 16


class TrajectoryRecorder:
    """Records observations, actions, rewards, infos and states of all environments.

    Args:
        num_envs: The number of environments.
        observation_space: Of one environment; ``None``: neither observations nor actions.
        action_space: Of one environment.
        keeps_infos: Whether all numbers in infos are recorded, and not only ``success``, ``fail``.
        get_state: Returns a state for each row of a list, or ``None`` while it cannot.

    Raises:
        TypeError: A space has parts that are neither arrays nor texts of observations.
        ValueError: A key of a space cannot be a name in a file.
    """

    #: Whether observations may have texts.
    _takes_texts = True

    def __init__(
        self,
        num_envs: int,
        observation_space: Space[Any] | None,
        action_space: Space[Any],
        *,
        keeps_infos: bool,
        get_state: Callable[[list[int]], list[bytes] | None] | None,
    ) -> None:
        self._buffer = EpisodeBuffer(num_envs)
        self._keeps_infos, self._get_state = keeps_infos, get_state
        #: The last actions of all environments: the results come later.
        self._actions: dict[Path, NDArray[Any]] = {}
        self._records = observation_space is not None
        self._buffer.add_track(("rewards",), (), np.float64, first=1)
        #: For each info, the rows whose present episode has it.
        self._present: dict[Path, NDArray[np.bool_]] = {}
        #: Infos that are left out, of which was warned.
        self._refused: set[Path] = set()
        #: Parts of observations and actions without any array.
        self.groups: list[Path] = []
        #: Those of observations and actions.
        self.spaces = observation_space, action_space
        #: That of observations, if it has texts.
        self._text_space: Space[Any] | None = None
        if observation_space is None:
            return
        self.groups += map(as_groups, empty_groups(observation_space, ("obs",)))
        self.groups += map(as_groups, empty_groups(action_space, ("actions",)))
        for path, space in leaves(observation_space, ("obs",), texts=self._takes_texts):
            is_text = isinstance(space, Text)
            self._buffer.add_track(
                path, space.shape or (), object if is_text else space.dtype or float
            )
        if nested.has_text(observation_space):
            self._text_space = observation_space
        for path, space in leaves(action_space, ("actions",)):
            self._buffer.add_track(path, space.shape or (), space.dtype or float, first=1)
            self._actions[path] = np.zeros((num_envs, *(space.shape or ())), space.dtype)
        for space in (observation_space, action_space):
            grouped(space)  # refuses keys that would have one place
        if get_state is not None:
            self._buffer.add_track(("env_states",), (), object)

    def lengths(self, rows: Any) -> Rows:
        """The steps of the present episodes."""
        lengths: Rows = self._buffer.lengths[rows]
        return lengths

    def act(self, actions: Any, rows: Any, busy: Iterable[int]) -> None:
        """Keeps copies of actions until their results come.

        Args:
            actions: A batch.
            rows: The environments; ``None`` for all.
            busy: Environments that have not answered: a call that names them will be refused.

        Raises:
            ValueError: The actions do not fit their space.
        """
        at: Any = slice(None)
        if rows is not None:
            at = np.asarray(rows)
            num_envs = len(self._buffer.lengths)
            if at.ndim != 1 or at.dtype.kind not in "iu" or ((at < 0) | (at >= num_envs)).any():
                return  # the environments refuse such rows
        flying = [*busy]
        for path, kept in self._actions.items():
            part = actions
            for key in path[1:]:
                part = part[key]
            given = as_array("/".join(map(str, path)), part)
            if _is_wider(given, kept) and not isinstance(part, list | tuple):
                # MuJoCo computes other bits with other floats.
                kept = self._actions[path] = kept.astype(given.dtype)
                self._buffer.retype(path, given.dtype)
            expected = kept[at].shape
            if given.shape != expected and given.size != np.prod(expected):
                raise ValueError(
                    f"`{'/'.join(map(str, path))}` must have shape {expected}, with one entry for "
                    f"each row, got {given.shape}."
                )
            before = kept[flying] if flying else None
            kept[at] = given.reshape(expected)
            if before is not None:
                kept[flying] = before

    def begin(
        self, rows: Rows, places: Any, observations: Any, infos: dict[str, Any], size: int
    ) -> None:
        """Episodes of ``rows``, which are at ``places`` of a batch of ``size`` rows, begin."""
        entries: dict[Any, Any] = {}
        if self._records:
            for present in self._present.values():
                present[rows] = False
            entries = {path: array[places] for path, array in self._arrays(observations)}
            mask = np.zeros(size, np.bool_)
            mask[places] = True
            entries |= self._infos([(infos, mask)], size, rows, places)
            self._add_states(entries, rows, np.zeros(len(rows), np.bool_))
        self._buffer.begin(rows, entries)

    def add(
        self,
        rows: Rows,
        places: Any,
        observations: Any,
        batch: Batch,
        infos: list[tuple[dict[str, Any], NDArray[np.bool_]]],
        gone: NDArray[np.bool_],
    ) -> None:
        """Adds a step of ``rows``, which are at ``places`` of a batch.

        Args:
            rows: The environments.
            places: Their places.
            observations: The true next observations, of the batch.
            batch: The batch, for rewards and flags.
            infos: Infos of the step, each with a mask of the places that it is about.
            gone: Which of ``rows`` are in the next episode already, so that their state is lost.
        """
        entries: dict[Any, Any] = {
            path: array[places] for path, array in self._results(observations, batch)
        }
        if self._records:
            for path, array in self._arrays(observations):
                entries[path] = array[places]
            for path, kept in self._actions.items():
                entries[path] = kept[rows]
            entries |= self._infos(infos, len(batch.kinds), rows, places)
            self._add_states(entries, rows, gone)
        self._buffer.add(rows, entries)

    def _arrays(self, observations: Any) -> Iterable[tuple[Path, NDArray[Any]]]:
        """Returns what is recorded of the observations of a batch, with the paths of the tracks."""
        if self._text_space is not None:
            observations = nested.with_text_arrays(self._text_space, observations)
        return nested.paths(observations, ("obs",))

    def _results(self, observations: Any, batch: Batch) -> Iterable[tuple[Path, NDArray[Any]]]:
        """Returns what is recorded of the results of a step, with the paths of the tracks."""
        return [(("rewards",), self.totals(observations, batch.rewards))]

    def totals(self, observations: Any, rewards: Any) -> NDArray[Any]:
        """Returns the reward of each place of a batch, with its true next observations."""
        del observations
        return np.asarray(rewards)

    def cut(self, row: int, flags: Flags) -> tuple[dict[Path, NDArray[Any]], Flags]:
        """Returns copies of the present episode of an environment, and its last flags."""
        return self._episode(row), flags

    def placed(
        self, arrays: dict[Path, NDArray[Any]], *, rewards: bool
    ) -> dict[Path, NDArray[Any]]:
        """Returns the arrays of an episode with their paths in the file, with rewards or not."""
        return {path: array for path, array in arrays.items() if rewards or path != ("rewards",)}

    def _episode(self, row: int) -> dict[Path, NDArray[Any]]:
        episode: dict[Path, NDArray[Any]] = {}
        for path, array in self._buffer.cut(row).items():
            if path == ("env_states",):
                episode |= _as_bytes(array) if any(array) else {}
            elif path not in self._present or self._present[path][row]:
                episode[as_groups(path)] = _encoded(array) if array.dtype == object else array
        return episode

    def shrink(self) -> None:
        """Gives memory back after a long episode."""
        self._buffer.shrink()

    def _infos(
        self,
        infos: list[tuple[dict[str, Any], NDArray[np.bool_]]],
        size: int,
        rows: Rows,
        places: Any,
    ) -> dict[Path, NDArray[Any]]:
        """One entry for each track of infos, with the values of these rows."""
        entries: dict[Path, NDArray[Any]] = {}
        for source, where in infos:
            seen: set[Path] = set()
            for name, values, mask in numbers(source, size, self._leave_out) if source else ():
                path = self._path(name)
                there = mask & where
                if path is None or not there.any():
                    continue
                if path in seen:
                    self._leave_out(name, "another info has the same name")
                    continue
                seen.add(path)
                track = self._track(path, values)
                if track is None:
                    continue
                if path not in entries:
                    entries[path] = np.full((size, *track.shape), track.fill, track.dtype)
                else:  # the infos of the other rows may have widened the track
                    entries[path] = entries[path].astype(track.dtype, copy=False)
                entries[path][there] = _flat_flags(values, track.shape)[there]
                present = there[places]
                self._present[path][rows[present]] = True
        found = {path: values[places] for path, values in entries.items()}
        for path in self._present:
            if path not in found:  # these infos do not have it
                track = self._buffer.track(path)
                assert track is not None
                found[path] = np.full((len(rows), *track.shape), track.fill, track.dtype)
        return found

    def _path(self, name: Path) -> Path | None:
        if self._keeps_infos:
            return ("infos", *name)
        return name if len(name) == 1 and name[0] in FLAGS else None

    def _track(self, path: Path, values: NDArray[Any]) -> Any:
        """The track of an info; ``None`` if earlier values have another shape."""
        track = self._buffer.track(path)
        dtype = values.dtype if self._keeps_infos else np.dtype(np.bool_)
        shape = values.shape[1:] if self._keeps_infos else ()
        if track is None or path not in self._present:  # as Ctrl-C may have left it
            if not self._has_room(path):
                return None
            fill: Any = np.nan if dtype.kind == "f" else 0 if self._keeps_infos else False
            first = 0 if self._keeps_infos else 1
            self._buffer.add_track(path, shape, dtype, fill=fill, first=first)
            self._present[path] = np.zeros(len(self._buffer.lengths), np.bool_)
            return self._buffer.track(path)
        if track.shape != shape:
            self._leave_out(path[1:], f"it has the shape {shape}, and {track.shape} before")
            return None
        if track.dtype != dtype:
            self._buffer.retype(path, np.promote_types(track.dtype, dtype))
        return track

    def _has_room(self, path: Path) -> bool:
        """Whether another info can be recorded; forgets infos that no present episode has."""
        name = path[1:] if self._keeps_infos else path
        if not all(map(is_name, map(str, name))):
            self._leave_out(name, "a file has no such name")
            return False
        rivals = [other for other in self._present if _clash(path, other)]
        if rivals or len(self._present) >= MAX_INFOS:
            for other in [other for other, rows in self._present.items() if not rows.any()]:
                del self._present[other]
                self._buffer.drop_track(other)
        if any(other in self._present for other in rivals):
            self._leave_out(name, "it is a number and a dictionary of numbers in one episode")
            return False
        if len(self._present) >= MAX_INFOS:
            self._leave_out(name, f"the present episodes have {MAX_INFOS} others")
            return False
        return True

    def _leave_out(self, name: Path, reason: str) -> None:
        """Warns, once for each name and of few names, that an info is not recorded."""
        if not self._keeps_infos or name in self._refused or len(self._refused) >= MAX_WARNINGS:
            return
        self._refused.add(name)
        last = "; further ones are left out without a warning"
        warnings.warn(
            f"the info {'/'.join(map(str, name))!r} is left out of the recording, because {reason}"
            f"{last if len(self._refused) == MAX_WARNINGS else ''}",
            stacklevel=2,
        )

    def _add_states(self, entries: dict[Any, Any], rows: Rows, gone: NDArray[np.bool_]) -> None:
        if self._get_state is None:
            return
        states = np.full(len(rows), b"", object)
        present = rows[~gone]
        answers = self._get_state(present.tolist()) if len(present) else None
        if answers is not None:
            states[~gone] = answers
        entries[("env_states",)] = states


def _encoded(texts: NDArray[Any]) -> NDArray[Any]:
    """Texts as UTF-8 in as many bytes as the longest has: those of a file have a known size."""
    return np.char.encode(texts.astype(np.str_), "utf-8")


def _is_wider(given: NDArray[Any], kept: NDArray[Any]) -> bool:
    """Whether both are floats, and ``given`` has more bits."""
    return given.dtype.kind == kept.dtype.kind == "f" and given.itemsize > kept.itemsize


def _clash(path: Path, other: Path) -> bool:
    """Whether one of two paths leads through the other: an array is not a group."""
    length = min(len(path), len(other))
    return path[:length] == other[:length] and path != other


def _flat_flags(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A flag that is an array is true if all of it is."""
    if values.shape[1:] == shape:
        return values
    flags = values.reshape(len(values), -1).astype(np.bool_)
    return np.asarray(flags.all(axis=1))


def _as_bytes(states: NDArray[Any]) -> dict[Path, NDArray[Any]]:
    """States as an array of bytes, padded to the longest, and their lengths."""
    lengths = np.array([len(state) for state in states], np.int64)
    longest = int(lengths.max(initial=0))
    padded = b"".join(state.ljust(longest, b"\0") for state in states)
    return {
        ("env_states", "bytes"): np.frombuffer(padded, np.uint8).reshape(len(states), longest),
        ("env_states", "length"): lengths,
    }
