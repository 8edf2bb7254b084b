"""Layouts of recorded trajectories: Minari's and ManiSkill's.

Minari's is a folder with a file of arrays and a file of metadata; ManiSkill's is a file of arrays
and a file of JSON.
"""

from __future__ import annotations

import errno
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

from cartwheel._cartwheel import VERSION
from cartwheel.recorder.buffer import grouped
from cartwheel.recorder.h5_file import ATTRIBUTE_BYTES, H5File
from cartwheel.recorder.metadata import (
    compiled_model,
    env_info,
    single_spec,
    to_json,
    with_model,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.recorder.buffer import Episode, Path

#: The version of Minari whose layout this is: the first that reads images other than JPEG.
LAYOUT_VERSION = "0.5.4"
NAMES = {"obs": "observations", "terminated": "terminations", "truncated": "truncations"}
#: The arrays of an episode.
PARTS = ("obs", "actions", "rewards", "terminated", "truncated", "infos", "state")
_ID = re.compile(r"(?:[-_\w][-_\w/]*[-_\w]+/)?[-_\w]+?-v\d+")


class MinariFiles:
    """``<root>/data/main_data.hdf5`` and ``metadata.json``, as Minari's reader expects them.

    The numbers of episodes and steps are written when the files are closed; the file of arrays is
    whole before.

    Args:
        root: The folder of the dataset.
        dataset_id: Minari's name of it, which ends with ``-v`` and a number.
        envs: The recorded vector environment.
        spaces: The recorded spaces of observations and actions.
        extras: Other entries of the metadata.

    Raises:
        FileExistsError: There is such a dataset.
        OSError: The folder cannot be made.
        TypeError: Minari does not know a space.
    """

    def __init__(
        self,
        root: FilePath,
        dataset_id: str,
        envs: Any,
        spaces: tuple[Space[Any], Space[Any]],
        extras: dict[str, Any],
    ) -> None:
        forms = {
            name: json.dumps(space_form(grouped(space)))
            for name, space in zip(("observation_space", "action_space"), spaces, strict=True)
        }
        folder = root / "data"
        self.json_path, model_path = folder / "metadata.json", folder / "model.mjb"
        _check_new(self.json_path, model_path)
        folder.mkdir(parents=True, exist_ok=True)
        self._file = H5File(folder / "main_data.hdf5")
        self.path = self._file.path
        described = with_model(_env_spec(envs), compiled_model(envs), model_path)
        self._file.flush()  # so that readers find a file without episodes
        self._episodes = self._steps = 0
        self._header = {
            "data_format": "hdf5",
            "jpeg_encoding": False,
            "dataset_id": dataset_id,
            "minari_version": LAYOUT_VERSION,
            "cartwheel_version": VERSION,
            **forms,
            **described,
            **extras,
        }
        self._write_metadata()

    def write(self, episode: Episode) -> bool:
        """Adds an episode; its number must be the next one."""
        metadata, found = episode.metadata, episode.arrays
        arrays = {_path(path): found[path] for path in found if path[0] in PARTS}
        # Minari reads no states; the first one is enough to play the episode again.
        arrays |= {path: found[path][:1] for path in found if path[0] == "env_states"}
        attributes = {
            "id": metadata["episode_id"],
            "total_steps": metadata["elapsed_steps"],
            **_flat(metadata["reset_kwargs"].get("options") or {}, "options"),
            "metadata": episode_attribute(metadata),
        }
        if metadata["episode_seed"] is not None:
            attributes["seed"] = metadata["episode_seed"]
        groups = map(_path, episode.groups)
        self._file.write(f"episode_{metadata['episode_id']}", arrays, groups, **attributes)
        self._episodes += 1
        self._steps += metadata["elapsed_steps"]
        return True

    def flush(self) -> None:
        """Makes the episodes readable in the file of arrays."""
        self._file.flush()

    def close(self) -> None:
        """Closes both files."""
        self._file.close()
        self._write_metadata()

    def _write_metadata(self) -> None:
        totals = {"total_episodes": self._episodes, "total_steps": self._steps}
        size = round(self.path.stat().st_size / 1e6, 1)
        write_json(self.json_path, {**self._header, **totals, "dataset_size": size})


def as_dataset_id(name: str) -> str:
    """Returns a name of a dataset, with a version.

    Raises:
        ValueError: Minari would refuse it.
    """
    dataset_id = name if re.search(r"-v\d+$", name) else f"{name}-v0"
    if not _ID.fullmatch(dataset_id):
        raise ValueError(
            f"`trajectory_name`={name!r} is not the name of a Minari dataset, which has letters, "
            "digits, '-' and '_', perhaps '/', and ends with '-v' and a number."
        )
    return dataset_id


def space_form(space: Space[Any]) -> dict[str, Any]:
    """Returns a space in the form that Minari's ``deserialize_space`` reads.

    Raises:
        TypeError: Minari does not support the space.
    """
    if isinstance(space, Box):
        return {
            "type": "Box",
            "dtype": str(space.dtype),
            "shape": list(space.shape),
            "low": space.low.tolist(),
            "high": space.high.tolist(),
        }
    if isinstance(space, Discrete):
        return {
            "type": "Discrete",
            "dtype": str(space.dtype),
            "start": int(space.start),
            "n": int(space.n),
        }
    if isinstance(space, MultiDiscrete):
        return {
            "type": "MultiDiscrete",
            "dtype": str(space.dtype),
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
        }
    if isinstance(space, MultiBinary):
        return {"type": "MultiBinary", "n": np.asarray(space.n).tolist()}
    if isinstance(space, Dict):
        parts = {key: space_form(part) for key, part in space.spaces.items()}
        return {"type": "Dict", "subspaces": parts}
    if isinstance(space, Tuple):
        return {"type": "Tuple", "subspaces": [space_form(part) for part in space.spaces]}
    if isinstance(space, Text):
        return {
            "type": "Text",
            "max_length": space.max_length,
            "min_length": space.min_length,
            "charset": "".join(sorted(space.character_set)),
        }
    raise TypeError(f"Minari does not support the space {space}: use format='maniskill'.")


def _env_spec(envs: Any) -> dict[str, Any]:
    """The specification of one environment, or its description; nothing if there is neither."""
    spec = single_spec(envs)
    if spec is None:
        return env_info(envs) if hasattr(envs.unwrapped, "description") else {}
    try:
        return {"env_spec": spec.to_json()}
    except Exception:
        return {}


def _path(path: Path) -> Path:
    first = NAMES.get(str(path[0]), path[0])
    return first, *(f"_index_{part}" if isinstance(part, int) else part for part in path[1:])


def _flat(options: dict[str, Any], name: str) -> dict[str, Any]:
    """Options as attributes, ``options/key/…``; values that HDF5 cannot store are JSON."""
    flat: dict[str, Any] = {}
    for key, value in options.items():
        path = f"{name}/{key}"
        array = None if isinstance(value, dict) else _array(value)
        if isinstance(value, dict) and value:
            flat.update(_flat(value, path))
        elif isinstance(value, str):
            flat[path] = value
        elif array is not None and array.nbytes < 4096:
            flat[path] = array
        else:
            flat[path] = to_json(value)[:4096]
    return flat


def _array(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None
    return array if array.dtype.kind in "biuf" else None


#: The arrays of an episode, in ManiSkill's order.
MANISKILL_ORDER = (
    "obs",
    "actions",
    "terminated",
    "truncated",
    "success",
    "fail",
    "env_states",
    "rewards",
    "state",
    "agents",
)


class ManiSkillFiles:
    """``<stem>.h5`` and ``<stem>.json``, as ManiSkill's recorder writes them and its loader reads.

    The metadata are in the ``.h5`` file, too: the JSON file is written when the files are closed,
    because writing it for each episode would take longer and longer.

    Args:
        stem: The path of both files without their suffixes.
        env_info: Of the environments.
        source: ``source_type`` and ``source_desc``, where given.
        model: The compiled model, for ``<stem>.mjb``; ``None`` if the environments have none.

    Raises:
        FileExistsError: There is such a file.
        OSError: The files cannot be made.
    """

    def __init__(
        self,
        stem: FilePath,
        env_info: dict[str, Any],
        source: dict[str, Any],
        model: bytes | None = None,
    ) -> None:
        self.json_path = stem.with_name(f"{stem.name}.json")
        model_path = stem.with_name(f"{stem.name}.mjb")
        _check_new(self.json_path, model_path)
        self._file = H5File(stem.with_name(f"{stem.name}.h5"))
        self.path = self._file.path
        self._header = {
            "env_info": with_model(env_info, model, model_path),
            "commit_info": {"cartwheel_version": VERSION},
            **source,
        }
        self._file.set_attributes(metadata=maniskill_header(self._header))
        self._file.flush()  # so that readers find a file without episodes
        self._episodes: list[dict[str, Any]] = []

    def write(self, episode: Episode) -> bool:
        """Adds an episode; its number must be the next one."""
        metadata, found = episode.metadata, episode.arrays
        ordered = sorted(found, key=lambda path: MANISKILL_ORDER.index(str(path[0])))
        arrays: dict[Path, NDArray[Any]] = {path: found[path] for path in ordered}
        if ("actions",) in arrays:  # the loader stacks rows of them
            actions = arrays[("actions",)]
            arrays[("actions",)] = actions.reshape(len(actions), -1)
        if ("rewards",) in arrays:
            arrays[("rewards",)] = arrays[("rewards",)].astype(np.float32)
        name = f"traj_{metadata['episode_id']}"
        self._file.write(name, arrays, episode.groups, metadata=episode_attribute(metadata))
        self._episodes.append(metadata)
        return True

    def flush(self) -> None:
        """Makes the episodes readable in the ``.h5`` file."""
        self._file.flush()

    def close(self) -> None:
        """Writes the JSON file and closes both."""
        self._file.close()
        write_json(self.json_path, {**self._header, "episodes": self._episodes}, indent=2)


def _check_new(*paths: FilePath) -> None:
    for path in paths:
        if path.exists():
            raise FileExistsError(errno.EEXIST, "File exists", str(path))


def maniskill_header(metadata: dict[str, Any]) -> np.bytes_:
    """Returns the metadata of a file as an attribute, without long entries if it is too large."""
    text = to_json(metadata)
    if len(text) > ATTRIBUTE_BYTES and "model" in metadata["env_info"]:
        model = {**metadata["env_info"]["model"], "xml": None}
        metadata = {**metadata, "env_info": {**metadata["env_info"], "model": model}}
        text = to_json(metadata)
    if len(text) > ATTRIBUTE_BYTES:
        short = {**metadata["env_info"], "env_kwargs": {}}
        text = to_json({"env_info": short, "commit_info": metadata["commit_info"]})
    return np.bytes_(text)


def episode_attribute(metadata: dict[str, Any]) -> np.bytes_:
    """Returns the metadata of an episode as an attribute, without options that are too large."""
    text = to_json(metadata)
    if len(text) > ATTRIBUTE_BYTES:
        kept = {key: value for key, value in metadata["reset_kwargs"].items() if key != "options"}
        text = to_json({**metadata, "reset_kwargs": kept})
    return np.bytes_(text)
