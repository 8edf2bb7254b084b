"""Reads recorded episodes."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel._internal.progress import Progress
from cartwheel.recorder.h5_file import load_library
from cartwheel.recorder.layouts import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names of Minari's arrays in ManiSkill's words.
_WORDS = {theirs: ours for ours, theirs in NAMES.items()}
#: Arrays that belong to steps; those of :data:`SHOWN` have one entry more.
STEPS = ("actions", "terminated", "truncated", "rewards", "success", "fail", "agents")
SHOWN = ("obs", "present", "state")


class TrajectoryDataset:
    """The transitions of recorded episodes, in memory.

    It reads both layouts of :class:`RecordEpisode` and :class:`RecordParallelEpisode`, files of
    ManiSkill, and the files of a program that was killed, in which case it takes the metadata from
    the file of arrays. The arrays have the transitions of one episode after the other;
    ``dataset[i]`` is one transition.

    Example:
        dataset = TrajectoryDataset("runs/cartpole/demo.h5")
        loader = torch.utils.data.DataLoader(dataset, batch_size=256, shuffle=True)

    Args:
        path: ManiSkill's ``.h5`` file; or Minari's folder, its ``data`` folder or its file.
        load_count: The number of episodes to read, from the first on; -1 for all.
        success_only: Whether episodes that did not succeed at their end are left out.
        device: A device of PyTorch, for tensors; ``None`` for NumPy arrays. Texts are always arrays
            of strings.

    Attributes:
        obs: Observations before the actions, ``[transitions, ...]``, nested as recorded.
        actions: Actions, nested as recorded.
        terminated: ``bool`` ``[transitions]``.
        truncated: ``bool`` ``[transitions]``.
        rewards: ``[transitions]``; ``None`` if an episode has none. So are ``success``, ``fail``.
        agents: Of several agents: for each a dictionary with ``rewards``, ``terminated``,
            ``truncated`` and ``acted``, ``[transitions]``, and perhaps ``success`` and ``fail``,
            false in episodes without them; otherwise ``None``, as what follows.
            Observations and actions are dictionaries by agent then. An agent's transitions are
            those where ``acted``.
        present: For each agent whether ``obs`` have an observation of it, ``bool``
            ``[transitions]``.
        state: The state of the environment before the actions, ``[transitions, ...]``.
        episodes: The metadata of the episodes that were read.
        env_info: Of the environments; for Minari its ``metadata.json``.

    Raises:
        FileNotFoundError: The file does not exist.
        TypeError: ``path`` is not a path, or ``success_only`` is not a ``bool``.
        ValueError: The file has no trajectories; ``success_only``, but an episode has no report
            of success; or ``load_count`` is wrong.
        ImportError: ``h5py`` is missing: ``pip install 'cartwheel[record]'``; or a ``device`` is
            given, and PyTorch is missing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        load_count: int = -1,
        success_only: bool = False,  # noqa: FBT001 - ManiSkill's signature
        device: Any = None,
    ) -> None:
        h5py = load_library("h5py")
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"`path` must be the path of a recording, got {path!r}.")
        count = as_integer("load_count", load_count, -1)
        success_only = as_bool("success_only", success_only)
        self.path = _file(FilePath(path))
        is_minari = self.path.suffix == ".hdf5"
        #: The names of groups of episodes, without their number.
        self._prefix = "episode_" if is_minari else "traj_"
        if not h5py.is_hdf5(self.path):
            raise ValueError(
                f"{self.path} is not an HDF5 file: give the `.h5` file of a recording, or Minari's "
                "folder. While a recording continues, its file can be read from 0.25 s after its "
                "first episode on."
            )
        with h5py.File(self.path, "r") as file:
            self.json_data = _metadata(self.path, file, self._prefix, is_minari=is_minari)
            self.env_info: dict[str, Any] = (
                self.json_data if is_minari else self.json_data["env_info"]
            )
            episodes = self.json_data.pop("episodes") if is_minari else self.json_data["episodes"]
            chosen = episodes if count < 0 else episodes[:count]
            if success_only:
                chosen = [metadata for metadata in chosen if _succeeded(metadata)]
            self.episodes: list[dict[str, Any]] = chosen
            forms = _forms(self.json_data) if is_minari else None
            progress = Progress(len(chosen))
            trajectories = []
            for metadata in chosen:
                progress.advance("reading")
                group = file[f"{self._prefix}{metadata['episode_id']}"]
                trajectories.append(_read(group, h5py.Group, forms))
            progress.close()
        lengths = [len(trajectory["terminated"]) for trajectory in trajectories]
        #: The first transition of each episode, and the end of the last one.
        self.starts = np.cumsum([0, *lengths])
        self._join(trajectories, lengths)
        self.device = device
        if device is not None:
            self._move(device)

    def _join(self, trajectories: list[dict[str, Any]], lengths: list[int]) -> None:
        pairs = [*zip(trajectories, lengths, strict=True)]
        _fill_reports([pair for pair in pairs if isinstance(pair[0].get("agents"), dict)])
        tracks = {
            name: nested.concat([one[name] for one in trajectories])
            for name in STEPS
            if trajectories and all(name in one for one in trajectories)
        }
        self.actions: Any = tracks.get("actions")
        self.terminated: Any = tracks.get("terminated", np.zeros(0, np.bool_))
        self.truncated: Any = tracks.get("truncated", np.zeros(0, np.bool_))
        self.rewards: Any = tracks.get("rewards")
        self.success: Any = tracks.get("success")
        self.fail: Any = tracks.get("fail")
        self.agents: Any = tracks.get("agents")
        self.obs: Any = None
        self.present: Any = None
        self.state: Any = None
        #: The last observation of each episode, and so on.
        self.last_obs: Any = None
        self.last_present: Any = None
        self.last_state: Any = None
        for name in SHOWN:
            if pairs and all(name in one for one, _ in pairs):
                shown = [nested.at(one[name], slice(length)) for one, length in pairs]
                setattr(self, name, nested.concat(shown))
                lasts = [nested.at(one[name], slice(length, None)) for one, length in pairs]
                setattr(self, f"last_{name}", nested.concat(lasts))

    def _move(self, device: Any) -> None:
        torch = load_library("torch")

        def tensor(array: Any) -> Any:
            if array.dtype.kind == "U":
                return array
            wide = array.astype(np.int32) if array.dtype == np.uint16 else array
            return torch.as_tensor(wide, device=device)

        for name in (*SHOWN, *(f"last_{name}" for name in SHOWN), *STEPS):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, nested.apply(tensor, value))

    def __repr__(self) -> str:
        read = f"{len(self)} transitions of {len(self.episodes)} episodes"
        return f"<TrajectoryDataset, {read} in {self.path}>"

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self.terminated)

    def __getitem__(self, index: Any) -> dict[str, Any]:
        """Returns a transition, or some: ``obs``, ``action``, ``terminated``, ``truncated``.

        Where recorded, also ``reward``, ``success``, ``fail``, ``agents``, ``present``, ``state``.
        """
        names = {"obs": "obs", "action": "actions", "terminated": "terminated"}
        names |= {"truncated": "truncated", "reward": "rewards", "success": "success"}
        names |= {name: name for name in ("fail", "agents", "present", "state")}
        values = {name: getattr(self, source) for name, source in names.items()}
        return {
            name: nested.at(value, index) for name, value in values.items() if value is not None
        }

    @property
    def model_path(self) -> FilePath | None:
        """The compiled model with which the recording was made; ``None`` if it names no model.

        ``cartwheel.mujoco.make`` and ``mujoco.MjModel.from_binary_path`` load it with the version
        of MuJoCo that ``env_info["model"]`` names, which also has its hash and its XML.

        Raises:
            FileNotFoundError: The file was not kept with the recording.
        """
        model = (self.env_info or {}).get("model")
        if model is None:
            return None
        path = self.path.with_name(model["file"])
        if not path.is_file():
            raise FileNotFoundError(errno.ENOENT, "the recording has lost its model", str(path))
        return path

    def first_states(self, episodes: Iterable[int] | None = None) -> list[bytes]:
        """Returns the states in which episodes began, for ``set_state``.

        Args:
            episodes: Places in :attr:`episodes`; by default all.

        Raises:
            IndexError: The dataset has fewer episodes.
            ValueError: An episode has no states.
        """
        places = range(len(self.episodes)) if episodes is None else episodes
        states = []
        with load_library("h5py").File(self.path, "r") as file:
            for place in places:
                number = self.episodes[place_of(self, place)]["episode_id"]
                group = file[f"{self._prefix}{number}"]
                # ManiSkill's own files have other states, of the parts of a scene.
                has_states = "env_states/length" in group
                length = int(group["env_states/length"][0]) if has_states else 0
                if not length:
                    raise ValueError(
                        f"episode {place} of {self.path} has no state of its beginning: states are "
                        "recorded where environments can be saved, unless record_env_state=False, "
                        "and not while rows are in flight (`send`)."
                    )
                states.append(group["env_states/bytes"][0, :length].tobytes())
        return states

    def episode(self, number: int) -> dict[str, Any]:
        """Returns an episode: observations with ``T + 1`` entries, the rest with ``T``.

        ``present`` and ``state`` have ``T + 1`` entries, too.

        Args:
            number: Its place in :attr:`episodes`.

        Raises:
            IndexError: The dataset has fewer episodes.
        """
        number = place_of(self, number)
        steps = slice(int(self.starts[number]), int(self.starts[number + 1]))
        episode = {
            name: nested.at(getattr(self, name), steps)
            for name in STEPS
            if getattr(self, name) is not None
        }
        for name in SHOWN:
            shown = getattr(self, name)
            if shown is not None:
                last = nested.at(getattr(self, f"last_{name}"), slice(number, number + 1))
                episode[name] = nested.apply(_appended, nested.at(shown, steps), last)
        return episode


