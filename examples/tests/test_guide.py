"""docs/write-an-env-in-rust.md: its Python runs here.

`tests/examples/test_rust_guide.py` compares its other code with that of the examples.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/write-an-env-in-rust.md"


def test_the_python_of_the_page_runs_from_its_first_line_to_its_last(thermostat, monkeypatch):
    monkeypatch.chdir(thermostat.parent)
    namespace = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), str(PAGE), "exec"), namespace)
