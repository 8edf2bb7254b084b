"""The processes, threads and descriptors of this program; and scripts that tests run."""

import contextlib
import os
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path


def residue():
    """The processes, threads and descriptors of this program, as comparable text."""
    processes = {f"process {pid}" for pid in descendants(os.getpid())}
    threads = {f"thread {thread.name}" for thread in threading.enumerate()}
    threads |= {f"native thread {task}" for task in native_threads()}
    descriptors = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - this runs twice in each test
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
            descriptors.add(f"descriptor {number} {target}")
    return processes | threads | descriptors


def native_threads():
    """The identifiers of the threads of this program, also of those that are ending."""
    return _read_twice(lambda: set(map(int, os.listdir("/proc/self/task"))))  # noqa: PTH208


def _read_twice(read):
    """The value that ``read`` returns twice in a row.

    The kernel lists threads and children one after the other. If the one that it has reached ends
    at that moment, what it returns lacks others that live on: a test that began then would be
    blamed for them.
    """
    last, now = None, read()
    while now != last:
        last, now = now, read()
    return now


def resident_kib():
    """The resident memory of this program, anonymous and shared."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def open_descriptors():
    """The number of open descriptors of this program."""
    return len(list(Path("/proc/self/fd").iterdir()))


def left_behind(before, ignored=()):
    """Entries of :func:`residue` beyond ``before`` that remain after a wait for what is ending.

    Those that contain one of the texts ``ignored`` do not count.
    """

    def more():
        found = {one for one in residue() - before if not _is_of_pygame(one)}
        return {one for one in found if not any(text in one for text in ignored)}

    deadline = time.monotonic() + 30  # a joined thread stays in /proc until the kernel has ended it
    while (left := more()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _is_of_pygame(one):
    """Whether it is the thread that the first drawing starts, and that stays."""
    kind, _, task = one.rpartition(" ")
    if kind != "native thread":
        return False
    try:
        return Path(f"/proc/self/task/{task}/comm").read_text().startswith("SDL")
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return True


def sockets():
    """The descriptors of this program that are sockets."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            if stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                found.append(int(entry.name))
    return found


def descendants(pid):
    """The living descendants of the process ``pid``."""
    found, unseen = set(), [pid]
    while unseen:
        children = _read_twice(partial(_children, unseen.pop()))
        unseen += children
        found |= {child for child in children if is_alive(child)}
    return found


def _children(pid):
    children = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the process ended meanwhile
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                children += map(int, file.read().split())
    return children


def is_alive(pid):
    """Whether the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            stat = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in b"ZX"


def wait_until_gone(pids, timeout_s):
    """Waits until all are gone or the time is over; returns the processes that are still alive."""
    deadline = time.monotonic() + timeout_s
    while (alive := {pid for pid in pids if is_alive(pid)}) and time.monotonic() < deadline:
        time.sleep(0.005)
    return alive


def run_script(path, *arguments, folder, timeout_s=240):
    """Runs a script of the repository in a process of its own, and returns what it printed.

    ``folder`` is where the process starts, and leaves what it writes.
    """
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, str(root / path), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr
