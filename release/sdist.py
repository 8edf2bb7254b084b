"""Builds the sdist into dist/, checks what is in it, and builds and steps it where nothing else is.

    python -m release.sdist [--untried]

The trial needs a Rust toolchain and a linker, as a user does who has no wheel.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.build import TOOLS, commit_time
from release.command import ROOT, output_of
from release.trial import try_out
from release.wheels import DIST, write_hashes

#: Needs of a build besides Python: the linker that rustc calls, and what it calls.
NEEDED = ("cargo", "rustc", "cc", "ld")
#: Files of the root that belong to the package.
FILES = {
    *("Cargo.lock", "Cargo.toml", "pyproject.toml", "README.md", "CHANGELOG.md"),
    *("LICENSE-MIT", "LICENSE-APACHE", "release/description.md"),
}
#: Not tracked by git: maturin writes it.
METADATA = "PKG-INFO"


def build(out: Path) -> Path:
    """Builds the sdist into `out`; returns its path."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        ran = subprocess.run(
            [TOOLS / "maturin", "sdist", "--out", folder],
            cwd=ROOT,
            env={**os.environ, "SOURCE_DATE_EPOCH": commit_time()},
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise SystemExit(f"maturin made no sdist:\n{ran.stderr}")
        (built,) = Path(folder).glob("*.tar.gz")
        return Path(shutil.copy(built, out))


def belongs(path: str) -> bool:
    """Whether a file of the repository is a part of the package's source."""
    rust, *inside = Path(path).parts
    is_crate = rust == "rust" and len(inside) > 1 and inside[1] != "tests"
    return path in FILES or is_crate or path.startswith("python/cartwheel/")


def faults_in(sdist: Path) -> list[str]:
    """Files that are missing in the sdist, and files that should not be in it."""
    with tarfile.open(sdist) as archive:
        inside = {member.name.partition("/")[2] for member in archive if member.isfile()}
    wanted = {METADATA, *filter(belongs, output_of("git", "ls-files").splitlines())}
    return [
        *(f"{path} is missing" for path in sorted(wanted - inside)),
        *(f"{path} does not belong there" for path in sorted(inside - wanted)),
    ]


def try_with_a_toolchain_alone(sdist: Path) -> None:
    """Installs the sdist with nothing on PATH but Rust and the linker, and steps it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "HOME" or name.startswith(("CARGO_", "PIP_", "RUSTUP_"))
    }
    kept.pop("CARGO_TARGET_DIR", None)  # where everything may be built already
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        for tool in NEEDED:
            found = shutil.which(tool)
            if found is None:
                raise SystemExit(f"an sdist is built with {tool}, which is not on PATH")
            (Path(folder) / tool).symlink_to(found)
        try_out(sdist, environment={**kept, "PATH": folder})


def main() -> None:
    """Builds, checks and tries the sdist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--untried", action="store_true", help="build and check it only")
    arguments = parser.parse_args()
    print("==> maturin sdist", flush=True)
    sdist = build(DIST)
    faults = faults_in(sdist)
    for fault in faults:
        print(f"    {sdist.name}: {fault}", file=sys.stderr)
    write_hashes()
    if not (faults or arguments.untried):
        print("==> the sdist in an empty environment, with a Rust toolchain alone", flush=True)
        try_with_a_toolchain_alone(sdist)
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
