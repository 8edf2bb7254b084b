"""A file whose committed bytes change in one short sequence of writes."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes that are reserved at a time.
STEP = 4 << 20
#: HDF5's signatures of the pieces of a group, in the order in which they are written: names before
#: the tree that sorts them, and the tree before its leaves, which may have been split. Between two
#: of these writes the file is whole, too; but for the names, if they are in two pieces.
ORDER: Final = (b"HEAP", b"TREE", b"SNOD")
#: The value in the header of a heap without free bytes.
NO_FREE_BYTES = (1).to_bytes(8, "little")


def _allocate(descriptor: int, start: int, length: int) -> None:
    """Allocates disk space for bytes of a file, which grows.

    Raises:
        OSError: There is not enough, or the platform cannot allocate in advance, as macOS.
    """
    if not hasattr(os, "posix_fallocate"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.posix_fallocate(descriptor, start, length)


class StagedFile(io.RawIOBase):
    """A file for HDF5 that is whole whenever the program is killed.

    No committed byte refers to bytes after the last :meth:`commit`, so these are written at once.
    Changes to the bytes before them are kept in memory, and :meth:`commit` writes these few pieces
    one after the other, within microseconds. HDF5 itself would mix them with other
    writes during the whole flush.

    Args:
        path: The file, which must not exist.

    Raises:
        FileExistsError: It does.
        OSError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._at = 0
        #: The size as HDF5 set it; reserved bytes may follow.
        self._size = 0
        #: The size at the last commit.
        self._committed = 0
        self._staged: list[tuple[int, bytes]] = []

    # Called by the driver of h5py

    def readable(self) -> bool:
        """Returns true."""
        return True

    def writable(self) -> bool:
        """Returns true."""
        return True

    def seekable(self) -> bool:
        """Returns true."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Sets the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Returns the position."""
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Reads at the position, including changes that are not committed."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._at))
        read = os.pread(self._descriptor, count, self._at)
        view[: len(read)] = read
        view[len(read) : count] = bytes(count - len(read))
        for offset, piece in self._staged:
            first, last = max(offset, self._at), min(offset + len(piece), self._at + count)
            if first < last:
                view[first - self._at : last - self._at] = piece[first - offset : last - offset]
        self._at += count
        return count

    def write(self, piece: memoryview | bytes) -> int:  # type: ignore[override]
        """Writes at the position: at once after the last commit, otherwise with the next one."""
        view = memoryview(piece).cast("B")
        offset, end = self._at, self._at + len(view)
        old = max(0, min(end, self._committed) - offset)
        if old:
            self._staged.append((offset, bytes(view[:old])))
        _write(self._descriptor, view[old:], offset + old)
        self._at = end
        self._size = max(self._size, end)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Sets the size; reserved bytes stay until :meth:`close`."""
        self._size = self._at if size is None else size
        return self._size

    def flush(self) -> None:
        """Does nothing: :meth:`commit` makes writes part of the file."""

    # Called by the recorder

    def reserve(self, end: int) -> None:
        """Reserves disk space so that the file can grow to ``end`` bytes.

        Raises:
            OSError: There is no space; the file is unchanged.
        """
        size = os.fstat(self._descriptor).st_size
        if end <= size:
            return
        with contextlib.suppress(OSError):
            _allocate(self._descriptor, size, end + STEP - size)
            return
        try:  # the last megabytes
            _allocate(self._descriptor, size, end - size)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                free = os.fstatvfs(self._descriptor)
                if free.f_bavail * free.f_frsize >= end - size:
                    return
                error.errno = errno.ENOSPC
            raise

    def check_exists(self) -> None:
        """Checks that the file has a name, without which it is lost when it is closed.

        Raises:
            FileNotFoundError: It was removed.
        """
        if not os.fstat(self._descriptor).st_nlink:
            told = "this recording was removed while episodes were written to it"
            raise FileNotFoundError(errno.ENOENT, told, str(self._path))

    def commit(self) -> None:
        """Makes everything that was written part of the file."""
        staged, self._staged = self._staged, []
        # Names are appended, where a list of free bytes may be: without the list they are whole.
        listless = [
            (offset, piece[:16] + NO_FREE_BYTES + piece[24:])
            for offset, piece in staged
            if piece[:4] == b"HEAP" and len(piece) == 32
        ]
        if not _overlap(staged):
            staged.sort(key=self._rank)
            staged[1:1] = listless
        for offset, piece in staged:
            _write(self._descriptor, memoryview(piece), offset)
        self._committed = self._size

    def _rank(self, staged: tuple[int, bytes]) -> int:
        """Returns the rank of a piece: first the superblock with the size, then new pieces."""
        offset, piece = staged
        if offset == 0:
            return -2
        signature = piece[:4]
        is_new = os.pread(self._descriptor, 4, offset) != signature
        return -1 if is_new or signature not in ORDER else ORDER.index(signature)

    def close(self) -> None:
        """Commits, frees reserved space, and closes the file."""
        if self._descriptor >= 0:
            self.commit()
            os.ftruncate(self._descriptor, self._size)
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()


def _overlap(staged: list[tuple[int, bytes]]) -> bool:
    """Whether pieces overlap, so that their order must not change."""
    by_offset = sorted(staged, key=lambda one: one[0])
    return any(
        first[0] + len(first[1]) > second[0] for first, second in itertools.pairwise(by_offset)
    )


def _write(descriptor: int, view: memoryview, offset: int) -> None:
    while view:
        count = os.pwrite(descriptor, view, offset)
        view, offset = view[count:], offset + count
