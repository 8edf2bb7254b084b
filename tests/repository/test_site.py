"""Promises of the site that need no Sphinx; `make docs` checks the others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.path.insert(0, "docs/extensions")
import native_stub
native_stub.install()
import cartwheel
from cartwheel import envpool, mujoco, recorder, returns, rollouts, testing, wrappers
native = sys.modules["cartwheel._cartwheel"]
assert native.__file__.endswith(".pyi"), native.__file__
print(sorted(set(native.__all__) - set(vars(native))))
print(cartwheel.VectorEnv.step.__doc__ is not None)
"""


def test_the_site_documents_cartwheel_without_its_native_module(tmp_path):
    environment = {**os.environ, "PYTHONPATH": "", "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.stdout, done.returncode) == ("[]\nTrue\n", 0), done.stderr


def test_every_page_is_in_the_navigation_or_is_an_overview():
    trees = [ROOT / "docs/index.md", ROOT / "docs/project/examples.md"]
    trees += (ROOT / "docs").glob("*/README.md")
    trees += (ROOT / "docs").glob("*/index.md")
    listed = set()
    for tree in trees:
        for block in tree.read_text(encoding="utf-8").split("```{toctree}")[1:]:
            for line in block.partition("```")[0].splitlines():
                page = line.rpartition("<")[2].rstrip("> ")
                if page and not page.startswith(":"):
                    listed.add((tree.parent / f"{page}.md").resolve())
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts}
    overviews = {ROOT / "docs/index.md", ROOT / "docs/tutorials/README.md"}
    assert pages - listed - overviews == set()
    assert listed - pages == set()


#: Questions of readers: the page that answers, the heading, and a word of each link to it.
QUESTIONS = {
    "How do I install it?": ("index.md", "Install", []),
    "What changes in my program with AsyncVectorEnv?": (
        "tutorials/swap-async-vector-env.md",
        "One line",
        ["AsyncVectorEnv"],
    ),
    "I use EnvPool: what changes?": ("migrate/envpool.md", "Names", ["library", "EnvPool"]),
    "How do I run it in Docker?": ("docker-slurm-ci.md", "Docker", ["Docker"]),
    "Why is my step slow?": ("speed.md", "Why is my step slow?", ["slow"]),
    "Which mode for PPO?": ("autoreset.md", "Which mode to use", ["PPO"]),
    "Where are final observations?": ("autoreset.md", "Autoreset modes", ["last observation"]),
    "How do I save a video?": ("wrappers.md", "Recordings", ["videos"]),
    "Can I use my gym.Wrapper?": ("python-environments.md", "Wrap environments", ["wrappers"]),
    "How many workers?": ("python-environments.md", "Choose the number of workers", ["workers"]),
    "How do I write an environment in Rust?": ("write-an-env-in-rust.md", "Begin", ["Rust"]),
    "What does WorkerTimeoutError mean?": (
        "troubleshooting.md",
        "By the name of the exception",
        ["error"],
    ),
    "Does it run on macOS?": ("platforms.md", "On macOS", ["macOS"]),
    "How do I use it with Stable-Baselines3?": ("trainers/sb3.md", "Install", ["Stable"] * 2),
    "How do I step my own MuJoCo model?": ("own-models.md", "Arguments of the functions", ["own"]),
    "How do I evaluate while I train?": (
        "evaluation.md",
        "Evaluate every few updates",
        ["evaluate"],
    ),
    "How do I log to TensorBoard?": (
        "logging-and-metrics.md",
        "TensorBoard and Weights & Biases",
        ["TensorBoard"],
    ),
}
LINK = re.compile(r"\[([^]]+)\]\(([^)#:\s]+\.md)(?:#[^)\s]*)?\)")


def links_of(page):
    """The pages that a page links to, each with the text around the link: its line."""
    for line in page.read_text(encoding="utf-8").splitlines():
        for link in LINK.finditer(line):
            yield (page.parent / link[2]).resolve(), line


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_two_clicks_from_the_first_page(question):
    answer, heading, words = QUESTIONS[question]
    pages = {(ROOT / "docs/index.md").resolve()}
    for word in words:
        pages = {to for page in pages for to, line in links_of(page) if word in line}
    target = (ROOT / "docs" / answer).resolve()
    assert len(words) <= 2
    assert target in pages
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    assert heading in headings
