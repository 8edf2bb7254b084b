"""Finds the Pythons that cartwheel supports, or builds them: ``python -m release.pythons 3.14t``.

A Python that runs under its own name (``python3.12``, ``python3.14t``) is taken from ``PATH``.
Another one is compiled below ``target/pythons``, from the source archive that Debian or Ubuntu
distributes, without profile-guided optimization: in some minutes, and the same way with and without
the GIL.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from pathlib import Path

from release.archives import DEBIAN, UBUNTU, Archive, unpack

FOLDER = Path(__file__).parents[1] / "target" / "pythons"


_LATEST = Archive(
    f"{UBUNTU}/pool/main/p/python3.14/python3.14_3.14.4.orig.tar.xz",
    "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8",
)

SOURCES = {
    "3.10": Archive(
        f"{UBUNTU}/pool/main/p/python3.10/python3.10_3.10.12.orig.tar.xz",
        "afb74bf19130e7a47d10312c8f5e784f24e0527981eab68e20546cfb865830b8",
    ),
    "3.11": Archive(
        f"{DEBIAN}/pool/main/p/python3.11/python3.11_3.11.2.orig.tar.gz",
        "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849",
    ),
    "3.12": Archive(
        f"{UBUNTU}/pool/main/p/python3.12/python3.12_3.12.3.orig.tar.xz",
        "56bfef1fdfc1221ce6720e43a661e3eb41785dd914ce99698d8c7896af4bdaa1",
    ),
    "3.13": Archive(
        f"{DEBIAN}/pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
        "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
    ),
    "3.14": _LATEST,
    "3.14t": _LATEST,
}
"""Every Python that cartwheel supports; a ``t`` means without the GIL."""

_HEADERS = "libssl-dev libffi-dev zlib1g-dev libbz2-dev liblzma-dev libsqlite3-dev"
_MODULES = "import bz2, ctypes, lzma, sqlite3, ssl, zlib"
_IS_IT = f"""
{_MODULES}, sys, sysconfig
free = "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(f"{{sys.version_info.major}}.{{sys.version_info.minor}}{{free}}")
"""


def find(name: str) -> Path:
    """The interpreter of this name (``"3.12"``, ``"3.14t"``); builds it where it is missing."""
    for place in (shutil.which(f"python{name}"), FOLDER / name / "bin" / "python3"):
        if place is not None and _is(Path(place), name):
            return Path(place)
    return _build(name)


def _is(python: Path, name: str) -> bool:
    """Whether it runs, is this Python, and has the modules that pip and multiprocessing need."""
    if not python.exists():
        return False
    asked = subprocess.run([python, "-c", _IS_IT], capture_output=True, text=True, check=False)
    return asked.stdout.strip() == name


def _build(name: str) -> Path:
    work, prefix = FOLDER / f"build-{name}", FOLDER / name
    shutil.rmtree(work, ignore_errors=True)
    unpack(SOURCES[name], work, FOLDER)
    options = [f"--prefix={prefix}", "--with-ensurepip=install"]
    if name.endswith("t"):
        options.append("--disable-gil")
    print(f"==> building Python {name}; this takes some minutes", flush=True)
    log = FOLDER / f"{name}.log"
    with log.open("w") as told:
        for command in (
            ["./configure", *options],
            ["make", f"-j{min(2, os.cpu_count() or 1)}"],
            ["make", "install"],
        ):
            ran = subprocess.run(command, cwd=work, stdout=told, stderr=told, check=False)
            if ran.returncode:
                raise SystemExit(f"{' '.join(command)} failed: see {log}")
    shutil.rmtree(work)
    python = prefix / "bin" / "python3"
    if not _is(python, name):
        raise SystemExit(
            f"Python {name} was built without some of its modules: apt-get install {_HEADERS}, "
            f"delete {prefix} and call again"
        )
    return python


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SOURCES), choices=list(SOURCES))
    for wanted in parser.parse_args().names:
        print(f"{wanted}: {find(wanted)}")
