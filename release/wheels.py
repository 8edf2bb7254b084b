"""Builds the wheels of a release into dist/, checks each, and tries those that run here.

    python -m release.wheels [--targets TRIPLE …] [--abis ABI …] [--here] [--untried]
        [--profile FILE | --unprofiled]

The wheel of this machine is optimized by a profile, which is recorded first and stored with it.
Writes the table of the wheels to ``target/wheels.md`` and the hashes of all files to
``dist/SHA256SUMS``. The exit status is 1 if a wheel must not be published; the reasons are printed.
"""

import argparse
import hashlib
import shutil
import sys
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from release.audit import Audit, audit
from release.build import build
from release.command import ROOT
from release.profile import NAME, flags_for, record
from release.targets import ABIS, TARGETS, of_this_machine
from release.trial import try_out

DIST = ROOT / "dist"
TABLE = ROOT / "target" / "wheels.md"
HEADER = "| wheel | size | module | needs | import | tried |"


def runs_here(wheel: Path) -> bool:
    """Whether pip would install the wheel for this interpreter."""
    return not parse_wheel_filename(wheel.name)[3].isdisjoint(sys_tags())


def row(wheel: Path, found: Audit, import_ms: float | None) -> str:
    """A line of the table."""
    sizes = f"{found.wheel_size / 1e6:.2f} MB | {found.module_size / 1e6:.2f} MB"
    seen = "– | not here" if import_ms is None else f"{import_ms:.0f} ms | installed and stepped"
    return f"| `{wheel.name}` | {sizes} | {found.needs} | {seen} |"


def write_hashes() -> None:
    """Writes what `sha256sum --check` reads, for every file of dist/."""
    packages = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz"), *DIST.glob(NAME)])
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in packages]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def prepare(given: Path | None) -> Path:
    """The profile in dist/: a copy of the given one, or a new one."""
    profile = DIST / NAME
    if given is None:
        print("==> the profile", flush=True)
        record(profile)
    elif given.resolve() != profile:
        DIST.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(given, profile)
    return profile


def main() -> None:
    """Builds, checks, tries, and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    triples = [target.triple for target in TARGETS]
    parser.add_argument("--targets", nargs="+", choices=triples, default=triples)
    parser.add_argument("--abis", nargs="+", choices=ABIS, default=ABIS)
    parser.add_argument("--here", action="store_true", help="only the wheels of this machine")
    parser.add_argument("--untried", action="store_true", help="build and check them only")
    profiles = parser.add_mutually_exclusive_group()
    profiles.add_argument("--profile", type=Path, help="a profile that was recorded before")
    profiles.add_argument("--unprofiled", action="store_true", help="quicker, and slower to step")
    arguments = parser.parse_args()
    if arguments.here:
        arguments.targets = [of_this_machine().triple]
    profile = None if arguments.unprofiled else prepare(arguments.profile)

    lines = [HEADER, "|---" * HEADER.count(" | ") + "|---|"]
    faulty = False
    for abi in arguments.abis:
        for target in TARGETS:
            if target.triple not in arguments.targets:
                continue
            print(f"==> maturin build, {abi}, {target.triple}", flush=True)
            wheel = build(target, abi, DIST, flags_for(target, abi, profile))
            found = audit(wheel, target, abi)
            for fault in found.faults:
                print(f"    {wheel.name}: {fault}", file=sys.stderr)
            faulty = faulty or bool(found.faults)
            import_ms = None
            if runs_here(wheel) and not arguments.untried:
                print("==> the wheel in an empty environment", flush=True)
                import_ms = try_out(wheel)
            lines.append(row(wheel, found, import_ms))
    write_hashes()
    table = "\n".join(lines)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(f"{table}\n")
    print(table)
    sys.exit(faulty)


if __name__ == "__main__":
    main()
