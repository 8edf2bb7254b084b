"""ARCHITECTURE.md names what exists, stays short, and lists every crate and package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
#: Folders in which a path of the page may begin.
BASES = (ROOT, ROOT / "rust", ROOT / "python/cartwheel")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|pyi|rs|md))`")


def section(title):
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_path_of_the_page_exists():
    named = set(PATH.findall(TEXT)) - {"lib.rs", "table.rs"}
    assert len(named) > 50
    assert [path for path in named if not any((base / path).exists() for base in BASES)] == []


def test_the_page_stays_a_map():
    assert len(TEXT.splitlines()) <= 200


def test_every_crate_is_on_the_page():
    crates = {path.parent.name for path in ROOT.glob("rust/*/Cargo.toml")}
    assert crates <= set(re.findall(r"`(cartwheel[\w-]*)`", section("The crates")))


def test_every_module_of_the_package_is_on_the_page():
    inside = (ROOT / "python/cartwheel").iterdir()
    modules = {path.name.partition(".")[0] for path in inside if path.suffix in ("", ".py", ".pyi")}
    modules -= {"__init__", "__main__", "__pycache__", "py"}
    named = re.findall(r"`(\w+)(?:/|\.pyi?)`", section("The package"))
    assert sorted(modules) == sorted(named)


def test_no_subject_has_two_rows():
    subjects = re.findall(r"^\| ([^|]+) \|", section("Where to change what"), re.MULTILINE)
    assert len(subjects) > 40
    assert len(subjects) == len(set(subjects))
