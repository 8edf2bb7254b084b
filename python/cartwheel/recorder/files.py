"""The files of a recording."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cartwheel.recorder.about import env_info
from cartwheel.recorder.extra import load
from cartwheel.recorder.maniskill import ManiSkillFiles
from cartwheel.recorder.minari import MinariFiles, as_dataset_id

if TYPE_CHECKING:
    from cartwheel.recorder.writer import Writer

Format = Literal["maniskill", "minari"]
Files: TypeAlias = ManiSkillFiles | MinariFiles


def as_folder(output_dir: str | os.PathLike[str]) -> Path:
    """Makes a folder, if it does not exist.

    Raises:
        TypeError: ``output_dir`` is no path.
        OSError: It cannot be made, or nothing can be written into it.
    """
    try:
        folder = Path(output_dir)
    except TypeError:
        raise TypeError(f"`output_dir` must be the path of a folder, got {output_dir!r}.") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileExistsError(
            error.errno, "`output_dir` must be a folder, and this is a file", str(folder)
        ) from error
    probe = folder / f".{os.getpid()}.part"
    probe.touch()
    probe.unlink()
    return folder


def make_files(
    envs: Any, folder: Path, name: str | None, form: Format, source: dict[str, Any]
) -> Files:
    """Makes the files of trajectories.

    Args:
        envs: The recorded vector environment.
        folder: Where they are put.
        name: Their name; ``None``: date and time, and a number if that is taken.
        form: The layout.
        source: Entries of the metadata.

    Raises:
        TypeError: ``name`` is no string.
        ValueError: It is no name of a file in the folder.
        FileExistsError: There is a recording of this name.
        OSError: The files cannot be made.
        ImportError: ``h5py`` is missing.
    """
    load("h5py")
    if name is not None:
        _check_name(name, form)
    stem = name or time.strftime("%Y%m%d_%H%M%S")
    for number in itertools.count():
        numbered = f"{stem}_{number}" if number else stem
        try:
            if form == "maniskill":
                return ManiSkillFiles(folder / numbered, env_info(envs), source)
            dataset_id = as_dataset_id(numbered)
            return MinariFiles(folder / dataset_id, dataset_id, envs, source)
        except FileExistsError as error:
            if name is not None:
                raise FileExistsError(
                    error.errno,
                    "there is such a recording: give another `trajectory_name`",
                    str(error.filename or folder / stem),
                ) from error
    raise AssertionError("numbers do not end")


def _check_name(name: Any, form: Format) -> None:
    if not isinstance(name, str):
        raise TypeError(f"`trajectory_name` must be a string or None, got {name!r}.")
    # Names of Minari's datasets may have a namespace, and are checked as such.
    if not name or (form == "maniskill" and name != Path(name).name):
        raise ValueError(
            f"`trajectory_name` must be the name of a file in `output_dir`, got {name!r}."
        )


def finish(writer: Writer, files: Files | None) -> None:
    """Ends the thread, then closes the files."""
    writer.close()
    if files is not None:
        files.close()
