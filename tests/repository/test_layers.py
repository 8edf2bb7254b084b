"""The layers of the sources: imports run downwards, and there are no circular imports.

Each list below has one layer per line, from top to bottom, of top-level modules: folders or files
of a package. A module imports only from layers below its own. ``ARCHITECTURE.md`` describes them.
"""

import re
from pathlib import Path
from textwrap import dedent

import pytest

import cartwheel
from tests.repository.imports import import_nodes, python_imports, way
from tests.repository.rust_imports import rust_imports

ROOT = Path(__file__).parents[2]
PYTHON = """
    __main__
    bench
    __init__
    agilerl jax ray rllib sb3 skrl tianshou torchrl
    _cli _make envpool evaluation mujoco recorder rollouts testing
    multiagent
    _spec _xla ale awaitable native wrappers
    vector
    _device returns workers
    _internal
    _cartwheel errors
"""
BINDING = """
    lib
    first_uses
    ffi
    pool
    worker
    image masks memory native returns store wrappers
    value
    array channel
    error
    convert descriptor interpreter known space xla
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
    autoreset error leaf schedule simd transition
    dtype
"""
KERNELS = """
    lib
    image masks returns wrappers
    threads
"""
ENVS = """
    lib
    table
    continuous_mountain_car
    acrobot cart_pole mountain_car pendulum
    simd
    cliff_walking frozen_lake taxi
    blackjack interval libm null numeric plain_loop toy_text
"""
MUJOCO = """
    lib
    table
    hopper walker2d
    ant half_cheetah humanoid humanoid_standup inverted_double_pendulum inverted_pendulum
    planar pusher reacher simulation swimmer
    body_observation env
    forks stepper
    parameters registry
    model
    guard options scalar
    clock field library numeric observation python_number
    memory
"""
PACKAGES = {
    "python/cartwheel": (python_imports, PYTHON),
    "rust/cartwheel-python/src": (rust_imports, BINDING),
    "rust/cartwheel/src": (rust_imports, AUTHOR),
    "rust/cartwheel-core/src": (rust_imports, CORE),
    "rust/cartwheel-engine/src": (rust_imports, ENGINE),
    "rust/cartwheel-envs/src": (rust_imports, ENVS),
    "rust/cartwheel-kernels/src": (rust_imports, KERNELS),
    "rust/cartwheel-mujoco/src": (rust_imports, MUJOCO),
}

#: A package and one above it, whose names it shows when they are used; the import is for types.
LAZY = {("wrappers", "recorder")}


def top_level(module):
    return module.partition(".")[0]


@pytest.fixture(scope="module", params=PACKAGES)
def package(request):
    """The modules of a package, the imports among them, and the layer of each top-level module."""
    reader, layers = PACKAGES[request.param]
    lines = enumerate(dedent(layers).strip().splitlines())
    return *reader(ROOT / request.param), {
        name: layer for layer, line in lines for name in line.split()
    }


def test_every_module_is_in_a_layer(package):
    modules, _, layers = package
    assert {top_level(module) for module in modules} == set(layers)


def test_no_module_imports_from_its_own_layer_or_above(package):
    _, imports, layers = package
    upwards = [
        f"{found}, which is above"
        for found in imports
        if top_level(found.source) != top_level(found.target)
        and layers[top_level(found.source)] >= layers[top_level(found.target)]
        and (found.source, found.target) not in LAZY
    ]
    assert not upwards, "\n".join(upwards)


def test_no_file_imports_itself_through_others(package):
    _, imports, layers = package
    if "lib" in layers:  # Rust: a module may import from its parent, whose type it extends
        imports = [found for found in imports if not found.source.startswith(f"{found.target}.")]
    imports = [found for found in imports if (found.source, found.target) not in LAZY]
    targets = {}
    for found in imports:
        targets.setdefault(found.source, set()).add(found.target)
    ways = [(found, way(targets, found.target, found.source)) for found in imports]
    circles = [f"{found}, a cycle: {' → '.join(back)}" for found, back in ways if back]
    assert not circles, "\n".join(circles)


def test_environments_of_a_worker_know_nothing_of_workers():
    _, imports = python_imports(ROOT / "python/cartwheel")
    own = [found for found in imports if found.source.startswith("workers.envs.")]
    inside = [found for found in own if found.target.startswith("workers.envs.")]
    outside = [str(found) for found in own if top_level(found.target) == "workers"]
    assert inside
    assert outside == [str(found) for found in inside]


