"""The table of CONTRIBUTING.md has every stage of the tests, and says truly when each one runs.

A test that no stage runs proves nothing: each marker, each crate and each folder of tests has one.
"""

import re
from pathlib import Path

import pytest

from benchmarks.figures.pages import PEERS
from tests.repository.test_workflows import made_by, targets

tomllib = pytest.importorskip("tomllib")  # in Python from 3.11 on
ROOT = Path(__file__).parents[2]
MAKEFILES = "".join(
    (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "tests/Makefile")
)
#: Targets that run no test: they build, measure, write or show something, or are a part of another.
OTHERS = {
    *("help", "help-all", "setup", "build", "demo", "fmt", "docs", "docs-serve"),
    *(
        "bench",
        "bench-agents",
        "bench-minigrid",
        "bench-time-to-solve",
        "bench-trainers",
        "compare",
        "charts",
        "figures",
        "figures-peers",
        "faults",
        "wheel",
        "wheels",
    ),
    *(f"bench-{peer}" for peer in PEERS),
    *("crates", "sdist", "reproduce", "linkcheck", "check-macos", "test"),
}


def stages():
    """The targets of the table, each with what it says about when they run."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, table = text.split("| stage |", 1)
    for row in re.findall(r"^\| (`make .*?) \| .* \| (.*?) \|$", table, re.MULTILINE):
        for target in re.findall(r"`make ([a-z-]+)`", row[0]):
            yield target, row[1].strip("`")


def made_with(target):
    """The targets that a target makes, in its prerequisites and in its recipe."""
    rule = re.search(rf"^{target}:(.*?)##.*\n((?:\t.*\n)*)", MAKEFILES, re.MULTILINE)
    assert rule, target
    return set(re.findall(r"[a-z][a-z-]+", rule[1] + rule[2]))


@pytest.mark.parametrize(("target", "when"), list(stages()))
def test_a_stage_runs_when_the_table_says(target, when):
    if when == "before a release":
        assert target in targets()
    elif when == ".ci/run":
        here = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        assert target in re.search(r"^make (.*)$", here, re.MULTILINE)[1].split()
    elif when == "CI":
        assert target in made_by("ci")
    elif when == "weekly":
        assert target in made_by("weekly")
    else:
        assert target in made_with(when.removeprefix("make "))


def test_every_target_is_a_stage_or_runs_no_test():
    assert {target for target, _ in stages()} | OTHERS == targets()


def test_a_stage_selects_each_marker():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = configuration["tool"]["pytest"]["ini_options"]
    for marker in (text.partition(":")[0] for text in options["markers"]):
        selected = "--slow" if marker == "slow" else f"-m {marker}"
        assert f"{selected} " in MAKEFILES.replace("\n", " "), marker


def test_a_stage_tests_each_crate():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    tested = set(workspace["default-members"])
    for member in set(workspace["members"]) - tested:
        crate = tomllib.loads((ROOT / member / "Cargo.toml").read_text(encoding="utf-8"))
        (target,) = crate.get("bin") or [crate["lib"]]
        assert target["test"] is False, f"{member} has tests that `cargo test` does not run"
        assert not (ROOT / member / "tests").exists()


def test_a_stage_collects_each_folder_of_tests():
    """`pytest` collects `tests`; the examples' own tests need their wheels."""
    tops = [path for path in ROOT.glob("[a-z]*/") if path.name not in ("target", "tests")]
    files = (file.relative_to(ROOT) for top in tops for file in top.rglob("test_*.py"))
    folders = {file.parent.as_posix() for file in files}
    assert folders
    for folder in folders:
        assert re.search(rf"pytest .*\b{folder}\b", MAKEFILES), folder