def place_of(dataset: TrajectoryDataset, number: int) -> int:
    """Returns the place of an episode; negative numbers count from the end.

    Raises:
        IndexError: The dataset has fewer episodes.
    """
    count = len(dataset.episodes)
    if not -count <= number < count:
        raise IndexError(f"there is no episode {number}: {dataset.path} has {count}")
    return range(count)[number]


def _file(path: FilePath) -> FilePath:
    for name in ("main_data.hdf5", "data/main_data.hdf5"):
        if (path / name).is_file():
            return path / name
    if not path.is_file():
        reason = "there is no trajectory file here"
        if path.is_dir():
            found = ", ".join(sorted(one.name for one in path.glob("*.h5"))) or "none"
            reason += f" (give the `.h5` file of a recording, of which the folder has: {found})"
        raise FileNotFoundError(errno.ENOENT, reason, str(path))
    return path


def _metadata(path: FilePath, file: Any, prefix: str, *, is_minari: bool) -> dict[str, Any]:
    """The metadata; those of episodes from the file of arrays, if the JSON file lacks any."""
    sidecar = path.with_name("metadata.json") if is_minari else path.with_suffix(".json")
    known: dict[str, Any] = json.loads(sidecar.read_text("utf-8")) if sidecar.is_file() else {}
    numbers = sorted({int(name[len(prefix) :]) for name in file if name.startswith(prefix)})
    if not (known or numbers or is_minari or "metadata" in file.attrs):
        raise ValueError(f"{path} has no trajectories: there is no group `traj_0`.")
    if "episodes" not in known or len(known["episodes"]) != len(numbers):
        if not known and "metadata" in file.attrs:
            known = json.loads(bytes(file.attrs["metadata"]))
        known["episodes"] = [
            _episode_metadata(file[f"{prefix}{number}"], number) for number in numbers
        ]
    if not is_minari:
        known.setdefault("env_info", None)
    return known


