"""Puts the summary of a documented object first, and a long signature after it.

A function with overloads has one signature, its last and most general one. A signature that does
not fit a line is shortened to `name(…)`, and stands in full below the first paragraph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def arrange(_: Sphinx, page: nodes.document) -> None:
    """Changes every description of a Python object on a page."""
    for description in list(page.findall(addnodes.desc)):
        if description["domain"] == "py":
            *others, signature, content = description.children
            join(signature, others)
            move_parameters(signature, content)


def join(signature: addnodes.desc_signature, others: list[addnodes.desc_signature]) -> None:
    """Leaves one signature, with the anchors of all."""
    for other in others:
        signature["ids"] = list(dict.fromkeys([*other["ids"], *signature["ids"]]))
        other.parent.remove(other)


def move_parameters(signature: addnodes.desc_signature, content: addnodes.desc_content) -> None:
    """Moves the parameters of a long signature below the summary, if there is one."""
    parameters = signature.next_node(addnodes.desc_parameterlist)
    long = parameters is not None and parameters.get("multi_line_parameter_list")
    if not long or not content.children or not isinstance(content[0], nodes.paragraph):
        return
    dots = addnodes.desc_parameter("", "", nodes.Text("…"))
    signature.replace(parameters, addnodes.desc_parameterlist("", "", dots))
    name = signature.next_node(addnodes.desc_name)
    full = nodes.container("", name.deepcopy(), parameters, classes=["full-signature"])
    content.insert(1, full)


def setup(app: Sphinx) -> dict[str, bool]:
    """Changes pages after they are read, before names in signatures become links."""
    app.connect("doctree-read", arrange)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
