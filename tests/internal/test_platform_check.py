"""Errors where cartwheel does not run."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cartwheel
from cartwheel._internal import platform_check

PACKAGE = Path(cartwheel.__file__).parent


def importing(folder, before=""):
    """The last line that Python prints when it imports cartwheel from ``folder``."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{before}\nimport cartwheel"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    return ended.stderr.strip().splitlines()[-1]


@pytest.fixture
def copied(tmp_path):
    """A copy of the package without its native module."""
    natives = shutil.ignore_patterns("_cartwheel*.so", "__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "cartwheel", ignore=natives))


@pytest.mark.parametrize("version", [(3, 9, 2), (2, 7, 18)])
def test_an_old_python_is_told_which_one_is_needed(version):
    program = f"""
import platform, sys
sys.version_info = {version}
platform.python_version = lambda: "{".".join(map(str, version))}"
"""
    assert importing(PACKAGE.parent, program) == (
        "ImportError: cartwheel needs Python 3.10 or newer; "
        f"this is Python {'.'.join(map(str, version))}."
    )


@pytest.mark.parametrize(
    ("system", "advice"),
    [("win32", " Windows has Linux as WSL 2."), ("emscripten", ""), ("freebsd14", "")],
)
def test_another_system_is_told_which_ones_there_are(monkeypatch, system, advice):
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(ImportError) as raised:
        platform_check.check()
    assert str(raised.value) == f"cartwheel runs on Linux and macOS, not on {system}.{advice}"


def test_a_clone_that_was_not_built_is_told_how(copied):
    assert importing(copied.parent) == (
        f"ImportError: cartwheel has no native module in {copied}: in a clone, build it with "
        "`make build`; otherwise `pip install --force-reinstall cartwheel`."
    )


def test_a_module_for_another_python_is_named_together_with_this_python(copied):
    (copied / "_cartwheel.cpython-39-riscv64-linux-gnu.so").touch()
    message = importing(copied.parent)
    assert "native module _cartwheel.cpython-39-riscv64-linux-gnu.so cannot be loaded" in message
    assert f"CPython {platform.python_version()} (Linux {platform.machine()}" in message
    assert message.endswith("`pip install --force-reinstall cartwheel`.")


def test_a_module_that_the_loader_refuses_shows_what_the_loader_says(copied):
    (copied / "_cartwheel.abi3.so").write_bytes(b"\x7fELF of another machine")
    message = importing(copied.parent)
    assert "native module _cartwheel.abi3.so cannot be loaded" in message
    assert "abi3.so: " in message  # the loader names the file and the reason


def test_a_module_of_another_abi_is_an_import_error_too(copied):
    """The error of CPython 3.14t for a module of the stable ABI, which it loads and cannot use."""
    (copied / "_cartwheel.cpython-39-riscv64-linux-gnu.so").touch()
    (copied / "_cartwheel.py").write_text("raise SystemError('init returned no object')")
    message = importing(copied.parent)
    assert message.startswith("ImportError: cartwheel's native module _cartwheel.cpython-39")
    assert "init returned no object" in message


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python's own interface to interpreters")
def test_a_subinterpreter_is_told_that_it_cannot_import_cartwheel():
    """The module fits this Python: to install it again would not help."""
    program = """
from concurrent import interpreters
from contextlib import closing
with closing(interpreters.create()) as another:
    another.exec("import cartwheel")
"""
    assert importing(PACKAGE.parent, program) == (
        "ImportError: cartwheel can be imported by the main interpreter of a process alone, as "
        f"NumPy, and this is another one of {platform_check._python()}: use threads or processes."
    )


def test_the_oldest_python_is_the_one_of_the_metadata():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    oldest = ".".join(map(str, platform_check.OLDEST_PYTHON))
    assert f'requires-python = ">={oldest}"' in project
