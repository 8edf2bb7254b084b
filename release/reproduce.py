"""Builds the same commit twice, in two folders, and compares the bytes of what comes out.

    python -m release.reproduce [--targets TRIPLE …] [--abis ABI …]

Clones HEAD, so changes that are not committed are not built. The folders have names of different
lengths, and nothing in common but the tools, Cargo's registry and the commit.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from release.command import ROOT, output_of
from release.profile import NAME, record
from release.targets import ABI3, ABIS, TARGETS, of_this_machine

FOLDERS = ("a", "a folder with a longer name")


def hashes(clone: Path, profile: Path, *options: str) -> dict[str, str]:
    """Builds the packages of a clone by a profile; returns the hash of each by its name."""
    wheels = ["release.wheels", "--untried", "--profile", str(profile), *options]
    for command in (wheels, ["release.sdist", "--untried"]):
        subprocess.run([sys.executable, "-m", *command], cwd=clone, check=True)
    lines = (clone / "dist" / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def main() -> None:
    """Builds twice and compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = of_this_machine().triple
    triples = [target.triple for target in TARGETS]
    parser.add_argument("--targets", nargs="+", choices=triples, default=[here])
    parser.add_argument("--abis", nargs="+", choices=ABIS, default=[ABI3])
    arguments = parser.parse_args()
    options = ["--targets", *arguments.targets, "--abis", *arguments.abis]
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        clones = [Path(folder, name) for name in FOLDERS]
        for source, clone in zip([ROOT, clones[0]], clones, strict=True):
            # The second from the first: they have one commit, whatever becomes of HEAD.
            subprocess.run(["git", "clone", "--quiet", source, clone], check=True)
        commit = output_of("git", "-C", str(clones[0]), "rev-parse", "HEAD")
        profile = Path(folder, NAME)
        record(profile)
        first, second = (hashes(clone, profile, *options) for clone in clones)
    print(f"commit {commit}, {output_of('rustc', '--version')}")
    for name in sorted(first.keys() | second.keys()):
        equal = first.get(name) == second.get(name)
        print(f"{'same' if equal else 'DIFFERENT'}  {first.get(name)}  {name}")
    sys.exit(first != second)


if __name__ == "__main__":
    main()
