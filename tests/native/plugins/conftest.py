"""Plugins for tests: a package with an extension module in Rust, and libraries in C and C++."""

import importlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import cartwheel
from cartwheel import _cartwheel

ROOT = Path(__file__).parents[3]
PACKAGE = """
import cartwheel
from test_plugin import _test_plugin

cartwheel.register(_test_plugin)
"""


def pytest_collection_modifyitems(items):
    """Cargo waits for other builds: `make test` compiles the tests of the crates meanwhile."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


def _is_newer_than_its_sources(library):
    """Whether cargo has nothing to build, by its list of the files that this checkout has."""
    try:
        built = library.stat().st_mtime
        sources = library.with_suffix(".d").read_text().partition(": ")[2].split()
        times = [Path(source).stat().st_mtime for source in sources]
    except FileNotFoundError:
        return False
    is_ours = all(Path(source).is_relative_to(ROOT) for source in sources)
    return is_ours and max(times, default=built + 1) <= built


def _built():
    """The extension module of the crate ``test-plugin``, built unless it is there."""
    # That of the Makefile, which names the same Python, keeps what it has built.
    environ = {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1", **os.environ}
    target = ROOT / "target"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # its objects have another form
        environ["PYO3_PYTHON"] = sys.executable
        target /= f"free-threaded-{sysconfig.get_config_var('py_version_nodot')}"
    environ["CARGO_TARGET_DIR"] = str(target)
    library = target / "debug/lib_test_plugin.so"
    if _is_newer_than_its_sources(library):
        return library  # cargo would wait for other builds, such as those of `make test`
    command = [
        "cargo",
        "build",
        "--locked",
        "--quiet",
        "--message-format=json",
        "-p",
        "test-plugin",
    ]
    debug = target / "debug/lib_cartwheel.so"
    if debug.exists() and debug.stat().st_size == Path(_cartwheel.__file__).stat().st_size:
        # Built together, as the Makefile does, all share crates; alone, these are built again.
        command += ["-p", "cartwheel-python", "-p", "cartwheel"]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, check=True, stdout=subprocess.PIPE, text=True
    )
    messages = map(json.loads, done.stdout.splitlines())
    return next(
        Path(name)
        for message in messages
        if message.get("target", {}).get("name") == "_test_plugin"
        for name in message["filenames"]
        if name.endswith(".so")
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder of packages, with the package ``test_plugin``."""
    site = tmp_path_factory.mktemp("site")
    package = site / "test_plugin"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    shutil.copy(_built(), package / "_test_plugin.so")
    return site


@pytest.fixture(scope="session")
def plugin(site):
    """The package ``test_plugin``, imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        return importlib.import_module("test_plugin")


@pytest.fixture
def run_fresh(site):
    """Runs a program in a new interpreter that finds ``test_plugin``; returns what it prints."""

    def run_fresh(program, *arguments, **environ):
        folders = [site, Path(cartwheel.__file__).parents[1], ROOT]
        command = [sys.executable, "-c", textwrap.dedent(program)] if program else [sys.executable]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), **environ},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_fresh


@pytest.fixture(scope="session")
def compile_counter(tmp_path_factory):
    """Compiles ``counter.c``, with definitions for the compiler; returns the library."""
    folder, numbers = tmp_path_factory.mktemp("counters"), itertools.count()

    def compile_counter(*, compiler="cc", flags=("-std=c11",), **definitions):
        library = folder / f"libcounter{next(numbers)}.so"
        given = [f"-D{name}={value}" for name, value in definitions.items()]
        warnings = ["-Wall", "-Wextra", "-Werror"]
        unused = ["-Wno-missing-field-initializers", "-Wno-unused-function"]
        command = [*compiler.split(), *flags, *warnings, *unused, "-O0", "-shared", "-fPIC", *given]
        source = Path(__file__).with_name("counter.c")
        subprocess.run(
            [*command, f"-I{ROOT / 'rust/cartwheel-abi/include'}", str(source), "-o", str(library)],
            check=True,
        )
        return library

    return compile_counter


@pytest.fixture(scope="session")
def counter(compile_counter):
    """The id of the environment of ``counter.c``."""
    (env_id,) = cartwheel.load_plugin(compile_counter())
    return env_id


@pytest.fixture
def make_counter(counter, closes):
    """Makes rows of ``counter.c`` on one thread; closes them after the test."""

    def make_counter(num_envs=3, **keywords):
        keywords = {"executor": "inline", **keywords}
        return closes(cartwheel.NativeVectorEnv(counter, num_envs, **keywords))

    return make_counter
