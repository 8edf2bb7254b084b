"""Every file with unsafe code is in rust/UNSAFE.md, and rests on numbered invariants."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNSAFE = re.compile(r"^(?!\s*//).*\bunsafe (\{|fn|impl|trait|extern)", re.MULTILINE)
CITED = re.compile(r"[Ii]nvariants? (\d)")


def files():
    return sorted(path for path in (ROOT / "rust").rglob("*.rs") if UNSAFE.search(path.read_text()))


def test_the_listed_files_are_those_with_unsafe_code():
    listed = re.findall(r"^\| `(rust/[^`]+)`", (ROOT / "rust/UNSAFE.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in files())


def test_every_test_named_in_the_list_exists():
    text = (ROOT / "rust/UNSAFE.md").read_text()
    named = re.findall(r"`((?:rust/|tests/|src/)[^`]+\.(?:rs|py))`", text)
    places = [ROOT, ROOT / "rust/cartwheel-engine", ROOT / "rust/cartwheel-kernels"]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_file_with_unsafe_code_cites_numbered_invariants(path):
    """They are in the file or in the ``mod.rs`` of a module that has it.

    Clippy checks that each block has a comment.
    """
    if "tests" in (*path.relative_to(ROOT).parts, path.stem):
        return  # an allocator that forwards every call, and descriptors that tests attach
    cited = {int(number) for number in CITED.findall(path.read_text())}
    headers = (path, *(folder / "mod.rs" for folder in path.parents[:2]))
    stated = {
        int(number)
        for header in headers
        if header.exists()
        for number in re.findall(r"^//! (\d)\. ", header.read_text(), re.MULTILINE)
    }
    assert cited, "no SAFETY comment cites an invariant"
    assert cited <= stated
