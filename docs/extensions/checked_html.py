"""Checks the pages that were built: every internal link and anchor exists, nothing is fetched.

A broken link, or a script, style sheet, font or picture of another host, fails the build.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOG = logging.getLogger(__name__)
#: The attributes whose values a browser loads with a page.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}


class Page(HTMLParser):
    """The anchors of a page, where it links to, and what a browser loads with it."""

    def __init__(self, path: Path) -> None:
        """Reads a page."""
        super().__init__()
        self.anchors = {""}  # the top, which a link without an anchor means
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects the attributes that name something."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.anchors.add(value)
            elif (tag, name) in LOADED:
                self.loads.add(value)
            elif name == "href":
                self.links.add(value)


def faults(folder: Path) -> list[tuple[Path, str]]:
    """The faults of a folder of pages: page and fault. The pages of `cargo doc` are its own."""
    paths = [path for path in folder.rglob("*.html") if folder / "rust" not in path.parents]
    pages = {path: Page(path) for path in sorted(paths)}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links | page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append((path, f"loads {link} from a network"))
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append((path, f"links to {link}, which does not exist"))
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append((path, f"links to {link}, which has no such anchor"))
    return found


def check(app: Sphinx, exception: Exception | None) -> None:
    """Warns of each fault; the build ends with an error, as for every warning."""
    if exception is None and app.builder.format == "html":
        for path, fault in faults(Path(app.outdir).resolve()):
            LOG.warning("%s %s", path.relative_to(Path(app.outdir).resolve()), fault)


def setup(app: Sphinx) -> dict[str, bool]:
    """Checks when the last page is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
