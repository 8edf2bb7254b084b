"""The layout of the sources: which room may import which, and no circular imports.

A room is a top-level folder or file of a package. Each list below has one floor per line, from top
to bottom. A room imports only from floors below its own. ``ARCHITECTURE.md`` describes the rooms.
"""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.imports import python_imports, way
from tests.support.rust_imports import rust_imports

ROOT = Path(__file__).parents[2]
PYTHON = """
    __main__
    bench
    __init__
    ray rllib sb3 skrl tianshou torchrl
    _cli envpool evaluation make mujoco recorder rollouts testing
    _spec ale native wrappers
    vector
    returns workers
    _internal
    _cartwheel errors
"""
BINDING = """
    lib
    first_uses pool
    worker
    image memory native returns store wrappers
    value
    array channel
    error
    descriptor interpreter known mode rules schedule space
"""
ENGINE = """
    lib
    native
    plugin episodes
    pool
    worker
    protocol
    memory
    wake
    info
    error
    autoreset
    call transition
    space
    sync
    failpoint
    platform
"""
AUTHOR = """
    lib
    testing
    python vector
    plugin table
    env
    failure options sealed
"""
CORE = """
    lib
    space
    info rng
    autoreset error leaf schedule transition
    dtype
"""
KERNELS = """
    lib
    image returns wrappers
    threads
"""
PACKAGES = {
    "python/cartwheel": (python_imports, PYTHON),
    "rust/cartwheel-python/src": (rust_imports, BINDING),
    "rust/cartwheel/src": (rust_imports, AUTHOR),
    "rust/cartwheel-core/src": (rust_imports, CORE),
    "rust/cartwheel-engine/src": (rust_imports, ENGINE),
    "rust/cartwheel-kernels/src": (rust_imports, KERNELS),
}

#: A package and one above it, whose names it shows when they are used; the import is for types.
LAZY = {("wrappers", "recorder")}


def room(module):
    return module.partition(".")[0]


@pytest.fixture(scope="module", params=PACKAGES)
def package(request):
    """The modules of a package, the imports among them, and the floor of each room."""
    reader, floors = PACKAGES[request.param]
    lines = enumerate(dedent(floors).strip().splitlines())
    return *reader(ROOT / request.param), {
        name: floor for floor, line in lines for name in line.split()
    }


def test_every_room_is_on_a_floor(package):
    modules, _, floors = package
    assert {room(module) for module in modules} == set(floors)


def test_no_room_imports_from_its_own_floor_or_above(package):
    _, imports, floors = package
    upwards = [
        f"{found}, which is above"
        for found in imports
        if room(found.source) != room(found.target)
        and floors[room(found.source)] >= floors[room(found.target)]
        and (found.source, found.target) not in LAZY
    ]
    assert not upwards, "\n".join(upwards)


def test_no_file_imports_itself_through_others(package):
    _, imports, floors = package
    if "lib" in floors:  # Rust: a module may import from its parent, whose type it extends
        imports = [found for found in imports if not found.source.startswith(f"{found.target}.")]
    targets = {}
    for found in imports:
        targets.setdefault(found.source, set()).add(found.target)
    ways = [(found, way(targets, found.target, found.source)) for found in imports]
    circles = [f"{found}, a cycle: {' → '.join(back)}" for found, back in ways if back]
    assert not circles, "\n".join(circles)


def read(reader, root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return [(str(found), found.source) for found in reader(root)[1]]


def test_every_import_of_a_python_file_counts(tmp_path):
    files = {
        "__init__.py": "from house.attic.box import Box\n",
        "cellar.pyi": "import house.attic.box\n",
        "attic/__init__.py": "from house.attic.chest import lid\n",
        "attic/chest.py": "lid = None  # from house import cellar\n",
        "attic/box.py": """\
            from typing import TYPE_CHECKING
            from house.attic import chest, lid
            from house import cellar
            if TYPE_CHECKING:
                from house.cellar import Wine
            def open():
                import house
        """,
    }
    assert read(python_imports, tmp_path / "python" / "house", files) == [
        ("python/house/__init__.py:1 imports attic.box", "__init__"),
        ("python/house/attic/__init__.py:1 imports attic.chest", "attic"),
        ("python/house/attic/box.py:2 imports attic", "attic.box"),
        ("python/house/attic/box.py:2 imports attic.chest", "attic.box"),
        ("python/house/attic/box.py:3 imports __init__", "attic.box"),
        ("python/house/attic/box.py:5 imports cellar", "attic.box"),
        ("python/house/attic/box.py:7 imports __init__", "attic.box"),
        ("python/house/cellar.pyi:1 imports attic.box", "cellar"),
    ]


def test_every_import_of_a_rust_file_counts(tmp_path):
    files = {
        "lib.rs": "mod attic;\nmod cellar;\npub use cellar::wine::Wine as Drink;\n",
        "attic.rs": """\
            //! See [`crate::cellar`].
            use std::{fmt, path::{Path}};
            use crate::{
                Drink,
                cellar::{self, shelf::{Jam, Salt}},
            };
            const TEXT: &str = "crate::nowhere";
            fn open<'a>(jam: &'a Jam) { super::cellar::light('"') }
            mod inner { use super::Jam; use super::super::cellar::Lamp; }
            #[cfg(test)]
            mod tests { use crate::cellar::wine; }
        """,
        "cellar/mod.rs": "mod shelf;\npub(crate) mod wine;\n#[cfg(all(test, x))]\nmod trial;\n",
        "cellar/wine.rs": "use super::shelf;\n",
        "cellar/shelf.rs": "/* use crate::attic; */\n",
        "cellar/trial.rs": "use crate::attic;\n",
    }
    assert read(rust_imports, tmp_path / "rust" / "house" / "src", files) == [
        ("rust/house/src/attic.rs:3 imports cellar.wine", "attic"),
        ("rust/house/src/attic.rs:3 imports cellar", "attic"),
        ("rust/house/src/attic.rs:3 imports cellar.shelf", "attic"),
        ("rust/house/src/attic.rs:9 imports cellar", "attic"),
        ("rust/house/src/attic.rs:8 imports cellar", "attic"),
        ("rust/house/src/cellar/wine.rs:1 imports cellar.shelf", "cellar.wine"),
        ("rust/house/src/lib.rs:3 imports cellar.wine", "lib"),
    ]


def test_only_the_room_of_arrays_touches_the_memory_of_numpy():
    binding = ROOT / "rust/cartwheel-python/src"
    typed = re.compile(
        r"npyffi|PY_ARRAY_API|PyArray\d|PyArrayDyn|PyArrayMethods|PyReadonly|PyReadwrite"
    )
    elsewhere = [
        f"{file.relative_to(ROOT)}: {found.group()}"
        for file in sorted(binding.rglob("*.rs"))
        if binding / "array" not in file.parents
        for found in typed.finditer(file.read_text())
    ]
    assert not elsewhere, "\n".join(elsewhere)
