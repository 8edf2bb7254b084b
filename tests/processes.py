"""What this program has running and open, as the kernel sees it."""

import contextlib
import os
import threading
import time
from pathlib import Path


def residue():
    """The processes, threads and descriptors of this program, as comparable text."""
    processes = {f"process {pid}" for pid in descendants(os.getpid())}
    threads = {f"thread {thread.name}" for thread in threading.enumerate()}
    threads |= {f"native thread {entry.name}" for entry in Path("/proc/self/task").iterdir()}
    descriptors = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            descriptors.add(f"descriptor {entry.name} {entry.readlink()}")
    return processes | threads | descriptors


def descendants(pid):
    """The living processes below ``pid``."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (status := _status(entry.name)) is not None:
            children.setdefault(status[1], []).append((int(entry.name), status[0]))
    found, unseen = set(), [pid]
    while unseen:
        for child, state in children.get(unseen.pop(), []):
            unseen.append(child)
            if state not in "ZX":
                found.add(child)
    return found


def is_alive(pid):
    status = _status(pid)
    return status is not None and status[0] not in "ZX"


def wait_until_gone(pids, timeout_s):
    """The processes that are still alive when all are gone or the time is over."""
    deadline = time.monotonic() + timeout_s
    while (alive := {pid for pid in pids if is_alive(pid)}) and time.monotonic() < deadline:
        time.sleep(0.005)
    return alive


def _status(pid):
    """State letter and parent of a process, or None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])
