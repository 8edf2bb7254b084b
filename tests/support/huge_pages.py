"""Memory in huge pages, so that forks of this program are quick.

A fork copies the page table, and the end of the child frees it: 20 ms of the processor for the
200 MiB of a program that has collected all tests. Thousands of tests fork.
"""

import contextlib
import ctypes
from pathlib import Path

_HUGE_PAGE = 2 << 20
_MADV_COLLAPSE = 25  # since Linux 6.1


def use_huge_pages():
    """Moves anonymous memory into huge pages, where the system can do that."""
    with contextlib.suppress(AttributeError, OSError):  # not Linux
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, permissions, _, _, inode, *_ = line.split()
            start, end = (int(address, 16) for address in addresses.split("-"))
            start, end = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
            if permissions == "rw-p" and inode == "0" and start < end:
                madvise(start, end - start, _MADV_COLLAPSE)  # what fails stays as it is
