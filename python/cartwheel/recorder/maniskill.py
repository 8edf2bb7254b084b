"""Trajectories in ManiSkill's layout: a file of arrays and a file of JSON."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import VERSION
from cartwheel.recorder.about import to_json, write_json
from cartwheel.recorder.h5_file import ATTRIBUTE_BYTES, H5File

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from cartwheel.recorder.episode import Episode, Path

#: The arrays of an episode, in ManiSkill's order.
ORDER = ("obs", "actions", "terminated", "truncated", "success", "fail", "env_states", "rewards")


class ManiSkillFiles:
    """``<stem>.h5`` and ``<stem>.json``, as ManiSkill's recorder writes them and its loader reads.

    The metadata are in the ``.h5`` file, too: the JSON file is written when the files are closed,
    because writing it for each episode would take longer and longer.

    Args:
        stem: The path of both files without their suffixes.
        env_info: Of the environments.
        source: ``source_type`` and ``source_desc``, where given.

    Raises:
        FileExistsError: There is such a file.
        OSError: The files cannot be made.
    """

    def __init__(self, stem: FilePath, env_info: dict[str, Any], source: dict[str, Any]) -> None:
        """Makes the ``.h5`` file."""
        self.json_path = stem.with_name(f"{stem.name}.json")
        if self.json_path.exists():
            raise FileExistsError(errno.EEXIST, "File exists", str(self.json_path))
        self._file = H5File(stem.with_name(f"{stem.name}.h5"))
        self.path = self._file.path
        self._header = {
            "env_info": env_info,
            "commit_info": {"cartwheel_version": VERSION},
            **source,
        }
        self._file.note(about=header(self._header))
        self._file.flush()  # so that readers find a file without episodes
        self._episodes: list[dict[str, Any]] = []

    def write(self, episode: Episode) -> bool:
        """Adds an episode; its number must be the next one."""
        about, found = episode.about, episode.arrays
        ordered = sorted(found, key=lambda path: ORDER.index(str(path[0])))
        arrays: dict[Path, NDArray[Any]] = {path: found[path] for path in ordered}
        if ("actions",) in arrays:  # the loader stacks rows of them
            actions = arrays[("actions",)]
            arrays[("actions",)] = actions.reshape(len(actions), -1)
        if ("rewards",) in arrays:
            arrays[("rewards",)] = arrays[("rewards",)].astype(np.float32)
        name = f"traj_{about['episode_id']}"
        self._file.write(name, arrays, episode.groups, about=attribute(about))
        self._episodes.append(about)
        return True

    def flush(self) -> None:
        """Makes the episodes readable in the ``.h5`` file."""
        self._file.flush()

    def close(self) -> None:
        """Writes the JSON file and closes both."""
        self._file.close()
        write_json(self.json_path, {**self._header, "episodes": self._episodes}, indent=2)


def header(about: dict[str, Any]) -> np.bytes_:
    """Returns the metadata of a file as an attribute; without what may be long, if they are."""
    text = to_json(about)
    if len(text) > ATTRIBUTE_BYTES:
        env_info = {**about["env_info"], "env_kwargs": {}}
        text = to_json({"env_info": env_info, "commit_info": about["commit_info"]})
    return np.bytes_(text)


def attribute(about: dict[str, Any]) -> np.bytes_:
    """Returns the metadata of an episode as an attribute, without options that are too large."""
    text = to_json(about)
    if len(text) > ATTRIBUTE_BYTES:
        kept = {key: value for key, value in about["reset_kwargs"].items() if key != "options"}
        text = to_json({**about, "reset_kwargs": kept})
    return np.bytes_(text)
