"""Links of Markdown to files of the repository, followed on the site as on a Git host.

The Markdown links to files outside of ``docs/`` by their paths. Those that the site includes, such
as ``ARCHITECTURE.md``, become links to the pages that include them; a folder becomes the page of
its README or of the one above it. The other files are downloads, which MyST makes by itself.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Pages of the site that are files elsewhere in the repository. ``project/`` includes them.
PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    ".github/CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "RELEASING.md": "project/releasing.md",
    "README.md": "index.md",
    ".github/SECURITY.md": "project/security.md",
    ".github/SUPPORT.md": "project/support.md",
    "rust/UNSAFE.md": "project/unsafe.md",
    "rust/cartwheel-engine/src/platform/README.md": "project/platform.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "project/examples.md",
    "examples/c-env/README.md": "project/c-env.md",
    "examples/pure-rust/README.md": "project/pure-rust.md",
    "examples/rust-env/README.md": "project/rust-env.md",
    "examples/rust-physics/README.md": "project/rust-physics.md",
    "plugins/minigrid/README.md": "project/minigrid.md",
}
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def page_of(target: Path, docs: Path) -> Path:
    """The site's path of a file or folder of the repository: a page, or the file itself."""
    root = docs.parent
    folder = target
    while target.is_dir() and root in folder.parents:
        if (folder / "README.md").exists():
            target = folder / "README.md"
        folder = folder.parent
    page = PAGES.get(target.relative_to(root).as_posix())
    return docs / page if page else target


def follow(text: str, written_in: Path, shown_in: Path, docs: Path) -> str:
    """Markdown of a file in one folder, with its links changed for a page in another."""

    def moved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(written_in / link[1]))
        if docs.parent not in target.parents or not target.exists():
            return link[1]  # a link that is broken stays so, and MyST warns of it
        return Path(os.path.relpath(page_of(target, docs), shown_in)).as_posix()

    return LINK.sub(moved, text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the two events in which Sphinx has read Markdown and not parsed it yet."""
    docs = Path(app.srcdir)

    def read(_: Sphinx, page: str, source: list[str]) -> None:
        folder = (docs / page).parent
        source[0] = follow(source[0], folder, folder, docs)

    def included(app: Sphinx, path: Path, _: str, content: list[str]) -> None:
        written_in = Path(os.path.normpath(docs / path)).parent
        # MyST passes the name of the page without its folder.
        content[0] = follow(content[0], written_in, (docs / app.env.docname).parent, docs)

    app.connect("source-read", read)
    app.connect("include-read", included)
    return {"parallel_read_safe": True}
