"""Checks that the reference has every public name, and that each is documented.

Public are the names in ``__all__`` of ``cartwheel`` and of its modules, and what their classes have
without a leading underscore.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any

from sphinx.ext.autodoc.mock import mock
from sphinx.util import logging

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

LOG = logging.getLogger(__name__)
#: The modules that ``cartwheel`` loads lazily, and those whose classes its names return.
MODULES = ["", *sorted(cartwheel._LAZY_MODULES), "evaluation", "recorder", "rollouts"]


@functools.cache
def public() -> dict[int, tuple[Any, list[str]]]:
    """The public objects, and the names of each: some belong to two modules."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for inside in MODULES:
        module = importlib.import_module(f"cartwheel.{inside}".rstrip("."))
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value) and name != "__version__":
                found.setdefault(id(value), (value, []))[1].append(f"{module.__name__}.{name}")
    return found


def is_documented(value: Any) -> bool:
    """Whether there is text about an object; constants are documented next to their names."""
    needs_text = inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, property)
    return bool(inspect.getdoc(value)) or not needs_text


def is_described_by_base(value: type[Any], member: str, documented: set[str]) -> bool:
    """Whether the reference has a member with a base class that declares it."""
    bases = (public().get(id(base), (base, []))[1] for base in value.__mro__[1:])
    return any(f"{name}.{member}" in documented for names in bases for name in names)


def members_of(value: Any) -> list[str]:
    """The public members of a class, with those of its bases that are not public themselves."""
    ours = [base for base in getattr(value, "__mro__", ()) if base.__module__[:9] == "cartwheel"]
    bases = [base for base in ours if base is value or id(base) not in public()]
    return [name for base in bases for name in vars(base) if not name.startswith("_")]


def faults(documented: set[str]) -> Iterator[str]:
    """The faults of the reference, given the names that it has."""
    for value, names in public().values():
        shown = next((name for name in names if name in documented), None)
        if shown is None:
            yield f"{names[0]} is not in the reference"
            continue
        members = [
            name
            for name in dict.fromkeys(members_of(value))
            if not is_described_by_base(value, name, documented)
        ]
        for name, one in [(shown, value), *((f"{shown}.{m}", getattr(value, m)) for m in members)]:
            if not is_documented(one):
                yield f"{name} has no documentation"
            elif name not in documented and not is_inherited(value, name, documented):
                yield f"{name} is not in the reference"


def is_inherited(kind: Any, name: str, documented: set[str]) -> bool:
    """Whether a member overrides one that the reference has under the name of a base class."""
    member = name.rsplit(".", 1)[1]
    bases = kind.__mro__[1:] if inspect.isclass(kind) else ()
    names = [name for base in bases for name in public().get(id(base), (base, []))[1]]
    return any(f"{name}.{member}" in documented for name in names)


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warns of each fault; the build ends with an error, as for every warning."""
    with mock(app.config.autodoc_mock_imports):
        for fault in faults(set(env.domains["py"].data["objects"])):
            LOG.warning(fault)


def setup(app: Sphinx) -> dict[str, bool]:
    """Checks when all pages are read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True}
