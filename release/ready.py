"""Names every reason not to publish this commit.

    python -m release.ready --tag v0.2.0 --repository https://…

The exit status is 1 if there is a reason. The workflow of a release asks first of all; RELEASING.md
has the steps.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import tomllib

from release import description

ROOT = Path(__file__).parents[1]
#: Sentences of pages that are untrue once the packages are published.
UNPUBLISHED = re.compile(r"not\s+on\s+a\s+package\s+index\s+yet|not\W+published\s+yet")


def toml(path: Path) -> dict[str, Any]:
    """A TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def published_crates(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """The manifests of the crates that are published, by name."""
    manifests = [toml(path)["package"] for path in sorted(root.glob("rust/*/Cargo.toml"))]
    return {each["name"]: each for each in manifests if each.get("publish", True)}


def pages(root: Path = ROOT) -> list[Path]:
    """Files that tell a user how to get cartwheel: pages, and the texts of the command line."""
    found = [*root.glob("docs/**/*.md"), *root.glob("python/cartwheel/_cli/*.py")]
    return [root / "README.md", *sorted(page for page in found if "_build" not in page.parts)]


def reasons(tag: str, repository: str, root: Path = ROOT) -> list[str]:
    """Every reason not to publish the checkout in `root` as `tag` of `repository`."""
    version = toml(root / "Cargo.toml")["workspace"]["package"]["version"]
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and Cargo.toml has the version {version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        found.append(f"CHANGELOG.md has no section '## [{version}] - ' with a date")
    urls = toml(root / "pyproject.toml")["project"].get("urls", {})
    address = {"pyproject.toml": urls.get("Repository", "")}
    address |= {name: crate.get("repository", "") for name, crate in published_crates(root).items()}
    found += [
        f"{name} names {url or 'no address'} as its repository, not {repository}"
        for name, url in address.items()
        if url != repository
    ]
    if (root / description.FILE).read_text(encoding="utf-8") != description.current(root):
        found.append(
            "release/description.md is older than README.md: python -m release.description"
        )
    found += [
        f"{page.relative_to(root)} says '{' '.join(sentence[0].split())}'"
        for page in pages(root)
        for sentence in UNPUBLISHED.finditer(page.read_text(encoding="utf-8"))
    ]
    return found


def main() -> None:
    """Prints the reasons."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tag", required=True, help="vX.Y.Z")
    parser.add_argument("--repository", required=True, help="the address of the repository")
    given = parser.parse_args()
    found = reasons(given.tag, given.repository)
    for reason in found:
        print(reason, file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
