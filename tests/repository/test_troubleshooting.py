"""The symptoms of docs/troubleshooting.md are texts that cartwheel prints."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
#: The code spans in the first cells of the tables; symptoms that are not texts have none.
SYMPTOMS = [text.strip() for _, text in re.findall(r"^\| (`+)(.+?)\1 \| ", PAGE, re.MULTILINE)]
PLACEHOLDER = "\0"


def python_texts(source):
    """The string literals of a module; values of f-strings are placeholders."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else PLACEHOLDER
                for part in node.values
            ]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def rust_texts(source):
    """The string literals of a file; lines that continue are joined."""
    joined = re.sub(r"\\\n\s*", "", source)
    for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', joined):
        yield re.sub(r"\{[^{}]*\}", PLACEHOLDER, literal).replace('\\"', '"')


def printed_texts():
    yield (ROOT / "tests/vector/misuse.txt").read_text(encoding="utf-8")
    for path in (ROOT / "python/cartwheel").rglob("*.py"):
        yield from python_texts(path.read_text(encoding="utf-8"))
    for folder in ("cartwheel-engine/src", "cartwheel-python/src"):
        for path in (ROOT / "rust" / folder).rglob("*.rs"):
            yield from rust_texts(path.read_text(encoding="utf-8"))


def test_the_page_has_symptoms():
    assert len(SYMPTOMS) > 30


def test_cartwheel_prints_every_symptom():
    texts = "\n".join(printed_texts())
    parts = {part.strip(", ()") for symptom in SYMPTOMS for part in symptom.split("…")}
    assert [part for part in sorted(parts) if part not in texts] == []
