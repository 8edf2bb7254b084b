"""The site of the documentation; ``make docs`` builds it, with warnings as errors.

Nothing is loaded from a network, neither by the build nor by a reader's browser, and the search is
Sphinx's own. The Markdown is also read on Git hosts, so its links are those of the repository.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "cartwheel"
author = "cartwheel developers"
copyright = author
html_title = project

extensions = ["myst_parser", "sphinx_copybutton", "repository_links", "checked_html"]
exclude_patterns = ["_build", "extensions", "requirements.txt"]
root_doc = "index"

myst_heading_anchors = 3  # as on Git hosts: [text](page.md#a-heading)
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
