"""Fetches what the roots are made of: archives with a known hash, packages of Debian."""

import hashlib
import shutil
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"


@dataclass(frozen=True)
class Archive:
    """A file that never changes, and its SHA-256."""

    url: str
    sha256: str


def fetch(archive: Archive, folder: Path) -> Path:
    """The archive as a file in `folder`; downloads it unless it is there."""
    file = folder / archive.url.rpartition("/")[2]
    if not file.exists():
        print(f"    {archive.url}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.part")
        with urllib.request.urlopen(archive.url) as answer, part.open("wb") as written:
            shutil.copyfileobj(answer, written)
        part.rename(file)
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != archive.sha256:
        raise SystemExit(f"{file} has the SHA-256 {found}, not {archive.sha256}: delete it")
    return file


def unpack(archive: Archive, folder: Path, downloads: Path) -> None:
    """Unpacks a source archive into `folder`, without its first folder."""
    folder.mkdir(parents=True)
    source = fetch(archive, downloads)
    subprocess.run(["tar", "-xf", source, "--strip-components=1", "-C", folder], check=True)


def extract_debian(folder: Path, suite: str, machine: str, packages: tuple[str, ...]) -> None:
    """Unpacks packages of Debian and what they depend on, of any machine, and runs none of them.

    apt checks their signatures.
    """
    command = ["mmdebstrap", "--quiet", "--variant=extract", f"--architectures={machine}"]
    command += [f"--include={','.join(packages)}", suite, str(folder), DEBIAN]
    folder.parent.mkdir(parents=True, exist_ok=True)
    # It warns that it mounts nothing in the new root, which does not matter unless it fails.
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"mmdebstrap failed:\n{ran.stderr}")
