"""Every file with unsafe code is in UNSAFE.md, and rests on numbered invariants."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNSAFE = re.compile(r"^(?!\s*//).*\bunsafe (\{|fn|impl|trait|extern)", re.MULTILINE)
CITED = re.compile(r"[Ii]nvariants? (\d)")


def files():
    return sorted(path for path in (ROOT / "rust").rglob("*.rs") if UNSAFE.search(path.read_text()))


def test_every_file_with_unsafe_code_is_listed_and_no_other():
    listed = re.findall(r"^\| `(rust/[^`]+)`", (ROOT / "UNSAFE.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in files())


def test_every_test_that_is_named_as_exercising_it_exists():
    text = (ROOT / "UNSAFE.md").read_text()
    named = re.findall(r"`((?:rust/|tests/|src/)[^`]+\.(?:rs|py))`", text)
    places = [ROOT, ROOT / "rust/cartwheel"]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_file_with_unsafe_code_rests_on_numbered_invariants(path):
    """Its own, or those of its module; that each block has a comment is seen by clippy."""
    if "tests" in (*path.relative_to(ROOT).parts, path.stem):
        return  # an allocator that passes every call on, and descriptors that tests attach
    cited = {int(number) for number in CITED.findall(path.read_text())}
    headers = (path, path.parent / "mod.rs")
    stated = {
        int(number)
        for header in headers
        if header.exists()
        for number in re.findall(r"^//! (\d)\. ", header.read_text(), re.MULTILINE)
    }
    assert cited, "no SAFETY comment cites an invariant"
    assert cited <= stated
