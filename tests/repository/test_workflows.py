"""Promises of the workflows of .github/: the checks of .ci/run, pinned actions, no address."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github").glob("**/*.yml"))
WORKFLOWS = {
    path.stem: path.read_text(encoding="utf-8") for path in FILES if "workflows" in path.parts
}
ACTION = re.compile(r"^\s*(?:- )?uses: (\S+)(.*)$", re.MULTILINE)


def targets():
    """The targets of the Makefile and of those that it includes."""
    makefiles = [ROOT / "Makefile", *ROOT.glob("*/Makefile")]
    text = "".join(path.read_text(encoding="utf-8") for path in makefiles)
    return set(re.findall(r"^([a-z-]+):.* ##", text, re.MULTILINE))


def made_by(workflow):
    """The targets that a workflow makes, by name or from its matrix."""
    text = WORKFLOWS[workflow]
    named = re.findall(r"\bmake ([a-z][a-z-]*)", re.sub(r"#.*|name: .*", "", text))
    inline = re.findall(r"^ +target: \[(.*)\]", text, re.MULTILINE)
    listed = re.findall(r"^ +target:\n((?: +- .*\n)+)", text, re.MULTILINE)
    return {*named, *re.findall(r"[a-z-]+[a-z]", " ".join([*inline, *listed]))}


def test_a_change_is_checked_by_what_checks_it_here():
    here = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"^make (.*)$", here, re.MULTILINE)
    assert set(wanted.split()) <= made_by("ci")


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_makes_targets_that_exist(workflow):
    assert made_by(workflow) - targets() == set()


def test_wheels_are_installed_on_every_python_that_is_supported():
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    stated = re.findall(r"Python :: (3\.\d+)\"", metadata)
    assert len(stated) > 1
    rows = re.findall(r"^ +python: \[(.*)\]$", WORKFLOWS["wheels"], re.MULTILINE)
    assert rows
    for row in rows:
        tried = re.findall(r"\"([\d.]+)\"", row)
        assert sorted(tried) == sorted(stated)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_third_party_actions_are_pinned_by_the_hash_of_a_commit(path):
    for action, comment in ACTION.findall(path.read_text(encoding="utf-8")):
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v[\d.]+", comment), f"the version of {action}"
        else:
            assert (ROOT / action).exists()


@pytest.mark.parametrize("path", [*FILES, ROOT / "CITATION.cff"], ids=lambda path: path.name)
def test_nothing_names_a_host(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"https?://|\b(?:ghcr|docker|quay)\.io\b|\bpypi\.org\b", text) == []


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_may_do_nothing_that_a_job_does_not_ask_for(workflow):
    assert "\npermissions: {}\n" in WORKFLOWS[workflow]
    granted = re.findall(r"^ +([a-z-]+): write", WORKFLOWS[workflow], re.MULTILINE)
    publish = ["attestations", "contents", "id-token", "id-token"]  # PyPI and crates.io
    may = {"release": publish, "docs": ["id-token", "pages"]}
    assert sorted(granted) == may.get(workflow, [])


def test_the_site_is_published_from_main_only():
    assert "if: github.ref == 'refs/heads/main'" in WORKFLOWS["docs"]
    assert "needs: build" in WORKFLOWS["docs"]
