"""The site of the documentation; ``make docs`` builds it, with warnings as errors.

Nothing is loaded from a network, neither by the build nor by a reader's browser, and the search is
Sphinx's own. The Markdown is also read on Git hosts, so its links are those of the repository.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import native_stub

native_stub.install()

ROOT = Path(__file__).parents[1]


def setting(file: str, name: str) -> str:
    """A value of a TOML file of the repository, such as `version`; empty where it has none."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.search(rf'^{name} = "([^"]*)"$', text, re.MULTILINE)
    return found[1] if found else ""


project = "cartwheel"
author = "cartwheel developers"
copyright = author
release = version = setting("Cargo.toml", "version")
html_title = f"{project} {version}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "checked_html",
    "cross_references",
    "public_names",
    "repository_links",
    "signatures",
]
exclude_patterns = ["_build"]
root_doc = "index"

myst_heading_anchors = 3  # as on Git hosts: [text](page.md#a-heading)
myst_enable_extensions = ["attrs_inline", "colon_fence"]

napoleon_attr_annotations = False  # the text of an attribute names its dtype
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
# The trainers need not be installed: their adapters are documented without them.
autodoc_mock_imports = [
    "agilerl",
    "ale_py",
    "jax",
    "ray",
    "skrl",
    "stable_baselines3",
    "tensordict",
    "tianshou",
    "torch",
    "torchrl",
]

nitpicky = True
nb_execution_mode = "force"  # `make docs` turns it off, `make site` does not
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_show_tb = True
nb_merge_streams = True

linkcheck_timeout = 30
linkcheck_retries = 3
linkcheck_anchors = False  # pages that scripts build have none

html_theme = "furo"
html_theme_options = {
    "light_logo": "logo_light.svg",
    "dark_logo": "logo_dark.svg",
    "navigation_with_keys": True,
    # Links to the source of each page, if `[project.urls]` of pyproject.toml names `Repository`.
    "source_repository": setting("pyproject.toml", "Repository"),
    "source_branch": "main",
    "source_directory": "docs/",
}
html_favicon = "static/logo_light.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
if (ROOT / "docs/_build/extra").exists():  # the reference of the crates, by `make docs-rust`
    html_extra_path = ["_build/extra"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"


class Named(NamedTuple):
    """Has a field, whose type is that of the fields of all named tuples."""

    field: int


def setup(app: Sphinx) -> None:
    """Leaves out the fields of named tuples: the sections ``Attributes`` document them."""

    def skip(_: Sphinx, __: str, ___: str, member: object, *____: object) -> bool | None:
        return True if type(member) is type(Named.field) else None

    app.connect("autodoc-skip-member", skip)
