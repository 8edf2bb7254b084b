"""The imports within a Rust crate: paths in the code, not in comments, strings or tests."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.repository.imports import Import

_TEXT = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | r(\#*)".*?"\1 | "(?:\\.|[^"\\])*" | '(?:\\.[^']*|[^'\\])'""",
    re.VERBOSE | re.DOTALL,
)
_TESTS = re.compile(r"#\[cfg\((?:all\()?[^\]]*\btest\b[^\]]*\]\s*(?:mod\s+(\w+)\s*;)?")
_BLOCK = re.compile(r"\bmod\s+\w+\s*\{")
_USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:$])(?:crate|super)(?:::\w+)+")


class _Use(NamedTuple):
    line: int
    path: list
    #: The name that it defines, and whether it is public.
    name: str = ""
    public: bool = False


def rust_imports(root):
    """The modules of a crate, and the imports among them; ``lib.rs`` is the module ``lib``.

    An import of a name that a module re-exports counts as an import of the module that has it.
    """
    paths, codes, of_tests = {}, {}, set()
    for path in sorted(Path(root).rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "mod" else parts)
        codes[name], tests = _without_tests(_TEXT.sub(_blank, path.read_text()))
        paths[name] = path.relative_to(root.parents[2])
        of_tests |= {test if name == "lib" else f"{name}.{test}" for test in tests}
    uses = {name: [*_uses(code)] for name, code in codes.items() if name not in of_tests}
    found = {}
    for source, used in uses.items():
        for use in [*used, *_paths(codes[source])]:
            target = _target(uses, source, use.path)
            if target not in (None, source):
                found[Import(f"{paths[source]}:{use.line}", source, target)] = None
    return list(uses), list(found)


def _blank(match):
    return "\n" * match[0].count("\n") or " "


def _end_of_block(code, end):
    """The end of the block that begins before ``end``."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    return end


def _without_tests(code):
    """The code without items that are compiled only for tests, and the names of such modules."""
    modules = []
    while match := _TESTS.search(code):
        end = match.end()
        if match[1]:
            modules.append(match[1])
        else:
            end = re.compile("[;{]").search(code, end).end()
            end = _end_of_block(code, end) if code[end - 1] == "{" else end
        code = code[: match.start()] + "\n" * code.count("\n", match.start(), end) + code[end:]
    return code, modules


def _uses(code):
    for match, line, depth in _places(_USE, code):
        for path, name in _leaves(re.sub(r"\s+", " ", match[2])):
            yield _Use(line, _from_the_file(path, depth), name, bool(match[1]))


def _paths(code):
    """The paths in the code outside of ``use``."""
    for match, line, depth in _places(_PATH, _USE.sub(_blank, code)):
        yield _Use(line, _from_the_file(match[0].split("::"), depth))


def _places(pattern, code):
    """Each match, its line, and the number of inline modules around it."""
    blocks = [range(at.end(), _end_of_block(code, at.end())) for at in _BLOCK.finditer(code)]
    for match in pattern.finditer(code):
        depth = sum(match.start() in block for block in blocks)
        yield match, code.count("\n", 0, match.start()) + 1, depth


def _from_the_file(path, depth):
    """A path in an inline module, rewritten relative to the module of the file."""
    for _ in range(depth):
        if path[0] == "super":
            path = path[1:] if path[1] == "super" else ["self", *path[1:]]
    return path


def _leaves(tree, before=()):
    """The paths of a ``use``, each with the name that it defines."""
    head, brace, rest = tree.partition("{")
    path, _, name = head.partition(" as ")
    path = [*before, *(part.strip() for part in path.split("::") if part.strip())]
    if not brace:
        path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
        yield path, name.strip() or path[-1]
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part.strip():
                yield from _leaves(part, path)
            part = ""
        else:
            part += letter


def _target(uses, source, path):
    """The module to which a path leads; ``None`` if it is outside the crate."""
    at = [] if source == "lib" else source.split(".")
    first, rest = path[0], path[1:]
    if first == "crate":
        at = []
    elif first == "super":
        at = at[:-1]
    elif ".".join([*at, first]) in uses:
        rest = path
    elif first != "self":
        return None
    while rest and rest[0] == "super":
        at, rest = at[:-1], rest[1:]
    while rest and ".".join([*at, rest[0]]) in uses:
        at, rest = [*at, rest[0]], rest[1:]
    owner = ".".join(at) or "lib"
    handed_on = [use.path for use in uses[owner] if use.public and rest and use.name == rest[0]]
    return _target(uses, owner, handed_on[0]) if handed_on and owner != source else owner
