"""The list of the crates in a wheel (SBOM), which maturin writes in CycloneDX's format.

It lies in the wheel's folder ``*.dist-info/sboms`` (PEP 770). maturin writes the crates, with a
random serial number and the path of the checkout. Here both become functions of the source, and
what the toolchain puts into every module is added.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import tomllib
from license_expression import get_spdx_licensing

from release.command import ROOT, output_of
from release.targets import Target

NAME = re.compile(r"[^/]+\.dist-info/sboms/[^/]+\.cyclonedx\.json")


def read(wheel: Path) -> dict[str, Any]:
    """The SBOM of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = filter(NAME.fullmatch, archive.namelist())
        return cast("dict[str, Any]", json.loads(archive.read(name)))


def finish(wheel: Path, target: Target, out: Path, commit_time: str) -> Path:
    """Writes `wheel` into `out` with an SBOM that is complete, and the same in every checkout."""

    def wheel_tool(*arguments: str | Path) -> None:
        """Runs PyPA's tool, which writes RECORD anew, and the same archive every time."""
        subprocess.run(
            [sys.executable, "-m", "wheel", *arguments],
            env={**os.environ, "SOURCE_DATE_EPOCH": commit_time},
            stdout=subprocess.DEVNULL,
            check=True,
        )

    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        wheel_tool("unpack", wheel, "--dest", folder)
        (unpacked,) = Path(folder).iterdir()
        (file,) = unpacked.glob("*.dist-info/sboms/*.cyclonedx.json")
        document = json.loads(file.read_text().replace(ROOT.as_uri(), "file:///cartwheel"))
        document.pop("serialNumber", None)
        document["components"] += of_the_toolchain(target)
        content = json.dumps(document, indent=1, sort_keys=True)
        document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, content).urn
        file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        wheel_tool("pack", unpacked, "--dest-dir", out)
    return out / wheel.name


def of_the_toolchain(target: Target) -> list[dict[str, Any]]:
    """Rust's standard library, and the unwinder of LLVM, which zig links on Linux."""
    rust = output_of("rustc", "--version").split()[1]
    found = [("std", rust, "MIT OR Apache-2.0", "rust")]
    if target.system == "Linux":
        found += [("libunwind", version("ziglang"), "Apache-2.0 WITH LLVM-exception", "zig")]
    return [
        {
            "type": "library",
            "bom-ref": f"{source}-{name}",
            "name": name,
            "version": number,
            "scope": "required",
            "licenses": [{"expression": license}],
            "purl": f"pkg:generic/{source}@{number}",
        }
        for name, number, license, source in found
    ]


def missing_crates(document: dict[str, Any], target: Target) -> list[str]:
    """Crates that cargo links for `target`, and that the SBOM does not name."""
    options = [
        "--target",
        target.triple,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]
    tree = output_of("cargo", "tree", "--locked", "--package", "cartwheel-python", *options)
    linked = {" ".join(line.split()[:2]) for line in tree.splitlines()}
    crates = [document["metadata"]["component"], *document["components"]]
    return sorted(linked - {f"{crate['name']} v{crate['version']}" for crate in crates})


def refused_licenses(document: dict[str, Any]) -> list[str]:
    """The crates whose license `deny.toml` does not allow, each with its license."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    licensing = get_spdx_licensing()

    def is_allowed(expression: Any) -> bool:
        if isinstance(expression, licensing.OR):
            return any(map(is_allowed, expression.args))
        if isinstance(expression, licensing.AND):
            return all(map(is_allowed, expression.args))
        return str(expression) in allowed

    return [
        f"{crate['name']} {crate['version']}: {said or 'no license'}"
        for crate in [document["metadata"]["component"], *document["components"]]
        for said in [" AND ".join(entry["expression"] for entry in crate.get("licenses", []))]
        if not said or not is_allowed(licensing.parse(said))
    ]
