"""Examples refuse arguments that they do not know, before they do anything."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
#: The programs that need no package but cartwheel's own.
PROGRAMS = [
    path.name
    for path in sorted(EXAMPLES.glob("*.py"))
    if '"__main__"' in (text := path.read_text(encoding="utf-8"))
    and "import torch" not in text
    and "from examples." not in text
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_arguments_are_refused(name, monkeypatch, capsys):
    if name == "own_robot.py":
        pytest.importorskip("mujoco")
    monkeypatch.setattr(sys, "argv", [name, "--num-envs", "8", "surplus", "words"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert caught.value.code == 2
    assert "unrecognized arguments: " in capsys.readouterr().err
