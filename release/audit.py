"""Checks a wheel as it will be uploaded: its tags, its binary, what it says of its origin.

`release.symbols` reads the binary itself.
"""

import re
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

from packaging.utils import parse_wheel_filename

from release import sbom, symbols
from release.build import machine_paths
from release.targets import ABI3, Target

#: Files of every wheel about its license and origin.
DOCUMENTS = ("LICENSE-MIT", "LICENSE-APACHE", "NOTICE", ".cyclonedx.json", "py.typed", ".pyi")


@dataclass(frozen=True)
class Audit:
    """Findings about a wheel."""

    #: Bytes of the wheel, and of the extension module in it.
    wheel_size: int
    module_size: int
    #: The newest version of a symbol of the C library, or the oldest macOS.
    needs: str
    #: Faults that must be fixed before the wheel is published.
    faults: tuple[str, ...]


def audit(wheel: Path, target: Target, abi: str) -> Audit:
    """Reads the wheel that was built for `target`, and says what is wrong with it."""
    with ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    modules = [name for name in members if name.endswith(".so")]
    if len(modules) != 1:
        raise SystemExit(f"{wheel.name} has {len(modules)} extension modules, not one: {modules}")
    (module,) = modules
    document = sbom.read(wheel)
    faults = [
        *wrong_tags(wheel, target, abi),
        *machine_paths_in(members),
        *missing_documents(members),
        *(f"{crate} is not in the SBOM" for crate in sbom.missing_crates(document, target)),
        *(f"{crate}: not allowed by deny.toml" for crate in sbom.refused_licenses(document)),
    ]
    if abi == ABI3:
        faults += symbols.outside_the_stable_abi(wheel)
    inspect = symbols.of_macos if target.oldest_macos else symbols.of_linux
    needs, wrong = inspect(wheel, members[module], target)
    return Audit(wheel.stat().st_size, len(members[module]), needs, (*faults, *wrong))


def wrong_tags(wheel: Path, target: Target, abi: str) -> list[str]:
    """The tags that pip reads from the file name, against the table."""
    tags = {str(tag) for tag in parse_wheel_filename(wheel.name)[3]}
    wanted = f"{abi}-{target.platform_tag}"
    return [] if wanted in tags else [f"tags {sorted(tags)} without {wanted}"]


def machine_paths_in(members: dict[str, bytes]) -> list[str]:
    """Files that name a folder of the machine that built them."""
    folders = {*machine_paths(), str(Path.home())} - {"/"}  # the home of some containers
    return [
        f"{name} contains the path {folder}"
        for name, content in members.items()
        for folder in sorted(folders)
        if re.search(re.escape(folder.encode()) + rb"[/\\]", content)
    ]


def missing_documents(members: dict[str, bytes]) -> list[str]:
    """Licenses, types and the SBOM, and every file that METADATA calls a license."""
    (metadata,) = (name for name in members if name.endswith(".dist-info/METADATA"))
    licenses = BytesParser().parsebytes(members[metadata]).get_all("License-File", [])
    folder = metadata.removesuffix("METADATA")
    wanted = [*DOCUMENTS, *(f"{folder}licenses/{license}" for license in licenses)]
    return [
        f"no {end} in the wheel"
        for end in wanted
        if not any(name.endswith(end) for name in members)
    ]
