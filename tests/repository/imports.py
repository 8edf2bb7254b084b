"""The imports within a Python package, read from its source, so imports for types count too."""

import ast
from collections import deque
from functools import cache
from typing import NamedTuple

#: Parts of a syntax tree that may have imports in them.
_WITH_IMPORTS = ast.stmt, ast.excepthandler, ast.match_case


class Import(NamedTuple):
    """One import of a module by another module of the same package."""

    place: str
    #: Names of modules relative to the root, such as ``worker.group``.
    source: str
    target: str

    def __str__(self):
        return f"{self.place} imports {self.target}"


def python_imports(root):
    """The modules of a package, and the imports among them; its root is the module ``__init__``."""
    modules = {}
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi")]):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        modules[name] = path, [node for node, _ in import_nodes(path)]
    bound = {name: _imported_names(nodes) for name, (_, nodes) in modules.items()}
    found = []
    for source, (path, nodes) in modules.items():
        for node in nodes:
            for target in _targets(node, root.name, source, bound):
                place = f"{path.relative_to(root.parents[1])}:{node.lineno}"
                found.append(Import(place, source, target))
    return list(modules), found


@cache
def import_nodes(path):
    """The imports in a file, in their order, each with whether it is for type checkers alone."""
    return list(_imports(ast.parse(path.read_text()), for_types=False))


def _imports(node, *, for_types):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, for_types
        elif isinstance(child, _WITH_IMPORTS):
            checks = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            yield from _imports(child, for_types=for_types or checks)


def _imported_names(nodes):
    from_modules = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in from_modules for alias in node.names}


def _targets(node, package, source, bound):
    """The modules of the package that an import imports."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".", 1) for alias in node.names]
        return [(*name, "__init__")[1] for name in names if name[0] == package]
    if node.module.split(".")[0] != package:
        return []
    owner = node.module.partition(".")[2]
    if not owner and source != "__init__":
        return ["__init__"]  # an import of the package itself, even for a module
    targets = set()
    for alias in node.names:
        module = f"{owner}.{alias.name}".lstrip(".")
        targets.add(module if module in bound and alias.name not in bound.get(owner, ()) else owner)
    return sorted(targets)


def way(targets, start, goal):
    """The modules on a shortest path of imports; ``None`` if there is no path.

    ``targets`` has the modules that each module imports.
    """
    ways, seen = deque([[start]]), {start}
    while ways:
        so_far = ways.popleft()
        if so_far[-1] == goal:
            return so_far
        for target in targets.get(so_far[-1], set()) - seen:
            seen.add(target)
            ways.append([*so_far, target])
    return None
