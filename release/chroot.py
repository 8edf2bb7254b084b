"""Runs commands in a root: another C library, another processor, nothing else of this machine.

A command gets a mount namespace and a PID namespace of its own. So nothing stays mounted and
nothing goes on running after it, also when it is killed. This repository is in the root under its
own path, read-only but for `RESULTS`.

qemu runs programs for another processor. `running` registers qemu with the kernel (binfmt_misc),
and removes this handler again. Only SIGKILL leaves the handler behind; the next run replaces it,
and `echo -1 > /proc/sys/fs/binfmt_misc/cartwheel-aarch64` removes it.
"""

import contextlib
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from release.command import ROOT as REPOSITORY

ROOTS = REPOSITORY / "target" / "roots"
#: The only folder of the repository into which a command in a root can write.
RESULTS = ROOTS / "results"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
HANDLER = "cartwheel-aarch64"
#: The first bytes of a program or shared library for 64-bit ARM, and which bits of them count:
#: the ELF header, without the byte of the system's ABI.
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"

_ENTER = """
root=$1 repository=$2 results=$3
shift 3
mount --make-rprivate /
mount --rbind /dev "$root/dev"
mount -t tmpfs shm "$root/dev/shm"
mount -t tmpfs tmp "$root/tmp"
mount -t proc proc "$root/proc"
mkdir -p "$root$repository"
mount --bind "$repository" "$root$repository"
mount -o remount,bind,ro "$root$repository"
mount --bind "$results" "$root$results"
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$repository" "$@"
"""
# The command ends with this program, also if this program is killed.
_WITH_THIS = ["setpriv", "--pdeathsig=KILL"]
_NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]


def run(root: Path, command: list[str], variables: dict[str, str], *, check: bool = True) -> int:
    """Runs a command in `root`, in the folder of the repository, and returns its status."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in ("dev", "proc", "tmp"):
        (root / folder).mkdir(exist_ok=True)
    environment = {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
    assignments = [f"{name}={value}" for name, value in environment.items()]
    entered = ["sh", "-euc", _ENTER, "sh", str(root), str(REPOSITORY), str(RESULTS)]
    return subprocess.run(
        [*_WITH_THIS, *_NAMESPACES, *entered, "/usr/bin/env", "-i", *assignments, *command],
        check=check,
    ).returncode


@contextlib.contextmanager
def running(machine: str, make_qemu: Callable[[], Path]) -> Iterator[None]:
    """While it lasts, programs for `machine` run here; by qemu, unless this is such a machine."""
    signal.signal(signal.SIGTERM, _stop)  # so that the command ends, and the handler is removed
    if machine == platform.machine():
        yield
        return
    handler = BINFMT / HANDLER
    if handler.exists():
        handler.write_text("-1")  # of a run that was killed; its qemu may be gone
    # P keeps the name under which a program was called, F opens qemu now: it is not in the root.
    (BINFMT / "register").write_text(f":{HANDLER}:M::{_MAGIC}:{_MASK}:{make_qemu()}:PF")
    try:
        yield
    finally:
        handler.write_text("-1")


def _stop(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
