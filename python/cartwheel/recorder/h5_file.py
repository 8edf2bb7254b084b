"""An HDF5 file to which whole episodes are added."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.versions import load as load_from_extra
from cartwheel.recorder.staged_file import StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from cartwheel.recorder.buffer import Path

#: The level of gzip, as in ManiSkill's files.
LEVEL = 5
#: Bytes of a compressed chunk before compression, at most, if it has more than one entry.
CHUNK_BYTES = 256 << 10
#: Room for the names, shapes and indices of an episode and for what a flush writes.
MARGIN = 512 << 10
#: Metadata of the file in memory after which it is opened anew, which frees it.
CACHE_BYTES = 8 << 20
#: Attributes are in the header of their group, which cannot be larger.
ATTRIBUTE_BYTES = 60000


class H5File:
    """Adds episodes to a new HDF5 file, so that it is whole between two flushes.

    HDF5 cannot recover from a write that fails, so the bytes of an episode are reserved in the file
    system before it is written. A :class:`StagedFile` changes existing bytes in one short sequence,
    when the file is flushed; until then metadata stay in memory. So the file of a program that is
    killed has the episodes up to the last flush.

    Args:
        path: The file, which must not exist.

    Raises:
        FileExistsError: It does.
        OSError: It cannot be made.
    """

    def __init__(self, path: FilePath) -> None:
        self._h5 = load_library("h5py")
        self.path = path
        self._staged = StagedFile(path)
        self._file = self._open("w")
        self._types: dict[np.dtype[Any], Any] = {}
        order = self._h5.h5p
        self._ordered = order.create(order.GROUP_CREATE)
        self._ordered.set_link_creation_order(order.CRT_ORDER_TRACKED | order.CRT_ORDER_INDEXED)
        self.reserve(0)

    def _open(self, mode: str) -> Any:
        # The oldest layout of groups: its pieces can be written one after the other.
        file = self._h5.File(self._staged, mode, libver="earliest")
        # Without evictions metadata stays in memory until it is flushed.
        cache = file.id.get_mdc_config()
        cache.evictions_enabled = False
        cache.incr_mode = cache.decr_mode = cache.flash_incr_mode = 0
        file.id.set_mdc_config(cache)
        return file

    def reserve(self, nbytes: int) -> None:
        """Makes sure that ``nbytes`` and a margin can be written.

        Raises:
            OSError: There is no space; the file is unchanged.
        """
        try:
            self._staged.reserve(self._file.id.get_filesize() + nbytes + MARGIN)
        except OSError as error:
            raise OSError(
                error.errno,
                f"no space for an episode of {nbytes} bytes ({os.strerror(error.errno or 0)}); "
                "the episodes before it are in the file",
                str(self.path),
            ) from error

    def write(
        self,
        name: str,
        arrays: Mapping[Path, NDArray[Any]],
        empty: Iterable[Path] = (),
        **attributes: Any,
    ) -> None:
        """Adds a group with an episode.

        Args:
            name: Of the group.
            arrays: By path; the parts of a path are names of groups, the last one of the array.
            empty: Paths of groups without arrays.
            **attributes: Of the group.

        Raises:
            OSError: There is no space; the file is unchanged.
        """
        self.reserve(sum(array.nbytes + (array.nbytes >> 8) + 4096 for array in arrays.values()))
        group = self._group(self._file.id, name)
        groups: dict[Path, Any] = {(): group}

        def within(path: Path) -> Any:
            for depth in range(1, len(path) + 1):
                if path[:depth] not in groups:
                    above = groups[path[: depth - 1]]
                    groups[path[:depth]] = self._group(above, str(path[depth - 1]))
            return groups[path]

        for path, array in arrays.items():
            self._add(within(path[:-1]), str(path[-1]), np.ascontiguousarray(array))
        for path in empty:
            within(path)
        for key, value in attributes.items():
            self._attribute(group, key, value)

    def set_attributes(self, **attributes: Any) -> None:
        """Sets attributes of the file itself."""
        for key, value in attributes.items():
            self._file.attrs[key] = value

    def flush(self) -> None:
        """Makes written episodes readable for others, also if the program is killed.

        Raises:
            FileNotFoundError: The file was removed.
        """
        self._file.flush()
        self._staged.commit()
        self._staged.check_exists()
        if self._file.id.get_mdc_size()[2] > CACHE_BYTES:
            self._file.close()
            self._staged.commit()
            self._file = self._open("r+")

    def close(self) -> None:
        """Closes the file, and frees reserved space."""
        if self._file:
            self._file.close()
        self._staged.close()

    # h5py's own interface, h5py.File and so on, takes twice as long for an episode.

    def _group(self, above: Any, name: str) -> Any:
        return self._h5.h5g.create(above, name.encode(), gcpl=self._ordered)

    def _attribute(self, group: Any, name: str, value: Any) -> None:
        h5 = self._h5
        if not isinstance(value, np.bytes_):
            h5.Group(group).attrs[name] = value
            return
        kind = h5.h5t.C_S1.copy()
        kind.set_size(max(1, len(value)))
        kind.set_strpad(h5.h5t.STR_NULLPAD)  # the size has no room for a final zero
        space = h5.h5s.create(h5.h5s.SCALAR)
        h5.h5a.create(group, name.encode(), kind, space).write(np.array(value))

    def _add(self, group: Any, name: str, array: NDArray[Any]) -> None:
        h5 = self._h5
        kind = self._types.get(array.dtype)
        if kind is None:
            kind = self._types[array.dtype] = h5.h5t.py_create(array.dtype, logical=True)
        space = h5.h5s.create_simple(array.shape)
        if not is_image(name, array):
            leaf = h5.h5d.create(group, name.encode(), kind, space)
            leaf.write(h5.h5s.ALL, h5.h5s.ALL, array)
            return
        entry = array[0].nbytes
        entries = max(1, min(len(array), CHUNK_BYTES // entry))
        layout = h5.h5p.create(h5.h5p.DATASET_CREATE)
        layout.set_chunk((entries, *array.shape[1:]))
        layout.set_deflate(LEVEL)
        images = h5.h5d.create(group, name.encode(), kind, space, layout)
        for start in range(0, len(array), entries):
            chunk = array[start : start + entries].tobytes()
            chunk = chunk.ljust(entries * entry, b"\0")
            # zlib lets other threads run, which HDF5's own filter does not.
            packed = zlib.compress(chunk, LEVEL)
            images.write_direct_chunk((start, *(0,) * (array.ndim - 1)), packed)


def is_image(name: str, array: NDArray[Any]) -> bool:
    """Whether the entries of an array are images, which are compressed."""
    named = name in ("rgb", "depth", "seg")
    return array.ndim >= 3 and array.size > 0 and (named or array.dtype in (np.uint8, np.uint16))


def load_library(name: str) -> Any:
    """Imports a library of the extra ``record``, or PyTorch.

    Raises:
        ImportError: It is not installed.
    """
    return load_from_extra(name, "torch" if name == "torch" else "record", "the recorder")
