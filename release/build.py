"""Builds a wheel so that the same commit gives the same bytes, wherever it lies."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release import sbom
from release.command import ROOT, output_of
from release.targets import INTERPRETERS, Target

#: Folder of the tools of the release: maturin and zig.
TOOLS = Path(sys.executable).parent
#: Apart from the developer's builds, which have other flags and would be built anew after each.
CARGO_TARGET_DIR = ROOT / "target" / "cross"


def commit_time() -> str:
    """The time that packages and SBOMs bear, in seconds since 1970: of the commit, not of now."""
    return output_of("git", "log", "-1", "--format=%ct")


def machine_paths() -> dict[str, str]:
    """The folders of this machine that the compiler sees, and what a wheel says instead."""
    commit = next(
        line.partition(": ")[2]
        for line in output_of("rustc", "--version", "--verbose").splitlines()
        if line.startswith("commit-hash")
    )
    cargo_home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    std = f"{output_of('rustc', '--print', 'sysroot')}/lib/rustlib/src/rust"
    # Rust's own name for the sources of std, which it uses where the component rust-src is missing.
    return {str(ROOT): "/cartwheel", cargo_home: "/cargo", std: f"/rustc/{commit}"}


def environment(target: Target, flags: Sequence[str]) -> dict[str, str]:
    """The variables under which a build repeats itself; rustc gets these flags too."""
    remaps = [f"--remap-path-prefix={here}={there}" for here, there in machine_paths().items()]
    variables = {
        **os.environ,
        # Not RUSTFLAGS, which a space in a path would divide.
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*remaps, *flags]),
        "CARGO_TARGET_DIR": str(CARGO_TARGET_DIR),
        "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": commit_time(),
    }
    if target.oldest_macos:
        variables["MACOSX_DEPLOYMENT_TARGET"] = target.oldest_macos
    # maturin names the interpreter itself. Flags of the caller would change the bytes.
    for name in ("PYO3_PYTHON", "RUSTFLAGS"):
        variables.pop(name, None)
    return variables


def add_rust_target(triple: str) -> None:
    """Installs Rust's std for a target, where rustup can."""
    if Path(output_of("rustc", "--print", "target-libdir", "--target", triple)).is_dir():
        return
    if shutil.which("rustup") is None:
        raise SystemExit(
            f"Rust's std for {triple} is not installed, and there is no rustup to add it"
        )
    subprocess.run(["rustup", "target", "add", triple], cwd=ROOT, check=True)


def build(target: Target, abi: str, out: Path, flags: Sequence[str], audit: str = "check") -> Path:
    """Builds the wheel of `target` for the interpreters of `abi` into `out`; returns its path.

    rustc gets these flags too. `audit` is what auditwheel does: ``"check"`` or ``"skip"``.
    """
    add_rust_target(target.triple)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        command: list[str | Path] = [TOOLS / "maturin", "build", "--release", "--locked"]
        command += ["--zig", "--quiet"]
        command += ["--target", target.triple, *target.compatibility, "--auditwheel", audit]
        command += ["--interpreter", INTERPRETERS[abi], "--out", folder]
        subprocess.run(command, cwd=ROOT, check=True, env=environment(target, flags))
        (built,) = Path(folder).glob("*.whl")
        return sbom.finish(built, target, out, commit_time())
