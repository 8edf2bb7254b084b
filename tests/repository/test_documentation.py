"""Every example of the documentation runs: docstrings, README.md and the pages of docs/."""

import doctest
import importlib
import importlib.util
import logging
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cartwheel
from tests.support.platforms import needs_pygame

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("**/*.md")) if "_build" not in page.parts),
]
#: Modules and pages that need packages of other environments, and the mark of those environments.
MARKS: dict[str, pytest.MarkDecorator | list[pytest.MarkDecorator]] = {
    "agilerl": pytest.mark.trainers,
    "sb3": pytest.mark.torch,
    "torchrl": pytest.mark.torch,
    "tianshou": pytest.mark.torch,
    "skrl": pytest.mark.torch,
    "jax": pytest.mark.jax,
    "ray": pytest.mark.ray,
    "rllib": [
        pytest.mark.ray,
        # RLlib registers an environment anew for each runner, those of other tests included.
        pytest.mark.filterwarnings("ignore:.*Overriding environment rllib-"),
    ],
    "gpu": pytest.mark.torch,
    "multi-agent": needs_pygame,
    "start": needs_pygame,
    "multiagent": needs_pygame,
    "recorder": needs_pygame,
    "ale": pytest.mark.zoo,
    "environments": pytest.mark.zoo,
}
#: Modules without examples that need JAX.
NEED_JAX = {"cartwheel._xla", "cartwheel.envpool.xla"}
#: Its code needs packages of its own: examples/tests/test_guide.py runs it.
APART = ROOT / "docs/write-an-env-in-rust.md"
#: Pages without code that runs, but with links.
OVERVIEWS = [
    *ROOT.glob("*.md"),
    *ROOT.glob(".github/*.md"),
    ROOT / "rust/UNSAFE.md",
    *(ROOT / name / "README.md" for name in ("benchmarks", "examples")),
]
#: Sources that pages may name.
FOLDERS = "python rust plugins tests benchmarks examples release tools docs .github"
SOURCES = [
    f"/{path.relative_to(ROOT)}"
    for folder in FOLDERS.split()
    for path in (ROOT / folder).rglob("*.*")
]
TRAINERS = [page for page in (ROOT / "docs/trainers").glob("*.md") if page.name != "README.md"]
#: Others may stand between them.
SECTIONS = ["Install", "What to change", "Modes", "Equal results", "Speed", "Limits"]


@pytest.fixture
def _level_of_its_own():
    """A page may set the level of cartwheel's logger, which later tests look at."""
    logger = logging.getLogger("cartwheel")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _cluster_of_its_own(request, monkeypatch):
    """Code that starts Ray does not join an existing cluster, and leaves none."""
    if request.node.get_closest_marker("ray") is None:
        yield
        return
    monkeypatch.setenv("RAY_ADDRESS", "local")
    ray = importlib.import_module("ray")
    ray.shutdown()
    yield
    ray.shutdown()


def examples_in(name):
    """The examples in the docstrings of a module and of the modules in it, as doctests."""
    module = importlib.import_module(name)
    modules = [module]
    if module is not cartwheel:  # whose modules have tests of their own
        path = getattr(module, "__path__", [])
        inner = pkgutil.walk_packages(path, f"{name}.")
        names = [found.name for found in inner if found.name not in NEED_JAX]
        modules += map(importlib.import_module, names)
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for each in modules for test in finder.find(each) if test.examples]


@pytest.mark.parametrize(
    "name",
    [
        "cartwheel",
        *(
            f"cartwheel.{module.name}"
            for module in pkgutil.iter_modules(cartwheel.__path__)
            if module.name not in {*MARKS, "__main__"}
            and f"cartwheel.{module.name}" not in NEED_JAX
        ),
    ],
)
def test_the_examples_in_docstrings_print_what_they_show(name):
    for example in examples_in(name):
        check_example(example)