def _episode_metadata(group: Any, number: int) -> dict[str, Any]:
    if "metadata" in group.attrs:
        metadata: dict[str, Any] = json.loads(bytes(group.attrs["metadata"]))
        return metadata
    terminated = group["terminated" if "terminated" in group else "terminations"]
    metadata = {"episode_id": number, "elapsed_steps": len(terminated)}
    return metadata | {flag: bool(group[flag][-1]) for flag in ("success", "fail") if flag in group}


def _succeeded(metadata: dict[str, Any]) -> bool:
    if "success" not in metadata:
        raise ValueError(
            f"success_only=True, but episode {metadata['episode_id']} does not report "
            "success: its infos had no 'success'."
        )
    return bool(metadata["success"])


def _forms(known: dict[str, Any]) -> dict[str, Any]:
    """The forms of Minari's spaces, by the names of ManiSkill's arrays."""
    names = {"obs": "observation_space", "actions": "action_space"}
    return {ours: json.loads(known[name]) for ours, name in names.items() if name in known}


def _read(group: Any, kind: Any, forms: dict[str, Any] | None) -> dict[str, Any]:
    """An episode as nested dictionaries and tuples of arrays; Minari's has ``forms``."""
    arrays = {}
    is_minari = forms is not None
    for name in group:
        if name in ("infos", "env_states"):
            continue
        word = _WORDS.get(name, name) if is_minari else name
        arrays[word] = _tree(group[name], kind, (forms or {}).get(word))
    for flag in ("success", "fail"):  # Minari has them among the infos, with one entry for a reset
        if is_minari and f"infos/{flag}" in group:
            arrays[flag] = group[f"infos/{flag}"][1:].astype(np.bool_)
    if is_minari and "infos/agents" in group:
        arrays["agents"] = _tree(group["infos/agents"], kind, None)
    return _by_agent(arrays) if isinstance(arrays.get("agents"), dict) else arrays


def _fill_reports(episodes: list[tuple[dict[str, Any], int]]) -> None:
    """Adds reports of success that an episode has not: its agent may not have been there.

    Args:
        episodes: Of several agents, each with its length.
    """
    agents = [(episode["agents"], length) for episode, length in episodes]
    parts = {(name, part) for one, _ in agents for name, own in one.items() for part in own}
    for one, length in agents:
        for name, part in parts:
            one[name].setdefault(part, np.zeros(length, np.bool_))


def _by_agent(arrays: dict[str, Any]) -> dict[str, Any]:
    """An episode of several agents: observations, actions and presence are dictionaries of them."""
    own = arrays.pop("agents")
    agents = {name: dict(found) for name, found in own.items()}
    for part in ("obs", "actions", "present"):
        found = {name: one.pop(part) for name, one in agents.items() if part in one}
        if found:
            arrays[part] = found
    return arrays | {"agents": agents}


def _tree(node: Any, kind: Any, form: dict[str, Any] | None) -> Any:
    """The contents of a group; ``form`` is that of a Minari space, if there is one."""
    if not isinstance(node, kind):
        array = node[()]
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    if form is not None and form["type"] == "Tuple":
        parts = enumerate(form["subspaces"])
        return tuple(_tree(node[f"_index_{number}"], kind, part) for number, part in parts)
    parts_of = form["subspaces"] if form is not None else {}
    return {name: _tree(node[name], kind, parts_of.get(name)) for name in node}


def _appended(steps: Any, last: Any) -> Any:
    if isinstance(steps, np.ndarray):
        return np.concatenate([steps, last])
    return load_library("torch").cat([steps, last])
