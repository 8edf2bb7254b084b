"""docs/write-an-env-in-rust.md: its code is that of the examples, whole, with the names it needs.

`make test-examples` compiles the examples and runs the Python of the page.
"""

import re
from pathlib import Path

import pytest

from cartwheel._cli import new

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/rust-env"
PAGE = (ROOT / "docs/write-an-env-in-rust.md").read_text(encoding="utf-8")
#: A line that imports names.
USE = re.compile(r"^use ([\w:*]+?)(?:::\{(.*?)\})?;\n", re.MULTILINE | re.DOTALL)
#: A part of the implementation of a trait: `// …` stands for the rest.
PART = re.compile(r"impl Env for \w+ \{\n(.*)\}\n", re.DOTALL)


def source(path):
    return (ROOT / "examples" / path).read_text(encoding="utf-8")


def blocks(language):
    """The blocks of code in a language, by the line where each begins."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return {PAGE.count("\n", 0, at.start(1)): at.group(1) for at in pattern.finditer(PAGE)}


def imported(code):
    """The names that `use` lines import."""
    names = set()
    for path, group in USE.findall(code):
        names |= {name.strip() for name in group.split(",")} if group else {path.split("::")[-1]}
    return names - {""}


def body(block):
    """A block without its `use` lines, and without the frame of a part of an `impl`."""
    code = USE.sub("", block).lstrip("\n")
    part = PART.fullmatch(code)
    if part is None or "    // …\n" not in part[1]:
        return code
    return part[1].replace("    // …\n", "")


RUST = blocks("rust")
SOURCES = ["rust-env/src/lib.rs", "rust-physics/src/lib.rs"]
SOURCES += ["rust-env/tests/check.rs", "rust-env/examples/steps.rs"]


@pytest.mark.parametrize(
    ("language", "paths"),
    [
        ("rust", SOURCES),
        ("toml", ["rust-env/Cargo.toml", "rust-env/pyproject.toml"]),
        ("text", ["rust-env/python/my_game/__init__.py"]),
        ("c", ["c-env/thermostat.c"]),
    ],
)
def test_every_block_is_a_part_of_a_file_that_is_compiled(language, paths):
    sources = [source(path) for path in paths]
    found = {line: body(code) for line, code in blocks(language).items()}
    assert found
    foreign = [line for line, code in found.items() if not any(code in file for file in sources)]
    assert foreign == [], f"lines of the page whose blocks are not in {paths}"


def test_the_blocks_are_the_whole_file():
    rest = source("rust-env/src/lib.rs")
    names = imported(rest)
    maze = [code for code in RUST.values() if body(code) in rest]
    for code in maze:
        rest = rest.replace(body(code), "")
    rest = USE.sub("", rest)
    left = [line for line in rest.splitlines() if line.strip() and not line.startswith("//!")]
    assert left == ["impl Env for Maze {", "}"]
    assert set().union(*map(imported, maze)) == names


@pytest.mark.parametrize("line", RUST)
def test_a_block_imports_the_names_in_it_and_no_others(line):
    code = USE.sub("", RUST[line])
    library = (ROOT / "rust/cartwheel/src/lib.rs").read_text(encoding="utf-8")
    exported = set()
    for names in re.findall(r"^pub use [\w:]+?::(?:\{([^}]*)\}|\w+);", library, re.MULTILINE):
        exported |= {name.strip() for name in names.split(",")}
    exported |= set(re.findall(r"^pub use [\w:]+::(\w+);", library, re.MULTILINE)) | {"Arc"}
    used = set(re.findall(r"(?<![\w:])([A-Z]\w+)\b", re.sub(r"//.*|type \w+", "", code)))
    names = imported(RUST[line])
    assert used & exported <= names
    unused = {name for name in names - {"*"} if not re.search(rf"\b{name}\b", code)}
    assert unused == set()


def test_the_crate_of_the_page_is_the_one_that_the_command_writes():
    written = new.render("my-game", 'path = "../../rust/cartwheel"')
    for path in ("Cargo.toml", "pyproject.toml"):
        assert written[path] == (EXAMPLE / path).read_text(encoding="utf-8")
    init = (EXAMPLE / "python/my_game/__init__.py").read_text(encoding="utf-8")
    assert written["python/my_game/__init__.py"].partition("\n\n")[2] == init.partition("\n\n")[2]
    named = re.findall(r"^\| (`.*?`) \|", PAGE.partition("## The state")[0], re.MULTILINE)
    files = {name for cell in named for name in re.findall(r"`([^`]+\.\w+)`", cell)}
    assert files == set(written) - {"README.md", ".gitignore"}


def test_the_author_of_the_maze_writes_at_most_125_lines():
    template = ["Cargo.toml", "pyproject.toml", "src/lib.rs", "python/my_game/__init__.py"]
    text = "".join((EXAMPLE / path).read_text("utf-8") for path in template)
    code = [line for line in text.splitlines() if not re.match(r'\s*(//.*|""".*""")?$', line)]
    written = "".join(new.render("my-game", 'path = "../../rust/cartwheel"').values()).splitlines()
    assert len([line for line in code if line not in written]) <= 125
