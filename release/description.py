"""Writes the description that package indexes show, from README.md.

    python -m release.description

An index shows one page and none of the repository's files, so a relative link or picture of
README.md would lead nowhere. In ``release/description.md`` they are absolute if ``pyproject.toml``
names ``Repository`` in its `[project.urls]`; otherwise links are plain text without a picture.
A reader of an index can install with pip, so the section "Install" is one command.
"""

from __future__ import annotations

import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
FILE = "release/description.md"
PAGE = ROOT / FILE
INSTALL = """
```sh
pip install cartwheel
```

Wheels for Linux on x86-64 and ARM, CPython 3.10 to 3.14. `pip install 'cartwheel[mujoco]'` adds
MuJoCo; other extras are for trainers: `sb3`, `torchrl`, `rllib`, `agilerl`, `skrl`, `tianshou`.
"""
SECTION = re.compile(r"(?<=^## Install\n).*?(?=^## )", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"<picture>.*?</picture>\n\n", re.DOTALL)
IMAGE = re.compile(r'src="(?P<path>[^"]+)".* alt="(?P<text>[^"]*)"')
LINK = re.compile(r"\[(?P<text>[^]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def described(readme: str, repository: str, tag: str) -> str:
    """The text of README.md for an index; `repository` is its address, or empty."""

    def link(found: re.Match[str]) -> str:
        if not repository:
            return found["text"]
        return f"[{found['text']}]({repository}/blob/{tag}/{found['path']}{found['anchor'] or ''})"

    def picture(found: re.Match[str]) -> str:
        image = IMAGE.search(found[0])
        if image is None:
            raise ValueError(f"README.md has a picture without src and alt: {found[0]}")
        if not repository:
            return ""
        # An index removes <source>, and with it the picture for dark pages.
        return f"![{image['text']}]({repository}/raw/{tag}/{image['path']})\n\n"

    text, sections = SECTION.subn(lambda _: f"{INSTALL}\n", readme)
    if sections != 1:
        raise ValueError(f'README.md has {sections} sections "## Install" before another, not one')
    return LINK.sub(link, PICTURE.sub(picture, text))


def current(root: Path = ROOT) -> str:
    """The description of a checkout."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cargo = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    return described(
        (root / "README.md").read_text(encoding="utf-8"),
        project.get("urls", {}).get("Repository", ""),
        f"v{cargo['workspace']['package']['version']}",
    )


if __name__ == "__main__":
    PAGE.write_text(current(), encoding="utf-8")
