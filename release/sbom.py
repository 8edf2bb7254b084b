"""The list of the crates in a wheel (SBOM), which maturin writes in CycloneDX's format.

It lies in the wheel's folder ``*.dist-info/sboms`` (PEP 770). maturin gives it a random serial
number and the path of the checkout; here both become functions of the source.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import tomllib
from license_expression import get_spdx_licensing

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[^/]+\.dist-info/sboms/[^/]+\.cyclonedx\.json")


def read(wheel: Path) -> dict[str, Any]:
    """The SBOM of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = filter(NAME.fullmatch, archive.namelist())
        return cast("dict[str, Any]", json.loads(archive.read(name)))


def without_paths(wheel: Path, checkout: Path, out: Path, commit_time: str) -> Path:
    """Writes `wheel` into `out` with an SBOM that is the same in every checkout."""

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
        document = json.loads(file.read_text().replace(checkout.as_uri(), "file:///cartwheel"))
        document.pop("serialNumber", None)
        content = json.dumps(document, indent=1, sort_keys=True)
        document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, content).urn
        file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        wheel_tool("pack", unpacked, "--dest-dir", out)
    return out / wheel.name


def refused_licences(document: dict[str, Any]) -> list[str]:
    """The crates whose licence `deny.toml` does not allow, each with its licence."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    licensing = get_spdx_licensing()

    def is_allowed(expression: Any) -> bool:
        if isinstance(expression, licensing.OR):
            return any(map(is_allowed, expression.args))
        if isinstance(expression, licensing.AND):
            return all(map(is_allowed, expression.args))
        return str(expression) in allowed

    return [
        f"{crate['name']} {crate['version']}: {said or 'no licence'}"
        for crate in [document["metadata"]["component"], *document["components"]]
        for said in [" AND ".join(entry["expression"] for entry in crate.get("licenses", []))]
        if not said or not is_allowed(licensing.parse(said))
    ]
