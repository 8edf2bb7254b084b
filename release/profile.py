"""Records how often each branch of the module is taken, for the builds of a release.

The wheel of this machine is built with counters, installed into an empty environment, and does
what `release.profiled_work` does. The compiler lays out and inlines code by these counts;
`docs/release.md` says what that is worth.

A profile serves the wheel that was counted alone. Counts have the names of symbols, which contain
a hash of the features and of the linker; a wheel of another machine or ABI would find none of them,
and its code grows by a third.
"""

import os
import subprocess
import tempfile
import venv
from pathlib import Path

from release.build import build
from release.command import ROOT, output_of
from release.targets import ABI3, Target, of_this_machine

#: The name of the profile next to the wheels: with it, anyone can build the same bytes.
NAME = "cartwheel.profdata"


def profdata() -> Path:
    """LLVM's tool that merges counts, of the version that rustc has; installs it with rustup."""
    subprocess.run(["rustup", "component", "add", "llvm-tools"], cwd=ROOT, check=True)
    host = next(
        line.partition(": ")[2]
        for line in output_of("rustc", "--version", "--verbose").splitlines()
        if line.startswith("host")
    )
    sysroot = Path(output_of("rustc", "--print", "sysroot"))
    return sysroot / "lib" / "rustlib" / host / "bin" / "llvm-profdata"


def flags_for(target: Target, abi: str, profile: Path | None) -> list[str]:
    """The flags of rustc for a wheel; none for a wheel that the profile does not serve."""
    serves = (target, abi) == (of_this_machine(), ABI3)
    return [f"-Cprofile-use={profile}"] if profile and serves else []


def record(profile: Path) -> None:
    """Writes a profile of this commit."""
    merge = profdata()
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as name:
        folder = Path(name)
        counts = folder / "counts"
        # zig cannot link the counters. This option of rustc is not in the hash, as cargo's is.
        flags = [f"-Cprofile-generate={counts}", "-Clinker=cc"]
        wheel = build(of_this_machine(), ABI3, folder / "wheel", flags, audit="skip")
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", f"{wheel}[mujoco]"], cwd=folder, check=True
        )
        work = ROOT / "release" / "profiled_work.py"
        environment = {**os.environ, "LLVM_PROFILE_FILE": f"{counts}/%p.profraw"}
        subprocess.run([python, "-I", work], cwd=folder, env=environment, check=True)
        profile.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([merge, "merge", "--output", profile, counts], check=True)
