"""The roots in which wheels are run: other C libraries, another processor.

`make_root` puts each below ``target/roots``, once. Delete the folder to have it made again.
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from release import cross_python
from release.archives import UBUNTU, Archive, extract_debian, fetch
from release.chroot import BINFMT, ROOTS

DOWNLOADS = ROOTS / "downloads"
QEMU = ROOTS / "qemu"
#: Debian's names of processors.
DEBIAN_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
#: Programs that a root is made with, and the package of Debian that has each.
NEEDED = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "dpkg-deb": "dpkg"}
NEEDED_TO_BUILD = {"make": "make", "readelf": "binutils"}


@dataclass(frozen=True)
class Root:
    """A root, and which wheels belong into it."""

    name: str
    machine: str
    #: Its contents, for the table.
    libc: str
    #: The release of Debian that its packages are of.
    suite: str
    #: Statically linked programs, unless the root is Debian's own.
    packages: tuple[str, ...]
    #: The platforms whose wheels run there, best first, as pip's ``--platform`` takes them.
    platforms: tuple[str, ...]
    #: For which CPython is built, as zig calls it; empty where Debian's own is used.
    zig_target: str = ""
    #: Further packages, of other systems.
    archives: tuple[Archive, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the root."""
        return ROOTS / self.name

    @property
    def is_emulated(self) -> bool:
        """Whether its programs need qemu here."""
        return self.machine != platform.machine()


def _manylinux(machine: str, newest: int) -> tuple[str, ...]:
    versions = range(newest, 16, -1)
    return (*(f"manylinux_2_{minor}_{machine}" for minor in versions), f"manylinux2014_{machine}")


def _musllinux(machine: str) -> tuple[str, ...]:
    return (f"musllinux_1_2_{machine}", f"musllinux_1_1_{machine}")


#: Of Ubuntu 16.04: the oldest C library that Ubuntu's public servers still have.
_OLD_LIBC = (
    Archive(
        f"{UBUNTU}/pool/main/g/glibc/libc6_2.23-0ubuntu3_amd64.deb",
        "68d69a0fb2dae7578a2a7054bc0cd5f0994d523f60d540bc6708ff3f2fb33e18",
    ),
    # NumPy's wheels need zlib and two libraries of GCC, which every manylinux system has.
    Archive(
        f"{UBUNTU}/pool/main/z/zlib/zlib1g_1.2.8.dfsg-2ubuntu4_amd64.deb",
        "b8be56e2589fec7d914801f85089e2f6f690044a072b53c0952ea562d9d7496e",
    ),
    Archive(
        f"{UBUNTU}/pool/main/g/gccgo-6/libgcc1_6.0.1-0ubuntu1_amd64.deb",
        "6e374d7b6ee1ffbcff568705b7f9ec7b9befbfcf17e683a21ef6480dc9d0cfe0",
    ),
    Archive(
        f"{UBUNTU}/pool/main/g/gcc-5/libstdc++6_5.3.1-14ubuntu2_amd64.deb",
        "3667b4bf3945a03580b8d8bc4b8699789b0b93b1d472d08eb693daa89321728e",
    ),
)

ROOTS_OF_WHEELS = (
    Root(
        "aarch64-glibc",
        "aarch64",
        "glibc 2.36 (Debian 12)",
        "bookworm",
        ("python3", "libstdc++6", "busybox-static"),
        _manylinux("aarch64", 36),
    ),
    Root(
        "x86_64-old-glibc",
        "x86_64",
        "glibc 2.23 (Ubuntu 16.04)",
        "bookworm",
        ("busybox-static",),
        _manylinux("x86_64", 23),
        "x86_64-linux-gnu.2.17",
        _OLD_LIBC,
    ),
    Root(
        "x86_64-musl",
        "x86_64",
        "musl 1.2.5 (Debian 13)",
        "trixie",  # NumPy's libraries have relocations (DT_RELR) that musl knows from 1.2.4 on
        ("musl", "busybox-static"),
        _musllinux("x86_64"),
        "x86_64-linux-musl",
    ),
    Root(
        "aarch64-musl",
        "aarch64",
        "musl 1.2.5 (Debian 13)",
        "trixie",  # NumPy's libraries have relocations (DT_RELR) that musl knows from 1.2.4 on
        ("musl", "busybox-static"),
        _musllinux("aarch64"),
        "aarch64-linux-musl",
    ),
)


def check_needs(roots: tuple[Root, ...]) -> None:
    """Raises `SystemExit` that names everything that is missing here."""
    builds = any(root.zig_target and not root.folder.exists() for root in roots)
    programs = {**NEEDED, **(NEEDED_TO_BUILD if builds else {})}
    packages = {package for program, package in programs.items() if not shutil.which(program)}
    lacks = []
    if packages:
        lacks.append(f"apt-get install {' '.join(sorted(packages))}")
    if builds and cross_python.build_python() is None:
        lacks.append(f"put a python{cross_python.VERSION} on PATH")
    if os.geteuid() != 0:
        lacks.append("run as root: chroot and mount are its privilege")
    if any(root.is_emulated for root in roots) and not (BINFMT / "register").exists():
        lacks.append(f"mount -t binfmt_misc binfmt_misc {BINFMT}")
    if lacks:
        raise SystemExit(f"roots for wheels cannot be made here yet: {'; '.join(lacks)}")


def make_qemu() -> Path:
    """The emulator, of Debian 13: that of Debian 12 knows fewer of the kernel's calls."""
    emulator = QEMU / "usr" / "bin" / "qemu-aarch64"
    if not emulator.exists():
        print("==> qemu, from Debian 13", flush=True)
        shutil.rmtree(QEMU, ignore_errors=True)
        extract_debian(QEMU, "trixie", DEBIAN_MACHINES[platform.machine()], ("qemu-user",))
    return emulator


def make_root(root: Root) -> None:
    """Makes the root, unless it is there."""
    if root.folder.exists():
        return
    print(f"==> the root {root.name}: {root.libc}", flush=True)
    part = root.folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    extract_debian(part, root.suite, DEBIAN_MACHINES[root.machine], root.packages)
    for archive in root.archives:
        subprocess.run(["dpkg-deb", "-x", fetch(archive, DOWNLOADS), part], check=True)
    # In Debian 13 they are links, made by a package that is not here.
    for name in ("bin", "lib"):
        if not (part / name).exists():
            (part / name).symlink_to(f"usr/{name}")
    for program in ("bin/sh", "usr/bin/env"):
        (part / program).parent.mkdir(parents=True, exist_ok=True)
        (part / program).symlink_to("/bin/busybox")
    if root.zig_target:
        print(f"==> Python {cross_python.VERSION} for {root.zig_target}; minutes", flush=True)
        work = ROOTS / f"{root.name}.build"
        cross_python.install(root.zig_target, part, DOWNLOADS, work)
    part.rename(root.folder)