def check_example(example):
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    outcome = runner.run(example, out=report.append)
    assert outcome.attempted
    assert not outcome.failed, "".join(report)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=mark)
        for name, mark in MARKS.items()
        if importlib.util.find_spec(f"cartwheel.{name}")
    ],
)
def test_the_examples_of_an_adapter_print_what_they_show(name):
    examples = examples_in(f"cartwheel.{name}")
    assert examples
    for example in examples:
        check_example(example)


def test_the_classes_that_users_start_with_have_an_example():
    first = ["VectorEnv", "NativeVectorEnv", "NativeEnv", "Collector", "make_vec", "evaluate"]
    examples = doctest.DocTestParser().get_examples
    assert [name for name in first if not examples(getattr(cartwheel, name).__doc__)] == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=MARKS.get(page.stem, ()))
        for page in PAGES
        if page != APART
    ],
)
@pytest.mark.usefixtures("_level_of_its_own")
def test_the_code_of_a_page_runs_from_its_first_line_to_its_last(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        code = "\n" * line + block.group(1)  # so that a traceback names the line of the page
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.torch
def test_the_diff_for_tensorboard_makes_the_first_program_write_its_numbers(tmp_path, monkeypatch):
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/logging-and-metrics.md").read_text(encoding="utf-8")
    diff = re.search(r"^```diff\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    at_the_top, line, instead = re.split(r"^-(.*\n)", diff, flags=re.MULTILINE)
    program = BLOCK.search(text)[1]
    assert program.count(line) == 1
    added = [re.sub(r"^\+", "", part, flags=re.MULTILINE) for part in (at_the_top, instead)]
    exec(added[0] + program.replace(line, added[1]) + "envs.close()\nboard.close()\n", {})
    events = accumulator.EventAccumulator(str(tmp_path / "runs/cartpole"))
    events.Reload()
    steps = [event.step for event in events.Scalars("train/steps_per_second")]
    assert steps == [32 * 256 * update for update in range(1, 6)]


def test_the_pictures_are_those_that_their_script_draws(tmp_path):
    pictures = ROOT / "docs/pictures"
    subprocess.run([sys.executable, str(pictures / "draw.py"), str(tmp_path)], check=True)
    drawn = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in pictures.glob("*.svg")}


def test_no_code_of_a_page_is_left_out():
    """Python runs here, the cells of tutorials in `make site`; the others are not Python."""
    others = {"c", "diff", "rust", "sh", "text", "toml", "{eval-rst}", "{include}"}
    others |= {"{literalinclude}", "{toctree}"}
    cells = {page for page in PAGES if "{code-cell}" in page.read_text(encoding="utf-8")}
    assert {page.parent.name for page in cells} == {"tutorials"}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        opened = re.findall(r"^ *```+ *([^\s`]+)", text, re.MULTILINE)
        known = others | {"{code-cell}" if page in cells else "python"}
        assert set(opened) <= known, page
        assert opened.count("python") == len(BLOCK.findall(text)), page
        assert page not in cells or "file_format: mystnb" in text.partition("\n# ")[0]


@pytest.mark.parametrize("page", sorted(TRAINERS), ids=lambda page: page.name)
def test_every_page_of_a_trainer_has_the_same_sections_in_the_same_order(page):
    found = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [section for section in found if section in SECTIONS] == SECTIONS


def test_every_file_that_a_page_links_to_exists():
    missing = []
    for page in sorted({*PAGES, *OVERVIEWS}):
        links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        missing += [(page.name, link) for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_every_source_file_that_a_page_names_exists():
    """A path may begin below any folder: ``pool/step.rs``, ``tests/vector/test_parity.py``."""
    missing = []
    for page in sorted({*PAGES, *OVERVIEWS}):
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"`{1,2}((?:[\w.-]+/)+[\w-]+\.(?:rs|py|pyi|c|h|toml|yml))`", text))
        named -= {"cleanrl/ppo.py", "tests/test_vec_envs.py"}  # of CleanRL and Stable-Baselines3
        missing += [
            (page.name, name)
            for name in sorted(named)
            if not any(source.endswith(f"/{name}") for source in SOURCES)
        ]
    assert missing == []
