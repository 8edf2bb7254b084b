"""docs/write-an-env-in-rust.md: its Python runs here, its other code is that of the examples."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/write-an-env-in-rust.md"
TEXT = PAGE.read_text(encoding="utf-8")
SOURCES = {
    "rust": ["rust-env/src/lib.rs", "rust-physics/src/lib.rs"],
    "toml": ["rust-env/Cargo.toml", "rust-env/pyproject.toml"],
    "text": ["rust-env/python/my_game/__init__.py"],
    "c": ["c-env/thermostat.c"],
}


def blocks(language):
    """The blocks of code in a language: the line where each begins, and the code."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(TEXT.count("\n", 0, at.start(1)), at.group(1)) for at in pattern.finditer(TEXT)]


@pytest.mark.parametrize("language", SOURCES)
def test_every_block_is_a_part_of_a_file_that_is_compiled(language):
    sources = [(ROOT / "examples" / path).read_text(encoding="utf-8") for path in SOURCES[language]]
    found = blocks(language)
    assert found
    foreign = [line for line, code in found if not any(code in source for source in sources)]
    assert foreign == [], f"lines of {PAGE.name} whose blocks are not in {SOURCES[language]}"


def test_the_python_of_the_page_runs_from_its_first_line_to_its_last(thermostat, monkeypatch):
    monkeypatch.chdir(thermostat.parent)
    namespace = {}
    for line, code in blocks("python"):
        exec(compile("\n" * line + code, str(PAGE), "exec"), namespace)


def test_the_author_of_the_maze_writes_at_most_125_lines():
    template = ["Cargo.toml", "pyproject.toml", "src/lib.rs", "python/my_game/__init__.py"]
    text = "".join((ROOT / "examples/rust-env" / path).read_text("utf-8") for path in template)
    code = [line for line in text.splitlines() if not re.match(r'\s*(//.*|""".*""")?$', line)]
    by_cargo_new = {"[package]", 'name = "my_game"', 'edition = "2024"', "[dependencies]"}
    assert len([line for line in code if line not in by_cargo_new]) <= 125
