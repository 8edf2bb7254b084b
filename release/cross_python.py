"""Builds a CPython for another C library or another processor, with zig.

Debian's Python serves Debian's C library only. For musl, and for an older glibc than that of any
Debian or Ubuntu with Python 3.10, CPython is compiled from the sources that Debian distributes.
zlib and libffi are linked into its modules, so it needs nothing but a C library. There is no `ssl`:
pip runs outside of the roots.
"""

import os
import platform
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from release.archives import DEBIAN, Archive, unpack
from release.pythons import SOURCES

VERSION = "3.11"
CPYTHON = SOURCES[VERSION]
LIBFFI = Archive(
    f"{DEBIAN}/pool/main/libf/libffi/libffi_3.4.4.orig.tar.gz",
    "d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676",
)
ZLIB = Archive(
    f"{DEBIAN}/pool/main/z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
    "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
)
LIBFFI_OPTIONS = (
    "--disable-shared",
    "--disable-docs",
    "--disable-multi-os-directory",
    "--disable-exec-static-tramp",  # it does not compile with clang
)
#: Answers that `configure` gets by running programs, which it cannot do for another machine.
KNOWN = ("ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no", "ac_cv_buggy_getaddrinfo=no")
#: CPython's setup.py asks the compiler and Debian where headers are, and both would name those of
#: this machine. Where neither answers, it leaves the headers to the compiler.
NO_HEADERS = '[ "$*" != "-E -v -" ] || exit 1'


def build_python() -> str | None:
    """The Python of the same version that runs here, which CPython's build needs."""
    if platform.python_version().startswith(f"{VERSION}."):
        return sys.executable
    return shutil.which(f"python{VERSION}")


def install(zig_target: str, root: Path, downloads: Path, work: Path) -> None:
    """Builds CPython for `zig_target`, as in ``x86_64-linux-gnu.2.17``, into ``root/usr``."""
    shutil.rmtree(work, ignore_errors=True)
    tools, libraries = work / "tools", work / "libraries"
    variables = {**os.environ, **_tools(tools, zig_target), "CFLAGS": "-O2 -g0 -fPIC"}
    machine_and_libc = zig_target.partition(".")[0]
    host = f"--host={machine_and_libc}"
    # Modules are named after the C library of the building machine: `linux-musl` only if it has
    # musl. The vendor `builder` makes the two names differ: then `configure` cross-compiles, and
    # runs no program that it has built.
    here = f"--build={platform.machine()}-builder-{machine_and_libc.partition('-')[2]}"
    jobs = f"-j{os.cpu_count() or 1}"
    log = work / "log"

    def run(name: str, *commands: list[str]) -> None:
        for command in commands:
            with log.open("a") as told:
                ran = subprocess.run(
                    command, cwd=work / name, env=variables, stdout=told, stderr=told, check=False
                )
            if ran.returncode:
                raise SystemExit(f"{command[0]} of {name} failed for {zig_target}: see {log}")

    for name, archive in (("zlib", ZLIB), ("libffi", LIBFFI), ("cpython", CPYTHON)):
        unpack(archive, work / name, downloads)
    prefix = f"--prefix={libraries}"
    run("zlib", ["./configure", "--static", prefix], ["make", jobs, "libz.a"], ["make", "install"])
    libffi = ["./configure", here, host, prefix, *LIBFFI_OPTIONS]
    run("libffi", libffi, ["make", jobs], ["make", "install"])
    cpython = ["./configure", here, host, "--prefix=/usr", *KNOWN]
    cpython += [f"--with-build-python={build_python()}", "--without-ensurepip"]
    cpython += ["--disable-test-modules", "PKG_CONFIG=false"]
    cpython += [f"CPPFLAGS=-I{libraries}/include", f"LDFLAGS=-L{libraries}/lib"]
    cpython += [f"LIBFFI_INCLUDEDIR={libraries}/include"]
    run("cpython", cpython, ["make", jobs], ["make", "install", f"DESTDIR={root}"])
    shutil.rmtree(work)


def _tools(folder: Path, zig_target: str) -> dict[str, str]:
    """Makes programs of zig's subcommands, and returns the variables that name them."""
    zig = files("ziglang") / "zig"
    folder.mkdir(parents=True)
    # Without -dynamic, zig links programs for musl so that they cannot load modules. CPython tells
    # when it was compiled, which zig takes for an error.
    options = {"cc": f"-target {zig_target} -dynamic -Wno-error=date-time", "ar": "", "ranlib": ""}
    for name, option in options.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\n{NO_HEADERS}\nexec "{zig}" {name} {option} "$@"\n')
        program.chmod(0o755)
    (folder / "dpkg-architecture").write_text("#!/bin/sh\nexit 1\n")
    (folder / "dpkg-architecture").chmod(0o755)
    tools = {name.upper(): str(folder / name) for name in options}
    tools["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    # Nothing here is C++, and zig compiles libc++ where configure asks for it.
    return {**tools, "CXX": "false", "READELF": shutil.which("readelf") or "readelf"}
