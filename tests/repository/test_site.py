"""Promises of the site that need no Sphinx; `make docs` checks the others."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.path.insert(0, "docs/extensions")
import native_stub
native_stub.install()
import cartwheel
from cartwheel import envpool, mujoco, recorder, returns, rollouts, testing, wrappers
native = sys.modules["cartwheel._cartwheel"]
assert native.__file__.endswith(".pyi"), native.__file__
print(sorted(set(native.__all__) - set(vars(native))))
print(cartwheel.VectorEnv.step.__doc__ is not None)
"""


def test_the_site_documents_cartwheel_without_its_native_module(tmp_path):
    environment = {**os.environ, "PYTHONPATH": "", "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.returncode) == ("[]\nTrue\n", 0), done.stderr


def test_every_page_is_in_the_navigation_or_is_an_overview():
    trees = [ROOT / "docs/index.md", ROOT / "docs/project/examples.md"]
    trees += (ROOT / "docs").glob("*/README.md")
    trees += (ROOT / "docs").glob("*/index.md")
    listed = set()
    for tree in trees:
        for block in tree.read_text(encoding="utf-8").split("```{toctree}")[1:]:
            for line in block.partition("```")[0].splitlines():
                page = line.rpartition("<")[2].rstrip("> ")
                if page and not page.startswith(":"):
                    listed.add((tree.parent / f"{page}.md").resolve())
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts}
    overviews = {ROOT / "docs/index.md", ROOT / "docs/tutorials/README.md"}
    assert pages - listed - overviews == set()
    assert listed - pages == set()
