"""Finds what the names in docstrings and signatures refer to, as Python itself would.

A method may be documented with the base class that has it, and a class in another module. Names of
other libraries stay text, because their documentation is not on this machine. The others that
nothing is found for are warnings.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from typing import TYPE_CHECKING, Any

from sphinx.ext.autodoc.mock import mock
from sphinx.util.nodes import make_refnode

from public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

GYMNASIUMS = re.compile(r"^ *from gymnasium\.vector import .*\bVectorEnv\b(?! as)", re.MULTILINE)


def places(target: str, inside: str | None) -> Iterator[str]:
    """Possible names of a documented object: as it is, in a module, or with a base class."""
    owner, _, member = target.rpartition(".")
    owner = owner or inside or ""
    for value, names in public().values():
        for name in names:
            if name.endswith(f".{target}"):
                yield name
            if inspect.isclass(value) and f".{name}".endswith(f".{owner}"):
                yield from (f"{base}.{member}" for base in bases(value))


def bases(value: type[Any]) -> Iterator[str]:
    """The public names of a class and of the classes that it inherits from."""
    for base in value.__mro__:
        yield from public().get(id(base), (base, []))[1]


def is_text(target: str, role: str | None) -> bool:
    """Whether a name without a link is none of a public name: a type, or an inherited member."""
    owner, _, member = target.rpartition(".")
    if role in ("class", "exc"):
        if not owner.startswith("cartwheel"):
            return " " not in target
        return hasattr(importlib.import_module(owner), member)
    # An attribute that `__init__` sets, or that a class of another library has.
    return not owner or any(
        hasattr(value, member)
        for value, names in public().values()
        if any(f".{name}".endswith(f".{owner}") for name in names)
    )


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: Element
) -> reference | Element | None:
    """The link of a name that Sphinx did not find; nothing, if it is a mistake."""
    if node.get("refdomain") != "py":
        return None
    objects = env.domains["py"].data["objects"]
    target, inside = node["reftarget"].lstrip("~."), node.get("py:class")
    with mock(app.config.autodoc_mock_imports):
        for place in places(target, inside):
            if place in objects:
                found = objects[place]
                where = (node["refdoc"], found.docname, found.node_id)
                return make_refnode(app.builder, *where, text, place)
        return text if is_text(target, node.get("reftype")) else None


def qualify(
    _: Sphinx, __: str, ___: str, value: Any, ____: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Says whose ``VectorEnv`` a signature means, where its module imports Gymnasium's."""
    module = sys.modules.get(getattr(value, "__module__", ""))
    if module is None or not GYMNASIUMS.search(inspect.getsource(module)):
        return None
    own = "gymnasium.vector.VectorEnv"
    return re.sub(r"(?<![\w.])VectorEnv\b", own, signature or ""), returns


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the resolution of names."""
    app.connect("autodoc-process-signature", qualify)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
