"""The scripts of docs/migrate: each ``diff`` block is a whole script, before and after."""

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "migrate"
BLOCK = re.compile(r"^```diff\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def scripts(page):
    """For each diff of a page, the script before and the script after."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return [(version(diff, "-"), version(diff, "+")) for diff in BLOCK.findall(text)]


def version(diff, sign):
    """The lines that one side of a diff has; an empty line is one of both sides."""
    lines = [line for line in diff.splitlines() if line[:1] in ("", " ", sign)]
    return "".join(f"{line[1:]}\n" for line in lines)