def imported_when_run(file):
    """The modules that a file imports, in their order, without those for type checkers."""
    for node, for_types in import_nodes(file):
        if not for_types:
            own = getattr(node, "module", None)
            yield from [own] if own else [alias.name for alias in node.names]


def test_what_is_loaded_late_is_loaded_whole():
    """Before a file of another package, that package is imported.

    Otherwise a thread that imports the package at the same time may wait for this thread, and this
    one for it. Python then gives one of them a module that is not complete.
    """
    root = ROOT / "python/cartwheel"
    late = {f"cartwheel.{name}" for name in cartwheel._LAZY_MODULES} | {*cartwheel._LAZY.values()}
    halves = []
    for file in sorted(root.rglob("*.py")):
        own = root / file.relative_to(root).parts[0]
        begin = list(imported_when_run(own / "__init__.py" if own.is_dir() else file))
        its_own = [at for at, name in enumerate(begin) if name.startswith(f"cartwheel.{own.stem}.")]
        known = set(begin[: its_own[0]] if its_own else begin)
        for module in imported_when_run(file):
            package = ".".join(module.split(".")[:2])
            if package in late - known - {module, f"cartwheel.{own.stem}"}:
                halves.append(f"{file.relative_to(ROOT)} imports {module}, and not {package} first")
    assert not halves, "\n".join(halves)


def read(reader, root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return [(str(found), found.source) for found in reader(root)[1]]


def test_every_import_of_a_python_file_counts(tmp_path):
    files = {
        "__init__.py": "from sample.api.box import Box\n",
        "core.pyi": "import sample.api.box\n",
        "api/__init__.py": "from sample.api.chest import lid\n",
        "api/chest.py": "lid = None  # from sample import core\n",
        "api/box.py": """\
            from typing import TYPE_CHECKING
            from sample.api import chest, lid
            from sample import core
            if TYPE_CHECKING:
                from sample.core import Wine
            def open():
                import sample
        """,
    }
    assert read(python_imports, tmp_path / "python" / "sample", files) == [
        ("python/sample/__init__.py:1 imports api.box", "__init__"),
        ("python/sample/api/__init__.py:1 imports api.chest", "api"),
        ("python/sample/api/box.py:2 imports api", "api.box"),
        ("python/sample/api/box.py:2 imports api.chest", "api.box"),
        ("python/sample/api/box.py:3 imports __init__", "api.box"),
        ("python/sample/api/box.py:5 imports core", "api.box"),
        ("python/sample/api/box.py:7 imports __init__", "api.box"),
        ("python/sample/core.pyi:1 imports api.box", "core"),
    ]


def test_every_import_of_a_rust_file_counts(tmp_path):
    files = {
        "lib.rs": "mod api;\nmod core;\npub use core::wine::Wine as Drink;\n",
        "api.rs": """\
            //! See [`crate::core`].
            use std::{fmt, path::{Path}};
            use crate::{
                Drink,
                core::{self, shelf::{Jam, Salt}},
            };
            const TEXT: &str = "crate::nowhere";
            fn open<'a>(jam: &'a Jam) { super::core::light('"') }
            mod inner { use super::Jam; use super::super::core::Lamp; }
            #[cfg(test)]
            mod tests { use crate::core::wine; }
        """,
        "core/mod.rs": "mod shelf;\npub(crate) mod wine;\n#[cfg(all(test, x))]\nmod trial;\n",
        "core/wine.rs": "use super::shelf;\n",
        "core/shelf.rs": "/* use crate::api; */\n",
        "core/trial.rs": "use crate::api;\n",
    }
    assert read(rust_imports, tmp_path / "rust" / "sample" / "src", files) == [
        ("rust/sample/src/api.rs:3 imports core.wine", "api"),
        ("rust/sample/src/api.rs:3 imports core", "api"),
        ("rust/sample/src/api.rs:3 imports core.shelf", "api"),
        ("rust/sample/src/api.rs:9 imports core", "api"),
        ("rust/sample/src/api.rs:8 imports core", "api"),
        ("rust/sample/src/core/wine.rs:1 imports core.shelf", "core.wine"),
        ("rust/sample/src/lib.rs:3 imports core.wine", "lib"),
    ]


def test_only_the_array_module_touches_the_memory_of_numpy():
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
